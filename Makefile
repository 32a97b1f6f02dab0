# The two commands of the README are `make demo` and `make test`; each sets up .venv where there is none.
PY ?= python3
BIN := .venv/bin
PACKAGE := .venv/.package
READY := .venv/.ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-all check lint types imports docs bench clean

$(PACKAGE): pyproject.toml
	@test -x $(BIN)/python || $(PY) -m venv .venv
	@$(PIP) -e .
	@touch $@

$(READY): $(PACKAGE) requirements-dev.txt constraints.txt
	@$(PIP) -c constraints.txt -r requirements-dev.txt
	@touch $@

demo: $(PACKAGE)  ## Make a problem, train two targets, audit both, write the reports
	@$(BIN)/bystander demo --out demo-out

test: $(READY)  ## The fast tests: no network, under five minutes on two cores
	@$(BIN)/python -m pytest -n 2

test-all: $(READY)  ## Every test, the slow ones too
	@$(BIN)/python -m pytest -n 2 -m ""

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(READY)
	@$(BIN)/mypy

imports: $(READY)
	@$(BIN)/lint-imports

docs: $(READY)  ## Write docs/cli.md and docs/api.md from the code
	@$(BIN)/python docs/generate.py

check: lint types imports test  ## What CI runs

bench: $(READY)  ## Measure us beside the peers (venvs under bench/.venvs), in one run; see bench/README.md
	@$(BIN)/python -m bench

clean:
	rm -rf .venv demo-out dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

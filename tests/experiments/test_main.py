"""The command line of the experiments: what there is, what it costs, pages that are filled from records; small runs."""

import json
import re
import time
from importlib import import_module

import pytest
from experiments._record import HERE, Record
from experiments._spec import every

from experiments import __main__ as command


def test_list_shows_every_experiment_and_what_its_profiles_cost(capsys):
    assert command.main(["list"]) == 0
    shown = capsys.readouterr().out
    for name, experiment in every().items():
        assert f"{name} " in shown
        assert experiment.reproduces in shown
        for profile in experiment.profiles:
            assert f"--profile {profile}:" in shown
    record = Record.load("rr", "small")
    assert f"--profile small: {record.seconds:,.0f} s for {len(record.cells)} cells" in shown


def test_every_record_is_of_its_experiment_as_it_is_set_now():
    """A record of other settings than the code's would be one that no command makes."""
    found = every()
    for path in sorted(HERE.glob("*/records/*.json")):
        body = json.loads(path.read_text())
        assert path.name == f"{body['experiment']}-{body['profile']}.json"
        assert body["settings"] == json.loads(json.dumps(found[body["experiment"]].profiles[body["profile"]])), path
        assert body["cells"]


def test_an_unknown_profile_is_refused(capsys):
    with pytest.raises(SystemExit) as status:
        command.main(["run", "rr", "--profile", "huge"])
    assert status.value.code == 2
    assert "rr has no profile huge; it has small, paper" in capsys.readouterr().err


def test_data_that_is_not_there_is_an_error_of_one_line(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("experiments._data.CACHE", tmp_path)
    monkeypatch.delenv("BYSTANDER_DATA", raising=False)
    assert command.main(["run", "criteo", "--profile", "real", "--into", str(tmp_path)]) == 2
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    assert f"{tmp_path} has no day_0.gz" in error
    assert "criteo.fetch(folder, day=0) gets it" in error
    assert not list(tmp_path.rglob("*.json"))


def test_a_page_is_filled_between_its_marks_alone(tmp_path, monkeypatch):
    page = tmp_path / "results-made-up.md"
    page.write_text("Before.\n\n<!-- made-up-small -->\nold\n<!-- end -->\n\nAfter <!-- end -->.\n")
    monkeypatch.setattr(command, "_PAGES", tmp_path)
    command._fill("made-up-small", "| new |")
    assert page.read_text() == "Before.\n\n<!-- made-up-small -->\n| new |\n<!-- end -->\n\nAfter <!-- end -->.\n"


PAPER = (
    "tab:label_dp_images", "tab:label_dp_criteo", "fig:comparison_mia", "fig:rr_0p1pct", "tab:dp-deltas", "fig:rr_1pct",
    "fig:plots_tau", "tab:cifar10_test_acc", "tab:log_loss_criteo", "tab:label_dp_images_1pct", "fig:cifar10_rmia",
    "tab:twitter",
)  # fmt: skip


def test_every_table_and_figure_of_the_paper_has_a_row_in_its_order():
    page = (HERE.parent / "docs" / "results.md").read_text()
    rows = re.findall(r"^\| `((?:tab|fig):[\w-]+)`", page, re.MULTILINE)
    assert tuple(dict.fromkeys(rows)) == PAPER


@pytest.mark.parametrize("page", sorted((HERE.parent / "docs").glob("results*.md")), ids=lambda page: page.stem)
def test_a_page_shows_what_its_records_hold(page):
    """Tables between marks are those that the record draws; pictures of records that are there are there."""
    text, drawn = page.read_text(), {}
    for path in HERE.glob("*/records/*.json"):
        name, _, profile = path.stem.partition("-")
        if f"-{profile} -->" in text and f"experiments/{name}/" in text:
            tables = import_module(f"experiments.{name}.draw").tables(Record.load(name, profile))
            drawn |= {f"{key}-{profile}": table for key, table in tables.items()}
    for mark, shown in re.findall(r"<!-- ([\w.-]+) -->\n(.*?)<!-- end -->", text, re.DOTALL):
        assert shown == (f"{drawn[mark]}\n" if mark in drawn else ""), mark
    for name, picture, profile in re.findall(r"\.\./experiments/(\w+)/figures/([\w.-]+)-(\w+)\.png", text):
        here = HERE / name / "figures" / f"{picture}-{profile}.png"
        assert here.exists() or Record.load(name, profile) is None, here


@pytest.mark.slow
@pytest.mark.parametrize(("name", "profile", "cells"), [("rr", "small", 24), ("criteo", "tiny", 8)])
def test_small_runs_end_in_under_five_minutes(name, profile, cells, tmp_path, capsys):
    start = time.monotonic()
    assert command.main(["run", name, "--profile", profile, "--into", str(tmp_path)]) == 0
    assert time.monotonic() - start < 300
    assert len(Record.load(name, profile, tmp_path).cells) == cells
    assert list((tmp_path / name / "figures").glob("*.png"))
    assert f"{name} --profile {profile}: " in capsys.readouterr().err


def test_which_bounds_of_the_records_pass_their_mechanism():
    """Bounds hold if the reference is right. Where one passes the mechanism's ε, between labels, it is named here."""
    count, above, bottom = 0, set(), 0
    for path in sorted(HERE.glob("*/records/*.json")):
        for name, cell in json.loads(path.read_text())["cells"].items():
            for held in (cell, *(cell.get(kind, {}) for kind in ("plain", "calibrated"))):
                if "members" not in held or cell.get("epsilon_true", held.get("epsilon_true")) is None:
                    continue
                of = held if "epsilon_true" in held else cell
                for rule in ("valid", "fixed", "valid_score"):
                    bound = held["members"][rule]
                    count += 1
                    if bound > of["epsilon_true"]:
                        above.add((path.stem, name, rule))
                    else:
                        bottom += bound > of["epsilon_label"]
    assert (count, bottom) == (399, 9)
    assert above == {
        ("cifar10-paper", "lp1st-1", "valid"),
        ("cifar10-paper", "lp1st-1", "fixed"),
        ("cifar10-small", "lp1st-1", "fixed"),
        ("flights-paper", "LP-1ST eps=0.1", "fixed"),
    }

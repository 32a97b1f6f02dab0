"""Corrections beside the constant: what the record shows, the page that shows it, and a small run."""

import numpy as np
import pytest
from experiments._clicks import Clicks
from experiments._record import HERE, Record
from experiments.corrections import (
    CORRECTIONS,
    FORWARD,
    HELD_OUT,
    INVERSE,
    NONE,
    OWN_CONSTANT,
    PLAIN,
    POSTERIOR,
    WU,
    draw,
)

from experiments import _clicks, corrections
from tests.training.problems import clicks

RECORD = Record.load("corrections", "small")


@pytest.mark.parametrize("kind", [INVERSE, POSTERIOR, HELD_OUT, FORWARD])
def test_no_correction_of_the_record_is_worse_than_the_constant(kind):
    """Every release at ε ≥ 1, against the best constant there is; at ε = .5 `posterior` and `forward` too."""
    constant = RECORD.cells[PLAIN]["constant"]
    for cell in draw.held(RECORD):
        if cell["epsilon"] >= 1 or kind in (POSTERIOR, FORWARD):
            assert max(cell["log_loss"][kind]) <= constant, cell["epsilon"]


def test_the_record_shows_what_corrections_are_for():
    """Uncorrected up to ε = 2, and by Wu's clip up to ε = 1, every release is worse than the constant."""
    constant = RECORD.cells[PLAIN]["constant"]
    for cell in draw.held(RECORD):
        assert (min(cell["log_loss"][NONE]) > constant) == (cell["epsilon"] <= 2)
        assert (min(cell["log_loss"][WU]) > constant) == (cell["epsilon"] <= 1)


def test_the_page_shows_the_record():
    page = (HERE.parent / "docs" / "training.md").read_text()
    assert f"<!-- corrections-small -->\n{draw.tables(RECORD)['corrections']}\n<!-- end -->" in page


def made(rows, *, seed, rate):
    frame, labels, truth = clicks(rows, seed=seed, rate=rate)
    return Clicks(frame, labels, truth)


def test_a_small_run_grades_every_correction_of_the_same_releases(tmp_path, monkeypatch):
    monkeypatch.setattr(_clicks, "draw", made)
    settings = {**corrections.PROFILES["small"], "rows": 2_000, "fresh": 1_000, "epsilons": [2], "releases": 2}
    settings["catboost"] = {"iterations": 15, "learning_rate": 0.4, "depth": 3, "settings": {"thread_count": 1}}
    record = Record.open("corrections", "small", settings, root=tmp_path / "experiments")
    corrections.run(record)
    assert list(record.cells) == [PLAIN, "eps=2"]
    found = record.cells["eps=2"]["log_loss"]
    assert set(found) == {*CORRECTIONS, OWN_CONSTANT}
    assert all(len(set(losses)) == 2 for losses in found.values())  # two releases, two numbers
    plain = record.cells[PLAIN]
    assert max(plain["truth"], plain["log_loss"]) < plain["constant"]
    table = draw.tables(record)["corrections"]
    worst = max(found[INVERSE])
    assert f"{np.mean(found[INVERSE]):.4f} ({worst:.4f})" in table
    assert (f"**{np.mean(found[INVERSE]):.4f}" in table) == (worst <= plain["constant"])
    draw.figures(record)["corrections"].canvas.draw()
    monkeypatch.setattr(_clicks, "draw", None)
    corrections.run(record)  # nothing is missing: no row is made

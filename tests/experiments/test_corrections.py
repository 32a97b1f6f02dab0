"""Corrections beside the constant: what the record shows, the page that shows it, and a small run."""

import numpy as np
import pytest
from experiments._clicks import Clicks
from experiments._record import HERE, Record
from experiments.corrections import (
    CORRECTIONS,
    FORWARD,
    HELD_OUT,
    IN_TRAINING,
    INVERSE,
    NONE,
    OWN_CONSTANT,
    PLAIN,
    POSTERIOR,
    WU,
    draw,
)

from bystander.training import Boosted, HeldOut
from bystander.training.corrections import usual
from experiments import _clicks, corrections
from tests.training.problems import clicks

RECORD, FEW = Record.load("corrections", "small"), Record.load("corrections", "few")
SMALL_CONSTANT = {0.1: 3, 0.5: 3, 1: 0, 2: 0, 4: 0, 8: 0}
FEW_CONSTANT = {0.1: 12, 0.3: 12, 0.5: 12, 1: 12, 2: 7, 4: 0}


def over(cell, kind):
    """Log-loss over that of the release's own base rate."""
    return np.divide(cell["log_loss"][kind], cell["log_loss"][OWN_CONSTANT])


@pytest.mark.parametrize(("record", "constant"), [(RECORD, SMALL_CONSTANT), (FEW, FEW_CONSTANT)], ids=["small", "few"])
def test_what_is_done_by_default_is_never_worse_than_the_constant_that_can_be_known(record, constant):
    """In any release at any ε; and in how many it is that constant."""
    assert usual(Boosted()) == HeldOut() == IN_TRAINING[HELD_OUT]
    found = {cell["epsilon"]: over(cell, HELD_OUT) for cell in draw.held(record)}
    assert all((each <= 1 + 1e-12).all() for each in found.values())
    assert {epsilon: int((np.abs(each - 1) < 1e-9).sum()) for epsilon, each in found.items()} == constant


@pytest.mark.parametrize("kind", [INVERSE, POSTERIOR, HELD_OUT, FORWARD])
def test_every_correction_but_wus_is_better_than_the_best_constant_from_one_on(kind):
    for cell in draw.held(RECORD):
        if cell["epsilon"] >= 1:
            assert max(cell["log_loss"][kind]) < RECORD.cells[PLAIN]["constant"]
        elif kind in (HELD_OUT, FORWARD):
            assert draw.no_worse(cell, kind)


def test_the_record_shows_what_corrections_are_for():
    """Uncorrected up to ε = 2, by Wu's clip up to 1, and by the inverse below 1: worse than the constant every time."""
    constant = RECORD.cells[PLAIN]["constant"]
    for cell in draw.held(RECORD):
        for kind, last in ((NONE, 2), (WU, 1), (INVERSE, 0.5)):
            assert (min(cell["log_loss"][kind]) > constant) == (cell["epsilon"] <= last)


def test_on_few_rows_the_inverse_is_worse_than_a_constant_and_forward_hardly():
    """8,000 rows, twelve releases: in how many, and by how much, as the page says."""
    cells = {cell["epsilon"]: cell for cell in draw.held(FEW)}
    assert {epsilon: int((over(cell, INVERSE) > 1).sum()) for epsilon, cell in cells.items()} == {
        0.1: 12, 0.3: 10, 0.5: 11, 1: 10, 2: 3, 4: 0,
    }  # fmt: skip
    assert [int((over(cells[epsilon], POSTERIOR) > 1).sum()) for epsilon in (1, 2)] == [7, 3]
    assert [round(1 - over(cells[2], kind).mean(), 3) for kind in (FORWARD, HELD_OUT)] == [0.027, 0.009]
    assert over(cells[1], INVERSE).max() == pytest.approx(1.1006, abs=1e-4)
    assert max(over(cell, FORWARD).max() for cell in cells.values()) == pytest.approx(1.0026, abs=1e-4)


@pytest.mark.parametrize("record", [RECORD, FEW], ids=["small", "few"])
def test_the_page_shows_the_records(record):
    page = (HERE.parent / "docs" / "training.md").read_text()
    mark = f"corrections-{record.body['profile']}"
    assert f"<!-- {mark} -->\n{draw.tables(record)['corrections']}\n<!-- end -->" in page


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
    assert (f"**{np.mean(found[INVERSE]):.4f}" in table) == draw.no_worse(record.cells["eps=2"], INVERSE)
    draw.figures(record)["corrections"].canvas.draw()
    monkeypatch.setattr(_clicks, "draw", None)
    corrections.run(record)  # nothing is missing: no row is made

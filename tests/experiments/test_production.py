"""The model that is trained on and on: its steps, and that a run goes on from its last checkpoint."""

import numpy as np
import pandas as pd
import pytest
from experiments._record import Record
from experiments.production import draw

from experiments import production


@pytest.fixture
def settings(monkeypatch, tmp_path):
    """120 made-up flights a day; a late day's flights are late."""
    rng, n = np.random.default_rng(0), 120 * 45
    day = np.repeat(np.arange(45), 120)
    date = pd.Timestamp("2013-01-01") + pd.to_timedelta(day, unit="D")
    hour = rng.integers(5, 23, n)
    table = pd.DataFrame({
        "month": date.month, "day": date.day, "hour": hour,
        "carrier": pd.Categorical(rng.choice(["AA", "UA", "B6"], n)),
        "arr_delay": rng.normal(hour + rng.normal(0, 8, 45)[day] - 5, 20),
    })  # fmt: skip
    monkeypatch.setattr(production, "flights", lambda: table)
    monkeypatch.setattr(production, "CACHE", tmp_path / "cache")
    small = {"games": 4, "first": {"iterations": 5, "depth": 3}, "step": {"iterations": 3, "depth": 3}}
    return {**production.PROFILES["tiny"], **small}


def opened(settings, root):
    return Record.open("production", "tiny", settings, root=root / "experiments")


def test_each_step_audits_members_and_control_by_three_references(settings, tmp_path):
    record = opened(settings, tmp_path)
    production.run(record)
    assert list(record.cells) == ["step 001", "step 002"]
    for cell in record.cells.values():
        assert sum(cell["rows"].values()) == 7 * 120
        assert set(production.REFERENCES) <= set(cell)
        assert {"train", "predict", "audit checkpoint"} <= set(cell["train_seconds"])
        for reference in production.REFERENCES:
            assert cell[reference]["as_many"] >= 0
            assert cell[reference]["control"]["canaries"] == cell["rows"]["control"]
    tables, figures = draw.tables(record), draw.figures(record)
    assert "as many members as control rows" in tables["production"]
    assert "| audit twin |" in tables["production-cost"]
    assert len(figures["production"].axes) == 3


def test_a_run_goes_on_from_its_checkpoint_and_starts_over_where_it_is_gone(settings, tmp_path, monkeypatch):
    fitted, real = [], production.fit
    monkeypatch.setattr(production, "fit", lambda *given: fitted.append(given[4]) or real(*given))
    record = opened(settings, tmp_path)
    production.run(record)
    steps = [0, 1, 100_001, 2, 100_002]
    assert fitted == steps  # the first model, then each step's and its twin's
    whole = dict(record.cells)
    fitted.clear()
    production.run(record)
    assert fitted == []
    del record.cells["step 002"]
    production.run(record)
    assert fitted == [2, 100_002]
    assert record.cells["step 002"]["twin"]["members"] == whole["step 002"]["twin"]["members"]
    fitted.clear()
    del record.cells["step 002"]
    (tmp_path / "cache" / "production" / "tiny" / "001.cbm").unlink()
    production.run(record)
    assert fitted == steps

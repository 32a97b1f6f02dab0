"""The experiment on tweets, run on made-up ones: its parts, and that its cells say what they should."""

import numpy as np
import pandas as pd
import pytest
from experiments._record import Record
from experiments.tweets import draw

from experiments import _data, tweets


@pytest.fixture
def problem(monkeypatch):
    """1,500 texts of ten words out of 300, half of which lean to one side."""
    rng = np.random.default_rng(0)
    words, lean = np.array([f"w{j}" for j in range(300)]), rng.normal(0, 1, 300)
    chosen = rng.integers(0, 300, (1500, 10))
    labels = (rng.random(1500) < 1 / (1 + np.exp(-lean[chosen].sum(axis=1) / 3))).astype(int)
    table = pd.DataFrame({"label": labels, "day": "2009-06-07", "text": [" ".join(row) for row in words[chosen]]})
    monkeypatch.setattr(_data, "tweets", lambda: table)
    small = {"games": 4, "epsilons": [None, 1], "words": 300, "hidden": [8], "epochs": 20, "rate": 0.02}
    return {**tweets.PROFILES["small"], **small}


def test_the_parts_are_disjoint_and_all_of_the_tweets(problem):
    parts = tweets.Problem(problem).parts
    assert {name: len(rows) for name, rows in parts.items()} == {
        "test": 150, "reference": 608, "aside": 67, "target": 675
    }  # fmt: skip
    assert sorted(np.concatenate(list(parts.values()))) == list(range(1500))


def test_a_target_that_overfits_is_found_out_and_the_control_is_not(problem, tmp_path):
    body = {
        "experiment": "tweets",
        "profile": "small",
        "settings": problem,
        "runs": [{"commit": "0" * 40}],
        "cells": {},
    }
    record = Record(tmp_path / "experiments" / "tweets" / "records" / "tweets-small.json", body)
    tweets.run(record)
    free, private = record.cells["eps=inf"], record.cells["eps=1"]
    assert free["members"]["accuracy"] > free["test"]["accuracy"] + 0.1
    assert free["plain"]["canaries"] == 150
    assert free["calibrated"]["members"]["valid"] > 0.3
    assert free["calibrated"]["control"]["valid"] == 0
    assert private["plain"]["epsilon_true"] == 1
    assert private["plain"]["epsilon_label"] == pytest.approx(np.log((1 + np.e) / 2), rel=1e-5)
    assert private["calibrated"]["members"]["valid"] < 1
    table = draw.tables(record)["tweets"]
    assert table.count("| LIA (labels) |") == 4
    assert "2.34 ± 0.25" in table

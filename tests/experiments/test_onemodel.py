"""Every game on one model, on made-up flights: who is in which part, and that its cells say what they should."""

import numpy as np
import pandas as pd
import pytest
from experiments._record import Record
from experiments.onemodel import draw, games
from experiments.onemodel.problem import Problem, Target

from experiments import _data, onemodel

SETTINGS = {**onemodel.PROFILES["tiny"], "games": 4, "protected": ["weekday"]}
SETTINGS["parts"] = {"given": 1_600, "held": 800, "control": 800, "aside": 300, "population": 300, "pool": 1_600}
SETTINGS["target"] = {"iterations": 60, "learning_rate": 0.5, "depth": 7, "settings": {"l2_leaf_reg": 0.1}}
SETTINGS |= {"sampler": {"iterations": 2}, "generator": {"rows": 400, "iterations": 2}}


def flights(rows=6_000):
    """Late by the hour and by luck."""
    rng = np.random.default_rng(0)
    hour = rng.integers(500, 2_300, rows)
    made = {name: pd.Categorical(rng.choice(["A", "B", "C"], rows)) for name in ("carrier", "origin", "dest")}
    numbers = {"month": rng.integers(1, 13, rows), "weekday": rng.integers(0, 7, rows), "sched_dep_time": hour}
    delay = rng.normal((hour - 1_400) / 30, 30, rows)
    return pd.DataFrame({**made, **numbers, "sched_arr_time": hour + rng.integers(50, 90, rows), "arr_delay": delay})


@pytest.fixture(autouse=True, scope="module")
def made_up():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_data, "flights", flights)
        yield


@pytest.fixture(scope="module")
def problem():
    return Problem(SETTINGS)


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """All cells."""
    made = Record.open("onemodel", "tiny", SETTINGS, root=tmp_path_factory.mktemp("onemodel") / "experiments")
    onemodel.run(made)
    return made


def test_nobody_has_two_parts_and_every_row_given_its_role(problem):
    whole = np.concatenate(list(problem.parts.values()))
    assert len(whole) == len(set(whole.tolist())) == 5_400
    given, roles = problem.parts["given"], {name: set(rows.tolist()) for name, rows in problem.roles.items()}
    assert roles["tossed"] | roles["always"] == set(given.tolist())
    assert not roles["tossed"] & roles["always"]
    assert roles["always"] < roles["trained"]
    planted = set(given[problem.planted.canaries(given)].tolist())
    assert roles["members"] == roles["trained"] - (planted & roles["always"])
    left_out = len(roles["tossed"] - roles["trained"])
    assert abs(left_out - 400) < 4 * np.sqrt(400)


def test_randomized_response_flips_its_share_of_the_labels_shown(problem):
    """10,000 labels: the share's standard error is below √(.2/10000) = .0045."""
    labels = np.zeros(10_000, np.int64)
    shown = Target(problem, 1.0).shown(labels, 4)
    assert abs(shown.mean() - 1 / (1 + np.e)) < 4 * 0.0045
    assert (Target(problem, None).shown(labels, 4) == labels).all()


@pytest.mark.slow
def test_behind_randomized_response_no_label_is_found_beyond_its_epsilon(problem):
    target = Target(problem, 1.0)
    assert games.about_target(target)["epsilon_true"] == 1
    for game in (games.label, games.label_canaries):
        assert all(one["epsilon"] < 1 for one in game(target).values())


def test_every_game_is_played_by_every_attack(record):
    assert {game: list(cell) for game, cell in cells(record)} == {
        "label": ["log-ratio", "paper (t = 2)", "learned"],
        "attribute": ["weekday: loss ratio", "weekday: over a reference"],
        **{game: ["loss", "calibrated", "RMIA", "LiRA"] for game in ("membership", "generated", "one run")},
        "label canaries": ["log-ratio", "over a reference"],
    }


def cells(record):
    for game in draw.GAMES:
        yield game, {attack: one for name, attack, one in draw.found(record, "eps=inf") if name == game}


def test_what_was_trained_on_is_found_and_a_placebo_is_not(record):
    free, rows = dict(cells(record)), record.cells["reference"]["rows"]
    assert free["label"]["log-ratio"]["epsilon"] > 0.5
    assert free["label canaries"]["log-ratio"]["epsilon"] > 0.5
    assert free["one run"]["loss"]["canaries"] == rows["tossed"]
    assert free["membership"]["loss"]["canaries"] == 800
    for game in ("one run", "label canaries"):
        for one in free[game].values():
            assert one["auc"] > 0.55
            assert one["control"]["epsilon"] == 0
            assert abs(one["control"]["auc"] - 0.5) < 4 / np.sqrt(3 * one["control"]["canaries"])


def test_the_tables_and_the_figure_hold_them_all(record):
    tables, figures = draw.tables(record), draw.figures(record)
    assert set(tables) == {"onemodel", "onemodel-models", "onemodel-quality"}
    assert tables["onemodel"].count("| membership, coins (one run) |") == 4
    assert tables["onemodel-quality"].count("sampler of weekday") == 1
    assert len(figures["onemodel"].axes) == 1

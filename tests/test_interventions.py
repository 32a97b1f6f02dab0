"""Coins before training: whose they are, what is trained on, and the audit after it."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bystander import Given, InputError, LabelCanaries, RandomizedResponse, RowCoins, audit_label_canaries, scores
from tests import makers

IDS = np.arange(20_000)


def test_coins_hang_on_the_id_and_the_seed_alone():
    coins = RowCoins(share=0.3, seed=4)
    whole = coins.trained(IDS)
    parts = np.concatenate([coins.trained(part) for part in np.array_split(IDS, 7)])
    order = np.random.default_rng(0).permutation(len(IDS))
    assert (whole == parts).all()
    assert (coins.trained(IDS[order]) == whole[order]).all()
    assert (coins.trained([str(each) for each in IDS[:50]]) == whole[:50]).all()
    assert (coins.trained(pd.Series(IDS[:50])) == coins.trained(pl.Series(IDS[:50]))).all()
    assert (RowCoins(share=0.3, seed=5).trained(IDS) != whole).any()
    assert RowCoins() != RowCoins()  # the operating system's entropy
    assert RowCoins().seed > 2**32


def test_half_of_the_canaries_are_left_out_and_nobody_else():
    """20,000 rows: the share of canaries has a standard error of .0032, that of those trained on of .0065."""
    coins = RowCoins(share=0.3, seed=1)
    canary, trained = coins.canaries(IDS), coins.trained(IDS)
    assert trained[~canary].all()
    assert abs(canary.mean() - 0.3) < 4 * 0.0032
    assert abs(trained[canary].mean() - 0.5) < 4 * 0.0065
    assert RowCoins(seed=1).canaries(IDS).all()


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_planted_labels_have_their_law(classes):
    """Binary ones are random; of more classes all wrong ones are equally likely. Four standard errors."""
    y = np.random.default_rng(0).integers(0, classes, len(IDS))
    planted = LabelCanaries(classes=classes, share=0.5, seed=2)
    canary, given = planted.canaries(IDS), planted.plant(IDS, y)
    assert (given[~canary] == y[~canary]).all()
    m = int(canary.sum())
    shifts = np.bincount((given - y)[canary] % classes, minlength=classes) / m
    expected = np.full(2, 0.5) if classes == 2 else np.array([0, *[1 / (classes - 1)] * (classes - 1)])
    assert np.abs(shifts - expected).max() < 4 * np.sqrt(0.25 / m)


def test_the_two_games_share_no_coins_under_one_seed():
    rows, labels = RowCoins(share=0.5, seed=3), LabelCanaries(classes=2, share=0.5, seed=3)
    both = rows.canaries(IDS) & labels.canaries(IDS)
    assert abs(both.mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / len(IDS))
    agree = rows.trained(IDS)[both] == labels.plant(IDS, np.zeros(len(IDS), int))[both]
    assert abs(agree.mean() - 0.5) < 4 * np.sqrt(0.25 / both.sum())


def test_rows_left_out_end_as_a_bound():
    """A target that remembers whom it saw: the ids themselves key the ties, and all canaries are played."""
    coins = RowCoins(share=0.5, seed=6)
    canary, trained = coins.canaries(IDS), coins.trained(IDS)
    seen = trained + np.random.default_rng(0).laplace(0, 0.5, len(IDS))
    result = scores(score=seen[canary], member=trained[canary], id=IDS[canary], coins=Given())
    assert result.game == "membership-one-run"
    assert result.canaries == canary.sum()
    assert 1.2 < result.epsilon < 2


def remembered(planted, classes, epsilon, rng):
    """True labels, and a target that publishes what it was given through randomized response."""
    y = rng.integers(0, classes, len(IDS))
    given = planted.plant(IDS, y)
    p = np.exp(epsilon) / (np.exp(epsilon) + classes - 1)
    out = np.where(rng.random(len(IDS)) < p, given, (given + rng.integers(1, classes, len(IDS))) % classes)
    target = np.full((len(IDS), classes), (1 - p) / (classes - 1))
    target[IDS, out] = p
    return y, target


def test_the_result_says_what_was_played():
    planted = LabelCanaries(classes=4, share=0.25, seed=0)
    y, target = remembered(planted, 4, 3.0, np.random.default_rng(0))
    result = audit_label_canaries(planted, ids=IDS, labels=y, target=target)
    assert (result.game, result.games, result.stand_in, result.tau_star) == ("label-canaries", 1, None, None)
    assert result.canaries == planted.canaries(IDS).sum()
    assert result.notes[0] == "The ε is that of replacing a label."
    assert "which of two labels" in result.to_html()
    assert "the label that each left out is one" in result.to_html()
    assert json.loads(json.dumps(result.as_dict()))["game"] == "label-canaries"
    same = audit_label_canaries(planted, ids=IDS, labels=y, target=target, reference=np.full_like(target, 0.25))
    assert same.correct == result.correct
    assert same.attack.endswith("over the reference's")


def test_binary_probabilities_of_label_1():
    planted = LabelCanaries(classes=2, share=0.5, seed=0)
    y, target = remembered(planted, 2, 2.0, np.random.default_rng(1))
    one, two = (audit_label_canaries(planted, ids=IDS, labels=y, target=each) for each in (target, target[:, 1]))
    assert (one.epsilon, one.correct) == (two.epsilon, two.correct)


GOOD = {"ids": [1, 2, 3, 4, 5, 6], "labels": [0, 1, 2, 0, 1, 2], "target": makers.softmax(np.zeros((6, 3)))}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"ids": [1, 2, 3, 4, 5, 5]}, "5"),
        ({"labels": [0, 1, 2, 0, 1, 3]}, "labels are whole numbers 0…2 for 3 classes"),
        (
            {"target": np.full(6, 0.5), "labels": [0, 1, 0, 0, 1, 0]},
            "target has 2 classes and labels were planted for 3",
        ),
        ({"family": RandomizedResponse(2)}, "family rr is for 2 values and target has 3"),
        ({"ids": [1], "labels": [0], "target": [[0.2, 0.3, 0.5]]}, "canaries among 1 rows: give more rows, or plant"),
    ],
)
def test_errors_name_the_value(change, told):
    with pytest.raises(InputError, match=told):
        audit_label_canaries(LabelCanaries(classes=3, share=1.0, seed=0), **(GOOD | change))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: RowCoins(share=0), "share is 0: give a number above 0 and at most 1"),
        (lambda: RowCoins(seed=-1), "seed is -1: give a whole number of at least 0"),
        (lambda: LabelCanaries(classes=1, share=0.5), "classes is 1: give a whole number of at least 2"),
        (lambda: LabelCanaries(classes=2, share=2), "share is 2: give a number above 0 and at most 1"),
        (lambda: RowCoins().trained([1, 2, 1]), "ids: 1 names two rows: give each row its own"),
        (lambda: LabelCanaries(classes=2, share=1.0).plant([1, 2], [0, 2]), "labels are whole numbers 0…1"),
        (lambda: LabelCanaries(classes=2, share=1.0).plant([1, 2], [0, 1, 1]), "ids has 2 rows and labels has 3"),
    ],
)
def test_plans_refuse_what_is_none(make, told):
    with pytest.raises(InputError, match=told):
        make()

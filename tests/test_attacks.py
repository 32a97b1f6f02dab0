import math

import numpy as np
import pytest

from bystander import InputError, Learned, LogRatio, PaperScore
from tests import makers, reference

TARGET = np.array([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]])
REFERENCE = np.array([[0.6, 0.4], [0.4, 0.6], [0.75, 0.25]])


@pytest.mark.parametrize("t", [0.0, 1.0, 2.0, 2.5])
def test_the_papers_score(t):
    expected = [
        [(m - r) * (1 - r) ** t for m, r in zip(*rows, strict=True)] for rows in zip(TARGET, REFERENCE, strict=True)
    ]
    assert PaperScore(t).scores(TARGET, REFERENCE) == pytest.approx(np.array(expected), abs=1e-15)


@pytest.mark.parametrize("t", [0.0, 1.0, 2.0])
def test_the_log_ratio(t):
    expected = [
        [math.log(m / r) * (1 - r) ** t for m, r in zip(*rows, strict=True)]
        for rows in zip(TARGET, REFERENCE, strict=True)
    ]
    assert LogRatio(t).scores(TARGET, REFERENCE) == pytest.approx(np.array(expected), abs=1e-15)


def test_probabilities_of_0_and_1_score_finitely():
    edges = np.array([[0.0, 1.0], [1.0, 0.0]])
    for attack in (PaperScore(), LogRatio(), LogRatio(2.0), PaperScore(0.5)):
        assert np.isfinite(attack.scores(edges, edges[::-1])).all()
    assert LogRatio().scores(edges, np.full((2, 2), 0.5))[0, 0] == pytest.approx(math.log(1e-9 / 0.5))


def test_the_paper_score_cannot_tell_the_two_kinds_of_rows_of_flat_randomized_response_and_the_ratio_can():
    """statistics.md §3b: ε = 4; accuracy .74 for the paper's, .965 for the ratio's top rows (se .004 of 2,000)."""
    arrays = makers.response(np.random.default_rng(0), 20_000, 2, 4.0)
    found = {}
    for attack in (PaperScore(), LogRatio()):
        found[attack.name] = makers.tally(arrays, (2000,), games=20, attack=attack).correct.mean() / 2000
    assert found["paper (t = 2)"] == pytest.approx(0.741, abs=0.012)
    assert found["log-ratio"] == pytest.approx(reference.response_accuracy(4.0, 0.1), abs=0.006)
    assert reference.response_accuracy(4.0, 0.1) == pytest.approx(0.965, abs=5e-4)


def test_the_learned_attack_finds_the_log_odds_of_a_target_that_is_no_posterior():
    """An over-confident target: its own ratio ranks rows wrongly; the fitted score is the true log-odds again."""
    rng = np.random.default_rng(0)
    labels, target, flat = makers.response(rng, 60_000, 2, 2.0)
    loud = np.where(target > 0.5, 0.999, 0.001)
    score = Learned().fit(labels[:30_000], loud[:30_000], flat[:30_000]).scores(loud[30_000:], flat[30_000:])
    p = 1 / (1 + math.exp(-2))
    # P(b = 0 | shown is released) = p/(p + ½), else (1 − p)/(1 − p + ½)
    assert score[loud[30_000:] > 0.5] == pytest.approx(math.log(p / 0.5), abs=0.08)
    assert score[loud[30_000:] < 0.5] == pytest.approx(math.log((1 - p) / 0.5), abs=0.08)


def test_an_attack_that_is_not_fitted_says_so():
    with pytest.raises(InputError, match="not fitted"):
        Learned().scores(TARGET, REFERENCE)


def test_names_and_shares():
    assert [a.name for a in (PaperScore(), LogRatio(), LogRatio(1), Learned())] == [
        "paper (t = 2)",
        "log-ratio",
        "log-ratio (t = 1)",
        "learned",
    ]
    assert (PaperScore().share, LogRatio().share, Learned(0.5).share) == (0.0, 0.0, 0.5)


@pytest.mark.parametrize(
    "make", [lambda: PaperScore(-1), lambda: LogRatio(math.nan), lambda: Learned(0), lambda: Learned(1)]
)
def test_wrong_attacks_are_refused(make):
    with pytest.raises(InputError):
        make()

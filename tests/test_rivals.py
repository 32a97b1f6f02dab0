"""Rival attacks equal brute force, row by row, for any number of classes."""

import numpy as np
import pytest

from bystander import InputError, at_label, calibrated_scores, lira_scores, loss_scores, rmia_scores
from tests import makers, reference


@pytest.fixture(scope="module", params=[2, 3, 10])
def models(request):
    """Probabilities at the label: 300 rows of a target, 8 references and a population, K classes."""
    rng, classes = np.random.default_rng(request.param), request.param

    def predicted(rows, labels):
        return at_label(makers.softmax(rng.normal(0, 2, (rows, classes))), labels)

    labels, others = rng.integers(0, classes, 300), rng.integers(0, classes, 170)
    return {
        "target": predicted(300, labels),
        "references": np.column_stack([predicted(300, labels) for _ in range(8)]),
        "population": predicted(170, others),
        "population_references": np.column_stack([predicted(170, others) for _ in range(8)]),
        "trained": rng.permuted(np.tile(np.arange(8) < 4, (300, 1)), axis=1),
    }


@pytest.mark.parametrize("gamma", [1.0, 2.0])
@pytest.mark.parametrize("a", [0.0, 0.3, 1.0])
def test_rmia_is_the_whole_matrix(models, a, gamma):
    for one in (np.s_[:, 0], np.s_[:, :]):  # one reference, and the mean of eight
        against = models["references"][one], models["population"], models["population_references"][one]
        found = rmia_scores(models["target"], *against, a=a, gamma=gamma)
        assert found.tolist() == reference.rmia(models["target"], *against, a, gamma).tolist()


def test_rmia_of_equal_rows_is_strict():
    same = np.full(4, 0.25)
    assert rmia_scores(same, same, same, same).tolist() == [0.0] * 4


def test_difficulty_calibration_is_the_difference_of_losses(models):
    first = models["references"][:, 0]
    expected = reference.calibrated(models["target"], first)
    assert calibrated_scores(models["target"], first) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_lira_online_is_the_ratio_of_two_normal_densities(models):
    found = lira_scores(models["target"], models["references"], models["trained"], shared=False)
    expected = reference.lira_online(models["target"], models["references"], models["trained"])
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_lira_offline_counts_standard_deviations(models):
    expected = reference.lira_offline(models["target"], models["references"])
    assert lira_scores(models["target"], models["references"]) == pytest.approx(expected, rel=1e-9)


def test_lira_shares_its_deviation_where_references_are_few(models):
    target, held, trained = (models[name] for name in ("target", "references", "trained"))
    assert lira_scores(target, held, trained).tolist() == lira_scores(target, held, trained, shared=True).tolist()
    assert lira_scores(target, held, trained).tolist() != lira_scores(target, held, trained, shared=False).tolist()
    many = np.tile(held, 4)
    assert lira_scores(target, many).tolist() == lira_scores(target, many, shared=False).tolist()


def test_the_loss_is_that_of_the_rows_own_label(models):
    assert loss_scores(models["target"]) == pytest.approx(np.log(models["target"]), rel=1e-15)
    assert np.isfinite(loss_scores([0.0, 1.0])).all()


def test_at_label_reads_the_labels_column_and_cools_as_softmax_does():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(0, 2, (50, 4)), rng.integers(0, 4, 50)
    p = makers.softmax(logits)
    assert at_label(p, labels).tolist() == [p[i, y] for i, y in enumerate(labels)]
    cool = makers.softmax(logits / 2)
    assert at_label(p, labels, temperature=2) == pytest.approx([cool[i, y] for i, y in enumerate(labels)], rel=1e-9)


ONE, TWO = np.full(3, 0.5), np.full((3, 2), 0.5)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: loss_scores([0.5, 2.0]), "target holds 2.0: give probabilities from 0 to 1, not losses or logits"),
        (lambda: loss_scores([0.5, np.nan]), "target holds nan: give probabilities"),
        (lambda: loss_scores(["a"]), "target holds what is no number"),
        (lambda: loss_scores(TWO), "target has shape (3, 2): give one probability a row, that of its label"),
        (lambda: calibrated_scores(ONE, ONE[:2]), "target has 3 rows and reference 2: give the same rows of both"),
        (lambda: rmia_scores(ONE, ONE, ONE, ONE, a=2), "a is 2: give a number"),
        (lambda: rmia_scores(ONE, ONE, ONE, ONE, gamma=0), "gamma is 0: give a number above 0"),
        (lambda: rmia_scores(ONE, ONE, [], []), "target has shape (0,): give one probability a row"),
        (lambda: lira_scores(ONE, ONE), "references have shape (3,): give (rows, models) of two models or more"),
        (lambda: lira_scores(ONE, TWO, TWO), "trained holds 0.5: give true or false for each row and model"),
        (lambda: lira_scores(ONE, TWO, TWO[:2] > 0), "trained has shape (2, 2): give (3, 2), as the references have"),
        (lambda: lira_scores(ONE, TWO, np.ones((3, 2))), "trained, row 0: 0 references are 'out'"),
        (lambda: at_label(TWO, [0, 1, 2]), "labels hold 2: give whole numbers 0…1"),
        (lambda: at_label(TWO, [0, 1]), "labels have shape (2,): give one for each of 3 rows"),
        (lambda: at_label(TWO, ["a", "b", "c"]), "labels hold what is no number"),
        (lambda: at_label(TWO, [0, 1, 0], temperature=0), "temperature is 0: give a number above 0"),
        (lambda: at_label([0.5, -0.1], [0, 1]), "probabilities hold -0.1: give numbers from 0 to 1"),
    ],
)
def test_what_is_no_probability_is_refused(call, told):
    with pytest.raises(InputError) as raised:
        call()
    assert str(raised.value).startswith(told)

"""Calibration against what the labels were really drawn from, and against plain twins."""

import numpy as np
import pytest

from bystander import InputError
from bystander.calibration import Isotonic, Temperature, VectorScaling, constant_loss, log_loss
from tests import makers


def world(rng, rows, classes, bend):
    """Labels, a reference that is wrong in a known way, and the truth."""
    truth = makers.softmax(rng.normal(0, 1.5, (rows, classes)))
    return makers.draw(rng, truth), makers.softmax(bend(np.log(truth))), truth


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("true", [0.5, 3.0])
def test_temperature_finds_the_temperature(classes, true):
    """20,000 rows: the estimate moves by about 2 % over seeds."""
    labels, wrong, truth = world(np.random.default_rng(1), 20_000, classes, lambda logits: logits * true)
    fitted = Temperature().fit(labels, wrong)
    assert fitted.temperature == pytest.approx(true, rel=0.06)
    assert np.abs(fitted.transform(wrong) - truth).max() < 0.02


@pytest.mark.parametrize("classes", [2, 5])
def test_vector_scaling_mends_base_rates(classes):
    shift = np.linspace(-1, 1, classes)
    labels, wrong, truth = world(np.random.default_rng(2), 40_000, classes, lambda logits: logits * 1.5 + shift)
    mended = VectorScaling().fit(labels, wrong).transform(wrong)
    assert np.abs(mended - truth).mean() < 0.01 < np.abs(wrong - truth).mean()
    assert mended.sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("classes", [2, 4])
def test_isotonic_mends_any_rising_map_and_keeps_off_zero(classes):
    labels, wrong, truth = world(np.random.default_rng(3), 40_000, classes, lambda logits: logits * 2)
    mended = Isotonic().fit(labels, wrong).transform(wrong)
    assert np.abs(mended - truth).mean() < 0.02 < np.abs(wrong - truth).mean()
    assert mended.min() > 0


def test_isotonic_equals_pool_adjacent_violators():
    rng = np.random.default_rng(4)
    p = np.round(rng.random(300), 2)
    y = (rng.random(300) < p**2).astype(int)
    blocks = []  # [sum, rows, first x, last x], pooled by hand
    for x in np.unique(p):
        blocks.append([float(y[p == x].sum()), int((p == x).sum()), x, x])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            total, rows, _, last = blocks.pop()
            blocks[-1] = [blocks[-1][0] + total, blocks[-1][1] + rows, blocks[-1][2], last]
    fitted = Isotonic().fit(y, p)
    for total, rows, first, last in blocks:
        want = min(max(total / rows, 1 / 302), 1 - 1 / 302)
        assert fitted.transform(np.array([first, last])) == pytest.approx(want)


@pytest.mark.parametrize("calibration", [Temperature(), VectorScaling(), Isotonic()], ids=lambda c: type(c).__name__)
def test_each_leaves_a_calibrated_reference_alone_and_keeps_its_shape(calibration):
    """40,000 rows: mending what is right costs a log-loss of about parameters / rows."""
    labels, right, _ = world(np.random.default_rng(5), 40_000, 3, lambda logits: logits)
    fitted = calibration.fit(labels[:20_000], right[:20_000])
    after = log_loss(labels[20_000:], fitted.transform(right[20_000:]))
    assert after < log_loss(labels[20_000:], right[20_000:]) + 0.003
    one = calibration.fit(labels > 0, right[:, 1:].sum(axis=1)).transform(right[:, 1:].sum(axis=1))
    assert one.shape == (40_000,)


def test_losses():
    assert log_loss([0, 1], [0.25, 0.75]) == pytest.approx(-np.log(0.75))
    assert constant_loss([0, 1, 1, 1], 2) == pytest.approx(-0.25 * np.log(0.25) - 0.75 * np.log(0.75))
    assert constant_loss([1, 1], 2) == 0.0


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda: VectorScaling().transform([0.5]), "vector scaling is not fitted"),
        (lambda: Isotonic().transform([0.5]), "isotonic is not fitted"),
        (lambda: Temperature().fit([0, 2], [0.5, 0.5]), "labels reach from 0 to 2: give 0…1"),
        (lambda: Temperature().fit([0], [1.5]), "probabilities are not all from 0 to 1"),
        (lambda: Temperature().fit([0, 1], [0.5]), r"labels have shape \(2,\) and probabilities 1 rows"),
        (lambda: Temperature().fit([], []), "labels are empty"),
        (lambda: VectorScaling().fit([0, 1], [0.4, 0.6]).transform([[0.2, 0.3, 0.5]]), "probabilities have 3 classes"),
    ],
)
def test_errors_name_the_value(act, told):
    with pytest.raises(InputError, match=told):
        act()

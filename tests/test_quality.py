"""The two-sample test: its interval holds, it finds a real shift, and reports say what follows."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from bystander import audit
from bystander.calibration import Temperature
from bystander.quality import LEAST, halves, interval, of_draws, of_probabilities
from bystander.records import from_arrays
from tests import makers


def test_the_interval_is_clopper_and_pearsons_where_that_is_the_wider():
    for hits, trials in ((0, 50), (7, 50), (50, 50), (431, 1000)):
        low, high = interval(hits, trials, 0.05)
        exact = stats.binomtest(hits, trials).proportion_ci(0.95, "exact")
        assert low == pytest.approx(max(0.0, min(exact.low, (hits - 1) / trials)))
        assert high == pytest.approx(min(1.0, max(exact.high, (hits + 1) / trials)))


def test_the_interval_holds_for_unlike_trials():
    """One certain trial in twenty: Clopper and Pearson's own lower end, .0026 at one hit, still holds their mean."""
    assert interval(1, 20, 0.5)[0] == 0.0  # unwidened it would be .0143, and one sure trial of twenty has mean .05


def control(seed, rows=1200, *, wrong=0.0, classes=2):
    """Labels by the truth, a noisy view of it as the target, and a reference that is off by `wrong` in log-odds."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(0, 1, (rows, classes))
    truth = makers.softmax(odds)
    target = makers.softmax(odds + rng.normal(0, 0.3, odds.shape))
    reference = makers.softmax(odds + wrong * np.arange(classes))
    return from_arrays(makers.draw(rng, truth), target, reference), float(np.abs(truth - reference).sum(1).mean() / 2)


def look(records):
    return of_probabilities(records.labels, records.target, records.reference, records.keys, 0.95)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_true_reference_is_seldom_found_wrong(classes):
    """100 tests at 95 %: each end may fail in 2.5 %, with a standard error of 1.6 %: in 5 of 100."""
    found = [look(control(seed, classes=classes)[0]) for seed in range(100)]
    assert sum(each.low > 0 for each in found) <= 5
    assert sum(each.high < 0 for each in found) <= 5
    assert not any(each.calibrated for each in found[:20])


def test_the_lower_end_stays_below_the_true_shift_and_comes_near_it():
    """50 tests of a reference that is off by .17 on average: 2.5 % + 2 · 2.2 % of them may be above, 3 of 50."""
    found = [(look(each).low, tau) for each, tau in (control(seed, wrong=0.8) for seed in range(50))]
    assert sum(low > tau for low, tau in found) <= 3
    assert np.mean([low / tau for low, tau in found]) > 0.6


def test_drawn_versions_are_tested_too():
    """The same world, three draws a row, scored by the true log-ratio; 2.5 % + 2 · 1.1 % of 200 is 9."""
    null = shifted = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        keys = rng.integers(0, 2**63, 800).astype(np.uint64)
        same = of_draws(rng.normal(0, 1, 800), rng.normal(0, 1, (800, 3)), keys, 0.95)
        null += same.low > 0
        off = of_draws(rng.normal(1, 1, 800), rng.normal(0, 1, (800, 3)), keys, 0.95)
        shifted += off.low > 0
        assert off.low <= 2 * stats.norm.cdf(0.5) - 1  # the total variation of two normals one apart: .383
    assert null <= 9
    assert shifted == 200


def test_few_rows_are_not_tested():
    assert look(control(0, LEAST - 1)[0]) is None
    few = np.arange(LEAST - 1).astype(np.uint64)
    assert of_draws(np.zeros(LEAST - 1), np.zeros((LEAST - 1, 2)), few, 0.95) is None


def test_halves_are_disjoint_and_cover():
    first, second = halves(np.arange(1000, dtype=np.uint64))
    assert sorted([*first, *second]) == list(range(1000))
    assert abs(len(first) - 500) < 60


def _audit(wrong, **options):
    rng = np.random.default_rng(7)
    parts = []
    for rows in (4000, 6000):
        odds = rng.normal(0, 1, rows)
        labels = (rng.random(rows) < makers.sigmoid(odds)).astype(int)
        parts.append({"labels": labels, "target": makers.sigmoid(odds), "reference": makers.sigmoid(wrong * odds)})
    return audit(**parts[0], control=parts[1], **options)


def test_an_audit_with_control_reports_quality_and_says_what_follows():
    """A reference that is three times too sure: every report names the shift and the calibration that mends it."""
    result = _audit(3.0)
    quality = result.quality
    assert quality.rows == pytest.approx(3000, abs=150)
    assert 0.05 < quality.low < quality.shift < quality.high
    assert Temperature(3).name[:11] in " ".join(quality.calibrated)
    assert min(quality.calibrated.values()) < quality.log_loss - 0.1
    told = json.loads(json.dumps(result.as_dict()))["quality"]
    assert told["tau_at_least"] == quality.low
    assert told["advice"] == list(quality.advice)
    assert "is more than τ*" in quality.advice[0]
    assert "Calibration helps" in quality.advice[1]
    for report in (str(result), result.to_html()):
        assert "Quality of the reference" in report
        assert "Calibration helps" in report


def test_a_control_of_0_is_no_clean_bill_where_the_test_sees_more():
    """Slightly over-confident: too little for a bound, enough for the test. The two sentences must not disagree."""
    result = _audit(1.2)
    assert result.control.epsilon == 0 < result.quality.low
    assert "but the reference is off" in result.control_note
    assert "no sign" not in result.control_note


def test_a_right_reference_gets_no_advice_but_that_silence_proves_nothing():
    result = _audit(1.0)
    assert result.quality.low <= 0
    assert len(result.quality.advice) == 1
    assert "No error of the reference is shown" in result.quality.advice[0]
    assert result.quality.calibrated == {}
    assert result.quality.log_loss < result.quality.constant == pytest.approx(math.log(2), abs=0.01)


def test_no_control_no_quality():
    labels = np.arange(2000) % 2
    result = audit(labels=labels, target=np.full(2000, 0.5), reference=np.full(2000, 0.5))
    assert result.quality is None
    assert result.as_dict()["quality"] is None

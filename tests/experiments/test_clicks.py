import numpy as np
import pytest
from experiments._clicks import (
    CATEGORIES,
    COLUMNS,
    NUMBERS,
    Drift,
    Shape,
    _category,
    _number,
    _power_law,
    draw,
    square,
)
from experiments.criteo.calibrate import _spread, _tail

STILL = Drift(rate=0, effects=0, numbers=0, fresh=0)


@pytest.fixture(scope="module")
def day():
    return draw(30_000)


def test_a_day_has_the_rate_of_clicks_the_format_and_the_missing_rates_of_the_real_rows(day):
    shape = Shape.load()
    assert tuple(day.frame.columns) == COLUMNS
    assert day.labels.mean() == pytest.approx(0.03, abs=4 * np.sqrt(0.03 * 0.97 / 30_000))
    for name in COLUMNS:
        column = day.frame[name]
        gone = (column.isna() if name in NUMBERS else column == "").mean()
        assert gone == pytest.approx(shape.columns[name]["missing"], abs=0.015)  # 4 standard errors, and rounding


def test_numbers_have_the_real_quantiles_and_categories_the_real_shares(day):
    shape = Shape.load()
    for name in NUMBERS:
        middle = shape.columns[name]["quantiles"][8]
        around = np.quantile(day.frame[name].dropna(), [0.46, 0.54])
        assert around[0] <= middle <= around[1]
    for name in CATEGORIES:
        shares = day.frame[name][day.frame[name] != ""].value_counts(sort=False).to_numpy() / len(day.frame)
        assert shares.max() == pytest.approx(max(shape.columns[name]["shares"]), abs=0.02)


def test_labels_follow_the_truth(day):
    edges = np.quantile(day.truth, np.arange(1, 10) / 10)
    of = np.searchsorted(edges, day.truth)
    for k in range(10):
        here = of == k
        spread = np.sqrt((day.truth[here] * (1 - day.truth[here])).sum()) / here.sum()
        assert abs(day.labels[here].mean() - day.truth[here].mean()) < 4 * spread  # P ≤ 1e-3 over the ten


@pytest.mark.parametrize("name", ["I2", "I10", "C3", "C9", "C20"])
def test_an_effect_is_a_function_of_the_value_that_is_seen(name):
    """What an auditor sees is all that the truth knows, within a day."""
    about, u = Shape.load().columns[name], np.random.default_rng(0).random(5_000)
    if name in NUMBERS:
        values, effects = _number(about, u, [0.1 * k for k in range(8)])
        values = np.where(np.isnan(values), -99, values)
    else:
        values, effects = _category(about, u, Drift(), 1, 0, COLUMNS.index(name))
    for value in np.unique(values):
        assert len(np.unique(effects[values == value])) == 1


def test_more_rows_begin_with_the_same_rows(day):
    few = draw(500)
    assert (few.truth == day.truth[:500]).all()
    assert (few.frame["C3"].astype(str) == day.frame["C3"][:500].astype(str)).all()


def test_days_drift_and_without_drift_only_the_rows_are_new():
    next_day, still = draw(10_000, day=1), draw(10_000, day=1, drift=STILL)
    first = draw(10_000)
    known = set(first.frame["C3"].cat.categories)
    assert np.isin(still.frame["C3"], list(known)).mean() > np.isin(next_day.frame["C3"], list(known)).mean() + 0.01
    assert (still.truth != next_day.truth).all()


def test_the_correlation_is_the_nearest_one_that_can_be():
    np.testing.assert_allclose(square([[0.5, 0.2], [0.1]]), [[1, 0.5, 0.2], [0.5, 1, 0.1], [0.2, 0.1, 1]], atol=1e-12)
    impossible = square([[0.9, -0.9], [0.9]])
    assert np.linalg.eigvalsh(impossible).min() > 0
    np.testing.assert_allclose(np.diag(impossible), 1)


def test_the_power_law_beyond_the_measured_values_is_found_again():
    """From the counts of distinct and of single values alone: 8,000 draws of a known law."""
    drawn = _power_law(np.random.default_rng(1).random(8_000), 0.9, 20_000)
    counts = np.sort(np.unique(drawn, return_counts=True)[1])[::-1]
    exponent, values = _tail(counts, 8_000)
    again = np.unique(_power_law(np.random.default_rng(2).random(8_000), exponent, values), return_counts=True)[1]
    assert len(again) == pytest.approx(len(counts), rel=0.03)
    assert (again == 1).sum() == pytest.approx((counts == 1).sum(), rel=0.05)


def test_the_spread_of_the_effects_is_found_again():
    rng = np.random.default_rng(3)
    values, effects = rng.integers(0, 400, 20_000), rng.normal(0, 0.5, 400)
    clicked = rng.random(20_000) < 1 / (1 + np.exp(1.3 - effects[values]))
    assert _spread(values, clicked.astype(float)) == pytest.approx(0.5, abs=0.1)  # se .03, and the logit's curvature

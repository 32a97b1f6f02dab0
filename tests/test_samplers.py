"""The built-in sampler against worlds whose laws are known, on every kind of frame."""

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

from bystander import InputError
from bystander.samplers import Chain, Drawn, Finite, as_sampler, coins_of, columns_of
from bystander.tabular import known, row_keys
from tests import makers


def people(rows, seed=0):
    """Ages, a job by age, whether they smoke by job and age, an income by both."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, rows)
    job = np.where(rng.random(rows) < (age - 18) / 62, "clerk", np.where(rng.random(rows) < 0.5, "baker", "smith"))
    odds = (age - 50) / 15 + (job == "smith")
    smokes = (rng.random(rows) < makers.sigmoid(odds)).astype(int)
    income = np.round(np.exp(rng.normal(1 + 0.02 * age, 0.4)) * (1 + smokes), 2)
    frame = pd.DataFrame(
        {"age": age, "job": pd.Categorical(job), "smokes": smokes, "income": income, "id": np.arange(rows)}
    )
    return frame, makers.sigmoid(odds)


FRAMES = {"pandas": lambda f: f, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}


def test_a_column_of_few_values_has_its_law():
    """6,000 rows of which 4,200 fit: the mean error of a probability is about .03."""
    data, _ = people(6000)
    fresh, truth = people(2000, seed=1)
    chain = Chain.fit(data, "smokes", given=("age", "job"), iterations=40)
    law = chain.finite().law(fresh)
    assert np.abs(law[:, 1] - truth).mean() < 0.045
    assert law.sum(axis=1) == pytest.approx(1)
    (quality,) = [part.quality for part in chain.parts]
    assert quality.rows == 900
    assert quality.log_loss < quality.constant - 0.05
    assert sum(quality.reliability.other) == 900
    assert chain.notes[0].startswith("Sampler of smokes: log-loss 0.")


@pytest.mark.parametrize("kind", FRAMES)
def test_drawn_columns_keep_their_type_and_their_law(kind):
    frame, _ = people(3000)
    data = FRAMES[kind](frame)
    chain = Chain.fit(data, ("income", "job"), id="id", bins=8, iterations=20)
    fresh, _ = people(1000, seed=1)
    made = chain.draw(FRAMES[kind](fresh), coins_of(np.arange(1000, dtype=np.uint64), 0, 0, 2))
    for name in ("income", "job"):
        assert made[name].dtype == nw.from_native(data).schema[name]
    assert set(made["job"].to_list()) == {"clerk", "baker", "smith"}
    assert set(made["income"].to_list()) <= set(frame["income"])
    assert stats.ks_2samp(made["income"].to_numpy(), fresh["income"]).pvalue > 1e-4


def test_given_values_matter_to_what_is_drawn():
    data, _ = people(6000)
    chain = Chain.fit(data, "income", given=("age", "smokes"), iterations=30)
    fresh, _ = people(2000, seed=1)
    drawn = chain.draw(fresh, coins_of(np.arange(2000, dtype=np.uint64), 0, 0, 1))["income"].to_numpy()
    true, made = (stats.spearmanr(fresh["age"], each).statistic for each in (fresh["income"], drawn))
    assert made == pytest.approx(true, abs=0.08)


@pytest.mark.parametrize("kind", FRAMES)
def test_a_generator_makes_rows_alike(kind):
    frame, _ = people(3000)
    data = FRAMES[kind](frame.drop(columns="id"))
    chain = Chain.fit(data, ("age", "job", "smokes", "income"), given=(), bins=8, iterations=20)
    made = chain.generate(1500, seed=3)
    assert type(made) is type(data)
    found = nw.from_native(made, eager_only=True)
    assert found.shape == (1500, 4)
    assert stats.ks_2samp(found["age"].to_numpy(), frame["age"]).pvalue > 1e-4
    assert found["smokes"].mean() == pytest.approx(frame["smokes"].mean(), abs=0.06)
    again = nw.from_native(chain.generate(1500, seed=3), eager_only=True)
    assert again["income"].to_list() == found["income"].to_list()


def test_missing_values_rare_texts_and_constants():
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, 2000)
    data = pd.DataFrame(
        {
            "x": x,
            "holes": np.where(rng.random(2000) < 0.3, np.nan, x),
            "text": [f"t{k}" if k < 100 else "often" for k in range(2000)],
            "same": 1,
        }
    )
    chain = Chain.fit(data, ("holes", "text", "same"), bins=4, iterations=5)
    made = chain.draw(data[["x"]], coins_of(np.arange(2000, dtype=np.uint64), 0, 0, 3))
    assert np.isnan(made["holes"].to_numpy()).mean() == pytest.approx(0.3, abs=0.08)
    assert set(made["same"].to_list()) == {1}
    assert "often" in made["text"].to_list()


def test_coins_are_keyed_by_row_and_uniform():
    keys = np.arange(20_000, dtype=np.uint64)
    coins = coins_of(keys, 5, 2, 3)
    assert (coins_of(keys[::-1], 5, 2, 3)[::-1] == coins).all()
    assert stats.kstest(coins.ravel(), "uniform").pvalue > 1e-4
    others = [coins_of(keys, 6, 2, 3), coins_of(keys, 5, 3, 3), coins[:, [1, 2, 0]]]
    assert all(abs(np.corrcoef(coins[:, 0], other[:, 0])[0, 1]) < 0.03 for other in others)


def test_finite_draws_by_its_law_and_functions_are_wrapped():
    frame, _ = people(2000)
    finite = Finite("smokes", (0, 1), lambda rows: np.tile([0.9, 0.1], (len(rows), 1)))
    coins = coins_of(np.arange(2000, dtype=np.uint64), 0, 0, 1)
    assert finite.draw(frame, coins)["smokes"].mean() == pytest.approx(0.1, abs=0.03)
    wrapped = as_sampler(lambda rows, coins: {"smokes": coins[:, 0] < 0.5}, ("smokes",))
    assert isinstance(wrapped, Drawn)
    (column,) = columns_of(wrapped.draw(frame, coins), wrapped, known(frame, "data"))
    assert column.dtype == nw.Int64
    assert column.mean() == pytest.approx(0.5, abs=0.05)


def test_row_keys_do_not_depend_on_order_or_kind():
    frame, _ = people(300)
    for id in ("id", None):
        keys = row_keys(known(frame, "data"), id, "data")
        back = row_keys(known(frame.iloc[::-1], "data"), id, "data")[::-1]
        assert (keys == back).all()
        for make in FRAMES.values():
            assert (row_keys(known(make(frame), "data"), id, "data") == keys).all()
    assert len(set(row_keys(known(pd.DataFrame({"a": [1, 1, 1]}), "data"), None, "data"))) == 3


SMALL = pd.DataFrame({"a": np.arange(200) % 7, "b": np.arange(200) % 2})


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda: Chain.fit(SMALL[:50], "b"), "data has 50 rows: fit a sampler on at least 100"),
        (lambda: Chain.fit(SMALL, "c"), "data has no column 'c': it has a, b"),
        (lambda: Chain.fit(SMALL, ("b", "b")), "name at least one, each once"),
        (lambda: Chain.fit(SMALL, "b", given=("b",)), "given names 'b', which is drawn"),
        (lambda: Chain.fit(SMALL, "b", bins=1), "bins is 1"),
        (lambda: Chain.fit(SMALL, "b", iterations=2).generate(3), "fitted given a: fit it with given="),
        (lambda: Chain.fit([1, 2], "b"), "data is list: give a pandas, polars or pyarrow table"),
        (lambda: Finite("a", (1, 1), lambda rows: rows), "give at least two, all different"),
        (lambda: as_sampler(3, ("a",)), "sampler is int: give a sampler"),
        (lambda: as_sampler(Finite("a", (0, 1), len), ("b",)), "the sampler draws a, and protected is b"),
        (lambda: columns_of({"b": [1]}, Drawn(("a",), len), known(SMALL, "d")), "it must draw 'a' too"),
        (lambda: columns_of({"a": [1]}, Drawn(("a",), len), known(SMALL, "d")), "drew 1 values of 'a' for 200 rows"),
    ],
)
def test_errors_name_the_value(act, told):
    with pytest.raises(InputError, match=told):
        act()

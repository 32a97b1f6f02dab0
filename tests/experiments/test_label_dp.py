"""The table of label-DP mechanisms: its parts, a run on made-up rows, its resumption, its tables and figures."""

import gzip

import numpy as np
import pandas as pd
import pytest
from experiments._clicks import draw as clicks
from experiments._record import Record

from bystander.mechanisms import Pate
from experiments import _audits, _data, criteo, flights
from experiments import _label_dp as label_dp
from experiments import _label_dp_draw as draw

SETTINGS = {**criteo.PROFILES["tiny"], "rows": 2_500, "canaries": 500, "games": 4, "teachers": 4, "answers": 40}
SETTINGS["catboost"] = {"iterations": 4, "learning_rate": 0.4, "depth": 3}
SETTINGS |= {"epsilons": [4, 1], "domain": "C9", "domain_epsilon": 0.3}  # two values: enough rows of each


def opened(name, settings, root):
    return Record.open(name, "tiny", settings, root=root / "experiments")


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """All cells, on made-up rows."""
    made = opened("criteo", SETTINGS, tmp_path_factory.mktemp("record"))
    criteo.run(made)
    return made


def test_every_mechanism_has_a_cell_at_every_epsilon(record):
    wanted = {"reference", "no privacy eps=inf", "PATE eps=inf"}
    wanted |= {f"{mechanism} eps={epsilon}" for mechanism in label_dp.MECHANISMS for epsilon in (4, 1)}
    assert set(record.cells) == wanted


def test_a_cell_has_members_control_membership_the_truth_and_the_price(record):
    for key, cell in record.cells.items():
        if key == "reference" or "nothing" in cell:
            continue
        assert {"members", "control", "mia", "log_loss", "truth", "seconds_of"} <= set(cell), key
        assert cell["canaries"] == cell["control"]["canaries"] == 500  # 20 % of the day: as many of either
        assert "as_many" not in cell
        assert 0 < cell["log_loss"]["test"] < 3


def test_guarantees_are_those_of_the_mechanisms(record):
    for key, cell in record.cells.items():
        if "epsilon" not in cell or "nothing" in cell:
            continue
        if cell["epsilon"] is None:
            assert cell["epsilon_true"] is None
        else:
            assert cell["epsilon_label"] < cell["epsilon_true"] <= cell["epsilon"] + 1e-9, key
            assert cell["epsilon_true"] > 0.97 * cell["epsilon"], key


def test_where_no_output_depends_on_a_label_the_cell_says_why(record):
    """3 % are positive: at ε = 1 the domain prior leaves one label for every row. The paper's dash."""
    cell = record.cells["LP-1ST (domain prior) eps=1"]
    assert cell["nothing"].startswith("epsilon is 0.7: with this prior k = 1 on 100% of the rows")
    assert "min_k=2" in cell["nothing"]
    table = draw.tables(record, "criteo")
    row = next(line for line in table["criteo"].splitlines() if line.startswith("| LP-1ST (domain prior), 1 |"))
    assert set(row.replace("|", "").split()) == {"LP-1ST", "(domain", "prior),", "1", "—"}
    assert cell["nothing"] in table["criteo-share"]


def test_tables_show_every_cell_beside_the_paper(record):
    tables = draw.tables(record, "criteo")
    assert set(tables) == {"criteo", "criteo-mia", "criteo-loss", "criteo-reference", "criteo-share", "criteo-brief"}
    lines = tables["criteo"].splitlines()
    assert lines[0].endswith("| control | τ* | valid by the true P: members / control |")
    assert len({line.count("|") for line in lines if line.startswith("|")}) == 1
    assert sum(line.startswith("| LP-2ST") for line in lines) == 3  # ∞, 4 and 1
    assert "| LP-2ST, 4 | 1.24 ± .15 |" in tables["criteo"]
    assert "python -m experiments run criteo --profile tiny" in tables["criteo"]
    assert "| LP-2ST | .130 / " in tables["criteo-loss"]


def test_figures_are_drawn_and_share_a_scale_that_holds_all_bounds(record):
    figures = draw.figures(record, "criteo", "made up")
    assert set(figures) == {"criteo", "criteo-mia"}
    for figure in figures.values():
        tops = {ax.get_ylim()[1] for ax in figure.axes}
        assert len(tops) == 1
        assert tops.pop() > max(cell["members"]["valid"] for _, _, cell in draw.audited(record))
        figure.canvas.draw()


def test_a_run_goes_on_with_what_is_missing(record, tmp_path, monkeypatch):
    half = opened("criteo", SETTINGS, tmp_path)
    half.body["cells"] = {key: cell for key, cell in record.cells.items() if key != "LP-2ST eps=4"}
    trained = []
    real = label_dp.train
    monkeypatch.setattr(label_dp, "train", lambda day, mechanism, *rest: trained.append(mechanism) or real(
        day, mechanism, *rest))  # fmt: skip
    criteo.run(half)
    assert trained == ["LP-2ST"]
    same = ("members", "control", "mia", "log_loss", "truth")
    assert {part: half.cells["LP-2ST eps=4"][part] for part in same} == {
        part: record.cells["LP-2ST eps=4"][part] for part in same
    }
    monkeypatch.setattr(criteo, "read", None)
    criteo.run(half)  # nothing is missing: no data is read


def test_a_control_smaller_than_the_members_is_told_beside_as_many_members(record, tmp_path):
    uneven = opened("criteo", {**SETTINGS, "canaries": 2_000, "epsilons": []}, tmp_path)
    uneven.body["cells"] = {key: record.cells[key] for key in ("reference", "PATE eps=inf")}
    criteo.run(uneven)
    cell = uneven.cells["no privacy eps=inf"]
    assert (cell["canaries"], cell["control"]["canaries"]) == (2_000, 500)
    assert cell["as_many"] == record.cells["no privacy eps=inf"]["members"]["valid"]  # the same 500 of the same model
    assert "valid on as many members as control rows" in draw.tables(uneven, "criteo")["criteo"]


@pytest.mark.parametrize("epsilon", [8, 1, 0.1])
def test_pate_is_as_loud_as_its_epsilon_allows(epsilon):
    votes = label_dp.pate(epsilon, SETTINGS)
    assert votes.guarantee("replace").epsilon <= epsilon
    less = Pate(classes=2, teachers=4, answers=40, delta=1e-5, scale=votes.scale / 1.02)
    assert less.guarantee("replace").epsilon > epsilon


def test_teachers_are_trained_once_for_the_same_rows_and_seed():
    class Learner:
        trained = 0

        def __init__(self, seed):
            self.seed = seed

        def get_params(self, deep):
            return {"seed": self.seed}

        def fit(self, X, y):
            Learner.trained += 1
            self.classes_ = np.array([0, 1])
            return self

        def predict_proba(self, X):
            return np.full((len(X), 2), self.seed)

    held, X = {}, pd.DataFrame({"a": range(10)})
    for seed, rows in ((1, X[:5]), (2, X[:5]), (1, X[5:]), (1, X[:5])):
        one = label_dp.Once(Learner(None), held).set_params(seed=seed).fit(rows, rows["a"])
        assert one.predict_proba(X)[0, 0] == seed
    assert Learner.trained == 3


def test_wus_correction_is_the_clipped_inverse_of_the_same_model():
    class Model:
        mechanism = label_dp.RandomizedResponse(epsilon=1, classes=2)
        base_rate_ = np.array([0.97, 0.03])

        def predict_proba(self, X):
            return np.array([[0.6, 0.4], [0.9, 0.1]])

    flip = 1 / (1 + np.e)
    found = label_dp.corrected(Model(), label_dp.WuClip(), None)
    assert found[0, 1] == pytest.approx((0.4 - flip) / (1 - 2 * flip))
    assert found[1].tolist() == [1, 0]


# ---- the rows ---------------------------------------------------------------------------------------------


def day_file(path, rows, day):
    """Made-up rows as Criteo writes a day."""
    made = clicks(rows, day=day, rate=0.2)
    table = made.frame.apply(lambda column: column.astype(str).replace({"nan": ""}))
    for name in [name for name in table if name[0] == "I"]:
        table[name] = table[name].str.removesuffix(".0")
    table.insert(0, "label", made.labels)
    path.write_bytes(gzip.compress(table.to_csv(sep="\t", header=False, index=False).encode(), 1))
    return made


def test_real_day_files_are_read_where_the_user_has_them(tmp_path, monkeypatch):
    made = [day_file(tmp_path / f"day_{day}.gz", 2_600, day) for day in (0, 1)]
    monkeypatch.setattr(_data, "CACHE", tmp_path / "nothing here")
    monkeypatch.setenv("BYSTANDER_DATA", str(tmp_path))
    settings = {**criteo.PROFILES["real"], **{key: SETTINGS[key] for key in ("rows", "canaries", "catboost")}}
    day = criteo.open_day(settings)
    assert day.truth is None
    np.testing.assert_array_equal(day.labels, made[1].labels[:2_500])  # the first rows of day 1 and no others
    assert day.frame["C1"].astype(str).tolist() == made[1].frame["C1"].astype(str)[:2_500].tolist()
    parts = np.concatenate((day.members, day.control))
    assert sorted(parts) == list(range(2_500))
    assert len(day.members) == 2_000
    assert set(day.test) < set(day.control)
    assert set(day.about) == {"day 0", "day 1"}
    real = opened("criteo", {**settings, "games": 4, "teachers": 4, "answers": 40, "epsilons": [4]}, tmp_path)
    criteo.run(real)
    assert len(real.cells) == 8
    assert "truth" not in real.cells["LP-1ST eps=4"]
    assert real.cells["LP-1ST eps=4"]["members"]["valid"] < 4
    assert draw.tables(real, "criteo")["criteo"].splitlines()[0].endswith("| control | τ* |")


@pytest.mark.parametrize(
    ("experiment", "profile"), [("flights", "small"), ("flights", "paper"), ("criteo", "small"), ("criteo", "sample")]
)
def test_what_the_records_hold_stays_under_its_epsilon_and_grows_with_it(experiment, profile):
    """Valid bounds, members and control, under the mechanism's ε against ⊥; less at each smaller ε from 4 down."""
    kept = Record.load(experiment, profile)
    before = dict.fromkeys(label_dp.MECHANISMS, np.inf)
    cells = {(mechanism, epsilon): cell for mechanism, epsilon, _, cell in draw.held(kept)}
    assert len(cells) == 30
    for (mechanism, epsilon), cell in cells.items():
        if "nothing" in cell:
            assert (mechanism, epsilon) == (label_dp.PRIOR, 0.1)
            continue
        found = [cell["members"]["valid"], cell["control"]["valid"]]
        if epsilon != "inf":
            assert max(found) <= cell["epsilon_label"] < cell["epsilon_true"] <= epsilon
            if epsilon <= 4:
                assert found[0] <= before[mechanism]
                before[mechanism] = found[0]


def test_days_are_those_of_the_generator_and_differ():
    first, second = (criteo.read(day, SETTINGS) for day in (0, 1))
    assert len(first.labels) == len(second.labels) == 2_500
    assert not first.frame.equals(second.frame)


@pytest.mark.slow
def test_real_rows_of_the_challenge_where_they_are_there(tmp_path):
    path = _data.folder("criteo_8000.tsv.gz") / "criteo_8000.tsv.gz"
    if not path.exists():
        pytest.skip("no criteo_8000.tsv.gz")
    settings = {**criteo.PROFILES["sample"], "games": 10, "teachers": 5, "epsilons": [4]}
    real = opened("criteo", settings, tmp_path)
    criteo.run(real)
    assert real.cells["reference"]["day 0"]["rate"] == pytest.approx(0.216, abs=0.05)
    for key, cell in real.cells.items():
        if "members" in cell:
            assert cell["members"]["valid"] < 4, key


def test_flights_are_cut_in_time(monkeypatch):
    rng, n = np.random.default_rng(0), 3_000
    month = np.sort(rng.integers(1, 13, n))
    table = pd.DataFrame({
        "month": month, "day": 1, "hour": rng.integers(5, 23, n), "arr_delay": rng.normal(0, 20, n),
        "carrier": pd.Categorical(rng.choice(["AA", "UA", "B6"], n)),
    })  # fmt: skip
    monkeypatch.setattr(_data, "flights", lambda: table)
    settings = {**flights.PROFILES["tiny"], "most": None, "catboost": SETTINGS["catboost"]}
    day = flights.open_day(settings)
    later = table[month > 6]
    assert len(day.labels) == len(later)
    assert day.labels.sum() == (later["arr_delay"] > 15).sum()
    assert not {"arr_delay", "month", "day"} & set(day.frame.columns)
    assert len(day.members) == round(0.8 * len(later))
    assert sorted(np.concatenate((day.members, day.control))) == list(range(len(later)))
    assert _audits.log_loss(day.labels, day.reference) < 1

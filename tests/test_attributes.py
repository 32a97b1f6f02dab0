"""Attribute inference: the label game is its special case, its versions against a naive twin, its reports."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bystander import InputError, LogRatio, RandomizedResponse, audit
from bystander.attributes import audit_attribute
from bystander.counts import Sketch
from bystander.games.label import game_keys, play
from bystander.games.versions import Versions
from bystander.records import from_arrays
from bystander.samplers import Chain, Finite
from tests import makers, reference


@pytest.mark.parametrize("classes", [2, 4])
def test_the_label_as_the_protected_column_gives_the_label_audits_counts(classes):
    labels, target, law = makers.response(np.random.default_rng(1), 3000, classes, 2.0)
    odds = np.random.default_rng(2).normal(0, 1, law.shape)
    law = makers.softmax(odds)
    names = [f"t{k}" for k in range(classes)], [f"r{k}" for k in range(classes)]
    rows = pd.DataFrame({"id": np.arange(3000) * 7, "y": labels})
    rows[names[0]], rows[names[1]] = target, law

    def probabilities(which):
        return lambda frame: frame[which].to_numpy()

    mine = audit_attribute(
        rows,
        protected="y",
        label="y",
        id="id",
        sampler=Finite("y", tuple(range(classes)), probabilities(names[1])),
        target=probabilities(names[0]),
        reference=probabilities(names[1]),
    )
    theirs = audit(rows, labels="y", target=names[0], reference=names[1], id="id")
    for name in ("epsilon", "canaries", "guesses", "correct", "classes", "level", "tau_star"):
        assert getattr(mine, name) == getattr(theirs, name)
    assert mine.descriptive == pytest.approx(dict(theirs.descriptive))
    assert (mine.game, mine.stand_in) == ("attribute", "sampler")


def test_versions_by_law_are_the_label_game():
    labels, target, law = makers.response(np.random.default_rng(0), 500, 3, 1.0)
    records = from_arrays(labels, target, law, ids=np.arange(500))
    scores, games = LogRatio().scores(records.target, records.reference), game_keys(3, 4)
    expected = Sketch.empty(4)
    play(records, scores, games, expected)
    found = Versions(records.labels, records.reference, scores, records.keys).play(games)
    assert (found.rows == expected.rows).all()
    assert (found.right == expected.right).all()


def test_drawn_versions_equal_the_naive_game():
    """Three draws a row: b shows the true record or one of the draws, each equally often."""
    rng = np.random.default_rng(0)
    true, drawn = rng.normal(0.5, 1, 60), rng.normal(0, 1, (60, 3))
    keys = rng.integers(0, 2**63, 60).astype(np.uint64)
    games, cuts = game_keys(1, 3), (1, 7, 30, 60)
    tally = Versions.drawn(true, drawn, keys).play(games).tally(cuts, games)
    law = np.tile([0, 1 / 3, 1 / 3, 1 / 3], (60, 1))
    for g, key in enumerate(games):
        rows = reference.answers(int(key), keys, np.zeros(60, int), law, np.column_stack((true, drawn)))
        plain = [((size, 0), right) for (size, _), right in rows]
        assert tally.correct[g].tolist() == reference.sketched(int(key), plain, cuts)


def remembered(rows, epsilon, seed=0):
    """Records whose attribute a model has seen through randomized response, as flat as can be."""
    rng = np.random.default_rng(seed)
    attribute = rng.integers(0, 2, rows)
    keep = 1 / (1 + np.exp(-epsilon))
    seen = np.where(rng.random(rows) < keep, attribute, 1 - attribute)
    frame = pd.DataFrame({"id": np.arange(rows), "who": np.arange(rows), "attribute": attribute, "y": 1})
    return frame, lambda r: np.where(np.asarray(r["attribute"]) == seen[np.asarray(r["who"])], keep, 1 - keep)


def flat(rows):
    return np.full((len(rows), 2), 0.5)


def by_coin(rows, coins):
    return {"attribute": (coins[:, 0] < 0.5).astype(int)}


SAMPLERS = {"law": Finite("attribute", (0, 1), flat), "draws": by_coin}


def test_every_kind_of_frame_and_every_order_gives_the_same_counts():
    frame, target = remembered(1500, 2.0)
    for sampler in SAMPLERS.values():
        results = [
            audit_attribute(
                data, protected="attribute", sampler=sampler, target=target, label="y", id="id", games=5, draws=3
            )
            for data in (
                frame,
                frame.sample(frac=1, random_state=1),
                pl.from_pandas(frame),
                pa.Table.from_pandas(frame),
            )
        ]
        assert len({(r.epsilon, r.guesses, r.correct) for r in results}) == 1


def test_losses_instead_of_probabilities():
    """The same target as losses: the same scores, so the same counts."""
    frame, target = remembered(1500, 2.0)
    given = {"protected": "attribute", "sampler": SAMPLERS["law"], "id": "id", "games": 5}
    one = audit_attribute(frame, target=target, label="y", **given)
    two = audit_attribute(frame, target=lambda r: -np.log(target(r)), loss=True, **given)
    assert (one.epsilon, one.correct) == (two.epsilon, two.correct)


def test_a_constant_target_shows_nothing():
    frame, _ = remembered(1500, 2.0)
    for sampler in SAMPLERS.values():
        result = audit_attribute(
            frame, protected="attribute", sampler=sampler, target=lambda r: np.full(len(r), 0.3), label="y", games=5
        )
        assert result.epsilon == 0.0


def world(rows, seed, memory=None):
    """Ages and smokers by age; a target that remembers each smoker by the noise in the id, where it has seen it."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, rows)
    smokes = (rng.random(rows) < makers.sigmoid((age - 50) / 10)).astype(int)
    frame = pd.DataFrame({"id": np.arange(rows) + 1_000_000 * seed, "age": age, "smokes": smokes, "y": smokes})
    frame["place"] = np.arange(rows) if memory is None else -1
    return frame


def test_the_built_in_sampler_end_to_end_with_control():
    """A target that knows every member's attribute, and of others nothing but their age."""
    members, held, fresh = world(3000, 1), world(3000, 2, memory=False), world(3000, 3, memory=False)
    known = members["smokes"].to_numpy()

    def target(rows):
        place = rows["place"].to_numpy()
        hit = np.where(place >= 0, known[place] == rows["smokes"], rows["age"] > 50)
        return np.where(hit, 0.9, 0.2)

    sampler = Chain.fit(fresh, "smokes", given=("age",), id="id", iterations=20)
    ones = [each.assign(y=1) for each in (members, held)]
    result = audit_attribute(
        ones[0], protected="smokes", sampler=sampler, target=target, label="y", id="id", control=ones[1], games=20
    )
    assert result.epsilon > 1.5 > 0.2 > result.control.epsilon
    assert result.quality.rows > 1000
    assert result.quality.low < 0.05
    assert any(note.startswith("Sampler of smokes: log-loss") for note in result.notes)
    told = json.loads(json.dumps(result.as_dict()))
    assert told["game"] == "attribute"
    assert told["quality"]["advice"]
    assert "smokes" in str(result)
    with pytest.raises(InputError, match="fitted on 3,000 of the audited rows"):
        audit_attribute(fresh.assign(y=1), protected="smokes", sampler=sampler, target=target, label="y", id="id")


FRAME, TARGET = remembered(300, 1.0)
GOOD = {"protected": "attribute", "sampler": SAMPLERS["law"], "target": TARGET, "label": "y"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"label": None}, "label and loss: name the label column, or give losses instead"),
        ({"loss": True}, "label and loss: name the label column, or give losses instead"),
        ({"protected": "age"}, "the sampler draws attribute, and protected is age"),
        ({"label": "z"}, "data has no column 'z'"),
        ({"target": lambda r: np.full((3, 2), 0.5)}, r"target gave \(3, 2\) for 300 rows"),
        ({"target": lambda r: np.full(len(r), 2.0)}, r"give probabilities from 0 to 1"),
        ({"reference": lambda r: np.full(len(r), np.nan)}, r"reference gave \(300, 2\)"),
        ({"sampler": Finite("attribute", (0, 2), flat)}, r"is 1: the sampler knows \(0, 2\) alone"),
        ({"sampler": Finite("attribute", (0, 1), lambda r: [[1.0, 1.0]] * 300)}, "does not add up to 1"),
        ({"sampler": Finite("attribute", (0, 1), lambda r: [[1.0]])}, r"law has shape \(1, 1\)"),
        ({"draws": 0}, "draws is 0"),
        ({"family": RandomizedResponse(3)}, "family rr is for 3 values"),
        ({"control": 3}, "control is int"),
    ],
)
def test_errors_name_the_value(change, told):
    with pytest.raises(InputError, match=told):
        audit_attribute(FRAME, **(GOOD | change))


def test_an_impossible_true_value_is_told():
    law = Finite("attribute", (0, 1), lambda r: np.tile([1.0, 0.0], (len(r), 1)))
    result = audit_attribute(FRAME, **(GOOD | {"sampler": law, "games": 2}))
    assert any("gives probability 0 to the true value of" in note for note in result.notes)

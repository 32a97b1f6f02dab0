import dataclasses
import json
import math
import re

import numpy as np
import pandas as pd
import pytest

from bystander import (
    ApproxDP,
    EProcess,
    FixedFraction,
    Gaussian,
    Grid,
    InputError,
    Learned,
    LogRatio,
    PaperScore,
    PaperSweep,
    Pure,
    Quantile,
    audit,
    bound,
)
from bystander import pictures as drawn
from bystander.games.label import game_keys
from bystander.records import from_arrays
from bystander.summary import Job
from tests import makers, reference


@pytest.fixture(scope="module")
def leaky():
    labels, target, flat = makers.response(np.random.default_rng(0), 3000, 3, 3.0)
    return {"labels": labels, "target": target, "reference": flat}


def half(data, part):
    return {name: value[part] for name, value in data.items()}


# ---------------------------------------------------------------- the whole, composed of naive parts


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("selection", [FixedFraction(0.05), Grid()])
def test_an_audit_is_its_naive_parts_composed(leaky, selection, exact):
    result = audit(**leaky, selection=selection, family=Pure(), games=4, seed=5, exact=exact)
    records = from_arrays(**leaky)
    scores = np.log(leaky["target"]) - np.log(leaky["reference"])
    mine = [max(1, round(q * 3000)) for q in getattr(selection, "fractions", (0.05,))]
    cuts = sorted({*mine, *drawn.cuts(3000)})
    correct = []
    for key in game_keys(5, 4).tolist():
        rows = reference.answers(key, records.keys, records.labels, records.reference, scores)
        found = [reference.count(rows, c) for c in cuts] if exact else reference.sketched(key, rows, cuts)
        correct.append([found[cuts.index(c)] for c in mine])
    middle = [sorted(column)[len(column) // 2] for column in zip(*correct, strict=True)]  # 2 of 4 reach it
    level = 0.05 * 2 / 4 / len(mine)
    bounds = [reference.exact_binomial(g, c, level) for g, c in zip(mine, middle, strict=True)]
    best = int(np.argmax(bounds))
    assert (result.guesses, result.correct) == (mine[best], middle[best])
    assert result.level == pytest.approx(level, rel=1e-12)
    assert result.epsilon == pytest.approx(bounds[best], abs=1e-8)


def test_auc_is_that_of_all_pairs():
    labels, target, law = makers.learned_nothing("noise", np.random.default_rng(0), 60, 3)
    result = audit(labels=labels, target=target, reference=law, games=1)
    scores = np.log(target) - np.log(law)
    assert result.descriptive["auc"] == pytest.approx(reference.auc(labels, law, scores), abs=1e-12)


@pytest.mark.parametrize("selection", [FixedFraction(0.1), Grid(), Grid((0.2, 0.5))])
@pytest.mark.parametrize("family", [ApproxDP(), Pure(), Gaussian()], ids=lambda f: f.name)
@pytest.mark.parametrize(("games", "share"), [(1, 0.5), (7, 0.5), (8, 0.25)])
def test_the_count_and_the_level_give_the_bound_again(leaky, selection, family, games, share):
    result = audit(**leaky, selection=selection, family=family, games=games, combination=Quantile(share))
    count = {"canaries": result.canaries, "guesses": result.guesses, "correct": result.correct}
    again = bound(**count, family=family, confidence=1 - result.level)
    assert again.epsilon == pytest.approx(result.epsilon, abs=1e-9)
    assert result.epsilon > 0.5
    candidates = len(selection.cuts(3000))
    assert result.level == pytest.approx(0.05 * math.ceil(share * games) / games / candidates)


# ---------------------------------------------------------------- what is chosen


def test_seeds_change_the_counts_and_repeat_them(leaky):
    def once(seed):
        return audit(**leaky, selection=FixedFraction(0.3), games=1, seed=seed).correct

    assert once(1) == once(1)
    assert len({once(seed) for seed in range(8)}) > 3


def test_defaults(leaky):
    result = audit(**leaky)
    asked = audit(**leaky, attack=LogRatio(), selection=Grid(), family=ApproxDP(1e-5), games=100, seed=0, tau=0)
    assert result.as_dict() == asked.as_dict()
    assert (result.games, result.seed, result.confidence, result.delta) == (100, 0, 0.95, 1e-5)
    assert audit(**leaky, selection=EProcess(), games=2).family == Pure()


def test_the_attack_changes_power_alone(leaky):
    log, paper = (audit(**leaky, attack=a, games=10) for a in (LogRatio(), PaperScore()))
    assert (log.attack, paper.attack) == ("log-ratio", "paper (t = 2)")
    assert log.epsilon != paper.epsilon
    assert max(log.epsilon, paper.epsilon) < reference.response_sim(3.0, 3)


def test_canaries_are_a_subset_that_does_not_depend_on_the_order(leaky):
    few = audit(**leaky, canaries=500, games=3)
    assert few.canaries == 500
    order = np.random.default_rng(1).permutation(3000)
    assert audit(**half(leaky, order), canaries=500, games=3).as_dict() == few.as_dict()
    assert audit(**leaky, canaries=3000, games=3).as_dict() == audit(**leaky, games=3).as_dict()


def test_rows_that_fit_the_attack_are_not_audited(leaky):
    records = from_arrays(**leaky)
    job = Job(Learned(), game_keys(0, 1), share=0.25)
    fitting, audited = (set(part.keys.tolist()) for part in (job.fitting(records), job.audited(records)))
    assert not fitting & audited
    assert fitting | audited == set(records.keys.tolist())
    assert len(fitting) == pytest.approx(750, abs=5 * math.sqrt(3000 * 0.25 * 0.75))
    result = audit(**leaky, attack=Learned(), games=5)
    assert result.canaries == len(audited)
    assert f"{len(fitting):,} rows" in " ".join(result.notes)
    assert 0 < result.epsilon < reference.response_sim(3.0, 3)


def test_a_group_is_one_row_chosen_without_its_label(leaky):
    ids, group = np.arange(3000), np.arange(3000) // 3
    one = audit(**leaky, id=ids, group=group, games=3)
    assert one.canaries == 1000
    flipped = leaky | {"labels": (leaky["labels"] + 1) % 3}
    chosen = [from_arrays(**d, ids=ids, groups=group).keys.tolist() for d in (leaky, flipped)]
    assert chosen[0] == chosen[1]


# ---------------------------------------------------------------- control and slices


def test_the_control_is_the_same_audit_of_other_rows(leaky):
    members, others = half(leaky, slice(0, 2000)), half(leaky, slice(2000, 3000))
    labels, target, law = makers.learned_nothing("truth", np.random.default_rng(0), 1000, 3)
    quiet = {"labels": labels, "target": target, "reference": law}
    result = audit(**members, control=quiet, games=20)
    assert result.control.as_dict() == audit(**quiet, games=20).as_dict()
    assert result.control.epsilon == 0 < result.epsilon
    loud = audit(**members, control=others, games=20)
    assert loud.control.epsilon > 0
    assert loud.epsilon == result.epsilon
    assert loud.control_note != result.control_note
    assert "not 0" in loud.control_note
    assert audit(**members, games=20).control is None


def test_slices_pay_for_each_other_and_come_worst_first():
    rng = np.random.default_rng(0)
    parts = {"calm": 0.5, "loud": 4.0, "mild": 2.0}
    made = {name: makers.response(rng, 2000, 2, epsilon) for name, epsilon in parts.items()}
    labels, target, law = (np.concatenate(columns) for columns in zip(*made.values(), strict=True))
    kinds = np.repeat(list(parts), 2000)
    rows = {"labels": labels, "target": target, "reference": law, "id": np.arange(6000), "slice": kinds}
    result = audit(**rows, games=10, selection=FixedFraction(0.1))
    assert [part.value for part in result.slices] == ["loud", "mild", "calm"]
    for part in result.slices:
        count = {"canaries": 2000, "guesses": 200, "correct": part.bound.correct}
        again = bound(**count, confidence=1 - 0.05 / 3 / 2)  # a third for the slices, a half for the median of games
        assert (part.bound.canaries, part.bound.guesses) == (2000, 200)
        assert part.bound.confidence == pytest.approx(1 - 0.05 / 3)
        assert part.bound.epsilon == pytest.approx(again.epsilon, abs=1e-9)
        assert 0.4 * parts[part.value] ** 1.1 - 0.3 < part.bound.epsilon < reference.response_sim(parts[part.value], 2)


# ---------------------------------------------------------------- the result


CONTRACT = {
    "epsilon", "delta", "confidence", "family", "mu", "canaries", "guesses", "correct", "games", "tau", "tau_star",
    "selection", "seed", "valid", "assumptions", "descriptive", "control", "slices", "version",
}  # fmt: skip


def test_the_result_has_every_name_of_the_contract_and_is_json(leaky):
    said = audit(**leaky, games=2, tau=1e-4, family=Gaussian()).as_dict()
    assert set(said) >= CONTRACT
    assert {"epsilon_mean", "epsilon_sd", "auc"} <= set(said["descriptive"])
    assert json.loads(json.dumps(said)) == said
    assert said["tau"] == 1e-4
    assert said["epsilon"] == Gaussian().epsilon(said["mu"])


def test_the_result_is_frozen(leaky):
    result = audit(**leaky, games=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.epsilon = 0.0
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
        result.note = "x"


def test_the_papers_sweep_is_not_valid_and_says_so(leaky):
    result = audit(**leaky, selection=PaperSweep(), family=Gaussian(), games=3)
    assert not result.valid
    assert any("Not a bound" in line for line in result.assumptions)
    assert result.epsilon == pytest.approx(result.descriptive["epsilon_mean"])


def test_the_papers_numbers_are_descriptive(leaky):
    result = audit(**leaky, games=5)
    sweep = audit(**leaky, games=5, selection=PaperSweep(), family=Gaussian())
    assert result.descriptive["epsilon_mean"] == pytest.approx(sweep.epsilon)
    assert 0.5 < result.descriptive["accuracy"] < 1


def test_progress_counts_every_row(leaky):
    told = []
    audit(**leaky, games=4, progress=lambda what, done, total: told.append((what, done, total)))
    assert sum(done for _, done, _ in told) == 3000 == told[0][2]
    assert {what for what, _, _ in told} == {"members"}


def test_slices_share_one_bar(leaky):
    told = []
    audit(**leaky, slice=np.arange(3000) % 5, games=1, progress=lambda *said: told.append(said))
    parts = [said for said in told if said[0] == "slices"]
    assert {said[0] for said in told} == {"members", "slices"}
    assert [done for _, done, _ in parts] == [600] * 5
    assert {total for _, _, total in parts} == {3000}


def test_a_reference_that_rules_a_true_label_out_is_noted():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 2000)
    reference_law = np.where(np.arange(2000) < 7, 1.0 - labels, 0.5)  # 0 for the label, in seven rows
    result = audit(labels=labels, target=np.full(2000, 0.5), reference=reference_law, games=1)
    assert any(re.search(r"probability 0 to the label of 7 rows", note) for note in result.notes)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"games": 0}, "games is 0: give a whole number from 1 to 10,000"),
        ({"games": 1.5}, "games is 1.5: give a whole number"),
        ({"seed": -1}, "seed is -1: give a whole number of at least 0"),
        ({"confidence": 0}, "confidence is 0: give a number above 0 and below 1"),
        ({"tau": 1}, "tau is 1: give a number at least 0 and below 1"),
        ({"canaries": 3001}, "canaries is 3001: give a whole number from 1 to 3,000"),
        ({"control": 3}, "control is no mapping: beside arrays, give a mapping of labels, target and reference"),
        ({"family": "pure"}, "family is 'pure': give a value such as ApproxDP(delta=1e-5)"),
        ({"family": Pure}, "family is <class 'bystander.tradeoff.Pure'>: give a value such as ApproxDP(delta=1e-5)"),
        ({"selection": 0.01}, "selection is 0.01: give a value such as FixedFraction(0.01)"),
        ({"combination": 0.5}, "combination is 0.5: give a value such as Quantile()"),
        ({"attack": "paper"}, "attack is 'paper': give a value such as PaperScore()"),
        ({"engine": "ray"}, "engine is 'ray': give a value such as engines.Local()"),
        ({"control": {"labels": [0]}}, "control has labels: give labels, target and reference"),
        (
            {"group": np.arange(3000)},
            "groups need ids: give ids too, so that a group's row is chosen without its label",
        ),
    ],
)
def test_wrong_arguments_are_refused_by_name_and_value(leaky, change, words):
    with pytest.raises(InputError) as error:
        audit(**leaky | change)
    assert str(error.value) == words


def test_arguments_beside_data_name_columns():
    frame = pd.DataFrame({"y": [0, 1], "p": [0.1, 0.2], "q": [0.5, 0.5]})
    with pytest.raises(InputError, match="labels is list: with data, give the name of a column"):
        audit(frame, labels=[0, 1], target="p", reference="q")


def test_too_few_rows_to_fit_an_attack():
    with pytest.raises(InputError, match="are too few to fit the attack"):
        audit(labels=[0, 1] * 50, target=[0.5] * 100, reference=[0.5] * 100, attack=Learned())

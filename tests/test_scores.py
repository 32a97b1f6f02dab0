"""`scores`: the same game however its numbers are kept, its result's parts, its words, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from bystander import (
    Above,
    ApproxDP,
    Centred,
    EProcess,
    FixedFraction,
    Gaussian,
    Given,
    Grid,
    InputError,
    Paired,
    PaperSweep,
    Pure,
    Steinke,
    Tails,
    bound,
    scores,
)
from bystander.games import membership
from bystander.games.label import game_keys
from bystander.games.membership import Pairs
from bystander.scored import from_array
from tests.data import jax_privacy_one_run as measured

N = 1500
RNG = np.random.default_rng(0)
MEMBER = RNG.random(2 * N) < 0.5
SCORE = RNG.normal(0, 1, 2 * N).round(2) + 1.2 * MEMBER
TABLE = pa.table({"id": [f"row-{i}" for i in RNG.permutation(2 * N)], "s": SCORE, "m": MEMBER.astype(int)})
COINS = {"paired": Paired(), "given": Given()}


def numbers(result):
    said = result if isinstance(result, dict) else result.as_dict()
    return {k: v for k, v in said.items() if k not in ("command", "notes")}


# ---------------------------------------------------------------- the whole, composed of its parts


@pytest.mark.parametrize("family", [ApproxDP(), Gaussian(), Steinke()], ids=lambda f: f.name)
def test_a_result_is_its_parts_composed(family):
    result = scores(members=SCORE[MEMBER], others=SCORE[~MEMBER], family=family, games=5, seed=4)
    kinds = [from_array(name, SCORE[side]) for name, side in (("members", MEMBER), ("others", ~MEMBER))]
    m = min(map(len, kinds))
    tally = membership.paired(Pairs.of(*kinds, 4), Tails(), game_keys(4, 5), Grid().cuts(m))
    each = [
        bound(canaries=m, guesses=int(c), correct=int(np.sort(right)[2]), family=family, confidence=1 - 0.05 * 0.6 / 8)
        for c, right in zip(tally.guesses, tally.correct.T, strict=True)
    ]
    best = max(each, key=lambda one: one.epsilon)
    assert (result.epsilon, result.guesses, result.correct) == (best.epsilon, best.guesses, best.correct)
    assert result.level == pytest.approx(0.05 * 0.6 / 8)
    assert (result.canaries, result.games, result.game) == (m, 5, "membership")
    below = (SCORE[~MEMBER] < SCORE[MEMBER][:, None]).mean() + (SCORE[~MEMBER] == SCORE[MEMBER][:, None]).mean() / 2
    assert result.descriptive["auc"] == pytest.approx(below)


def test_coins_given_are_one_game_on_all_rows_without_a_shift():
    result = scores(score=SCORE, member=MEMBER, coins=Given(), selection=FixedFraction(0.1), guess=Tails(1.0))
    top = np.argsort(-SCORE, kind="stable")[:300]
    assert (result.canaries, result.guesses, result.games) == (2 * N, 300, 1)
    assert abs(result.correct - MEMBER[top].sum()) <= 2  # equal scores at the cut
    assert result.epsilon == bound(canaries=2 * N, guesses=300, correct=result.correct).epsilon
    assert (result.game, result.stand_in, result.tau_star) == ("membership-one-run", None, None)
    assert result.pictures.shift.x == ()


@pytest.mark.parametrize("selection", [EProcess(), PaperSweep(), FixedFraction(0.2), Grid((0.1, 0.5))])
@pytest.mark.parametrize("coins", COINS)
def test_every_selection_gives_a_result_that_is_json(coins, selection):
    result = scores(score=SCORE, member=MEMBER, coins=COINS[coins], selection=selection, games=3)
    assert json.loads(json.dumps(result.as_dict())) == result.as_dict()
    assert 0.5 < result.epsilon < 6
    assert result.valid == (selection != PaperSweep())
    assert result.family == (Pure() if selection == EProcess() else ApproxDP())


def test_scores_alone_decide_not_their_scale():
    """Ranks are all that `Tails` reads, distances from the centre all that `Centred` does."""
    plain = scores(score=SCORE, member=MEMBER, games=3, selection=FixedFraction(0.1))
    sides = {"members": SCORE[MEMBER], "others": SCORE[~MEMBER], "games": 3, "selection": FixedFraction(0.1)}
    assert scores(**sides).correct == plain.correct
    centred = scores(**sides, guess=Centred(0.6))
    assert centred.attack == "scores given: distance of the score from 0.6"
    assert 0.7 < centred.correct / centred.guesses < 1


def test_a_shift_costs_and_tau_star_is_where_nothing_is_left():
    asked = {"score": SCORE, "member": MEMBER, "games": 3}
    free, held = scores(**asked), scores(**asked, tau=1e-4)
    assert 0 < held.epsilon < free.epsilon
    assert (held.tau, held.tau_form) == (1e-4, "two-sided")
    assert scores(**asked, tau=free.tau_star * 1.01).epsilon == 0
    assert any("total variation τ = 0.0001" in line for line in held.assumptions)


# ---------------------------------------------------------------- the same numbers, however they are kept


def kept(folder):
    """The table in every form: arguments of `scores`."""
    shuffled = TABLE.take(RNG.permutation(2 * N))
    parquet.write_table(TABLE, folder / "rows.parquet")
    csv.write_csv(shuffled, folder / "rows.csv")
    feather.write_feather(TABLE, folder / "rows.arrow")
    for k in range(2):
        parquet.write_table(shuffled.slice(k * N, N), folder / f"part-{k}.parquet")
    inside = pa.compute.equal(TABLE["m"], 1)
    parquet.write_table(TABLE.filter(inside), folder / "in.parquet")
    csv.write_csv(TABLE.filter(pa.compute.invert(inside)), folder / "out.csv")
    columns = {"score": "s", "member": "m"}
    yield from (
        {"data": str(folder / "rows.csv"), **columns},
        {"data": folder / "rows.arrow", **columns},
        {"data": str(folder / "part-*.parquet"), **columns},
        {"data": TABLE, **columns},
        {"data": TABLE.to_pandas(), **columns},
        {"data": pl.from_arrow(shuffled), **columns},
        {"data": str(folder / "in.parquet"), "others": str(folder / "out.csv"), "score": "s"},
        {
            "data": TABLE.filter(inside).to_pandas(),
            "others": pl.from_arrow(TABLE.filter(pa.compute.invert(inside))),
            "score": "s",
        },
    )


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("coins", COINS)
def test_the_same_scores_give_the_same_counts_however_they_are_kept(tmp_path, coins, ids):
    asked = {"coins": COINS[coins], "games": 4, "seed": 9}
    named = {"id": "id"} if ids else {}
    expected = numbers(scores(TABLE, score="s", member="m", **named, **asked))
    assert expected["epsilon"] > 1
    for arguments in kept(tmp_path):
        assert numbers(scores(**arguments, **named, **asked)) == expected
    arrays = {"id": TABLE["id"]} if ids else {}
    assert numbers(scores(score=list(SCORE), member=pd.Series(MEMBER), **arrays, **asked)) == expected
    if not ids:
        assert numbers(scores(members=SCORE[MEMBER], others=pl.Series(SCORE[~MEMBER]), **asked)) == expected
        assert numbers(scores(members=SCORE[MEMBER].astype("<f8"), others=SCORE[~MEMBER][::-1], **asked)) == expected


def test_the_command_line_says_what_python_says(answer, tmp_path):
    path = tmp_path / "rows.parquet"
    parquet.write_table(TABLE, path)
    base = ("scores", path, "--score", "s", "--member", "m", "--seed", 3)
    said = answer(*base, "--id", "id", "--games", 5, "--family", "gaussian", "--delta", "1e-6", "--tau", "1e-5")
    asked = scores(str(path), score="s", member="m", id="id", seed=3, games=5, family=Gaussian(1e-6), tau=1e-5)
    assert numbers(said) == numbers(json.loads(json.dumps(asked.as_dict())))
    assert said["command"].startswith("bystander scores ")
    for words, guess in (("both:0.9", Tails(0.9)), ("above:1.5", Above(1.5)), ("centre:0.6", Centred(0.6))):
        said = answer(*base, "--coins", "given", "--guess", words, "--guesses", 0.05, "--attack", "loss")
        asked = scores(
            str(path), score="s", member="m", coins=Given(), guess=guess, selection=FixedFraction(0.05), seed=3
        )
        assert (said["epsilon"], said["correct"]) == (asked.epsilon, asked.correct)
        assert said["attack"] == f"loss: {guess.name}"
    assert answer(*base, "--guesses", "eprocess", "--games", 2)["family"] == "pure"


def test_a_control_stands_beside_the_members(answer, tmp_path):
    held, control = tmp_path / "held.csv", tmp_path / "control.csv"
    csv.write_csv(pa.table({"s": SCORE[~MEMBER]}), held)
    csv.write_csv(pa.table({"s": np.random.default_rng(1).normal(0, 1, 1400), "m": np.zeros(1400)}), control)
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"s": SCORE[MEMBER]}), path)
    said = answer("scores", path, "--others", held, "--score", "s", "--control", control, "--games", 5)
    assert said["control"]["epsilon"] == 0
    assert said["control"]["canaries"] == 1400
    assert said["control_note"].startswith("The control reads 0 on 1,400 rows: no sign that the held-out set's error")
    fresh = np.random.default_rng(1).normal(0, 1, 1400)
    asked = scores(members=SCORE[MEMBER], others=SCORE[~MEMBER], control=fresh, games=5)
    assert asked.control.correct == said["control"]["correct"]
    shifted = scores(members=SCORE[MEMBER], others=SCORE[~MEMBER], control=fresh + 1.2, games=5)
    assert "It may explain most of the" in shifted.control_note or "no more than the control" in shifted.control_note


# ---------------------------------------------------------------- others' numbers


@pytest.mark.parametrize("case", json.loads(Path(measured.__file__).with_suffix(".json").read_text())["measured"])
def test_at_a_threshold_the_bounds_are_jax_privacys(case):
    """Its explicit threshold guesses "member" for whatever passes; a cap of as many guesses is the same count."""
    rows, gap, threshold, delta, significance = case["case"]
    members, others = measured.scores(rows, gap)
    passing = int((members >= threshold).sum() + (others >= threshold).sum())
    asked = {
        "members": members,
        "others": others,
        "coins": Given(),
        "guess": Above(threshold),
        "selection": FixedFraction(passing / (2 * rows)),
        "confidence": 1 - significance,
    }
    result = scores(**asked, family=Steinke(delta))
    assert (result.guesses, result.correct) == (passing, int((members >= threshold).sum()))
    assert result.epsilon == pytest.approx(case["epsilon_one_run"], abs=1e-4)
    assert scores(**asked, family=Gaussian(delta)).epsilon == pytest.approx(case["epsilon_one_run_fdp"], abs=1e-4)


# ---------------------------------------------------------------- the words


def test_the_reports_of_membership_speak_of_members():
    result = scores(members=SCORE[MEMBER], others=SCORE[~MEMBER][:1200], games=3)
    text, page = str(result), result.to_html()
    assert "a held-out set off by more than τ* = " in text
    assert f"{MEMBER.sum() - 1200:,} members have no partner" in text
    assert "An error of the held-out set looks exactly like leakage" in text
    assert "Scores of members and others" in page
    assert "How wrong may the held-out set be?" in page
    for said in (text, page):
        assert "label" not in said.replace("aria-labelledby", "")
        assert "reference" not in said
        assert "Classes" not in said


def test_the_reports_of_coins_given_need_no_control_and_know_no_shift():
    result = scores(score=SCORE, member=MEMBER, coins=Given())
    for said in (str(result), result.to_html()):
        flat = " ".join(said.split())
        assert "No control is needed" in flat
        assert "nothing was drawn after training" in flat
        assert "No control rows" not in flat
        assert "τ" not in flat
    nothing = scores(score=np.zeros(2 * N), member=MEMBER, coins=Given())
    assert nothing.epsilon == 0
    assert "a stronger attack or more rows may still find a leak" in nothing.to_html()


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "no scores are given: give members and others, or score and member, or data and their columns"),
        ({"members": SCORE}, "members are given alone: give members and others"),
        ({"others": SCORE}, "others are given alone: give members and others"),
        ({"members": SCORE, "others": SCORE, "score": SCORE}, "members and others are given with score, member or id"),
        ({"score": SCORE}, "no scores are given"),
        ({"score": SCORE, "member": MEMBER[1:]}, "arrays: score has 3000 rows and member has 2999"),
        ({"score": SCORE, "member": MEMBER * 2}, "arrays, column 'member', row"),
        ({"score": np.where(SCORE > 3, np.nan, SCORE), "member": MEMBER}, "arrays, column 'score', row"),
        ({"members": [1.0, np.inf], "others": [1.0]}, "arrays, column 'members', row 1 is inf: give a finite number"),
        ({"members": [1.0, None], "others": [1.0]}, "arrays, column 'members', row 1 is null: give a finite number"),
        ({"members": ["a"], "others": [1.0]}, "arrays, column 'members'"),
        ({"members": np.zeros((4, 2)), "others": [1.0]}, "arrays, column 'members'"),
        ({"members": [], "others": [1.0]}, "arrays has no rows: give at least one row"),
        (
            {"score": SCORE, "member": np.ones(2 * N)},
            "arrays has no others (member 0): a game needs rows of both kinds",
        ),
        ({"score": SCORE, "member": np.zeros(2 * N)}, "arrays has no members (member 1)"),
        ({"data": TABLE, "score": "s"}, "member and others are not given: give the column of bits"),
        ({"data": TABLE, "score": "s", "member": "m", "others": TABLE}, "member and others are both given"),
        ({"data": TABLE, "score": "s", "member": "s"}, "data frame: column 's' is named twice"),
        ({"data": TABLE, "score": "z", "member": "m"}, "data frame has no column 'z'; its columns are 'id', 's', 'm'"),
        ({"data": TABLE, "score": SCORE, "member": "m"}, "score is ndarray: with data, give the name of a column"),
        ({"data": TABLE, "score": "s", "member": "m", "id": "m"}, "data frame: column 'm' is named twice"),
        ({"data": TABLE, "score": "s", "member": "m", "members": SCORE}, "members are given beside data"),
        (
            {"data": pa.table({"s": [1.0, 2.0], "m": [1, 0], "i": [7, 7]}), "score": "s", "member": "m", "id": "i"},
            "data frame: id 7 names two rows: give each row its own",
        ),
        (
            {"data": TABLE, "score": "s", "member": "m", "control": TABLE},
            "the control's data frame, column 'm', row",
        ),
        ({"score": SCORE, "member": MEMBER, "coins": Given(), "tau": 0.1}, "tau is 0.1: coins tossed before training"),
        ({"score": SCORE, "member": MEMBER, "coins": Given(), "control": SCORE}, "control goes with paired coins"),
        (
            {"members": SCORE, "others": SCORE[:2000], "coins": Given()},
            "arrays has 3,000 members in 5,000 rows: fair coins would not give that (p = 1e-45); use coins paired",
        ),
        ({"score": SCORE, "member": MEMBER, "tau": 0.1, "family": Steinke()}, "tau is 0.1: Steinke's bound has no"),
        ({"score": SCORE, "member": MEMBER, "games": 0}, "games is 0: give a whole number from 1 to 10,000"),
        ({"score": SCORE, "member": MEMBER, "confidence": 1}, "confidence is 1: give a number above 0 and below 1"),
    ],
)
def test_what_is_no_game_is_refused_in_one_line(arguments, told):
    with pytest.raises(InputError) as raised:
        scores(**arguments)
    assert str(raised.value).startswith(told)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--member", "m", "--guess", "top"), "--guess is 'top': give both, both:UPPER, above:SCORE or centre:SCORE"),
        (("--member", "m", "--guess", "above:x"), "--guess is 'above:x': give a number after the colon"),
        (("--member", "m", "--guess", "above"), "--guess is 'above': give both"),
        (
            ("--member", "m", "--family", "rr"),
            "family rr is for labels: use approx, pure, gaussian, laplace or steinke",
        ),
        (("--member", "m", "--fail-above", 1, "--guesses", "paper-sweep"), "--fail-above is 1: it needs a valid bound"),
        ((), "member and others are not given"),
    ],
)
def test_the_command_line_refuses_in_one_line(cli, tmp_path, args, told):
    parquet.write_table(TABLE, tmp_path / "rows.parquet")
    status, out, err = cli("scores", tmp_path / "rows.parquet", "--score", "s", *args)
    assert (status, out) == (2, "")
    assert err.startswith(f"bystander: {told}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("others", "control", "told"),
    [
        ("rows", "more", "rows.parquet is given as members and as others"),
        ("more", "rows", "rows.parquet is given as played and as control"),
        ("more", "more", "more.parquet is given as others and as control"),
    ],
)
def test_a_file_is_one_thing(cli, tmp_path, others, control, told):
    for name in ("rows", "more"):
        parquet.write_table(TABLE.select(["s"]), tmp_path / f"{name}.parquet")
    files = {"--others": tmp_path / f"{others}.parquet", "--control": tmp_path / f"{control}.parquet"}
    args = [part for pair in files.items() for part in pair]
    status, out, err = cli("scores", tmp_path / "rows.parquet", "--score", "s", *args)
    assert (status, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


def test_fail_above_and_files(cli, tmp_path):
    parquet.write_table(TABLE, tmp_path / "rows.parquet")
    outputs = [tmp_path / f"r.{kind}" for kind in ("json", "html", "svg")]
    args = ("scores", tmp_path / "rows.parquet", "--score", "s", "--member", "m", "--games", 3)
    named = [part for pair in zip(("--json", "--html", "--plot"), outputs, strict=True) for part in pair]
    status, _, err = cli(*args, *named, "--fail-above", 0.5)
    assert status == 1
    assert "is above --fail-above 0.5" in err
    assert all(path.stat().st_size > 1000 for path in outputs)
    assert cli(*args, "--fail-above", 9)[0] == 0


def test_few_rows_are_played_and_noted():
    result = scores(members=[2.0, 3.0], others=[1.0, 0.5, 0.2], games=2)
    assert (result.canaries, result.epsilon) == (2, 0)
    assert "2 rows are few" in " ".join(result.notes)
    assert scores(members=[1.0], others=[0.0], games=1).canaries == 1

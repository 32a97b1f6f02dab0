"""Interventional games, before training and after: who is trained on, or with which label, is decided by coins.

The only thing to keep is the value that was made before training: its seed is all that the coins hang on. They are
hashes of (seed, id), so a pipeline of any number of workers may ask for the rows that it has.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bystander import _columns, _keys
from bystander._frames import array_source
from bystander._tables import Where
from bystander._validate import InputError, whole
from bystander.asked import Asked
from bystander.games import membership
from bystander.games.game import Data
from bystander.games.guesses import Centred
from bystander.games.interventional import LEFT_OUT, PLANTED, Inclusion, Planting, chosen
from bystander.games.label import game_keys
from bystander.games.membership import Scored
from bystander.outcome import saw_two
from bystander.records import Records, from_arrays
from bystander.result import Result
from bystander.selection import Selection
from bystander.tradeoff import Family
from bystander.verdict import Played, verdict

_TINY = 1e-9


def _secret() -> int:
    return secrets.randbits(63)


@dataclass(frozen=True, slots=True)
class RowCoins:
    """Fair coins that leave canaries out of training: membership in one run (Steinke et al. 2023).

    `share` of the rows are canaries, all unless told otherwise; the rest is always trained on. The seed comes from the
    operating system unless given. Train on `trained(ids)`, keep this value, and give the canaries' scores and coins to
    `scores(…, coins=Given())`.

    >>> coins = RowCoins(share=0.5, seed=7)
    >>> ids = ["ann", "bob", "cleo", "dan"]
    >>> coins.trained(ids).tolist(), coins.canaries(ids).tolist()
    ([True, True, False, True], [False, False, True, True])
    """

    share: float = 1.0
    seed: int = field(default_factory=_secret)

    def __post_init__(self) -> None:
        Inclusion(self.share)
        whole("seed", self.seed, 0)

    def canaries(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """The rows whose coin was tossed: those that are audited."""
        return chosen(_keys_of(ids), LEFT_OUT, self.share)

    def trained(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """The rows to train on: of the canaries those whose coin says so, and all others."""
        keys = _keys_of(ids)
        nothing = np.zeros(len(keys))
        _, out = Inclusion(self.share).artifacts(Data(nothing, nothing, keys), game_keys(self.seed, 1)[0])
        return np.asarray(~out)


@dataclass(frozen=True, slots=True)
class LabelCanaries:
    """Random labels for a share of the rows, planted before training (Malek et al. 2021).

    Each canary has two labels drawn for it, and a fair coin plants one of them. With three classes or more, both are
    wrong. The seed comes from the operating system unless given. Train with `plant(ids, labels)` in the labels' place,
    keep this value, and give it to `audit_label_canaries`.

    >>> LabelCanaries(classes=10, share=1.0, seed=1).plant(["ann", "bob", "cleo", "dan"], [4, 4, 4, 4]).tolist()
    [3, 5, 3, 5]
    """

    classes: int
    share: float
    seed: int = field(default_factory=_secret)

    def __post_init__(self) -> None:
        Planting(self.classes, self.share)
        whole("seed", self.seed, 0)

    def canaries(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """The rows that a label is planted in."""
        return chosen(_keys_of(ids), PLANTED, self.share)

    def plant(self, ids: ArrayLike, labels: ArrayLike) -> NDArray[np.int64]:
        """The labels to train with."""
        keys = _keys_of(ids)
        table, columns = array_source({"labels": labels}, "labels")
        (name,) = columns["labels"]
        y = _columns.labels(Where("labels"), name, table.read([name], [])[name], self.classes)
        if len(y) != len(keys):
            raise InputError(f"ids has {len(keys):,} rows and labels has {len(y):,}: give one label an id")
        data, game = Data(np.zeros(len(keys)), y, keys), Planting(self.classes, self.share)
        return np.asarray(game.data(data, game.artifacts(data, game_keys(self.seed, 1)[0])).y)


def audit_label_canaries(
    planted: LabelCanaries,
    *,
    ids: ArrayLike,
    labels: ArrayLike,
    target: ArrayLike,
    reference: ArrayLike | None = None,
    selection: Selection | None = None,
    family: Family | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Result:
    """A lower bound on ε of replacing a label, from a model that was trained with planted labels.

    `labels` are the true ones, as they were before planting; `target` the trained model's probabilities (of label 1, or
    a column a class), and `reference` those of a model that never saw the planted labels, to take off what any model
    says of the two. All rows may be given: those that are no canaries are left aside.

    >>> import numpy as np
    >>> from bystander import LabelCanaries, audit_label_canaries
    >>> rng = np.random.default_rng(0)
    >>> ids, labels = np.arange(4000), rng.integers(0, 2, 4000)
    >>> planted = LabelCanaries(classes=2, share=0.5, seed=1)
    >>> given = planted.plant(ids, labels)  # what a model is trained with: here, one that publishes noisy labels
    >>> noisy = np.where(rng.random(4000) < 0.9, given, 1 - given)
    >>> result = audit_label_canaries(planted, ids=ids, labels=labels, target=np.where(noisy == 1, 0.9, 0.1))
    >>> result.game, 1.6 < result.epsilon < float(np.log(0.9 / 0.1))  # 2.20: its ε of replacing a label
    ('label-canaries', True)
    """
    records = from_arrays(labels, target, target if reference is None else reference, ids=ids)
    if records.classes != planted.classes:
        raise InputError(
            f"target has {records.classes} classes and labels were planted for {planted.classes}: give one column each"
        )
    asked = Asked.of(
        records.classes, "target", selection=selection, family=family, confidence=confidence, games=1, seed=seed
    )
    return verdict(_played(planted, records, reference is not None, asked.seed), asked.selection, asked.question)


def _played(planted: LabelCanaries, records: Records, calibrated: bool, seed: int) -> Played:
    """The one game, from the log of the trained model."""
    data = Data(np.zeros(len(records)), records.labels, records.keys)
    game = Planting(planted.classes, planted.share)
    drawn = game.artifacts(data, game_keys(planted.seed, 1)[0])
    told, canary, second = game.hint(None, data, drawn), drawn[0], game.bits(drawn)
    m = len(second)
    if not 0 < int(second.sum()) < m:
        raise InputError(f"{m:,} canaries among {len(records):,} rows: give more rows, or plant a larger share")
    scores = _log_ratio(records.target[canary], told.first, told.second)
    if calibrated:
        scores = scores - _log_ratio(records.reference[canary], told.first, told.second)
    rows = Scored(scores, told.rows.keys)
    blind = ("The reference did not learn from planted labels.",) if calibrated else ()
    return Played(
        game=game.name,
        attack="log-ratio of the two labels" + (", over the reference's" if calibrated else ""),
        canaries=m,
        classes=planted.classes,
        games=1,
        seed=seed,
        tally=partial(membership.given, rows, ~second, Centred(0.0), seed),
        seen=saw_two(scores[~second], scores[second]),
        assumptions=(*game.assumptions, *blind),
        stand_in=None,
        notes=("The ε is that of replacing a label.", f"Labels were planted in {m:,} of {len(records):,} rows."),
    )


def _log_ratio(p: NDArray[np.float64], first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
    rows = np.arange(len(p))
    return np.asarray(np.log(np.maximum(p[rows, first], _TINY)) - np.log(np.maximum(p[rows, second], _TINY)))


def _keys_of(ids: ArrayLike) -> NDArray[np.uint64]:
    """A key for each id; no two alike."""
    table, columns = array_source({"ids": ids}, "ids")
    (name,) = columns["ids"]
    held = _columns.identity(Where("ids"), name, table.read([name], [])[name])
    keys = _keys.id_keys(held)
    if (twins := _keys.first_repeat(keys, held)) is not None:
        raise InputError(f"ids: {held[twins[1]].as_py()!r} names two rows: give each row its own")
    return keys

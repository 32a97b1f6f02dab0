"""Numba kernels of the game: coins from hashes, guesses into a sketch, and counts out of it.

Everything here is a pure function of its arguments, compiled once and cached on disk, and runs without the
interpreter's lock.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_TIE = np.uint64(0xD1B54A32D192ED03)
RANKS = 1 << 16  # bins of a rank's high bits, for exact counts


@njit(cache=True, nogil=True)
def mix64(x):  # type: ignore[no-untyped-def]
    """SplitMix64's finalizer: a bijection of 64 bits that scatters them."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def tally_binary(games, keys, thresholds, labels, codes, flips, bins):  # type: ignore[no-untyped-def]
    """Play every game on a batch of binary rows: bit, label, score, guess, sketch, in one pass.

    The row's hash under the game's key gives the bit b and the counterfactual label. `codes` holds the bin of |score|
    for label 0, and in the lowest bit the guess "true label"; `flips` is what label 1 changes in it. `bins` counts
    rows in its low and right guesses in its high half. No branch depends on a coin, and the first inner loop, over
    contiguous 64-bit words, becomes vector instructions.
    """
    one, thirty_two = np.uint64(1), np.uint64(32)
    held = np.empty(1024, dtype=np.uint64)
    for start in range(0, len(keys), 1024):
        part = slice(start, min(start + 1024, len(keys)))
        key, threshold, y0, code, flip = keys[part], thresholds[part], labels[part], codes[part], flips[part]
        for g in range(len(games)):
            row, game = bins[g], games[g]
            for i in range(len(key)):
                h = mix64(key[i] + game)
                b = h & one
                y1 = np.uint64((h >> np.uint64(11)) >= threshold[i])
                held[i] = (code[i] ^ (flip[i] * (y0[i] ^ (b & (y0[i] ^ y1))))) ^ b  # lowest bit: right
            for i in range(len(key)):
                row[held[i] >> one] += one + ((held[i] & one) << thirty_two)


@njit(cache=True, nogil=True)
def tally_classes(games, keys, thresholds, labels, codes, bins):  # type: ignore[no-untyped-def]
    """The same for any number of classes: y¹ is how many of its cumulative probabilities the coin passes.

    `thresholds` is (classes − 1, rows), so that the comparisons of one class run over contiguous rows.
    """
    one, thirty_two = np.uint64(1), np.uint64(32)
    held, coin = np.empty(512, dtype=np.uint64), np.empty(512, dtype=np.uint64)
    label = np.empty(512, dtype=np.uint64)
    for start in range(0, len(keys), 512):
        part = slice(start, min(start + 512, len(keys)))
        key, y0, code = keys[part], labels[part], codes[part]
        for g in range(len(games)):
            row, game = bins[g], games[g]
            for i in range(len(key)):
                held[i] = mix64(key[i] + game)
                coin[i] = held[i] >> np.uint64(11)
                label[i] = 0
            for k in range(len(thresholds)):
                threshold = thresholds[k, part]
                for i in range(len(key)):
                    label[i] += np.uint64(coin[i] >= threshold[i])
            for i in range(len(key)):
                b = held[i] & one
                shown = y0[i] ^ ((y0[i] ^ label[i]) * b)
                c = code[i, shown] ^ b
                row[c >> one] += one + ((c & one) << thirty_two)


@njit(cache=True, nogil=True)
def hypergeometric(u, size, good, need):  # type: ignore[no-untyped-def]
    """How many of `need` rows drawn from `size`, of which `good` are right, are right: inversion from the mode."""
    low, high = max(0, need - (size - good)), min(need, good)
    if low == high:
        return low
    mode = int((need + 1.0) * (good + 1.0) / (size + 2.0))
    mode = min(high, max(low, mode))
    log_mass = (
        math.lgamma(good + 1.0)
        - math.lgamma(mode + 1.0)
        - math.lgamma(good - mode + 1.0)
        + math.lgamma(size - good + 1.0)
        - math.lgamma(need - mode + 1.0)
        - math.lgamma(size - good - need + mode + 1.0)
        - math.lgamma(size + 1.0)
        + math.lgamma(need + 1.0)
        + math.lgamma(size - need + 1.0)
    )
    up = down = math.exp(log_mass)
    u -= up
    above = below = mode
    while u >= 0.0 and (above < high or below > low):
        if above < high:
            up *= (good - above) * float(need - above) / ((above + 1.0) * (size - good - need + above + 1.0))
            above += 1
            u -= up
            if u < 0.0:
                return above
        if below > low:
            down *= below * (size - good - need + float(below)) / ((good - below + 1.0) * (need - below + 1.0))
            below -= 1
            u -= down
            if u < 0.0:
                return below
        if up < 1e-300 and down < 1e-300:
            break
    return mode


@njit(cache=True, nogil=True)
def cut_sketch(game, rows, right, cuts, out):  # type: ignore[no-untyped-def]
    """How many of the c' strongest guesses are right, for each c' of the rising `cuts`.

    Where a cut falls inside a bin, the guesses it takes there are a random part of the bin: how many of them are
    right is drawn, by the game's key and the cut, from its law. Cuts in one bin are nested.
    """
    seen, good, k = np.int64(0), np.int64(0), 0
    for j in range(len(rows) - 1, -1, -1):
        size, hits = rows[j], right[j]
        while k < len(cuts) and cuts[k] <= seen + size:
            need = cuts[k] - seen
            u = (mix64(game ^ mix64(np.uint64(cuts[k]))) >> np.uint64(11)) * 2.0**-53
            taken = hypergeometric(u, size, hits, need)
            out[k] = good + taken
            good, seen, size, hits = good + taken, seen + need, size - need, hits - taken
            k += 1
        seen += size
        good += hits


@njit(cache=True, nogil=True)
def play(game, keys, labels, thresholds, place, spread, cuts, ranks, bins, out):  # type: ignore[no-untyped-def]
    """One game over all rows, sorted exactly and counted at every cut.

    The row's hash under the game's key gives the bit b, the counterfactual label and, hashed once more, what
    breaks ties of the score. A row's rank is `place` plus its share of `spread` (see counts.rank); the lowest bit of
    `spread` is the guess "true label", the lowest bit of the rank says whether the guess was right.
    """
    one, top = np.uint64(1), np.uint64(32)
    bins[:] = 0
    for i in range(len(keys)):
        h = mix64(keys[i] + game)
        b = h & one
        shown = labels[i]
        if b:
            shown = 0
            while shown < len(thresholds) and (h >> np.uint64(11)) >= thresholds[shown, i]:
                shown += 1
        width = np.uint64(spread[i, shown])
        right = (width & one) ^ b
        tie = mix64(h ^ _TIE) >> top
        rank = (np.uint64(place[i, shown]) << top) + (((width >> one) * tie) << one)
        ranks[i] = rank | right
        bins[rank >> np.uint64(48)] += np.int64(one + (right << top))
    cut(ranks, bins, cuts, out)


@njit(cache=True, nogil=True)
def shown(game, keys, other, out):  # type: ignore[no-untyped-def]
    """Which rows the coins of one game show, one of each pair: a member where its pair's bit is 0, an other where 1.

    `keys` are those of the pairs, one for every row; `other` says which of its pair a row is. `out` has room for one
    more, so that no branch depends on a coin.
    """
    one, k = np.uint64(1), 0
    for i in range(len(keys)):
        out[k] = i
        k += (mix64(keys[i] + game) & one) == np.uint64(other[i])


@njit(cache=True, nogil=True)
def cut(ranks, bins, cuts, out):  # type: ignore[no-untyped-def]
    """How many of the c' highest ranks are right, for each c' of the rising `cuts`.

    Only ranks in the bins where a cut falls are sorted. Where equal ranks straddle a cut, none of them is guessed:
    the missing guesses count as wrong, whatever the order of the rows.
    """
    low, top, one = np.int64(0xFFFFFFFF), np.uint64(48), np.uint64(1)
    marked = np.zeros(RANKS, dtype=np.bool_)
    seen, k, some = 0, 0, 0
    for j in range(RANKS - 1, -1, -1):
        if k == len(cuts):
            break
        seen += bins[j] & low
        while k < len(cuts) and cuts[k] <= seen:
            if cuts[k] < seen and not marked[j]:
                marked[j] = True
                some += bins[j] & low
            k += 1
    held = np.empty(some, dtype=np.uint64)
    fill = 0
    if some:
        for i in range(len(ranks)):
            if marked[ranks[i] >> top]:
                held[fill] = ranks[i]
                fill += 1
        held.sort()
    seen, right, k, end = 0, 0, 0, some
    for j in range(RANKS - 1, -1, -1):
        if k == len(cuts):
            break
        size, good = bins[j] & low, bins[j] >> np.int64(32)
        while k < len(cuts) and cuts[k] <= seen + size:
            need = cuts[k] - seen
            count = good if need == size else np.int64(0)
            if need < size:
                while need > 0 and (held[end - need] >> one) == (held[end - need - 1] >> one):
                    need -= 1
                for t in range(end - need, end):
                    count += np.int64(held[t] & one)
            out[k] = right + count
            k += 1
        seen += size
        right += good
        if marked[j]:
            end -= size

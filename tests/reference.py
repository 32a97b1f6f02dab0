"""Naive twins: what the library computes fast, computed slowly and obviously right. Nothing here imports it."""

import bisect
import itertools
import math

import numpy as np
from scipy import optimize, stats

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
TIE = 0xD1B54A32D192ED03

# ---------------------------------------------------------------- trade-off functions: (α, parameter, constant) → f


def approx(alpha, epsilon, delta):
    return max(0.0, 1 - delta - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - delta - alpha))


def pure(alpha, epsilon, _):
    return approx(alpha, epsilon, 0.0)


def gaussian(alpha, mu, _):
    return float(stats.norm.cdf(stats.norm.isf(alpha) - mu))


def laplace(alpha, mu, _):
    if alpha < math.exp(-mu) / 2:
        return 1 - math.exp(mu) * alpha
    return math.exp(-mu) / (4 * alpha) if alpha <= 0.5 else math.exp(-mu) * (1 - alpha)


def response(alpha, epsilon, classes):
    total = math.exp(epsilon) + classes - 1
    p, q = math.exp(epsilon) / total, 1 / total
    return float(np.interp(alpha, [0, q, 1 - p, 1], [1, 1 - p, q, 0]))


def two_laplace(alpha, epsilon, _):
    """ALIBI between two labels, by its loss S = log(Q/P) under P: atoms and density of docs/mechanisms/alibi.md.

    f(P(S > t)) = P(S ≥ −t), straight over an atom; t by bisection.
    """
    half = math.exp(-epsilon / 2)
    atoms = ((-epsilon, 0.25), (0.0, half / 2), (epsilon, half**2 / 4))

    def between(low, high):  # ∫ e^(−(s + ε)/2)·(1/4 + (ε − |s|)/16) ds, exactly on each side of 0
        def whole(s, sign):
            return math.exp(-(s + epsilon) / 2) * (sign * (s / 8 + 0.25) - 0.5 - epsilon / 8)

        below = whole(min(high, 0.0), -1) - whole(min(low, 0.0), -1)
        return below + whole(max(high, 0.0), 1) - whole(max(low, 0.0), 1)

    def above(t, closed):
        clear = sum(mass for at, mass in atoms if at > t or (closed and at == t))
        return clear + between(min(max(t, -epsilon), epsilon), epsilon)

    for at, mass in atoms:
        if -1e-12 <= alpha - above(at, False) <= mass + 1e-12:
            return above(-at, True) - math.exp(at) * (alpha - above(at, False))
    low, high = (-epsilon, 0.0) if alpha > above(0.0, True) else (0.0, epsilon)
    t = optimize.brentq(lambda t: above(t, False) - alpha, low + 1e-15, high - 1e-15, xtol=1e-16)
    return above(-t, True) - math.exp(t) * (alpha - above(t, False))


def top_k(alpha, epsilon, sizes):
    """RRWithPrior against ⊥: the lower hull of randomized response's (output uniform) for k in these sizes.

    The hull at α is the least height of a chord over it.
    """
    e = math.exp(epsilon)
    points = [(0.0, 1.0), (1.0, 0.0)]
    for k in range(sizes[0], sizes[1] + 1):
        points += [((k - 1) / (e + k - 1), 1 / k), (1 / k, (k - 1) / (e + k - 1))]
    return min(
        y0 if x0 == x1 else y0 + (y1 - y0) * (alpha - x0) / (x1 - x0)
        for x0, y0 in points
        for x1, y1 in points
        if x0 <= alpha <= x1
    )


def inverse(f, r, parameter, constant):
    """f⁻¹(1 − r): the smallest α with f(α) ≤ 1 − r, by a root of f itself."""

    def gap(alpha):
        return f(alpha, parameter, constant) - (1 - r)

    if gap(0.0) <= 0:
        return 0.0
    return optimize.brentq(gap, 0.0, 1.0, xtol=1e-15, rtol=1e-15, maxiter=500) if gap(1.0) < 0 else 1.0


def gaussian_epsilon(mu, delta):
    """The root of δ(ε) of μ-GDP, with scipy.stats."""

    def gap(epsilon):
        tail = stats.norm.cdf(-epsilon / mu + mu / 2)
        return tail - math.exp(epsilon + stats.norm.logcdf(-epsilon / mu - mu / 2)) - delta

    return optimize.brentq(gap, 0, mu * mu + 20 * mu, xtol=1e-13) if mu > 0 and gap(0.0) > 0 else 0.0


# ---------------------------------------------------------------- bounds


def algorithm3(f, parameter, constant, m, guesses, correct, gamma, before=0.0, after=0.0, inv=inverse):
    """True where f cannot explain `correct` of `guesses` right answers among m rows."""
    r, h = gamma * correct / m, gamma * (guesses - correct) / m
    for i in range(correct - 1, -1, -1):
        if r + h >= guesses / m:
            return True
        shifted = inv(f, r - before, parameter, constant) if r > before else 0.0
        new = max(h, shifted - after)
        r, h = r + i / (guesses - i) * (new - h), new
    return r + h >= guesses / m


def steinke_p_value(epsilon, delta, m, guesses, correct):
    """Theorem 5.2 of Steinke, Nasr and Jagielski (2023)."""
    law = stats.binom(guesses, 1 / (1 + math.exp(-epsilon)))
    beta = law.sf(correct - 1)
    steps = [law.pmf(np.arange(correct - i, correct)).sum() / i for i in range(1, correct + 1)]
    return min(1.0, beta + 2 * m * delta * max(steps, default=0.0))


def largest(rejects):
    """The largest rejected parameter, by halving."""
    if not rejects(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while rejects(high):
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if rejects(middle) else (low, middle)
    return low


def exact_binomial(guesses, correct, gamma):
    """ε = logit(BetaInv(γ; c, c' − c + 1)), the bound for pure ε."""
    if correct == 0:
        return 0.0
    p = stats.beta.ppf(gamma, correct, guesses - correct + 1)
    return max(0.0, math.log(p / (1 - p)))


def e_process(rights, gamma):
    """sup{ε : sup_t M_t ≥ 1/γ}, M_t as a product over the guesses one by one."""
    bets = [0.04 * 60 ** (k / 7) for k in range(8)]

    def peak(epsilon):
        q = 1 / (1 + math.exp(-epsilon))
        probabilities = [1 / (1 + math.exp(-epsilon - d)) for d in bets]
        wealth, best = [1.0] * 8, 0.0
        for right in rights:
            wealth = [w * (p / q if right else (1 - p) / (1 - q)) for w, p in zip(wealth, probabilities, strict=True)]
            best = max(best, sum(wealth) / 8)
        return best

    return largest(lambda epsilon: peak(epsilon) >= 1 / gamma)


# ---------------------------------------------------------------- the game


def mix(x):
    """SplitMix64's finalizer."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def answers(game_key, keys, labels, reference, scores):
    """Of one game, ((|score|, tie), right?) of every row, the strongest first."""
    rows = []
    for key, label, law, score in zip(keys, labels, reference, scores, strict=True):
        h = mix((int(key) + game_key) & MASK)
        b, shown = h & 1, int(label)
        if b:
            cumulative = [*itertools.accumulate(law.tolist())][:-1]
            shown = bisect.bisect_right(cumulative, (h >> 11) * 2.0**-53)
        guess_true = score[shown] > 0
        rows.append(((abs(float(score[shown])), mix(h ^ TIE) >> 32), guess_true == (b == 0)))
    return sorted(rows, key=lambda row: row[0], reverse=True)


def count(rows, cut):
    """How many of the `cut` strongest are right; of rows equal in all across the cut, none is guessed."""
    while 0 < cut < len(rows) and rows[cut - 1][0] == rows[cut][0]:
        cut -= 1
    return sum(right for _, right in rows[:cut])


def sketch_bin(size):
    """128 bins to the octave of |score| as float32 truncates it, from 2⁻²⁴ to 2⁸; all beyond in the end bins."""
    size = float(np.float32(size))
    if size < 2.0**-24:
        return 0
    octave = math.floor(math.log2(size))
    return min(4095, (octave + 24) * 128 + int((size / 2.0**octave - 1) * 128))


def sketched(game_key, rows, cuts):
    """The count at each cut, where the order inside a bin of |score| is random: drawn by the key and the cut."""
    bins = {}
    for (size, _), right in rows:
        bins.setdefault(sketch_bin(size), []).append(right)
    out, seen, good, todo = [], 0, 0, list(cuts)
    for number in sorted(bins, reverse=True):
        size, hits = len(bins[number]), sum(bins[number])
        while todo and todo[0] <= seen + size:
            cut = todo.pop(0)
            need = cut - seen
            taken = hypergeometric((mix(game_key ^ mix(cut)) >> 11) * 2.0**-53, size, hits, need)
            out.append(good + taken)
            seen, good, size, hits = cut, good + taken, size - need, hits - taken
        seen, good = seen + size, good + hits
    return out


def hypergeometric(u, size, good, need):
    """Inversion that adds up probabilities from the mode outwards: mode, mode + 1, mode − 1, …"""
    law = stats.hypergeom(size, good, need)
    low, high = max(0, need - size + good), min(need, good)
    mode = min(high, max(low, (need + 1) * (good + 1) // (size + 2)))
    steps = itertools.chain.from_iterable((mode + d, mode - d) for d in range(1, size + 1))
    for k in [mode, *(k for k in steps if low <= k <= high)]:
        u -= law.pmf(k)
        if u < 0:
            return k
    return mode


def auc(labels, reference, scores):
    """P(a true label's score beats a counterfactual label's), ties counting half, by all pairs."""
    won = 0.0
    for i, label in enumerate(labels):
        mine = scores[i, label]
        won += sum(
            reference[j, k] * ((mine > scores[j, k]) + 0.5 * (mine == scores[j, k]))
            for j, k in np.ndindex(scores.shape)
        )
    return won / (len(labels) * reference.sum())


# ---------------------------------------------------------------- randomized response in closed form


def response_sim(epsilon, classes):
    """SIM ε of k-ary randomized response under the uniform imputed label."""
    total = math.exp(epsilon) + classes - 1
    return max(math.log(classes * math.exp(epsilon) / total), math.log(total / classes))


def response_for_sim(sim, classes):
    """The replacement ε whose SIM ε is this."""
    return optimize.brentq(lambda epsilon: response_sim(epsilon, classes) - sim, 0, 30, xtol=1e-13)


def response_accuracy(epsilon, fraction):
    """Binary, flat: the accuracy of the likelihood ratio's strongest guesses, infinitely many rows.

    Rows shown another label than the released one (share ¼ + q/2) come first, right with ½/(½ + q).
    """
    p, q = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    strong = 0.25 + q / 2
    first = min(fraction, strong)
    return (first * 0.5 / (0.5 + q) + (fraction - first) * p / (p + 0.5)) / fraction


# ---------------------------------------------------------------- membership

MEMBER, OTHER = 0x8CB92BA72F3D8DD7, 0x2545F4914F6CDD1D


def pairs(members, others, seed):
    """((score, tie) of a member, (score, tie) of an other, key of the pair), from (score, key) of both kinds."""
    placed = []
    for rows, salt in ((members, MEMBER), (others, OTHER)):
        hashed = [(mix((mix(key ^ mix(seed)) + salt) & MASK), score, key) for score, key in rows]
        placed.append(sorted(hashed, key=lambda row: row[0]))
    return [
        ((a, mix(here ^ TIE)), (b, mix(there ^ TIE)), mix(mix((mine + MEMBER) & MASK) ^ ((its + OTHER) & MASK)))
        for (here, a, mine), (there, b, its) in zip(*placed, strict=False)
    ]


def shown(paired, game_key):
    """(score, member?) of every pair's shown row, the highest score first, ties by their hash."""
    rows = []
    for member, other, key in paired:
        b = mix((key + game_key) & MASK) & 1
        rows.append((*(other if b else member), not b))
    return [(score, member) for score, _, member in sorted(rows, key=lambda row: (-row[0], row[1]))]


def tossed(members, others, seed):
    """(score, member?) of all rows, where coins were given: the highest score first, ties by their hash."""
    rows = [
        (score, mix((mix(key ^ mix(seed)) + salt) & MASK), salt == MEMBER)
        for kind, salt in ((members, MEMBER), (others, OTHER))
        for score, key in kind
    ]
    return [(score, member) for score, _, member in sorted(rows, key=lambda row: (-row[0], row[1]))]


def tails(rows, cut, upper=0.5):
    """Right guesses: "member" for the top of `cut`, "other" for the bottom."""
    top = math.ceil(upper * cut - 1e-9)
    return sum(member for _, member in rows[:top]) + sum(not member for _, member in rows[len(rows) - (cut - top) :])


def above(rows, cut, threshold):
    """Right guesses: "member" for the first `cut`, those of at least the threshold alone."""
    return sum(member for score, member in rows[:cut] if score >= threshold)


def rmia(target, reference, population, population_reference, a, gamma):
    """The share of population rows z with r(x) > γ·r(z), from the whole n × m matrix."""

    def relative(p, q):
        return p / ((1 + a) / 2 * np.asarray(q).reshape(len(p), -1).mean(axis=1) + (1 - a) / 2)

    matrix = relative(target, reference)[:, None] > gamma * relative(population, population_reference)[None, :]
    return matrix.mean(axis=1)


def calibrated(target, reference):
    """The reference's loss less the target's, row by row."""
    return [-math.log(q) + math.log(p) for p, q in zip(target, reference, strict=True)]


def lira_online(target, references, trained):
    """log N(φ; in) − log N(φ; out) of every row, its own means and deviations."""
    found = []
    for p, row, seen in zip(target, references, trained, strict=True):
        phi, kinds = math.log(p / (1 - p)), np.log(row / (1 - row))
        laws = [stats.norm(kinds[mask].mean(), kinds[mask].std(ddof=1)) for mask in (seen, ~seen)]
        found.append(laws[0].logpdf(phi) - laws[1].logpdf(phi))
    return found


def lira_offline(target, references):
    """How many standard deviations φ lies above the references' mean, the deviation shared by all rows."""
    phi = np.log(references / (1 - references))
    centred = phi - phi.mean(axis=1, keepdims=True)
    shared = math.sqrt((centred**2).sum() / (phi.size - len(phi)))
    return [(math.log(p / (1 - p)) - row.mean()) / shared for p, row in zip(target, phi, strict=True)]

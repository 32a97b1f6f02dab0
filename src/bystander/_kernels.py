"""Numba kernels of the bounds: trade-off functions, Algorithm 3, and Steinke et al.'s p-value.

Everything here is a pure function of its arguments, compiled once and cached on disk, and runs without
the interpreter's lock. Nothing above this module is needed to read it; the papers' symbols are kept. It is
one file, since numba's cache does not see that a kernel in another file has changed.
"""

from __future__ import annotations

import math

from numba import njit

# Wichura's AS 241: numerators and denominators, the highest power first
_CENTRE_OVER = (
    2.5090809287301226727e3,
    3.3430575583588128105e4,
    6.7265770927008700853e4,
    4.5921953931549871457e4,
    1.3731693765509461125e4,
    1.9715909503065514427e3,
    1.3314166789178437745e2,
    3.3871328727963666080e0,
)
_CENTRE_UNDER = (
    5.2264952788528545610e3,
    2.8729085735721942674e4,
    3.9307895800092710610e4,
    2.1213794301586595867e4,
    5.3941960214247511077e3,
    6.8718700749205790830e2,
    4.2313330701600911252e1,
    1.0,
)
_TAIL_OVER = (
    7.74545014278341407640e-4,
    2.27238449892691845833e-2,
    2.41780725177450611770e-1,
    1.27045825245236838258e0,
    3.64784832476320460504e0,
    5.76949722146069140550e0,
    4.63033784615654529590e0,
    1.42343711074968357734e0,
)
_TAIL_UNDER = (
    1.05075007164441684324e-9,
    5.47593808499534494600e-4,
    1.51986665636164571966e-2,
    1.48103976427480074590e-1,
    6.89767334985100004550e-1,
    1.67638483018380384940e0,
    2.05319162663775882187e0,
    1.0,
)
_FAR_OVER = (
    2.01033439929228813265e-7,
    2.71155556874348757815e-5,
    1.24266094738807843860e-3,
    2.65321895265761230930e-2,
    2.96560571828504891230e-1,
    1.78482653991729133580e0,
    5.46378491116411436990e0,
    6.65790464350110377720e0,
)
_FAR_UNDER = (
    2.04426310338993978564e-15,
    1.42151175831644588870e-7,
    1.84631831751005468180e-5,
    7.86869131145613259100e-4,
    1.48753612908506148525e-2,
    1.36929880922735805310e-1,
    5.99832206555887937690e-1,
    1.0,
)


@njit(cache=True, nogil=True)
def polynomial(x, coefficients):  # type: ignore[no-untyped-def]
    """Horner's rule."""
    value = 0.0
    for c in coefficients:
        value = value * x + c
    return value


@njit(cache=True, nogil=True)
def normal_quantile(p):  # type: ignore[no-untyped-def]
    """Φ⁻¹(p) by Wichura's AS 241 (relative error about 1e-16)."""
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        return q * polynomial(r, _CENTRE_OVER) / polynomial(r, _CENTRE_UNDER)
    tail = p if q < 0 else 1.0 - p
    if tail <= 0.0:
        return -math.inf if q < 0 else math.inf
    r = math.sqrt(-math.log(tail))
    if r <= 5.0:
        z = polynomial(r - 1.6, _TAIL_OVER) / polynomial(r - 1.6, _TAIL_UNDER)
    else:
        z = polynomial(r - 5.0, _FAR_OVER) / polynomial(r - 5.0, _FAR_UNDER)
    return -z if q < 0 else z


@njit(cache=True, nogil=True)
def two_laplace(theta, r):  # type: ignore[no-untyped-def]
    """Laplace noise on two coordinates (docs/mechanisms/alibi.md), at α = 1 − r; never above f.

    f passes through (e^(−v/2)(6 + v)/8, e^(v/2 − θ)(2 + v)/8) for v from 0 to θ, with slope −e^(v − θ), and its mirror
    images; between and beyond them it is straight. Newton's v need not be exact: the tangent there is below f.
    """
    alpha, half, down = 1.0 - r, math.exp(-0.5 * theta), math.exp(-theta)
    if alpha >= 0.75:
        return down * r
    if alpha <= 0.25 * down:
        return 1.0 - alpha / down
    right, left = half * (6.0 + theta) / 8.0, half * (2.0 + theta) / 8.0
    if left <= alpha <= right:
        return half * (1.0 + 0.25 * theta) - alpha
    steep = alpha < left
    aim = math.log(8.0 * alpha) + (theta if steep else 0.0)
    sign, shift = (1.0, 2.0) if steep else (-1.0, 6.0)
    v = 0.5 * theta
    for _ in range(6):  # v/2·sign + log(shift + v) = aim, both concave in v
        v += (aim - sign * 0.5 * v - math.log(shift + v)) / (sign * 0.5 + 1.0 / (shift + v))
        v = min(max(v, 0.0), theta)
    far, near = math.exp(-0.5 * v) * (6.0 + v) / 8.0, math.exp(0.5 * v - theta) * (2.0 + v) / 8.0
    if steep:
        return far + math.exp(theta - v) * (near - alpha)
    return near + math.exp(v - theta) * (far - alpha)


@njit(cache=True, nogil=True)
def top_k(up, constant, r):  # type: ignore[no-untyped-def]
    """RRWithPrior against ⊥ (docs/mechanisms/rr-with-prior.md), at α = 1 − r; up = e^ε.

    f is straight between the points 1 − α = up/(up + u), f = 1/(1 + u), u = j or up/j, j = least − 1 … classes − 1.
    """
    least = math.floor(constant / 2.0**20)
    first, last = least - 1.0, constant - least * 2.0**20 - 1.0
    small, large = min(first, up / last), max(last, up / first)
    if r <= up / (up + large):
        return r * (up + large) / (up * (1.0 + large))
    if r >= up / (up + small):
        return 1.0 - (1.0 - r) * (up + small) / (1.0 + small)
    u = up * (1.0 - r) / r
    below, above, j = small, large, min(math.floor(u), last)
    if j >= first:
        below = max(below, j)
    j = max(math.ceil(u), first)
    if j <= last:
        above = min(above, j)
    j = max(math.ceil(up / u), first)
    if j <= last:
        below = max(below, up / j)
    j = min(math.floor(up / u), last)
    if j >= first:
        above = min(above, up / j)
    before, after = up / (up + below), up / (up + above)
    if before <= after:
        return 1.0 / (1.0 + below)
    share = (before - r) / (before - after)
    return (1.0 - share) / (1.0 + below) + share / (1.0 + above)


@njit(cache=True, nogil=True)
def f_inverse(kind, theta, constant, r):  # type: ignore[no-untyped-def]
    """f⁻¹(1 − r), computed from r directly (r is near 1e-8, where 1 − r has lost it)."""
    if r <= 0.0:
        return 0.0
    if r >= 1.0:
        return 1.0
    if kind == 1:  # G_μ(α) = Φ(Φ⁻¹(1 − α) − μ)
        return 0.5 * math.erfc((theta - normal_quantile(r)) / math.sqrt(2.0))
    up, down = math.exp(theta), math.exp(-theta)
    if kind == 2:  # Laplace (Dong et al. 2019, §A.3)
        if r < 0.5:
            return down * r
        if r <= 1.0 - 0.5 * down:
            return 0.25 * down / (1.0 - r)
        return 1.0 - up * (1.0 - r)
    if kind == 3:  # k-ary randomized response: (0, 1), (q, 1 − p), (1 − p, q), (1, 0) joined by lines
        total = up + constant - 1.0
        if r < up / total:
            return down * r
        if r < 1.0 - 1.0 / total:
            return r - (up - 1.0) / total
        return 1.0 - up * (1.0 - r)
    if kind >= 6:  # one mechanism's own
        return two_laplace(theta, r) if kind == 6 else top_k(up, constant, r)
    # f_{ε,δ}(α) = max{0, 1 − δ − e^ε α, e^−ε (1 − δ − α)}
    return max(0.0, down * (r - constant), 1.0 - constant - up * (1.0 - r))


@njit(cache=True, nogil=True)
def stirling_rest(n):  # type: ignore[no-untyped-def]
    """log n! − log(√(2πn)·(n/e)ⁿ)."""
    if n < 16.0:
        return math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2.0 * math.pi)
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * n * n)) / (n * n)) / n


@njit(cache=True, nogil=True)
def deviance(v, mean):  # type: ignore[no-untyped-def]
    """v·log(v/mean) + mean − v."""
    d = (v - mean) / mean
    return mean * ((1.0 + d) * math.log1p(d) - d)


@njit(cache=True, nogil=True)
def binomial_mass(n, v, log_q, log_p):  # type: ignore[no-untyped-def]
    """Pr[Bin(n, q) = v], from the logarithms of q and 1 − q; Loader's form, which keeps its digits for large n."""
    hits, misses, n = float(v), float(n - v), float(n)
    if hits == 0.0 or misses == 0.0:
        return math.exp(hits * log_q + misses * log_p)
    rest = stirling_rest(n) - stirling_rest(hits) - stirling_rest(misses)
    far = deviance(hits, n * math.exp(log_q)) + deviance(misses, n * math.exp(log_p))
    return math.sqrt(n / (2.0 * math.pi * hits * misses)) * math.exp(rest - far)


@njit(cache=True, nogil=True)
def steinke_p_value(epsilon, delta, m, guesses, correct):  # type: ignore[no-untyped-def]
    """Pr[at least `correct` of `guesses`] ≤ β + 2mδ·α (Steinke et al. 2023, Theorem 5.2)."""
    log_q, log_p = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
    odds = math.exp(-epsilon)  # (1 − q)/q
    mean = guesses / (1.0 + odds)
    reach = 12.0 * math.sqrt(mean * odds / (1.0 + odds)) + 200.0  # what lies beyond adds less than 1e-30
    if correct < mean - reach:
        return 1.0
    # β = Pr[Bin ≥ correct], added up on the side that is smaller
    beta, mass = 0.0, binomial_mass(guesses, correct, log_q, log_p)
    if correct > mean:
        for v in range(correct, guesses + 1):
            beta += mass
            mass *= (guesses - v) / ((v + 1.0) * odds)
            if mass <= 1e-18 * beta:
                break
    else:
        for v in range(correct - 1, -1, -1):
            mass *= (v + 1.0) * odds / (guesses - v)
            beta += mass
            if mass <= 1e-18 * beta:
                break
        beta = 1.0 - beta
    if delta == 0.0:
        return beta
    # α = max_i Pr[correct − i ≤ Bin < correct]/i
    alpha, total = 0.0, 0.0
    first = min(correct - 1, int(mean + reach))
    mass = binomial_mass(guesses, first, log_q, log_p)
    for v in range(first, -1, -1):
        total += mass
        alpha = max(alpha, total / (correct - v))
        mass *= v * odds / (guesses - v + 1.0)
        if (correct - v) * alpha > 1.0:
            break
    return min(1.0, beta + 2.0 * m * delta * alpha)


@njit(cache=True, nogil=True)
def rejects(kind, theta, constant, before, after, m, guesses, correct, gamma):  # type: ignore[no-untyped-def]
    """Algorithm 3, with the clamp and both early exits: can f_θ not explain `correct` of `guesses`?

    Above 50,000 guesses it goes in blocks that keep r and h below their true values, so that a rejection stays
    one, at the cost of less than a hundredth of the count's standard deviation (docs/math/blocks.md).
    """
    pure = kind == 5 or (kind == 0 and constant == 0.0)
    if kind == 4 or (pure and before == 0.0 and after == 0.0):  # δ = 0: the exact binomial
        return steinke_p_value(theta, constant, m, guesses, correct) < gamma
    block = 1
    if guesses > 50_000:
        block = max(1, int(0.02 * math.sqrt(float(correct) * (guesses - correct) / guesses)))
    return recursion(kind, theta, constant, before, after, m, guesses, correct, gamma, block)


@njit(cache=True, nogil=True)
def recursion(kind, theta, constant, before, after, m, guesses, correct, gamma, block):  # type: ignore[no-untyped-def]
    """The recursion of Algorithm 3, one evaluation of f̄⁻¹ for every `block` values of i.

    Inside a block h moves along the chord of the last two evaluations, which a convex f̄⁻¹ stays above, and r with
    the block's smallest i/(c' − i): their steps form a geometric series.
    """
    r, h, full = gamma * correct / m, gamma * (guesses - correct) / m, guesses / m
    last_r, last_up, i = -1.0, 0.0, correct - 1
    while r + h < full and i >= 0:
        up = f_inverse(kind, theta, constant, r - before) - after
        if up <= h:  # h stands still, so r stands still, for ever
            return False
        step, steps = up - h, min(block, i + 1)
        weight = (i - steps + 1.0) / (guesses - i + steps - 1.0)
        if steps > 1 and last_r >= 0.0 and r > last_r:
            ratio = (1.0 - 1e-9) * weight * (up - last_up) / (r - last_r)
            if abs(ratio - 1.0) < 1e-12:
                step *= steps
            elif ratio > 0.0:
                step *= math.expm1(steps * math.log(ratio)) / (ratio - 1.0)
        elif steps > 1:
            steps = 1
            weight = i / (guesses - float(i))
        last_r, last_up = r, up
        r += weight * step
        h += step
        i -= steps
    return r + h >= full


@njit(cache=True, nogil=True)
def largest_rejected(kind, constant, before, after, m, guesses, correct, gamma):  # type: ignore[no-untyped-def]
    """The largest parameter that Algorithm 3 rejects, found from the rejected side; 0 where it rejects none."""
    if correct <= 0 or not rejects(kind, 0.0, constant, before, after, m, guesses, correct, gamma):
        return 0.0
    return search(kind, constant, before, after, m, guesses, correct, gamma, 0.0, 1.0, 1e-10)


@njit(cache=True, nogil=True)
def search(kind, constant, before, after, m, guesses, correct, gamma, low, step, tolerance):  # type: ignore[no-untyped-def]
    """The same from a parameter `low` that is rejected: steps that double, then bisection."""
    high = min(low + step, 700.0)
    while high < 700.0 and rejects(kind, high, constant, before, after, m, guesses, correct, gamma):
        low, step = high, 2.0 * step
        high = min(low + step, 700.0)
    while high - low > tolerance * max(1.0, low):
        middle = 0.5 * (low + high)
        if rejects(kind, middle, constant, before, after, m, guesses, correct, gamma):
            low = middle
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def sweep(kind, constant, before, after, m, guesses, correct, gamma, best, which):  # type: ignore[no-untyped-def]
    """For each game the largest parameter that any of its counts rejects (to 1e-7), and which count that is.

    A count that does not reject the best so far is done with. The last game's best count comes first, and the search
    starts a little below its parameter: games on one model differ little.
    """
    hint, near = 0, 0.0
    for g in range(len(correct)):
        best[g], which[g] = 0.0, 0
        for turn in range(-1, len(guesses)):
            k = hint if turn < 0 else turn
            c = correct[g, k]
            if turn == hint or c <= 0:
                continue
            if not rejects(kind, best[g], constant, before, after, m, guesses[k], c, gamma):
                continue
            low, step = best[g], 1.0
            if 0.9 * near > low and rejects(kind, 0.9 * near, constant, before, after, m, guesses[k], c, gamma):
                low, step = 0.9 * near, 0.1 * near
            elif low > 0.0:
                step = 0.05 * low
            best[g] = search(kind, constant, before, after, m, guesses[k], c, gamma, low, step, 1e-7)
            which[g] = k
        hint, near = which[g], best[g]

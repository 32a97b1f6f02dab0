"""What a number may be called: the sentences that the terminal and the page both say."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING

from bystander.report.games import game

if TYPE_CHECKING:
    from bystander.result import Bound, Quality, Result, Slice

LABELS = {
    "gaussian": "assumes a Gaussian trade-off",
    "laplace": "assumes a Laplace trade-off",
    "rr": "assumes randomized response",
    "rr-label": "assumes randomized response",
    "rr-with-prior": "assumes RRWithPrior",
    "alibi": "assumes ALIBI",
}
MECHANISMS = {
    "gaussian": "a Gaussian mechanism",
    "laplace": "a Laplace mechanism",
    "rr": "randomized response",
    "rr-label": "randomized response",
    "rr-with-prior": "RRWithPrior",
    "alibi": "ALIBI",
    "pure": "ε-private",
}
FAMILIES = {
    "approx": "f(ε, δ): any (ε, δ) mechanism",
    "pure": "f(ε, 0): any pure ε mechanism",
    "gaussian": "Gaussian: no mechanism but a Gaussian one",
    "laplace": "Laplace: no mechanism but a Laplace one",
    "rr": "randomized response: no mechanism but that one",
    "rr-label": "randomized response, a label against none: no mechanism but that one",
    "rr-with-prior": "RRWithPrior, a label against none: no mechanism but that one",
    "alibi": "ALIBI: no mechanism but that one",
    "steinke": "Steinke et al. (2023): any (ε, δ) mechanism",
}
ONE_MECHANISM = ("rr-label", "rr-with-prior", "alibi")
"""Families that the command line has no name for."""
DESCRIPTIVE = "Descriptive, not bounds"
DESCRIPTIVE_NOTE = "For comparison with published tables. None of them holds with any stated confidence."
PAIRED = {
    "epsilon": "Gaussian sweep, the paper's rule (mean ± sd over the games)",
    "epsilon_1pct": "Gaussian ε at 1 % of the rows (mean ± sd over the games)",
}
KNOWN = {
    "accuracy": "Accuracy of all guesses (a coin: 0.5)",
    "auc": "AUC of the score (a coin: 0.5)",
}
NO_TAU_STAR = "no τ* for this method: the number stands for the assumed τ alone"


def clean(text: object) -> str:
    """Text from outside, on one line, with what a terminal or a page would act on made visible as dots."""
    return "".join(mark if mark.isprintable() else " " if mark.isspace() else "·" for mark in str(text))


def slice_name(part: Slice) -> str:
    """A slice's value, told also where it is empty."""
    return clean(part.value) if part.value.strip() else "(empty)"


def small(value: float) -> str:
    """A δ, τ or γ: three digits, `1e-5` and not `1e-05`.

    >>> small(1e-5), small(0.0125)
    ('1e-5', '0.0125')
    """
    if not math.isfinite(value):
        return "–"
    digits, _, power = f"{value:.3g}".partition("e")
    return f"{digits}e{int(power)}" if power else digits


def percent(share: float, places: int = 1) -> str:
    """A share as a percentage without idle zeros.

    >>> percent(0.893), percent(0.5)
    ('89.3 %', '50 %')
    """
    if not math.isfinite(share):
        return "–"
    text = f"{100 * share:.{places}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def confidence(value: float) -> str:
    """A confidence, rounded down.

    >>> confidence(0.95), confidence(0.9999999)
    ('95 %', '99.999 %')
    """
    floored = (100 * Decimal(str(float(value)))).quantize(Decimal("0.001"), ROUND_FLOOR)
    return f"{floored:f}".rstrip("0").rstrip(".") + " %"


def epsilon(value: float) -> str:
    """ε rounded down, the safe side of a lower bound: two places, or three below 0.1.

    >>> epsilon(1.4389), epsilon(0.29), epsilon(0.02806), epsilon(0.0004)
    ('1.43', '0.29', '0.028', '0')
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    if value < 0.001:
        return "0"
    step = "0.01" if value >= 0.1 else "0.001"
    return str(Decimal(str(float(value))).quantize(Decimal(step), ROUND_FLOOR))


def relation(bound: Bound) -> str:
    """`ε ≥ 1.43` where that may be said, and `ε̂ = 1.43` where it may not."""
    return f"ε {'≥' if bound.valid else '='} {epsilon(bound.epsilon)}".replace("ε =", "ε̂ =")


def sign(bounds: tuple[Bound, ...]) -> str:
    """The head of a column of ε."""
    return "ε ≥" if all(bound.valid for bound in bounds) else "ε̂"


def nothing(bound: Bound) -> bool:
    """Whether a valid bound shows no leakage."""
    return bound.valid and epsilon(bound.epsilon) == "0"


def headline(bound: Bound) -> str:
    """The one number, called what it is."""
    if not bound.valid:
        return f"Not a valid bound: {relation(bound)}"
    return f"No leakage shown: {relation(bound)}" if nothing(bound) else relation(bound)


def terms(bound: Bound) -> str:
    """What stands beside the number: confidence, δ and, where there is one, the family's condition."""
    claims = [] if not bound.valid else [f"{confidence(bound.confidence)} confidence"]
    label = LABELS.get(bound.family.name)
    return ", ".join([*claims, f"δ = {small(bound.delta)}", *([label] if label else [])])


def meaning(bound: Bound, who: str = "sees this model") -> str:
    """One plain sentence or two on what the number says."""
    if not bound.valid:
        return (
            "The count behind this number was chosen after looking at the answers, or no proof covers it. "
            "It may lie above the true ε: compare it with published tables, and do not quote it as a bound."
        )
    if nothing(bound):
        better = " or more rows" if bound.stand_in is None else f", more rows or a better {bound.stand_in}"
        return (
            "Guesses as good as these may be luck alone. That does not prove privacy: "
            f"a stronger attack{better} may still find a leak."
        )
    odds = percent(1 - bound.confidence, 3)
    mechanism = MECHANISMS.get(bound.family.name, "(ε, δ)-private")
    return (
        f"An attacker who {who} must be granted at least this much. If training were {mechanism} with a "
        f"smaller ε, guesses this good would come up in at most {odds} of audits, provided that the "
        "assumptions below hold."
    )


def best_guess(value: float) -> str:
    """e^ε/(1+e^ε), the accuracy that ε permits on one bit with two equally likely values."""
    return percent(1 / (1 + math.exp(-value)), 1 if value > 5.5 else 0)


def accuracy(bound: Bound) -> str:
    """`893 of 1,000 (89.3 %)`."""
    if not bound.guesses:
        return "no guesses"
    return f"{bound.correct:,} of {bound.guesses:,} ({percent(bound.correct / bound.guesses)})"


def tau_star(bound: Bound) -> str:
    """How wrong what stood for the truth would have to be to explain the finding away."""
    if bound.tau_star is None:
        return NO_TAU_STAR
    if nothing(bound):
        return f"there is no finding that a wrong {bound.stand_in} could explain away"
    return f"a {bound.stand_in} off by more than τ* = {small(bound.tau_star)} (total variation) could explain it away"


def facts(bound: Bound) -> list[tuple[str, str]]:
    """What every bound rests on, as name and value."""
    share = f" ({percent(bound.guesses / bound.canaries, 3)} of the rows)" if bound.canaries else ""
    rows = [
        ("Rows audited", f"{bound.canaries:,}"),
        ("Guesses made", f"{bound.guesses:,}{share}"),
        ("Correct", f"{accuracy(bound)}; a coin gets half"),
        ("Trade-off", FAMILIES.get(bound.family.name, bound.family.name)),
    ]
    if bound.mu is not None:
        rejected = f"μ-GDP with μ = {epsilon(bound.mu)} ({LABELS['gaussian']})"
        rows.append(("Rejected", rejected) if bound.valid else ("Mean μ", f"{plain_number(bound.mu, 2)}, not a bound"))
    if bound.stand_in is None:
        return [*rows, ("Shift", "none: nothing was drawn after training")]
    exact = "taken to be exact" if bound.tau == 0 else "off by at most this"
    return [
        *rows,
        ("Shift assumed", f"τ = {small(bound.tau)}: the {bound.stand_in} is {exact}"),
        ("Shift tolerated", tau_star(bound)),
    ]


def quality(found: Quality) -> list[tuple[str, str]]:
    """What a test of the stand-in on control rows found, as name and value."""
    low, high = (f"{each:+.3f}" for each in (found.low, found.high))
    rows = [
        ("Rows tested", f"{found.rows:,} of the control's; the test was learned on others"),
        ("Shift seen", f"{found.shift:+.3f} (from {low} to {high}, {confidence(found.confidence)})"),
        ("Proved", f"τ ≥ {epsilon(found.low)} on average" if epsilon(max(0.0, found.low)) != "0" else "no shift"),
    ]
    if found.log_loss is not None and found.constant is not None:
        rows.append(("Log-loss", f"{found.log_loss:.4f}; a constant's is {found.constant:.4f}"))
    return [*rows, *((f"After {name}", f"{loss:.4f}") for name, loss in found.calibrated.items())]


def quality_title(result: Result) -> str:
    """What is tested on control rows."""
    return f"Quality of the {clean(result.stand_in or 'stand-in')}"


def setting(result: Result) -> list[tuple[str, str]]:
    """How the audit was run, as name and value."""
    combined = result.valid and result.games > 1 and result.combination
    games = f"{result.games:,}, {combined}" if combined else f"{result.games:,}"
    level = ""
    if result.level is not None:
        corrected = result.level < (1 - result.confidence) * (1 - 1e-9)
        level = f"evaluated at γ = {small(result.level)}" + (", after corrections" if corrected else "")
    rows = [
        ("Games", games),
        ("Attack", result.attack),
        ("Selection", result.selection),
        ("Level", level),
        ("Classes", f"{result.classes:,}" if game(result).classes else ""),
        ("Seed", f"{result.seed}"),
    ]
    return [(name, clean(value)) for name, value in rows if value]


def descriptive(result: Result) -> list[tuple[str, str]]:
    """The numbers that are no bounds, as name and value; a mean and its sd on one line."""
    numbers = result.descriptive
    rows = []
    for name, value in numbers.items():
        stem = name.removesuffix("_mean").removesuffix("_sd")
        paired = {f"{stem}_mean", f"{stem}_sd"} <= set(numbers)
        if paired and name.endswith("_mean"):
            text = f"{plain_number(value, 2)} ± {plain_number(numbers[f'{stem}_sd'], 2)}"
            rows.append((PAIRED.get(stem, f"{_spoken(stem)} (mean ± sd)"), text))
        elif not (paired and name.endswith("_sd")):
            rows.append((KNOWN.get(name, _spoken(name)), plain_number(value, 3)))
    return rows


def _spoken(name: str) -> str:
    return clean(name).replace("_", " ").capitalize()


def plain_number(value: float, places: int) -> str:
    """A number that is no bound, rounded to the nearest."""
    if not math.isfinite(value):
        return "–"
    return f"{value:.{places}f}" if 0.01 <= abs(value) < 1e5 or value == 0 else small(value)


def no_control(result: Result) -> str:
    """What is said where there is no control."""
    if result.stand_in is None:
        return game(result).spared
    return (
        f"No control rows were given. An error of the {result.stand_in} looks exactly like leakage: play the same game "
        "on rows that the model never trained on with `--control`, and compare the two numbers."
    )


def control(result: Result) -> str:
    """What a control shows."""
    return (
        "The control rows were never trained on, so nothing of them can be memorised: "
        f"whatever the same game finds there is an error of the {result.stand_in}."
    )


def worst_first(result: Result) -> list[Slice]:
    """The slices by falling ε."""
    return sorted(result.slices, key=lambda part: -part.bound.epsilon)


def slices_note(result: Result) -> str:
    """What holds of all slices together."""
    return (
        f"{len(result.slices)} slices, worst first. Each bound is corrected over the slices, "
        f"so that all hold together at {confidence(result.confidence)}."
        if result.valid
        else f"{len(result.slices)} slices, largest first. None of these numbers is a valid bound."
    )


def recompute(result: Result) -> str | None:
    """The line that gives the number again from its counts; None where counts alone cannot."""
    family = result.family
    if result.level is None or family.name in ONE_MECHANISM:
        return None
    parts = [
        "bystander bound",
        f"--canaries {result.canaries} --guesses {result.guesses} --correct {result.correct}",
        f"--confidence {1 - result.level:.10g} --family {family.name}",
    ]
    if family.name == "rr" and not result.tau:
        parts.append(f"--classes {family.constant:g}")
    elif family.name != "rr" and family.name != "pure":
        parts.append(f"--delta {family.delta:.10g}")
    if result.tau:
        parts.append(f"--tau {result.tau:.10g} --tau-form {result.tau_form} --classes {result.classes}")
    return " ".join(parts)

"""The reports say what a result holds, never more: exact strings, escaping, well-formed pictures."""

from __future__ import annotations

import itertools
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len

from bystander._validate import InputError
from bystander.mechanisms.families import TopK, TwoLaplace
from bystander.report import draw, dumps, page, plain, render_bound, save, words
from bystander.result import Bound, Curve, Pictures, Result, Slice
from bystander.tradeoff import ApproxDP, Family, Gaussian, Laplace, Pure, RandomizedResponse, Steinke

GRID = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0)
LONG = "a-department-with-a-name-of-sixty-characters-and-no-room-left"
NASTY = (
    "<script>alert('x')</script>",
    LONG,
    "[bold]north[/bold]",
    "tab\there\x1b[31m",
    'quo"te & co',
    "东京都",
    "south",
    "east",
    "west",
    "50–59",
    "",
    "None",
)
ASSUMED = (
    "The number of guesses was fixed before the game.",
    "The bound holds for every (ε, δ = 1e-05) mechanism: it assumes no shape of noise.",
    "The reference stands for the truth: without the target, its labels cannot be told from true ones. "
    "Where it falls short, its error reads like memorisation.",
)
NEVER = ("ε ≥", "ε &ge;", "ε &#8805;")


def pictures(epsilon: float) -> Pictures:
    shares = tuple(k / 100 for k in range(1, 101))
    mean = tuple(1.25 * epsilon * math.exp(-0.9 * math.log(q / 0.08) ** 2 / 4) for q in shares)
    edges = tuple(-2 + 0.1 * k for k in range(41))
    middle = [(a + b) / 2 for a, b in itertools.pairwise(edges)]
    taus = (0.0, *(10 ** (-5 + k / 8) for k in range(25)))
    centres = tuple((k + 0.5) / 10 for k in range(10))
    return Pictures(
        guesses=Curve(shares, mean, tuple(0.04 + 0.02 * epsilon / math.sqrt(q) for q in shares)),
        bounds=Curve(GRID, tuple(epsilon * v for v in (0.72, 0.88, 0.96, 1.0, 0.8, 0.5, 0.2, 0.0))),
        shift=Curve(taus, tuple(max(0.0, epsilon * (1 - (t / 0.0123) ** 0.5)) for t in taus)),
        scores=Curve(
            edges,
            tuple(math.exp(-((s - 0.35) ** 2) / 0.5) / 1.25 for s in middle),
            tuple(math.exp(-((s + 0.25) ** 2) / 0.5) / 1.25 for s in middle),
        ),
        reliability=Curve(
            centres,
            tuple(0.03 + 0.93 * c for c in centres),
            (4100, 900, 520, 390, 300, 290, 410, 600, 1100, 3800),
        ),
    )


def sample(epsilon: float = 1.4389, correct: int = 712, **changes: object) -> Result:
    base = Result(
        epsilon=epsilon,
        confidence=0.95,
        family=ApproxDP(),
        mu=None,
        canaries=10_000,
        guesses=800,
        correct=correct,
        tau=0.0,
        tau_star=0.01234,
        assumptions=ASSUMED,
        selection="grid of 8 fractions, Bonferroni",
        combination="median of the games",
        attack="log ratio",
        level=0.05 / 16,
        games=100,
        seed=7,
        descriptive={
            "epsilon_mean": 1.7345,
            "epsilon_sd": 0.0812,
            "accuracy": 0.7312,
            "auc": 0.8121,
            "rows_per_second": 2.5e6,
        },
        pictures=pictures(epsilon),
        command="bystander audit train.parquet --label y --target p --reference q --control held.parquet",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def members_and_control() -> Result:
    control = sample(0.3049, 489, tau_star=0.0021, descriptive={})
    note = "The control is not near 0: an error of the reference alone gives 0.30, part of the members' 1.43."
    return sample(control=control, control_note=note, notes=("3 rows without a reference were left out.",))


def nothing() -> Result:
    return sample(0.0, 411, tau_star=0.0, pictures=pictures(0.0))


def sweep() -> Result:
    sentence = "Every game's best of 100 cuts was kept and nothing was paid for the choice: this is not a bound."
    return sample(
        1.9182,
        760,
        valid=False,
        tau_star=None,
        level=None,
        family=Gaussian(),
        mu=0.5123,
        selection="the paper's sweep over 1 % … 100 %",
        assumptions=(sentence,),
        control=replace(sample(0.4, 500), valid=False),
        slices=tuple(Slice(part.value, replace(part.bound, valid=False)) for part in sliced().slices[:3]),
    )


def gaussian() -> Result:
    return sample(2.60045, 95, guesses=100, family=Gaussian(), mu=0.61234, level=0.05, tau_star=1.7e-4, games=1)


def ten_classes() -> Result:
    return sample(3.0211, 780, classes=10, tau=1e-4, tau_star=0.0031, level=0.05 / 8, games=1)


def sliced() -> Result:
    parts = tuple(
        Slice(
            name,
            replace(sample(0.15 * k, 60 + 3 * k), canaries=900 - k, guesses=100, confidence=1 - 0.05 / 12),
            replace(sample(0.02 * k, 52 + k), canaries=500, guesses=100) if k % 3 else None,
        )
        for k, name in enumerate(NASTY)
    )
    return replace(members_and_control(), slices=parts, slice_column="region <of> birth")


def eprocess() -> Result:
    return sample(
        1.1,
        512,
        family=Pure(),
        tau_star=None,
        level=None,
        selection="e-process over all ranks",
        games=1,
        pictures=replace(pictures(1.1), shift=Curve((), ()), bounds=Curve((0.08,), (1.1,))),
    )


SAMPLES = {
    "members": members_and_control,
    "zero": nothing,
    "sweep": sweep,
    "gaussian": gaussian,
    "classes": ten_classes,
    "slices": sliced,
    "eprocess": eprocess,
    "plain": sample,
}


@pytest.fixture(params=SAMPLES)
def result(request: pytest.FixtureRequest) -> Result:
    made: Result = SAMPLES[request.param]()
    return made


def terminal(bound: Bound) -> str:
    import io

    from rich.console import Console

    stream = io.StringIO()
    Console(file=stream, width=100, color_system=None).print(render_bound(bound))
    return stream.getvalue()


# ---- the words


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1.4389, "1.43"),
        (1.43, "1.43"),
        (0.29, "0.29"),
        (0.02806, "0.028"),
        (0.00419, "0.004"),
        (0.0004, "0"),
        (0.0, "0"),
        (5.74025, "5.74"),
        (0.0999, "0.099"),
        (math.inf, "∞"),
        (math.nan, "–"),
    ],
)
def test_epsilon_is_rounded_down(value: float, said: str) -> None:
    assert words.epsilon(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.95, "95 %"),
        (0.99375, "99.375 %"),
        (1 - 0.05 / 12, "99.583 %"),
        (0.9999999, "99.999 %"),
        (0.5, "50 %"),
    ],
)
def test_confidence_is_rounded_down(value: float, said: str) -> None:
    assert words.confidence(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(1e-5, "1e-5"), (0.0, "0"), (0.0125, "0.0125"), (2.5e-10, "2.5e-10"), (1e-12, "1e-12")],
)
def test_small_numbers(value: float, said: str) -> None:
    assert words.small(value) == said


@pytest.mark.parametrize(
    ("value", "said"), [(0.0, "50 %"), (1.0, "73 %"), (2.0, "88 %"), (5.0, "99 %"), (6.0, "99.8 %")]
)
def test_best_guess(value: float, said: str) -> None:
    assert words.best_guess(value) == said


def test_headlines() -> None:
    assert words.headline(sample()) == "ε ≥ 1.43"
    assert words.terms(sample()) == "95 % confidence, δ = 1e-5"
    assert words.headline(nothing()) == "No leakage shown: ε ≥ 0"
    assert words.headline(sweep()) == "Not a valid bound: ε̂ = 1.91"
    assert words.terms(sweep()) == "δ = 1e-5, assumes a Gaussian trade-off"
    assert words.headline(gaussian()) == "ε ≥ 2.60"
    assert words.terms(gaussian()) == "95 % confidence, δ = 1e-5, assumes a Gaussian trade-off"


@pytest.mark.parametrize(
    ("family", "said"),
    [
        (ApproxDP(), "(ε, δ)-private"),
        (Pure(), "ε-private"),
        (Gaussian(), "a Gaussian mechanism"),
        (Laplace(), "a Laplace mechanism"),
        (RandomizedResponse(), "randomized response"),
        (Steinke(), "(ε, δ)-private"),
        (TwoLaplace(), "ALIBI"),
        (TopK(2, 10), "RRWithPrior"),
    ],
)
def test_meaning_names_what_is_rejected(family: Family, said: str) -> None:
    assert f"If training were {said} with a smaller ε" in words.meaning(sample(family=family))
    assert "at most 5 % of audits" in words.meaning(sample(family=family))


def test_the_line_that_recomputes() -> None:
    line = (
        "bystander bound --canaries 10000 --guesses 800 --correct 712 --confidence 0.996875 "
        "--family approx --delta 1e-05"
    )
    assert words.recompute(sample()) == line
    assert (
        words.recompute(ten_classes())
        == line.replace("712", "780").replace("0.996875", "0.99375") + " --tau 0.0001 --tau-form theorem --classes 10"
    )
    assert words.recompute(sweep()) is None
    assert words.recompute(eprocess()) is None
    assert words.recompute(sample(family=Pure())) == line.replace("approx --delta 1e-05", "pure")
    response = words.recompute(sample(family=RandomizedResponse(3)))
    assert response == line.replace("approx --delta 1e-05", "rr --classes 3")
    for family in (TwoLaplace(), TopK(2, 10)):  # the command line has no name for them
        assert words.recompute(sample(family=family)) is None
        assert "no mechanism but that one" in dict(words.facts(sample(family=family)))["Trade-off"]
    steinke = words.recompute(sample(family=Steinke(1e-6), tau_star=None))
    assert steinke == line.replace("approx --delta 1e-05", "steinke --delta 1e-06")


# ---- the terminal


def test_text_tells_it_all() -> None:
    text = plain(members_and_control())
    for said in (
        "ε ≥ 1.43  (95 % confidence, δ = 1e-5)",
        "must be granted at least this much",
        "800 (8 % of the rows)",
        "712 of 800 (89 %)",
        "100, median of the games",
        "log ratio",
        "grid of 8 fractions, Bonferroni",
        "a reference off by more than τ* = 0.0123 (total variation) could explain it away",
        "ε ≥ 0.30",
        "489 of 800 (61.1 %)",
        "The control is not near 0",
        "Descriptive, not bounds",
        "1.73 ± 0.08",
        "Rows per second",
        "AUC of the score",
        "3 rows without a reference were left out.",
        "•  The number of guesses was fixed before the game.",
    ):
        assert said in text
    assert "--control" not in text.split("Descriptive")[0]


def test_text_width_and_colour(result: Result) -> None:
    text = plain(result)
    assert max(cell_len(line) for line in text.splitlines()) <= 100
    assert "\x1b" not in text
    assert text.endswith("\n")
    assert not re.search(r"[ \t]+$", text, re.MULTILINE)


def test_text_recommends_control() -> None:
    assert "--control" in plain(sample())
    assert "looks exactly like leakage" in " ".join(plain(sample()).split())


def test_text_of_nothing() -> None:
    text = plain(nothing())
    assert "No leakage shown: ε ≥ 0" in text
    assert "does not prove privacy" in text


def test_text_of_gaussian() -> None:
    text = plain(gaussian())
    assert "ε ≥ 2.60  (95 % confidence, δ = 1e-5, assumes a Gaussian trade-off)" in text
    assert "μ-GDP with μ = 0.61" in text


def test_text_of_slices() -> None:
    text = plain(sliced())
    assert "Slices by region <of> birth" in text
    assert "[bold]north[/bold]" in text
    assert "tab here·[31m" in text
    assert "12 slices, worst first" in text
    order = [text.index(f"  {name} ") for name in ("None", "(empty)", "50–59", "west", "east", "south")]
    assert order == sorted(order)


def test_text_hides_the_tail_of_many_slices() -> None:
    many = tuple(Slice(f"group-{k:02}", sample(0.01 * k)) for k in range(30))
    text = plain(sample(slices=many))
    assert "group-29" in text
    assert "group-09" not in text
    assert "… and 10 more" in text


def test_invalid_numbers_are_never_called_bounds() -> None:
    for said in (plain(sweep()), page(sweep()), terminal(replace(sample(), valid=False))):
        assert "ot a valid bound" in said
        assert "ε̂ = " in said or 'class="sign">ε̂ =' in said
        for never in NEVER:
            assert never not in said
        assert "lid lower bound" not in said


def test_bound_alone() -> None:
    text = terminal(Bound(1.72009, 0.95, ApproxDP(), None, 1_000_000, 1000, 880, 0.0, 0.00071, ASSUMED))
    assert "ε ≥ 1.72  (95 % confidence, δ = 1e-5)" in text
    assert "880 of 1,000 (88 %)" in text
    assert "who guesses this well" in text
    assert "--control" not in text


# ---- JSON


def test_json_names() -> None:
    record = json.loads(dumps(sliced()))
    contract = {
        "epsilon",
        "delta",
        "confidence",
        "family",
        "mu",
        "canaries",
        "guesses",
        "correct",
        "games",
        "tau",
        "tau_star",
        "selection",
        "seed",
        "valid",
        "assumptions",
        "descriptive",
        "control",
        "slices",
        "version",
    }
    assert contract <= set(record)
    assert record["epsilon"] == 1.4389
    assert record["family"] == "approx"
    assert record["control"]["epsilon"] == 0.3049
    assert [part["value"] for part in record["slices"]] == list(NASTY)


def test_json_has_no_nan() -> None:
    import numpy as np

    odd = {"auc": math.nan, "epsilon_mean": math.inf, "rows": np.int64(3), "share": np.float64("nan")}
    text = dumps(sample(descriptive=odd))
    assert json.loads(text)["descriptive"] == {"auc": None, "epsilon_mean": None, "rows": 3, "share": None}
    assert "NaN" not in text
    assert "Infinity" not in text


def test_json_layout() -> None:
    text = dumps(sample(command="file\udcff"))
    assert text.startswith('{\n  "epsilon": 1.4389,\n')
    assert text.endswith("}\n")
    text.encode()


# ---- the page


def svgs(html: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(found) for found in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]


def test_page_needs_nothing_else(result: Result) -> None:
    html = page(result)
    assert not re.search(r"https?://|//[a-z]+\.|<script|<link|@import|url\(|<img|<iframe", html)
    assert html.startswith("<!doctype html>")
    assert 'name="viewport"' in html
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    assert "nan" not in re.sub(r"<[^>]*>", " ", html).lower().split()


def test_page_is_well_formed(result: Result) -> None:
    html = page(result).removeprefix("<!doctype html>\n")
    for void in ("meta",):
        html = re.sub(rf"<({void}[^>]*)>", r"<\1/>", html)
    tree = ElementTree.fromstring(html)
    names = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(names) == len(set(names))
    assert len(list(tree.iter("h1"))) == 1
    assert all("nan" not in " ".join(element.attrib.values()).split() for element in tree.iter())


def test_pictures_say_what_they_show(result: Result) -> None:
    drawn = [svg for svg in svgs(page(result)) if svg.get("role") == "img"]
    assert drawn
    for svg in drawn:
        assert svg.findtext("title")
        assert svg.findtext("desc")
        for text in svg.iter("text"):
            assert text.text


def test_page_escapes() -> None:
    html = page(sliced())
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;" in html
    assert "<script" not in html
    assert "region &lt;of&gt; birth" in html
    assert "\x1b" not in html
    assert "&lt;img&gt;" in page(sample(command="audit '<img>'", notes=("<b>",), attack="<i>", control_note="<u>"))


def test_page_of_members_and_control() -> None:
    html = page(members_and_control())
    assert '<span class="sign">ε ≥</span> 1.43' in html
    assert "Members against control" in html
    assert "ε ≥ 0.30" in html
    assert "τ* = 0.0123" in html
    assert "<span>--confidence</span> <span>0.996875</span>" in html
    assert html.count('class="line control"') == 2
    assert "No control" not in html
    titles = [svg.findtext("title") for svg in svgs(html) if svg.get("role") == "img"]
    assert titles == [
        "What this ε permits",
        "ε against the share of rows guessed",
        "Scores of true labels and counterfactual labels",
        "ε against the assumed shift",
        "Reliability of the reference",
    ]


def test_page_drops_what_is_not_there() -> None:
    html = page(sample(pictures=None, descriptive={}, command=None))
    assert "How many guesses" not in html
    assert "Slices" not in html
    assert words.DESCRIPTIVE not in html
    assert "The command" not in html
    assert "--control" in html
    assert page(sample(pictures=Pictures(*(Curve((), ()) for _ in range(5))))).count("<svg") == 2


def test_page_of_an_eprocess() -> None:
    html = page(eprocess())
    assert "no τ* for this method" in html
    assert "τ* =" not in html
    assert "bystander bound" not in html


def test_page_dots_stand_where_the_bounds_are() -> None:
    html = page(sample())
    svg = next(svg for svg in svgs(html) if svg.findtext("title") == "ε against the share of rows guessed")
    dots = [c for c in svg.iter("circle") if c.get("class") == "dot members"]
    assert len(dots) == len(GRID)
    across = [float(c.get("cx", "")) for c in dots]
    steps = [b - a for a, b in itertools.pairwise(across[:7])]
    assert steps == pytest.approx([steps[0]] * 6, abs=0.11)  # doublings are equal steps
    ring = next(c for c in svg.iter("circle") if c.get("class") == "ring members")
    assert (ring.get("cx"), ring.get("cy")) == (dots[3].get("cx"), dots[3].get("cy"))


def test_result_calls_the_reports() -> None:
    made = sample()
    assert made.to_html() == page(made)
    assert str(made) == plain(made)


# ---- the figure


def test_figure_holds_the_points() -> None:
    made = members_and_control()
    ax = draw(made)
    assert ax.get_xscale() == "log"
    lines = {str(line.get_label()): line for line in ax.get_lines()}
    assert made.pictures is not None
    assert tuple(lines["members: candidate bounds"].get_xdata()) == GRID
    assert tuple(lines["members: candidate bounds"].get_ydata()) == made.pictures.bounds.y
    assert tuple(lines["members: mean ± sd (descriptive)"].get_ydata()) == made.pictures.guesses.y
    assert lines["control: mean ± sd (descriptive)"].get_linestyle() == "--"
    chosen = lines["members: ε ≥ 1.43"]
    assert (list(chosen.get_xdata()), list(chosen.get_ydata())) == ([0.08], [1.4389])
    assert ax.get_title(loc="left") == "ε ≥ 1.43  (95 % confidence, δ = 1e-5)"


def test_figure_of_an_invalid_result() -> None:
    ax = draw(sweep())
    legend = ax.get_legend()
    assert legend is not None
    said = [text.get_text() for text in legend.get_texts()] + [ax.get_title(loc="left")]
    assert "members: candidates, not bounds" in said
    assert not any("≥" in text for text in said)


def test_figure_draws_where_it_is_told() -> None:
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert sample().plot(ax) is ax
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")])
def test_save(tmp_path: Path, suffix: str, start: bytes) -> None:
    path = tmp_path / f"figure{suffix}"
    path.write_bytes(b"old")
    save(sample(pictures=None), path)
    assert path.read_bytes().startswith(start)
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_save_is_reproducible(tmp_path: Path) -> None:
    save(sample(), tmp_path / "a.svg")
    save(sample(), tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_save_refuses(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"figure\.gif'?: end it in \.png, \.svg or \.pdf"):
        save(sample(), tmp_path / "figure.gif")
    with pytest.raises(InputError, match="there is no folder"):
        save(sample(), tmp_path / "none" / "figure.png")
    assert list(tmp_path.iterdir()) == []


def test_importing_the_reports_loads_nothing_heavy() -> None:
    code = "import sys, bystander.report; print([m for m in ('matplotlib', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_descriptive_numbers_pair_up() -> None:
    numbers = {"auc": 0.8, "loss_sd": 0.25, "loss_mean": 1.5, "epsilon_sd": math.nan, "a_mean": 2.0}
    assert words.descriptive(sample(descriptive=numbers)) == [
        ("AUC of the score (a coin: 0.5)", "0.800"),
        ("Loss (mean ± sd)", "1.50 ± 0.25"),
        ("Epsilon sd", "–"),
        ("A mean", "2.000"),
    ]

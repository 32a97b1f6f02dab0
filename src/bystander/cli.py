"""The command line: arguments to an audit to a report. Strings end here; below it choices are values."""

from __future__ import annotations

import io
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from bystander import choices
from bystander._validate import InputError
from bystander._version import __version__
from bystander.terminal import Outputs, deaf, progress, say, stderr

EXAMPLES = """
**Examples**

    bystander audit day1.parquet --label click --target p_new --reference p_old --control held_out.parquet
    bystander audit 'logs/*.parquet' --label y --target p0,p1,p2 --reference q0,q1,q2 --html report.html
    bystander audit new.parquet --reference-data old.parquet --id row --label y --target prob --reference prob
    bystander scores games.parquet --score loss_gap --member trained --html membership.html
    bystander scores trained.csv --others held_out.csv --score lira --control more_held_out.csv
    bystander scores canaries.csv --score s --member inserted --coins given --guess above:2.5 --guesses 0.02
    bystander bound --canaries 1000000 --guesses 1000 --correct 950
    bystander demo
"""

app = typer.Typer(
    name="bystander",
    help="How much has a model memorised of its training labels? A lower bound on ε, by observing alone.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


Delta = Annotated[float, typer.Option(help="The δ at which ε is stated.")]
Confidence = Annotated[float, typer.Option(help="How sure the bound is.")]
Tau = Annotated[float, typer.Option(help="Total variation by which the reference may miss the truth.")]
Form = Annotated[
    choices.TauForm, typer.Option(help="How τ is spent; auto: Theorem 1's form for two classes, two-sided for more.")
]
Family = Annotated[choices.FamilyName | None, typer.Option(help="What the bound may assume.  [default: approx]")]
Guesses = Annotated[
    str, typer.Option(metavar="grid|FRACTION[,…]|eprocess|paper-sweep", help="How the number of guesses is chosen.")
]
Games = Annotated[int, typer.Option(help="How often the game is played.")]
Seed = Annotated[int, typer.Option(help="Seed of the game's coins.")]
Html = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the whole report as one page.")]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the main figure: PNG, SVG or PDF.")]
FailAbove = Annotated[float | None, typer.Option(metavar="EPS", help="Exit with status 1 if the bound is above this.")]
Json = Annotated[str | None, typer.Option(metavar="FILE|-", help="Write the result as JSON; - for standard output.")]
Classes = Annotated[int, typer.Option(help="Number of classes, for --family rr and two-sided τ.")]


@app.command()
def audit(
    data: Annotated[
        list[str], typer.Argument(metavar="DATA...", help="Parquet, CSV or Arrow: files, folders, globs, URLs.")
    ],
    label: Annotated[str, typer.Option(help="Column of true labels, 0…K−1.")],
    target: Annotated[
        str, typer.Option(metavar="COL[,COL…]", help="The target's probability of label 1, or one column a class.")
    ],
    reference: Annotated[str, typer.Option(metavar="COL[,COL…]", help="The same of the reference model.")],
    id: Annotated[str | None, typer.Option(help="Column that names each row; joins two sets of files.")] = None,
    group: Annotated[str | None, typer.Option(help="Column of users: audit one row of each. Needs --id.")] = None,
    slice: Annotated[str | None, typer.Option(help="Column of groups: audit each, worst first.")] = None,
    reference_data: Annotated[
        str | None, typer.Option(metavar="DATA", help="Where the reference's predictions lie, joined on --id.")
    ] = None,
    control: Annotated[
        str | None, typer.Option(metavar="DATA", help="Rows that the target did not train on: the negative control.")
    ] = None,
    family: Family = None,
    delta: Delta = 1e-5,
    classes: Classes = 2,
    confidence: Confidence = 0.95,
    guesses: Guesses = "grid",
    attack: Annotated[
        choices.AttackName, typer.Option(help="How the attacker scores a label.")
    ] = choices.AttackName.log_ratio,
    power: Annotated[
        float | None,
        typer.Option(help="The score's weight t on 1 − M'(x)[y].  [default: 2 for paper, 0 for log-ratio]"),
    ] = None,
    games: Games = 100,
    canaries: Annotated[
        int | None, typer.Option(help="Audit this many rows, drawn by a hash of their key.  [default: all]")
    ] = None,
    tau: Tau = 0.0,
    tau_form: Form = choices.TauForm.auto,
    seed: Seed = 0,
    json: Json = None,
    html: Html = None,
    plot: Plot = None,
    fail_above: FailAbove = None,
    engine: Annotated[choices.EngineName, typer.Option(help="Where games are played.")] = choices.EngineName.local,
    ray_address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="A running Ray cluster.  [default: one started here]")
    ] = None,
    stream_above: Annotated[
        int, typer.Option(metavar="ROWS", help="Read files of more rows batch by batch.")
    ] = 5_000_000,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep a stream's progress here, and go on from it.")
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Sort scores exactly instead of in a sketch.")] = False,
) -> None:
    """A lower bound on ε from logs of labels, target predictions and reference predictions."""
    from bystander import audit as run
    from bystander.engines.checkpoint import check

    selection, outputs = choices.guesses(guesses), Outputs(json, html, plot, fail_above)
    outputs.check(selection, [*data, reference_data, control], checkpoint)
    if checkpoint is not None:
        check(checkpoint)
    with _going_on(checkpoint), progress() as tell:
        result = run(
            list(data),
            labels=label,
            target=choices.names(target),
            reference=choices.names(reference),
            id=id,
            group=group,
            slice=slice,
            reference_data=reference_data,
            control=control,
            attack=choices.attack(attack, power),
            selection=selection,
            family=None if family is None and guesses == "eprocess" else choices.family(family, delta, classes),
            confidence=confidence,
            tau=choices.shift(tau, tau_form),
            games=games,
            seed=seed,
            canaries=canaries,
            exact=exact,
            engine=choices.engine(engine, ray_address, checkpoint),
            stream_above=stream_above,
            progress=tell,
        )
    kept = outputs.write(result)
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    if not kept:
        raise typer.Exit(1)


@app.command()
def scores(
    data: Annotated[
        list[str], typer.Argument(metavar="DATA...", help="Parquet, CSV or Arrow: files, folders, globs, URLs.")
    ],
    score: Annotated[str, typer.Option(help="Column of scores, higher where a row looks trained on.")],
    member: Annotated[
        str | None, typer.Option(help="Column of bits: 1 for rows of the training set, 0 for others.")
    ] = None,
    others: Annotated[
        str | None, typer.Option(metavar="DATA", help="The others' scores, instead of --member: DATA are the members.")
    ] = None,
    id: Annotated[str | None, typer.Option(help="Column that names each row.")] = None,
    control: Annotated[
        str | None, typer.Option(metavar="DATA", help="More rows that were not trained on: the negative control.")
    ] = None,
    coins: Annotated[
        choices.CoinsName, typer.Option(help="paired: tossed by the audit. given: tossed before training.")
    ] = choices.CoinsName.paired,
    guess: Annotated[
        str,
        typer.Option(metavar="both[:UPPER]|above:SCORE|centre:SCORE", help="Which scores are guessed, and how."),
    ] = "both",
    attack: Annotated[str, typer.Option(help="What the report calls the scores.")] = "scores given",
    family: Family = None,
    delta: Delta = 1e-5,
    confidence: Confidence = 0.95,
    guesses: Guesses = "grid",
    games: Games = 100,
    tau: Annotated[float, typer.Option(help="Total variation by which others may differ from members.")] = 0.0,
    tau_form: Form = choices.TauForm.auto,
    seed: Seed = 0,
    json: Json = None,
    html: Html = None,
    plot: Plot = None,
    fail_above: FailAbove = None,
) -> None:
    """A lower bound on ε from membership scores: a game that someone else played."""
    from bystander import scores as run

    selection, outputs = choices.guesses(guesses), Outputs(json, html, plot, fail_above)
    outputs.check(selection, [*data, others, control])
    result = run(
        list(data),
        score=score,
        member=member,
        id=id,
        others=others,
        control=control,
        coins=choices.coins(coins),
        guess=choices.guess(guess),
        attack=attack,
        selection=selection,
        family=None if family is None and guesses == "eprocess" else choices.family(family, delta, 2),
        confidence=confidence,
        tau=choices.shift(tau, tau_form),
        games=games,
        seed=seed,
    )
    if not outputs.write(result):
        raise typer.Exit(1)


@app.command()
def bound(
    canaries: Annotated[int, typer.Option(help="m: rows in the game.")],
    guesses: Annotated[int, typer.Option(help="c': guesses, fixed before the game.")],
    correct: Annotated[int, typer.Option(help="c: how many of them were right.")],
    delta: Delta = 1e-5,
    confidence: Confidence = 0.95,
    family: Annotated[choices.FamilyName, typer.Option(help="What the bound may assume.")] = choices.FamilyName.approx,
    tau: Tau = 0.0,
    tau_form: Form = choices.TauForm.auto,
    classes: Classes = 2,
    json: Json = None,
) -> None:
    """The lower bound on ε that one count gives."""
    from bystander import bound as run
    from bystander.report import files

    if json not in (None, "-"):
        files.check(Path(str(json)))
    say(
        run(
            canaries=canaries,
            guesses=guesses,
            correct=correct,
            family=choices.family(family, delta, classes),
            confidence=confidence,
            tau=choices.shift(tau, tau_form),
            classes=classes,
        ),
        json,
    )


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where logs and reports go.")] = Path("bystander-demo"),
) -> None:
    """Make a small problem, train a target that memorises and one that is label-private, and audit both."""
    from bystander.demo import run

    with progress() as tell:
        run(out, tell)


class _Interrupted(Exception):  # noqa: N818
    """Interrupted, with the work kept in a file."""


@contextmanager
def _going_on(checkpoint: Path | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint is None or not checkpoint.exists():
            raise
        raise _Interrupted(f"interrupted; the same command goes on from {checkpoint}") from None


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    if version:
        sys.stdout.write(f"bystander {__version__}\n")
        raise typer.Exit


# Typer carries click under a private name, or uses click itself: this is the root of its usage errors.
_Usage: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


_LATER = ("<frozen importlib", "llvmlite")


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt, but not amid an import or in LLVM's callbacks: they may swallow it, or keep a lock for ever."""
    while frame is not None and frame.f_code is not main.__code__:
        if any(place in frame.f_code.co_filename for place in _LATER):
            threading.Timer(0.02, signal.raise_signal, (number,)).start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line; every failure that a user can cause is one line and status 2."""
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a background job may ignore it
        signal.signal(signal.SIGINT, _interrupt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no ε
    status: object = 2
    try:
        left = app(standalone_mode=False)
        if left == 130:  # how Typer tells of an interruption
            raise KeyboardInterrupt
        sys.stdout.flush()
        status = left
    except (InputError, _Interrupted) as error:
        stderr(f"bystander: {error}")
    except _Usage as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
        else:
            context = getattr(error, "ctx", None)
            hint = f" (see: {context.command_path} --help)" if context is not None else ""
            stderr(f"bystander: {error.format_message()}{hint}")
    except (KeyboardInterrupt, typer.Abort):
        stderr("bystander: interrupted; no output was written")
    except MemoryError:
        stderr("bystander: not enough memory: play fewer --games, or audit fewer rows with --canaries")
    except BrokenPipeError:
        deaf()
        status = 0
    for number in (signal.SIGINT, signal.SIGTERM):  # all is done and said
        signal.signal(number, signal.SIG_IGN)
    sys.exit(status if isinstance(status, int) else 0)


if __name__ == "__main__":
    main()

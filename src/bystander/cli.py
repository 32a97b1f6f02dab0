"""The command line: arguments to an audit to a report. Strings end here; below it choices are values."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from bystander import choices
from bystander._validate import InputError
from bystander._version import __version__

EXAMPLES = """
**Examples**

    bystander audit day1.parquet --label click --target p_new --reference p_old --control held_out.parquet
    bystander audit 'logs/*.parquet' --label y --target p0,p1,p2 --reference q0,q1,q2 --html report.html
    bystander audit new.parquet --reference-data old.parquet --id row --label y --target prob --reference prob
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
    family: Annotated[
        choices.FamilyName | None, typer.Option(help="What the bound may assume.  [default: approx]")
    ] = None,
    delta: Delta = 1e-5,
    classes: Classes = 2,
    confidence: Confidence = 0.95,
    guesses: Annotated[
        str, typer.Option(metavar="grid|FRACTION[,…]|eprocess|paper-sweep", help="How the number of guesses is chosen.")
    ] = "grid",
    attack: Annotated[
        choices.AttackName, typer.Option(help="How the attacker scores a label.")
    ] = choices.AttackName.log_ratio,
    power: Annotated[
        float | None,
        typer.Option(help="The score's weight t on 1 − M'(x)[y].  [default: 2 for paper, 0 for log-ratio]"),
    ] = None,
    games: Annotated[int, typer.Option(help="How often the game is played.")] = 100,
    canaries: Annotated[
        int | None, typer.Option(help="Audit this many rows, drawn by a hash of their key.  [default: all]")
    ] = None,
    tau: Tau = 0.0,
    tau_form: Form = choices.TauForm.auto,
    seed: Annotated[int, typer.Option(help="Seed of the game's coins.")] = 0,
    json: Json = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the whole report as one page.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the main figure: PNG, SVG or PDF.")] = None,
    fail_above: Annotated[
        float | None, typer.Option(metavar="EPS", help="Exit with status 1 if the bound is above this.")
    ] = None,
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
    from bystander.report import files
    from bystander.report.plot import SUFFIXES

    selection = choices.guesses(guesses)
    if fail_above is not None and not selection.valid:
        raise InputError(f"--fail-above is {fail_above:g}: it needs a valid bound, and --guesses {guesses} gives none")
    outputs = (html, plot, None if json in (None, "-") else Path(str(json)))
    for path in (*outputs, checkpoint):
        if path is not None:
            files.check(path)
    if checkpoint is not None:
        if checkpoint.resolve() in [path.resolve() for path in outputs if path is not None]:
            raise InputError(f"--checkpoint is {checkpoint}, an output: give it a file of its own")
        check(checkpoint)
    if plot is not None and plot.suffix.lower() not in SUFFIXES:
        raise InputError(f"--plot is {plot}: give a file that ends in one of {', '.join(SUFFIXES)}")
    with _going_on(checkpoint), _progress() as progress:
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
            progress=progress,
        )
    result = replace(result, command=shlex.join(["bystander", *sys.argv[1:]]))
    if html is not None:
        files.write(html, result.to_html())
    if plot is not None:
        from bystander.report import save

        save(result, plot)
    _say(result, json)
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    if fail_above is not None and result.epsilon > fail_above:
        _stderr(f"bystander: ε ≥ {result.epsilon:.4f} is above --fail-above {fail_above:g}")
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
    _say(
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

    with _progress() as progress:
        run(out, progress)


def _say(result: Any, json: str | None) -> None:
    """The table on standard output, unless the JSON goes there."""
    from rich.console import Console

    from bystander import Result
    from bystander.report import dumps, files, render, render_bound

    if json == "-":
        sys.stdout.write(dumps(result))
        return
    if json is not None:
        files.write(Path(json), dumps(result))
    Console().print(render(result) if isinstance(result, Result) else render_bound(result))


@contextmanager
def _progress() -> Iterator[Any]:
    """Bars on standard error, silent where it is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bars = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    tasks: dict[str, Any] = {}
    with bars:

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total or None)
            bars.advance(tasks[what], done)

        yield tell


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


def _stderr(line: str) -> None:
    sys.stderr.write(line.replace("\n", " ") + "\n")


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    if version:
        sys.stdout.write(f"bystander {__version__}\n")
        raise typer.Exit


# Typer carries click under a private name, or uses click itself: this is the root of its usage errors.
_Usage: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def main() -> None:
    """Run the command line; every failure that a user can cause is one line and status 2."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    status: object = 2
    try:
        left = app(standalone_mode=False)
        if left == 130:  # how Typer tells of an interruption
            raise KeyboardInterrupt
        sys.stdout.flush()
        status = left
    except (InputError, _Interrupted) as error:
        _stderr(f"bystander: {error}")
    except _Usage as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
        else:
            context = getattr(error, "ctx", None)
            hint = f" (see: {context.command_path} --help)" if context is not None else ""
            _stderr(f"bystander: {error.format_message()}{hint}")
    except (KeyboardInterrupt, typer.Abort):
        _stderr("bystander: interrupted; no output was written")
    except MemoryError:
        _stderr("bystander: not enough memory: play fewer --games, or audit fewer rows with --canaries")
    except BrokenPipeError:  # the reader of our output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status if isinstance(status, int) else 0)


if __name__ == "__main__":
    main()

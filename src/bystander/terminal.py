"""What a command leaves: a table on the terminal, files, bars while it works, a line where it stops."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bystander._validate import InputError, at_least
from bystander.result import Bound, Result
from bystander.selection import Selection


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where a result goes, and the ε above which the command fails."""

    json: str | None = None
    html: Path | None = None
    plot: Path | None = None
    fail_above: float | None = None

    def check(self, selection: Selection, read: Iterable[str | None], checkpoint: Path | None = None) -> None:
        """Refuse, before any work, what could not be done after it; `read` is what the command reads."""
        from bystander.report import files
        from bystander.report.plot import SUFFIXES

        if self.fail_above is not None:
            at_least("--fail-above", self.fail_above, 0)
            if not selection.valid:
                told = f"it needs a valid bound, and {selection.name} gives none"
                raise InputError(f"--fail-above is {self.fail_above:g}: {told}")
        json = None if self.json in (None, "-") else Path(str(self.json))
        files.check_all({"--html": self.html, "--plot": self.plot, "--json": json, "--checkpoint": checkpoint}, read)
        if self.plot is not None and self.plot.suffix.lower() not in SUFFIXES:
            raise InputError(f"--plot is {self.plot}: give a file that ends in one of {', '.join(SUFFIXES)}")

    def write(self, result: Result) -> bool:
        """Write and say the result; whether ε is at most what was allowed."""
        from bystander.report import files, save

        result = replace(result, command=shlex.join(["bystander", *sys.argv[1:]]))
        if self.html is not None:
            files.write(self.html, result.to_html())
        if self.plot is not None:
            save(result, self.plot)
        say(result, self.json)
        if self.fail_above is None or result.epsilon <= self.fail_above:
            return True
        stderr(f"bystander: ε ≥ {result.epsilon:.4f} is above --fail-above {self.fail_above:g}")
        return False


def say(result: Bound, json: str | None) -> None:
    """The table on standard output, unless the JSON goes there."""
    from rich.console import Console

    from bystander.report import dumps, files, render, render_bound

    if json not in (None, "-"):
        files.write(Path(str(json)), dumps(result))
    try:
        if json == "-":
            sys.stdout.write(dumps(result))
        else:
            console = Console()
            setattr(console, "on_broken_pipe", deaf)  # noqa: B010  # Rich's own leaves with status 1
            console.print(render(result) if isinstance(result, Result) else render_bound(result))
        sys.stdout.flush()
    except BrokenPipeError:
        deaf()


def deaf() -> None:
    """Whoever read standard output has left: say the rest to nobody."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def stderr(line: str) -> None:
    """One line on standard error."""
    sys.stderr.write(line.replace("\n", " ") + "\n")


@contextmanager
def progress() -> Iterator[Any]:
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

"""Training as it goes, on standard error."""

from __future__ import annotations

import math
import sys
import time
from typing import TextIO

from bystander._validate import InputError


class Shown:
    """A `progress`: one line, written over on a terminal; elsewhere a line each time it is told.

    >>> seen = Shown("student", stream=sys.stdout)
    >>> seen(1, 2, 0.5), seen(2, 2, math.nan)
    student: 1 of 2, loss 0.5000
    student: 2 of 2
    (None, None)
    """

    def __init__(self, what: str = "training", *, stream: TextIO | None = None) -> None:
        self.what = what
        self.stream = stream
        self.start: tuple[int, float] | None = None

    def __call__(self, done: int, of: int, loss: float) -> None:
        """So many are done; `loss` is NaN where there is none."""
        if not 0 <= done <= of:
            raise InputError(f"done is {done}: there are {of}; give a number from 0 to {of}")
        stream, now = self.stream or sys.stderr, time.monotonic()
        if self.start is None or done <= self.start[0]:
            self.start = done, now
        said = f"{self.what}: {done} of {of}" + ("" if math.isnan(loss) else f", loss {loss:.4f}")
        first, since = self.start
        if first < done < of:
            left = round((now - since) / (done - first) * (of - done))
            said += f", {left // 60}:{left % 60:02d} left"
        last = "\n" if done == of else ""
        stream.write(f"\r{said:<72}{last}" if stream.isatty() else f"{said}\n")
        stream.flush()

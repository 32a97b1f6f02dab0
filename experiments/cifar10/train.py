"""Train a profile's cells and write their predictions. Needs torch, NumPy and SciPy alone: it runs on any GPU machine.

    PYTHONPATH=src:. python -m experiments.cifar10.train --profile paper --out OUT [--jobs 3] [--dry]

Each cell leaves NAME.npz (log-probabilities of members and control) and NAME.json (how it was trained). What is there
with the same settings is skipped, and a cell that was cut off goes on from its checkpoint.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bystander.training.batches import Images
from bystander.training.fixmatch import train_fixmatch
from bystander.training.loop import initial, pick, train
from bystander.training.simclr import pretrain
from experiments.cifar10 import PROFILES, plan
from experiments.cifar10.cells import Data, Work, train_cell
from experiments.cifar10.plan import CLASSES, Cell, Settings


def done(cell: Cell, settings: Settings, out: Path) -> bool:
    """Is its file there, of these settings?"""
    path = out / f"{cell.name}.json"
    return path.exists() and json.loads(path.read_text())["settings"] == plan.digest(settings, cell)


def missing(
    profile: str,
    settings: Settings,
    data: Path,
    out: Path,
    *,
    names: list[str] | None = None,
    device: str = "auto",
    jobs: int = 1,
) -> None:
    """Train what is not there: here, one by one, or as `jobs` processes at a time."""
    out.mkdir(parents=True, exist_ok=True)
    wanted = [cell for cell in plan.cells(settings) if names is None or cell.name in names]
    todo = [cell for cell in wanted if not done(cell, settings, out)]
    if jobs > 1 and len(todo) > 1:
        _beside(profile, settings, data, out, todo, device, jobs)
        return
    held = Data.load(data, settings) if todo else None
    for cell in todo:
        assert held is not None
        body = train_cell(Work(cell, settings, held, out, pick(device), _say))
        _say(_line(body))


def _beside(profile: str, settings: Settings, data: Path, out: Path, todo: list[Cell], device: str, jobs: int) -> None:
    """Start a process a cell as places come free and what it needs is there."""
    fixed = ["--profile", profile, "--data", str(data), "--out", str(out), "--device", device]
    waiting, running = list(todo), dict[str, subprocess.Popen[bytes]]()
    while waiting or running:
        for name, process in list(running.items()):
            if process.poll() is None:
                continue
            del running[name]
            if process.returncode:
                _say(f"{name}: failed with status {process.returncode}; see {out / name}.log")
            else:
                _say(_line(json.loads((out / f"{name}.json").read_text())))
        pending = {cell.name for cell in waiting} | set(running)
        for cell in list(waiting):
            if len(running) >= jobs:
                break
            if pending.intersection(cell.needs):
                continue
            waiting.remove(cell)
            if any(not done(Cell(name), settings, out) for name in cell.needs):
                _say(f"{cell.name}: left out, it needs {', '.join(cell.needs)}")
                continue
            command = [sys.executable, "-m", "experiments.cifar10.train", *fixed, "--cells", cell.name]
            with (out / f"{cell.name}.log").open("wb") as log:
                running[cell.name] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        time.sleep(0.2)


def dry(settings: Settings, device: torch.device) -> None:
    """A few steps of each kind on made-up images, and what whole cells will take at that pace."""
    rng = np.random.default_rng(0)
    total = 0.0
    for part in ("target", "trunk", "student", "supervised"):
        recipe = replace(plan.recipe(settings, part), epochs=1)
        size = recipe.batch * (plan.fixmatch(settings).ratio if part == "student" else 1)
        steps = 3 if device.type == "cpu" else 40
        images = Images(torch.from_numpy(rng.integers(0, 256, (size * steps, 32, 32, 3), np.uint8)).to(device))
        labels = torch.from_numpy(rng.integers(0, CLASSES, len(images)))
        build = plan.network(settings)
        net = initial(lambda build=build: build.build((3, 32, 32), CLASSES), 0, device)

        def once(
            part: str = part, net: Any = net, images: Any = images, labels: Any = labels, recipe: Any = recipe
        ) -> None:
            if part == "trunk":
                pretrain(net, images, recipe, plan.simclr(settings), device=device)
            elif part == "student":
                few = Images(images.bytes[:250])
                train_fixmatch(net, few, labels[:250], images, recipe, plan.fixmatch(settings), device=device)
            else:
                train(net, images, labels, recipe, device=device)

        once()
        start = time.perf_counter()
        once()
        pace = (time.perf_counter() - start) / steps
        rows = {"target": 25_000, "trunk": 50_000, "student": 50_000, "supervised": 250}[part]
        whole = settings[part]["epochs"] * (rows // size)
        many = {"target": 10, "trunk": 1, "student": 5, "supervised": 1}[part]
        total += pace * whole * many
        _say(f"{part:10s} {1e3 * pace:7.1f} ms a step, {whole:,} steps: {pace * whole:7.1f} s a cell, {many} cells")
    _say(f"in all {total:,.0f} s with --jobs 1, and about 10 s more a cell to start")


def _line(body: dict[str, Any]) -> str:
    right = (
        ""
        if "test_accuracy" not in body
        else f", test {body['test_accuracy']:.2%}, members {body['members_accuracy']:.2%}"
    )
    return f"{body['cell']}: {body['seconds']:.0f} s on {body['device']}{right}; {json.dumps(body['notes'])}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Parse and train."""
    parser = argparse.ArgumentParser(prog="python -m experiments.cifar10.train", description=__doc__)
    parser.add_argument("--profile", choices=PROFILES, required=True)
    parser.add_argument("--data", type=Path, default=Path("cache/cifar10"), help="the six official .bin batches")
    parser.add_argument("--out", type=Path, help="where the cells' files go")
    parser.add_argument("--cells", help="a,b,…: these alone")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time, each in a process")
    parser.add_argument("--dry", action="store_true", help="time a few steps and say what all would take")
    args = parser.parse_args()
    settings = PROFILES[args.profile]
    if args.dry:
        dry(settings, pick(args.device))
        return 0
    names = args.cells.split(",") if args.cells else None
    known = [cell.name for cell in plan.cells(settings)]
    if args.out is None or (names and not set(names) <= set(known)):
        parser.error(f"give --out, and --cells among {', '.join(known)}")
    missing(args.profile, settings, args.data, args.out, names=names, device=args.device, jobs=args.jobs)
    left = [cell.name for cell in plan.cells(settings) if not done(cell, settings, args.out)]
    if left and names is None:
        _say(f"not there: {', '.join(left)}")
    return 1 if left and names is None else 0


if __name__ == "__main__":
    sys.exit(main())

"""python -m experiments list | run NAME [--profile small|paper] [--fresh] [--into DIR] | draw NAME."""

from __future__ import annotations

import argparse
import re
import sys
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from bystander import InputError
from experiments._record import HERE, Record
from experiments._spec import Experiment, every

_PAGES = HERE.parent / "docs"


def show(experiments: dict[str, Experiment]) -> None:
    """Name, what it reproduces, profiles and what their records say they cost."""
    for name, experiment in experiments.items():
        print(f"{name:10s} {experiment.reproduces}")
        for profile in experiment.profiles:
            record = Record.load(name, profile)
            cost = "no record yet" if record is None else f"{record.seconds:,.0f} s for {len(record.cells)} cells"
            print(f"{'':12s}--profile {profile}: {cost}")


def draw(name: str, root: Path = HERE) -> None:
    """Figures and tables from the records alone; the committed ones also fill docs/*.md."""
    module = import_module(f"experiments.{name}.draw")
    for path in sorted((root / name / "records").glob(f"{name}-*.json")):
        profile = path.stem.removeprefix(f"{name}-")
        record = Record.load(name, profile, root)
        if record is None:
            continue
        for key, figure in module.figures(record).items():
            target = root / name / "figures" / f"{key}-{profile}.png"
            target.parent.mkdir(exist_ok=True)
            _save(figure, target)
            print(target.relative_to(root.parent))
        for key, table in module.tables(record).items():
            print(f"\n{key}-{profile}\n{table}")
            if root == HERE:
                _fill(f"{key}-{profile}", table)


def _save(figure: Any, path: Path) -> None:
    """A PNG of 96 colours: a third of the size, and nothing a reader could miss."""
    from PIL import Image

    with BytesIO() as whole:
        figure.savefig(whole, dpi=110, facecolor="white")
        image = Image.open(whole).convert("RGB").quantize(96, dither=Image.Dither.NONE)
        image.save(path, format="PNG", optimize=True)


def _fill(mark: str, table: str) -> None:
    """Replace what stands between <!-- MARK --> and <!-- end --> in the pages."""
    pattern = re.compile(rf"(<!-- {re.escape(mark)} -->\n).*?(<!-- end -->)", re.DOTALL)
    for path in sorted(_PAGES.glob("*.md")):
        page = path.read_text()
        filled = pattern.sub(lambda found: f"{found[1]}{table}\n{found[2]}", page)
        if filled != page:
            path.write_text(filled)


def main(arguments: list[str] | None = None) -> int:
    """Parse and do."""
    experiments = every()
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="what there is and what it costs")
    run = verbs.add_parser("run", help="run to the end, or resume; then draw")
    run.add_argument("name", choices=experiments)
    run.add_argument("--profile", default="small")
    run.add_argument("--fresh", action="store_true", help="do not resume")
    run.add_argument(
        "--into", type=Path, default=HERE, help="folder for record and figures; the pages stay as they are"
    )
    verbs.add_parser("draw", help="draw from the records alone").add_argument("name", choices=experiments)
    args = parser.parse_args(arguments)
    if args.verb == "list":
        show(experiments)
        return 0
    if args.verb == "run":
        experiment = experiments[args.name]
        if args.profile not in experiment.profiles:
            parser.error(f"{args.name} has no profile {args.profile}; it has {', '.join(experiment.profiles)}")
        settings = experiment.profiles[args.profile]
        record = Record.open(args.name, args.profile, settings, fresh=args.fresh, root=args.into.resolve())
        try:
            experiment.run(record)
        except InputError as error:
            print(error, file=sys.stderr)
            return 2
        record.write()
        print(f"{args.name} --profile {args.profile}: {record.seconds:,.0f} s", file=sys.stderr)
    draw(args.name, args.into.resolve() if args.verb == "run" else HERE)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m bench`: every part; `python -m bench NAME…`: those; `python -m bench readme`: the page alone."""

from __future__ import annotations

import argparse
import sys
import time

from bench import readme, records
from bench.parts import PARTS


def main() -> None:
    """Measure, keep the records, write the page after each part."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="NAME", help=f"any of {', '.join(PARTS)}, readme")
    asked = parser.parse_args().parts or list(PARTS)
    if unknown := [name for name in asked if name not in (*PARTS, "readme")]:
        parser.error(f"there is no part {unknown[0]!r}: give any of {', '.join(PARTS)}, readme")
    for name in asked:
        if name == "readme":
            continue
        print(name, file=sys.stderr)
        begun, start = records.machine(), time.perf_counter()
        path = records.write(name, begun, PARTS[name]())
        print(f"{path} after {time.perf_counter() - start:.0f} s", file=sys.stderr)
        readme.write()
    readme.write()


if __name__ == "__main__":
    main()

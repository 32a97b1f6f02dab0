"""Write docs/cli.md and docs/api.md from the code; with --check, exit 1 if they are stale.

    python docs/generate.py [--check]
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bystander

HERE = Path(__file__).resolve().parent
NOTE = "<!-- Written by docs/generate.py. Do not edit. -->\n"


def oneline(text: str) -> str:
    """Text fit for a cell of a table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def parameters(command: Any) -> Iterator[str]:
    """A table of a command's arguments and options, in their order."""
    yield "| Option | Value | Meaning | Default |\n|---|---|---|---|\n"
    for option in command.params:
        if option.name == "help":
            continue
        argument = option.param_type_name == "argument"
        name = option.metavar or option.name.upper() if argument else ", ".join(f"`{o}`" for o in option.opts)
        choices = getattr(option.type, "choices", None)
        if argument or getattr(option, "is_flag", False):
            value = ""
        elif choices:
            value = "\\|".join(str(getattr(c, "value", c)) for c in choices)
        else:
            value = oneline(option.metavar or str(option.type.name))
        meaning, default = oneline(getattr(option, "help", None) or ""), option.default
        said = re.search(r"\[default: (.+)\]", meaning)
        if option.required:
            shown = "required"
        elif said:
            shown, meaning = said[1], meaning.replace(said[0], "").strip()
        else:
            shown = "" if default is None or default is False else str(getattr(default, "value", default))
        yield f"| {oneline(name) if argument else name} | {value} | {meaning} | {shown} |\n"


def cli() -> str:
    """The page of the command line."""
    import typer

    from bystander.cli import app

    root: Any = typer.main.get_command(app)
    parts = [NOTE, "# Command line\n\n", f"{root.help}\n\n"]
    parts += ["Exit status: 0 done; 1 the bound is above `--fail-above`; 2 wrong usage or bad input.\n"]
    for name, command in root.commands.items():
        parts += [f"\n## bystander {name}\n\n", f"{inspect.cleandoc(command.help)}\n\n", *parameters(command)]
    examples = [line.strip() for line in (root.epilog or "").splitlines() if line.strip().startswith("bystander ")]
    return "".join([*parts, "\n## Examples\n\n```\n", "\n".join(examples), "\n```\n"])


def signature(thing: Any) -> str:
    """A signature on one line, or one parameter a line where it is long."""
    found = inspect.signature(thing)
    text = str(found.replace(return_annotation=inspect.Signature.empty))
    text = text.replace("'", "") if len(text) < 90 else "(\n" + "".join(
        f"    {part},\n" for part in text[1:-1].replace("'", "").split(", ") if part
    ) + ")"  # fmt: skip
    return re.sub(r"<factory>|<object object at 0x[0-9a-f]+>", "…", text)


def text_of(thing: Any) -> str:
    """The docstring, its examples in a block that is not run here again."""
    lines, inside = [], False
    for line in inspect.cleandoc(thing.__doc__ or "").splitlines():
        if line.startswith(">>>") and not inside:
            inside = True
            lines.append("```pycon")
        if inside and not line.strip():
            inside = False
            lines.append("```")
        lines.append(line.replace(">>>", "&gt;&gt;&gt;") if not inside else line)
    return "\n".join([*lines, "```"] if inside else lines)


def api() -> str:
    """The page of the public names."""
    parts = [NOTE, "# Python\n\nEverything below is imported from `bystander`.\n"]
    for name in bystander.__all__:
        thing = getattr(bystander, name)
        if name.startswith("__"):
            continue
        parts.append(f"\n## {name}\n\n")
        if not issubclass(thing if inspect.isclass(thing) else object, Exception):
            parts.append(f"```python\n{name}{signature(thing)}\n```\n\n")
        parts.append(f"{text_of(thing)}\n")
        own = vars(thing) if inspect.isclass(thing) else {}
        for method, value in own.items():
            function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            if method.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
                continue
            call = "" if isinstance(value, property) else "()"
            parts.append(f"\n- `{method}{call}`: {oneline(function.__doc__)}")
        parts.append("\n" if own else "")
    return re.sub(r"\n{3,}", "\n\n", "".join(parts)).rstrip() + "\n"


def main() -> int:
    """Write the pages, or compare them."""
    stale = []
    for name, text in (("cli.md", cli()), ("api.md", api())):
        path = HERE / name
        if "--check" in sys.argv[1:]:
            stale += [name] if not path.exists() or path.read_text(encoding="utf-8") != text else []
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.stderr.write(f"stale: {', '.join(stale)}; run python docs/generate.py\n")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())

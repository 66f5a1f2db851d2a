"""What the subcommands share: options as data, output as text or JSON.

A command is a module with HELP, ARGS and `run(args) -> Output`; `__main__` does the rest.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..system import paths
from ..tables import plain

Options = argparse.Namespace  # what a command was given
log = logging.getLogger("kit.command")
log.addHandler(logging.NullHandler())  # without one, logging itself writes errors to stderr
# what a terminal obeys: escape sequences, their 8-bit forms, line separators, text turned around
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Arg:
    """An option or argument of a command, as argparse takes it, and the group that it stands in."""

    names: tuple[str, ...]
    options: dict[str, Any]
    group: str


def arg(*names: str, group: str = "", **options: Any) -> Arg:
    """An `Arg`: `arg("--seed", type=int, default=0, help="of the draw")`."""
    return Arg(names, options, group)


@dataclass(frozen=True)
class Output:
    """What a command prints, `data` with --json and else `text`; then its exit code, or the error
    that ends it.
    """

    data: Any
    text: str
    code: int = 0
    error: BaseException | None = None


STDOUT = "standard output"  # in errors
LEDGER = arg("--ledger", help="the ledger file (default: in the kit's cache)")
BUDGET_USD = arg(
    "--budget-usd", type=float, help="stop before more dollars are spent (exit code 4)"
)
LEVEL = arg("--level", type=float, default=0.95, help="confidence level (default 0.95)")
EVERYWHERE = (
    arg("--json", action="store_true", help="print the result as JSON"),
    arg(
        "--progress",
        group="watching",
        choices=("bar", "json", "none"),
        help="how progress is shown on stderr: a bar (default), JSON lines (an error that ends the "
        "command stays plain text), or not at all",
    ),
    arg(
        "--log-file",
        group="watching",
        metavar="FILE",
        help="add warnings, errors, start and end to it, as JSON lines",
    ),
    arg("--verbose", group="watching", action="store_true", help="say on stderr what is done"),
)


def add(parser: Any, args: Iterable[Arg]) -> None:
    """Give a parser these options, and those that every command has."""
    groups = {"": parser}
    for a in (*args, *EVERYWHERE):
        if a.group not in groups:
            groups[a.group] = parser.add_argument_group(a.group)
        groups[a.group].add_argument(*a.names, **a.options)


def ledger_of(args: Options) -> Path:
    """The file that --ledger names, else the kit's own."""
    return Path(args.ledger) if args.ledger else paths.home() / "ledger.sqlite"


def printable(text: str) -> str:
    """Text of others that a terminal cannot obey: control characters as \\uXXXX.

    >>> print(printable("a\\x1b[2Jb"))
    a\\u001b[2Jb
    """
    return _OBEYED.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def emit(args: Options, data: Any, text: str) -> None:
    """Print `data` as JSON when --json was given, else `text`."""
    as_json = getattr(args, "json", False)
    encoding = sys.stdout.encoding or "utf-8"
    out = json.dumps(plain(data), indent=2, ensure_ascii=False) if as_json else text
    out = printable(out.rstrip() + "\n")
    try:
        out.encode(encoding)
    except UnicodeEncodeError:  # half a surrogate pair, or a terminal that has no such letters
        out = json.dumps(plain(data), indent=2) + "\n" if as_json else out
        out = out.encode(encoding, "backslashreplace").decode(encoding)
    with paths.naming(STDOUT):
        sys.stdout.write(out)
        sys.stdout.flush()


def even_labels(path: Any, named: Iterable[str]) -> None:
    """DataError where a command takes labels of a file that were drawn with unequal probability
    (`kit.stats.columns.even`) and counts rows alike.
    """
    from ..data.tables import read_columns, read_rows
    from ..stats.columns import even

    _, first = next(iter(read_rows(path)), ("", {}))
    if "inclusion" in first:
        even(read_columns(path, ["inclusion"]), named)

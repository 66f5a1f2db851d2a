"""`python -m kit COMMAND`: each function of `commands` is a command. Signature: options. Docstring: help."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from .. import __version__
from ..errors import DataError, KitError, MissingError

EPILOG = """exit codes: 0 done; 1 a notebook or lint failed; 2 bad input; 3 something is missing;
4 a budget was reached; 5 the judge is down; 130 stopped. KIT_DEBUG=1 shows tracebacks."""
ARGUMENT = re.compile(
    r"^(\w+(?:, \w+)*) : (.+?)(?=\n\w+(?:, \w+)* : |\n\n|\Z)", re.M | re.S
)

RENAME = re.compile(r"(?:load\(\.\.\., )?fields=\{'(\w+)': '(\w+)'\}\)?")


@dataclass(frozen=True, kw_only=True)
class Output:
    """What a command gives: text for people (default: the data), data for --json, what to open or run
    next, and the exit code."""

    text: str = ""
    data: Any = None
    next: str = ""
    code: int = 0


def parser(commands: Sequence[Callable[..., Output]]) -> argparse.ArgumentParser:
    """The whole command line, a subcommand for each function."""
    top = argparse.ArgumentParser(
        prog="python -m kit",
        description="Experiments with rubric rewards. The commands stand in the order of the steps.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"kit {__version__}")
    subcommands = top.add_subparsers(required=True, metavar="COMMAND")
    for function in commands:
        doc = inspect.getdoc(function) or ""
        sub = subcommands.add_parser(
            function.__name__,
            help=doc.split("\n")[0],
            # What stands under "name : text" is the help of an option.
            description=ARGUMENT.sub("", doc).strip(),
            epilog=EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        # argparse hands back what was set, so that no table of names is needed
        sub.set_defaults(function=function)
        _add_options(sub, function, doc)
        sub.add_argument(
            "--json", action="store_true", help="print the result as JSON"
        )
    return top


def _add_options(
    sub: argparse.ArgumentParser, function: Callable[..., Output], doc: str
) -> None:
    """An option for each parameter of a function."""
    hints = get_type_hints(function)
    texts = {
        name: " ".join(text.split())
        for names, text in ARGUMENT.findall(doc)
        for name in names.split(", ")
    }
    for name, p in inspect.signature(function).parameters.items():
        kind = hints[name]
        if type(None) in get_args(kind):  # X | None
            kind = get_args(kind)[0]
        # argparse formats help texts with %, so a bare one would fail.
        options: dict[str, Any] = {"help": texts.get(name, "").replace("%", "%%")}
        if get_origin(kind) is Literal:
            options["choices"] = get_args(kind)
        elif get_origin(kind) is dict:
            options |= {
                "action": _Pairs,
                "const": get_args(kind)[1],
                "metavar": "NAME=VALUE",
            }
        # A flag is False unless it is written: no command has a flag that is on by default.
        elif kind is bool:
            options["action"] = "store_true"
        else:
            options["type"] = kind
        # `*names` takes what is left; argparse knows it under one fixed name.
        if p.kind is p.VAR_POSITIONAL:
            sub.add_argument("several", metavar=name, nargs="*", **options)
        elif p.kind is p.POSITIONAL_OR_KEYWORD:
            if p.default is not p.empty:
                options |= {"nargs": "?", "default": p.default}
            sub.add_argument(name, **options)
        else:
            options["required"] = p.default is p.empty
            if p.default and kind is not bool and not options["required"]:
                options["help"] += f" (default: {p.default})"
            flag = name.strip("_").replace("_", "-")  # try_ is --try
            sub.add_argument(f"--{flag}", dest=name, default=p.default, **options)


class _Pairs(argparse.Action):
    """NAME=VALUE, may be repeated. The type says how VALUE is read: a text, a YAML value, or a list with commas."""

    def __call__(
        self, _: Any, namespace: Any, text: Any, flag: str | None = None
    ) -> None:
        from ..system.settings import parse

        # A text may name several: --map desc=text,qid=task_id
        pairs = re.split(r",(?=\w+=)", text) if self.const is str else [text]
        values = dict(getattr(namespace, self.dest) or {})
        for pair in pairs:
            name, sign, value = pair.partition("=")
            if not (name and sign):
                raise DataError(
                    f"{pair!r} is not NAME=VALUE", where=f"option {flag}"
                )
            if self.const is not str:
                value = parse(
                    value if self.const is Any else f"[{value}]", f"option {flag}"
                )
            values[name] = value
        setattr(namespace, self.dest, values)


def main(
    commands: Sequence[Callable[..., Output]], argv: Sequence[str] | None = None
) -> int:
    """Run one of the commands; returns its exit code. Errors come without a traceback."""
    # SIGTERM ends a command as Ctrl-C does: children are stopped, what was done is saved.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        options = vars(parser(commands).parse_args(argv))
        function, as_json = options.pop("function"), options.pop("json")
        output = function(*options.pop("several", ()), **options)
        if as_json:
            from ..records.tables import plain

            text = json.dumps(plain(output.data), indent=1, ensure_ascii=False)
        else:
            following = f"\nnext: {output.next}" if output.next else ""
            text = f"{output.text or output.data}{following}"
        # Of several processes that train together, the first one reports.
        if os.environ.get("RANK", "0") != "0":
            return output.code
        # A closed pipe shows here, where it can still be handled, and not at the interpreter's end.
        print(text, flush=True)
        return output.code
    # Ledgers and run folders are written as the work goes on, so nothing is lost.
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        # 128 and the number of SIGINT, as shells report it.
        return 130
    except Exception as e:
        if os.environ.get("KIT_DEBUG"):
            raise
        return _fail(e)


def _fail(error: Exception) -> int:
    """Print what is wrong and what to do; returns the exit code. What is no user's error is raised."""
    if isinstance(error, BrokenPipeError):  # `kit ... | head`
        # The interpreter flushes stdout at its end, and would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, ModuleNotFoundError):
        error = MissingError(
            f"the package {error.name!r} is not installed",
            fix="pip install -c constraints.txt -e '.[train,server,tune]'",
        )
    elif isinstance(error, OSError):
        error = (
            MissingError if isinstance(error, FileNotFoundError) else DataError
        )(error.strerror or str(error), where=str(error.filename or ""))
    # A bug is no user's mistake: its traceback is needed.
    if not isinstance(error, KitError):
        raise error
    # Errors name the argument of `load`; who types commands has `kit inspect` in its place.
    text = RENAME.sub(r"kit inspect FILE --map \1=\2 --out NEW", str(error))
    print(f"error: {text}", file=sys.stderr)
    return error.exit_code

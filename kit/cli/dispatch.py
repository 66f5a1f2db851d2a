"""`kit COMMAND`: each function of `commands` is a command. Signature: options. Docstring: help. cyclopts parses."""

import inspect
import json
import logging
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import cyclopts
from cyclopts import App, Group, Parameter

from .. import __version__
from ..errors import DataError, KitError, MissingError
from ..system.settings import parse
from .remedies import with_commands

EPILOG = """Exit codes: 0 done; 1 a notebook or lint failed; 2 bad input;
3 something is missing; 4 a budget was reached; 5 the judge is down;
130 stopped. KIT_DEBUG=1 shows tracebacks."""
ARGUMENT = re.compile(
    r"^(\w+(?:, \w+)*) : (.+?)(?=\n\w+(?:, \w+)* : |\n\n|\Z)", re.M | re.S
)


@dataclass(frozen=True, kw_only=True)
class Output:
    """What a command gives: text for people (default: the data), data for --json, what to open or run
    next, and the exit code.

    next_without : an option; next comes the same command without it.
    """

    text: str = ""
    data: Any = None
    next: str = ""
    next_without: str = ""
    code: int = 0


Command = Callable[..., Output]
JSON = inspect.Parameter(
    "as_json",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, Parameter(name="--json")],
)


def application(steps: Mapping[str, Sequence[Command]]) -> App:
    """The whole command line. steps : heading of a group in the help -> its commands, in order."""
    app = App(
        name="kit",
        help="Experiments with rubric rewards. The commands stand in the order of the steps.",
        version=f"kit {__version__}",
        help_epilogue=EPILOG,
        # Other formats would read the brackets of an example as markup.
        help_format="plaintext",
        default_parameter=Parameter(negative=""),
    )
    for place, (heading, commands) in enumerate(steps.items()):
        group = Group(heading, sort_key=place)
        for number, function in enumerate(commands):
            # What stands under "name : text" is the help of an option.
            text = ARGUMENT.sub("", inspect.getdoc(function) or "").strip()
            app.command(
                _with_options(function),
                name=function.__name__,
                help=text,
                group=group,
                sort_key=number,
            )
    app.register_install_completion_command()
    return app


def _with_options(function: Command) -> Callable[..., tuple[Output, bool]]:
    """A command whose parameters carry their help. It takes --json, too, and returns whether it was written."""
    helps = {"as_json": "print the result as JSON"}
    for names, meaning in ARGUMENT.findall(inspect.getdoc(function) or ""):
        helps |= dict.fromkeys(names.split(", "), " ".join(meaning.split()))
    hints = get_type_hints(function, include_extras=True)
    parameters = [*inspect.signature(function).parameters.values(), JSON]
    for place, p in enumerate(parameters):
        about = Parameter(help=helps[p.name], show_default=bool(p.default))
        hint = hints.get(p.name, p.annotation)
        parameters[place] = p.replace(annotation=Annotated[hint, about])

    def command(
        *words: Any, as_json: bool = False, **options: Any
    ) -> tuple[Output, bool]:
        return function(*words, **options), as_json

    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def _pairs(hint: Any, tokens: Sequence[cyclopts.Token]) -> dict[str, Any]:
    """Words such as NAME=VALUE as a mapping. The hint says what a value is: str, Any (YAML), a list with commas."""
    kind = get_args(hint)[1]
    out: dict[str, Any] = {}
    for token in tokens:
        # A text may name several: --map desc=text,qid=task_id
        split = re.split(r",(?=\w+=)", token.value)
        for part in split if kind is str else [token.value]:
            name, sign, value = part.partition("=")
            where = f"option {token.keyword}"
            if not (name and sign):
                raise DataError(f"{part!r} is not NAME=VALUE", where=where)
            if get_origin(kind) is list:
                value = f"[{value}]"
            out[name] = value if kind is str else parse(value, where)
    return out


PAIRS = Parameter(
    converter=_pairs,
    metavar="NAME=VALUE",
    accepts_keys=False,
    # One word after each flag, and the flag may be repeated.
    n_tokens=-1,
    consume_multiple=False,
)
Texts = Annotated[dict[str, str] | None, PAIRS]
Values = Annotated[dict[str, Any] | None, PAIRS]
Lists = Annotated[dict[str, list[Any]] | None, PAIRS]


def main(
    steps: Mapping[str, Sequence[Command]], argv: Sequence[str] | None = None
) -> int:
    """Run one of the commands; returns its exit code. Errors come without a traceback."""
    # SIGTERM ends a command as Ctrl-C does: children are stopped, what was done is saved.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Of several processes that train together, the first one reports.
    is_beside = os.environ.get("RANK", "0") != "0"
    if is_beside:
        logging.disable(logging.WARNING)
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        app = application(steps)
        command, bound, _ = app.parse_args(
            words or ["--help"], print_error=False, exit_on_error=False
        )
        result = command(*bound.args, **bound.kwargs)
        # --help and --version print by themselves
        if not isinstance(result, tuple):
            return 0 if words else 2
        output, as_json = result
        if option := output.next_without:
            line = shlex.join(["kit", *(word for word in words if word != option)])
            output = replace(output, next=line)
        if not is_beside:
            # A closed pipe shows here, where it can still be handled, and not at the interpreter's end.
            print(_text(output, as_json), flush=True)
        return int(output.code)
    except cyclopts.CycloptsError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2
    # Ledgers and run folders are written as the work goes on, so nothing is lost.
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        # 128 and the number of SIGINT, as shells report it.
        return 130
    except Exception as e:
        if os.environ.get("KIT_DEBUG"):
            raise
        return _fail(e)


def _text(output: Output, as_json: bool) -> str:
    if as_json:
        from ..records.tables import plain

        return json.dumps(plain(output.data), indent=1, ensure_ascii=False)
    text = str(output.text or output.data)
    return f"{text}\nnext: {output.next}" if output.next else text


def _fail(error: Exception) -> int:
    """Print what is wrong and what to do; returns the exit code. A bug of the kit is raised."""
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
        missing = isinstance(error, FileNotFoundError)
        kind = MissingError if missing else DataError
        error = kind(error.strerror or str(error), where=str(error.filename or ""))
    # A bug is not a user's mistake: its traceback is needed.
    if not isinstance(error, KitError):
        raise error
    print(f"error: {with_commands(str(error))}", file=sys.stderr)
    return error.exit_code

"""`kit COMMAND`: each function of `commands` is a command. Signature: options. Docstring: help. cyclopts parses."""

import json
import logging
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Group, Parameter

from .. import __version__
from ..errors import DataError, KitError, MissingError
from .commands import STEPS
from .output import with_commands

EPILOG = """Exit codes: 0 done; 1 a notebook or lint failed; 2 bad input;
3 something is missing; 4 a budget was reached; 5 the judge is down;
130 stopped. KIT_DEBUG=1 shows tracebacks."""
# Errors come as exceptions, and a command's result comes back.
QUIET: Any = {
    "print_error": False,
    "exit_on_error": False,
    "result_action": "return_value",
}
Words = Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]


def application() -> App:
    """The whole command line, in the order of the steps."""
    app = App(
        name="kit",
        help="Experiments with rubric rewards. The commands stand in the order of the steps.",
        version=f"kit {__version__}",
        help_epilogue=EPILOG,
        # Other formats would read the brackets of an example as markup.
        help_format="plaintext",
        # What is off or absent has no default to read.
        default_parameter=Parameter(
            negative="", show_default=lambda value: value or None
        ),
        suppress_keyboard_interrupt=False,
    )
    for place, (heading, commands) in enumerate(STEPS.items()):
        group = Group(heading, sort_key=place)
        for number, function in enumerate(commands):
            app.command(function, group=group, sort_key=number)
    app.register_install_completion_command()

    # `main` says what Ctrl-C means.
    app.meta.suppress_keyboard_interrupt = False

    @app.meta.default
    def run(
        *words: Words, as_json: Annotated[bool, Parameter(name="--json")] = False
    ) -> int:
        """Run a command, and print its output.

        Args:
            as_json: print the result as JSON
        """
        output = app(words, **QUIET)
        # Without a command the help was printed, which is no success.
        if output is None:
            return 2
        text = str(output.text or output.data)
        following = output.next
        if output.next_without:
            following = shlex.join(
                ["kit", *filter(output.next_without.__ne__, words)]
            )
        if following:
            text += f"\nnext: {following}"
        if as_json:
            from ..records.tables import plain

            text = json.dumps(plain(output.data), indent=1, ensure_ascii=False)
        # Of several processes that train together, the first one reports.
        if os.environ.get("RANK", "0") == "0":
            # A closed pipe shows here, where it can still be handled, and not at the interpreter's end.
            print(text, flush=True)
        return int(output.code)

    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one of the commands; returns its exit code. Errors come without a traceback."""
    # SIGTERM ends a command as Ctrl-C does: children are stopped, what was done is saved.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if os.environ.get("RANK", "0") != "0":
        logging.disable(logging.WARNING)
    try:
        # --help and --version print by themselves.
        return application().meta(argv, **QUIET) or 0
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
    """Print what is wrong and what to do; returns the exit code. A bug of the kit is raised."""
    if isinstance(error, BrokenPipeError):  # `kit ... | head`
        # The interpreter flushes stdout at its end, and would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, CycloptsError):
        error = DataError(str(error))
    elif isinstance(error, ModuleNotFoundError):
        error = MissingError(
            f"the package {error.name!r} is not installed",
            fix="pip install -c constraints.txt -e '.[train,server,tune]'",
        )
    elif isinstance(error, OSError):
        kind = MissingError if isinstance(error, FileNotFoundError) else DataError
        error = kind(error.strerror or str(error), where=str(error.filename or ""))
    # A bug is not a user's mistake: its traceback is needed.
    if not isinstance(error, KitError):
        raise error
    print(f"error: {with_commands(str(error))}", file=sys.stderr)
    return error.exit_code

"""`kit COMMAND`: each function of `commands` is a command. Signature: options. Docstring: help. cyclopts parses."""

import logging
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import filterfalse
from typing import Annotated

from cyclopts import App, CycloptsError, Group, Parameter

from .. import __version__
from ..errors import DataError, KitError, MissingError
from .commands import STEPS
from .output import with_commands

EPILOG = """Exit codes: 0 done; 1 a notebook or lint failed; 2 bad input;
3 something is missing; 4 a budget was reached; 5 the judge is down;
130 stopped. KIT_DEBUG=1 shows tracebacks."""
# After a look ahead, the same command without it comes next.
LOOK_AHEAD = {"--estimate", "--forecast"}


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
        # Errors come as exceptions, and the output of a command comes back.
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
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
        *words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
        as_json: Annotated[bool, Parameter(name="--json")] = False,
    ) -> int:
        """Run a command, and print its output.

        Args:
            as_json: print the result as JSON
        """
        output = app(words)
        # Without a command the help was printed, which is no success.
        if output is None:
            return 2
        if LOOK_AHEAD.intersection(words):
            again = filterfalse(LOOK_AHEAD.__contains__, ("kit", *words))
            output = replace(output, next=shlex.join(again))
        # Of several processes that train together, the first one reports.
        if os.environ.get("RANK", "0") == "0":
            # A closed pipe shows here, where it can still be handled, and not at the interpreter's end.
            print(output.text(as_json), flush=True)
        return int(output.code)

    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one of the commands; returns its exit code. A bug of the kit is raised."""
    # SIGTERM ends a command as Ctrl-C does: children are stopped, what was done is saved.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if os.environ.get("RANK", "0") != "0":
        logging.disable(logging.WARNING)
    # --help and --version print by themselves.
    command = application().meta
    if os.environ.get("KIT_DEBUG"):
        return command(argv) or 0
    error: KitError
    try:
        return command(argv) or 0
    # Ledgers and run folders are written as the work goes on, so nothing is lost.
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        # 128 and the number of SIGINT, as shells report it.
        return 130
    except BrokenPipeError:  # `kit ... | head`
        # The interpreter flushes stdout at its end, and would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KitError as e:
        error = e
    except CycloptsError as e:
        error = DataError(
            str(e).replace("Unused Tokens", "more words than the command takes")
        )
    except ModuleNotFoundError as e:
        error = MissingError(
            f"the package {e.name!r} is not installed",
            fix="pip install -c constraints.txt -e '.[train,server,tune,sweep]'",
        )
    except OSError as e:
        kind = MissingError if isinstance(e, FileNotFoundError) else DataError
        error = kind(e.strerror or str(e), where=str(e.filename or ""))
    print(f"error: {with_commands(error)}", file=sys.stderr)
    return error.exit_code

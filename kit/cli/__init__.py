"""The command line: functions (commands.py) become commands (dispatch.py)."""

import signal
from collections.abc import Sequence

from . import dispatch
from .commands import COMMANDS


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code, for example `main(["check"])`."""
    # SIGTERM ends a command as Ctrl-C does: children are stopped, what was done is saved.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return dispatch.main(COMMANDS, argv)

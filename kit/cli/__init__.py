"""The command line: functions (commands.py) become commands (dispatch.py)."""

from collections.abc import Sequence

from . import dispatch
from .commands import COMMANDS


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code, for example `main(["check"])`."""
    return dispatch.main(COMMANDS, argv)

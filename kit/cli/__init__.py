"""The command line: functions (commands.py) become commands (dispatch.py).

`main(["check"])` runs a command and returns its exit code.
"""

from .dispatch import main

__all__ = ["main"]

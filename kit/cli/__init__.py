"""The command line: functions (commands.py) become commands (dispatch.py).

`main(["check"])` runs a command and returns its exit code.
"""

from functools import partial

from . import dispatch
from .commands import STEPS

main = partial(dispatch.main, STEPS)

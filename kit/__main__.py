"""`python -m kit`, or `kit`: see kit.cli."""

import signal
import sys

from .cli import main


def run() -> None:
    """The command line as a process. SIGTERM ends it as Ctrl-C does: children are stopped, all is saved."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())


if __name__ == "__main__":
    run()

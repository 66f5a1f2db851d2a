"""`python -m kit.train CONFIG`: one training job, also under `accelerate launch -m kit.train
CONFIG`.
"""

from __future__ import annotations

import os
import runpy
import sys


def main() -> None:
    """The subcommand `train` of the whole program; of several processes the first one prints."""
    from . import world

    if not world.main():
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.argv[1:1] = ["train"]
    runpy.run_module("kit", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

"""`python -m kit.train CONFIG`: one training job, also under `accelerate launch -m kit.train CONFIG`."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """The subcommand `train`, without the rest of the command line."""
    from ..__main__ import main as kit_main
    from . import world

    if not world.main():
        sys.stdout = open(os.devnull, "w", encoding="utf-8")

    return kit_main(["train", *sys.argv[1:]])


if __name__ == "__main__":
    raise SystemExit(main())

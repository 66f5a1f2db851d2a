"""Prints the paths of the notebooks that nbval can run here.

Those that need the recorded judges only where these are cached.
"""

from __future__ import annotations

import sys

NEED_RECORDED = ("02_", "04_")


def books() -> list[str]:
    """Paths of the notebooks that run without a download that is not there."""
    from kit.system import paths

    cached = any(paths.home().glob("recorded/*/complete"))
    every = sorted(paths.notebooks().glob("[0-9]*.ipynb"))
    return [str(b) for b in every if cached or not b.name.startswith(NEED_RECORDED)]


if __name__ == "__main__":
    sys.stdout.write(" ".join(books()) + "\n")

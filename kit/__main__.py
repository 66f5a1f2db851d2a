"""`python -m kit`: see kit.cli."""

from .cli import main

# A process that a sweep starts may import this module once more.
if __name__ == "__main__":
    raise SystemExit(main())

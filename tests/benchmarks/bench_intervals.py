"""The coverage table: 2,000 simulations a cell, nominal 95 %, clusters of 2 to 16 rows. Arguments: simulations, part of a name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from intervals import table


def main(runs: int = 2000, only: str = "") -> int:
    """Print the table; the number of cells below what they must be."""
    print(f"{'interval':<28}{'clusters':>9}{'icc':>6}{'given':>8}{'covers':>8}{'+-':>8}  must")
    below = 0
    for c in table(runs, only=only):
        below += not c.holds
        line = f"{c.name:<28}{c.clusters:>9}{c.icc:>6}{c.given:>8.3f}{c.covered:>8.3f}"
        print(f"{line}{c.half_width:>8.3f}  {c.must}{'' if c.holds else '  BELOW'}", flush=True)
    print(f"{below} cells below")
    return below


if __name__ == "__main__":
    args = sys.argv[1:]
    sys.exit(min(main(int(args[0]) if args else 2000, args[1] if len(args) > 1 else ""), 1))

"""The words of direction and of talk about truth, from lexicon.txt: which say up, down, unchanged;
which negate; which only ask, suppose or report.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

Words = frozenset[str] | tuple[str, ...]
_HEAD = re.compile(r"\[([A-Z_]+)(: phrases)?\]")


def _read() -> dict[str, Words]:
    """Name -> words (a set), or phrases in their order."""
    out: dict[str, Any] = {}
    name = ""
    for line in Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines():
        if head := _HEAD.fullmatch(line):
            name = head[1]
            out[name] = () if head[2] else frozenset()
        elif line and not line.startswith("#"):
            phrases = isinstance(out[name], tuple)
            taken = (out[w[1:]] if w.startswith("@") else (w,) for w in line.split())
            out[name] = (*out[name], line) if phrases else out[name].union(*taken)
    return out


_WORDS = _read()
globals().update(_WORDS)  # lexicon.UP, lexicon.NEGATORS ...
STATES = {"high": "up", "low": "down", "normal": "none"}  # "X is high", "X: low"
WAYS = {
    **dict.fromkeys(_WORDS["UP"], "up"),
    **dict.fromkeys(_WORDS["DOWN"], "down"),
    **dict.fromkeys(_WORDS["NONE"], "none"),
    **dict.fromkeys(("up", "upregulated", "activated", "increased", "positive"), "up"),
    **dict.fromkeys(("down", "downregulated", "suppressed", "decreased", "negative"), "down"),
    **dict.fromkeys(("none", "ns", "n.s.", "unchanged", "no change"), "none"),
    **{"↑": "up", "↓": "down"},
}


def way(direction: Any) -> str | None:
    """up, down or none, however spelled ("Down-regulated "); None for what is no direction.

    >>> way("Down-regulated "), way("sideways")
    ('down', None)
    """
    return WAYS.get(str(direction).casefold().strip().replace("-regulated", "regulated"))

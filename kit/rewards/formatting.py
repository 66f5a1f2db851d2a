"""Format: what an answer must look like, visible on its own, not mixed into a judge's score."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from typing import Literal

from ..errors import KitError
from ..records import Response, Task


@dataclass(frozen=True, kw_only=True)
class FormatResult:
    """ok : every demand is fulfilled; score : share of fulfilled demands in [0, 1]; problems : one
    sentence each.
    """

    ok: bool
    score: float
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Format:
    """What an answer must look like, and what that does to the reward.

    mode : "off"; "gate" (an answer with a fault earns gate_to, or at most gate_to where that is
        above 0; in the first case no judge is asked); "bonus" (+ bonus x share of fulfilled
        demands).
    answer_block : exactly one <answer>...</answer>, not empty.
    pattern : a regular expression that must be found (DOTALL: a dot also matches a line break).
    """

    mode: Literal["off", "gate", "bonus"] = "off"
    answer_block: bool = False
    pattern: str | None = None
    bonus: float = 0.1
    gate_to: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.bonus, (int, float)) or not 0 <= self.bonus < math.inf:
            raise KitError(
                f"{self.bonus!r} is not a finite number >= 0", where="field format.bonus"
            )

    def check(self, task: Task, response: Response) -> FormatResult:
        """Which demands the response fulfils; no demands = ok with score 1."""
        demands: list[str | None] = []
        if self.answer_block:
            from .citations import parse_answer

            demands.append(parse_answer(response.text).block_problem)
        if self.pattern is not None:
            found = re.search(self.pattern, response.text, re.DOTALL)
            demands.append(None if found else f"nothing matches {self.pattern!r}")
        problems = tuple(d for d in demands if d)
        return FormatResult(
            ok=not problems,
            score=1 - len(problems) / len(demands) if demands else 1.0,
            problems=problems,
        )


def shown(form: Format) -> str:
    """What a config changes of a format, in one line.

    >>> shown(Format(mode="gate", answer_block=True)), shown(Format())
    ('mode=gate, answer_block=True', 'as it is')
    """
    own = ((f.name, getattr(form, f.name)) for f in fields(form))
    said = [f"{k}={v}" for k, v in own if v != getattr(Format, k)]
    return ", ".join(said) or "as it is"

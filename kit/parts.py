"""What one component says of one response: a score, an interval, or "does not apply"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Part:
    """The result of one component on one response.

    low, high : the score's interval; equal when everything is known. Both inside `range` when the
        part applies.
    applies : False = this component says nothing about this task (decided by the task alone, never
        by the answer).
    details : what the score was made from, for logs and tables.

    >>> Part(name="factual", low=.5, high=.5).value
    0.5
    >>> Part.absent("factual").value is None
    True
    """

    name: str
    low: float = 0.0
    high: float = 0.0
    applies: bool = True
    range: tuple[float, float] = (0.0, 1.0)
    details: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def known(cls, name: str, score: float, **details: Any) -> Part:
        """A part whose score is certain."""
        return cls(name=name, low=float(score), high=float(score), details=details)

    @classmethod
    def absent(cls, name: str, **details: Any) -> Part:
        """A part that does not apply to this task."""
        return cls(name=name, applies=False, details=details)

    @property
    def value(self) -> float | None:
        """The score, or None when it does not apply or is not known."""
        return self.low if self.applies and self.low == self.high else None

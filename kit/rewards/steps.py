"""The running interval of a reward, and what each step did to it."""

from __future__ import annotations

import math
from typing import Any


class Steps:
    """The running interval of a reward and what each step did to its lower and upper end."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []  # [name, change of low, change of high]
        self.low = self.high = 0.0

    def add(self, name: str, low: float, high: float) -> None:
        self.rows.append([name, low, high])
        self.low, self.high = math.fsum(r[1] for r in self.rows), math.fsum(r[2] for r in self.rows)

    def limit(self, name: str, to: float, *, at_low: bool, at_high: bool) -> None:
        low, high = (
            min(self.low, to) if at_low else self.low,
            min(self.high, to) if at_high else self.high,
        )
        self._set(name, low, high)

    def raise_to(self, name: str, to: float) -> None:
        self._set(name, max(self.low, to), max(self.high, to))

    def _set(self, name: str, low: float, high: float) -> None:
        self.rows.append([name, low - self.low, high - self.high])
        self.low, self.high = low, high

    def multiply(self, factor: float) -> None:
        self.rows = [[n, lo * factor, hi * factor] for n, lo, hi in self.rows]
        self.low, self.high = self.low * factor, self.high * factor

    def note(self, name: str, value: float) -> None:
        self.rows.append([name, value, value])

    def parts(self, *, known_only: bool) -> dict[str, float | None]:
        out: dict[str, float | None] = {}
        for name, low, high in self.rows:
            unknown = known_only and low != high
            out[name] = None if unknown or out.get(name, 0.0) is None else out.get(name, 0.0) + low  # type: ignore[operator]
        return out

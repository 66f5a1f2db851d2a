"""What a run keeps: metrics and results. A notebook writes them, run.json holds them, the report reads them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import msgspec

from ..records import Run
from ..stats import Estimate, format_number


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence, or a table or figure in a file of the run's folder. caption : one sentence about it."""

    kind: Literal["sentence", "table", "figure"]
    name: str = ""
    text: str = ""
    file: str = ""
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number of a run. estimate : its interval, where it has one; value is None where it is unknown."""

    value: Any
    caption: str = ""
    sentence: str = ""
    estimate: Estimate | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Metric:
        """A metric as run.json holds it."""
        estimate = None
        if "low" in row:
            # JSON has no NaN: an unknown number, like a field that an older kit lacks, is the default.
            parts = {
                f.name: row[f.name]
                for f in fields(Estimate)
                if row.get(f.name) is not None
            }
            # It has no infinity either: None is a side without a bound.
            low, high = parts.get("bounds", (None, None))
            parts["bounds"] = (
                -math.inf if low is None else low,
                math.inf if high is None else high,
            )
            estimate = Estimate(**{"value": math.nan, **parts})
        return cls(
            value=row.get("value"),
            estimate=estimate,
            caption=row.get("caption") or "",
            sentence=row.get("sentence") or "",
        )

    @property
    def is_difference(self) -> bool:
        """True for a difference, which is 0 where nothing differs; False for a level."""
        return self.estimate is not None and not math.isnan(self.estimate.scale)

    def __str__(self) -> str:
        if self.estimate:
            return str(self.estimate)
        if isinstance(self.value, float):
            return format_number(self.value)
        return "unknown" if self.value is None else str(self.value)


def metrics_of(run: Run) -> dict[str, Metric]:
    """The metrics of a run by name."""
    return {name: Metric.from_row(row) for name, row in run.metrics.items()}


def kept_by(run: Run) -> list[Kept]:
    """The sentences, tables and figures of a run."""
    return msgspec.convert(list(run.meta.get("results", ())), list[Kept])

"""What a check is told and what it finds: arguments read strictly, a finding with its figure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import DataError
from ..records import Response, Task


@dataclass(frozen=True)
class Finding:
    """What a check measured: met, or None when it cannot tell, and the figure in words."""

    met: bool | None
    reason: str


class Arguments(dict):
    """A check's arguments; readers that raise a DataError naming task, criterion and field."""

    where: str = ""

    def wrong(self, field: str, what: str, fix: str | None = None) -> DataError:
        return DataError(
            f"check {self['name']!r}: {what}", where=f"{self.where}, field check.{field}", fix=fix
        )

    def number(
        self,
        field: str,
        default: float | None = None,
        *,
        low: float = -math.inf,
        whole: bool = False,
    ) -> float | None:
        if (value := self.get(field)) is None:
            return default
        good = (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and math.isfinite(value)
            and value >= low
        )
        if not good or (whole and value != int(value)):
            raise self.wrong(
                field,
                f"{field} is {value!r}",
                f"write {'a whole' if whole else 'a'} "
                f"number{f' >= {low:g}' if low > -math.inf else ''}",
            )
        return int(value) if whole else float(value)

    def bounds(
        self,
        *,
        whole: bool = True,
        top: float = math.inf,
        default_min: float | None = None,
    ) -> tuple[float | None, float | None]:
        names_ = ("min", "max") if whole else ("min_share", "max_share")
        low, high = (self.number(n, low=0, whole=whole) for n in names_)
        if low is None and high is None:
            low = default_min
            if low is None:
                raise self.wrong(
                    names_[0],
                    f"neither {names_[0]} nor {names_[1]} is given",
                    f'write e.g. "{names_[1]}": {50 if whole else 0.3}',
                )
        if low is not None and high is not None and low > high:
            raise self.wrong(names_[0], f"{names_[0]} {low:g} is above {names_[1]} {high:g}")
        if max(low or 0, high or 0) > top:
            raise self.wrong(names_[1], f"a share cannot be above {top:g}")
        return low, high

    def strings(self, field: str, *, needed: bool = False) -> tuple[str, ...]:
        value = self.get(field)
        if value is None and not needed:
            return ()
        value = [value] if isinstance(value, str) else value
        if (
            not isinstance(value, (list, tuple))
            or not value
            or not all(isinstance(v, str) and v.strip() for v in value)
        ):
            raise self.wrong(
                field,
                f"{field} is {self.get(field)!r}",
                "write a text or a list of texts, none of them empty",
            )
        return tuple(value)

    def flag(self, field: str, default: bool) -> bool:
        value = self.get(field, default)
        if not isinstance(value, bool):
            raise self.wrong(field, f"{field} is {value!r}", "write true or false")
        return value


Rule = Callable[[Task, Response, Arguments], Finding]

"""Reading a reward config: every wrong field is named, with what would be right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import KitError
from ..settings.read import load, make
from . import components
from .presets import PRESETS


@dataclass(frozen=True, kw_only=True)
class Component:
    """One line of the config: what is scored, with which weight and options."""

    kind: str
    name: str
    weight: float = 1.0
    active: bool = True
    cap: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Gate:
    """When a component scores below `below`, the whole reward is at most `to`."""

    component: str
    below: float
    to: float = 0.0


def values(config: Mapping[str, Any] | str | Path) -> tuple[dict[str, Any], str]:
    """The fields of a reward, those of its preset under its own, and where they stand.

    config : a mapping, a file, or a preset's name.
    """
    if not isinstance(config, (Mapping, str, Path)):
        fix = "a preset's name, a file, or a mapping"
        raise KitError(f"{config!r} is no reward", where="reward", fix=fix)
    where = "config" if isinstance(config, Mapping) else str(config)
    if isinstance(config, Mapping):
        found = dict(config)
    elif where in PRESETS or not Path(where).is_file():
        found = {"preset": where}
    else:
        found = load(where, what="reward config")
    name = found.pop("preset", None)
    if name is None:
        return found, where
    if name not in PRESETS:
        fix = f"presets: {', '.join(PRESETS)}"
        raise KitError(f"{name!r} is neither a file nor a preset", where=where, fix=fix)
    return {**PRESETS[name], **found}, where


def component(row: Any, where: str) -> Component:
    """A component of a row of the config; what is no field of it is an option of its kind."""
    if not isinstance(row, Mapping):
        raise KitError(f"{row!r} is no component", where=where, fix="{kind: rubric, weight: 1}")
    own = {k: row[k] for k in ("kind", "name", "weight", "active", "cap") if k in row}
    options = {k: v for k, v in row.items() if k not in own}
    components.check_options(own.get("kind"), options, where)
    own = {"name": str(options.get("verifier") or own["kind"]), **own}
    found = make(Component, {**own, "options": options}, where=where)
    finite(where, weight=found.weight, cap=found.cap)
    return found


def finite(where: str, **numbers: float | None) -> None:
    """KitError for a number that is infinite or NaN."""
    for name, value in numbers.items():
        if value is not None and not math.isfinite(value):
            raise KitError(f"{name} is {value}", where=where, fix="write a finite number")


def shape(cls: type[Any], row: Any, where: str) -> Any:
    """A format, truncation or length from its row, or from its mode alone."""
    return make(cls, {"mode": row} if isinstance(row, str) else row, where=where)

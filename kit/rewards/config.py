"""Reading a reward config: every wrong field is named, with what would be right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import KitError
from . import components
from .presets import PRESETS

COMBINES = ("mean", "sum")


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


def read(path: Path) -> Mapping[str, Any]:
    import yaml

    if not path.is_file():
        raise KitError(
            f"{str(path)!r} is neither a file nor a preset",
            where="Composer.from_config",
            fix=f"presets: {', '.join(PRESETS)}",
        )
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as e:
        raise KitError(
            "the config is not valid YAML", where=f"{path}: {str(e).splitlines()[-1].strip()}"
        ) from None
    if not isinstance(data, Mapping):
        raise KitError(f"the config is a {type(data).__name__}, not a mapping", where=str(path))
    return data


def preset(name: str, where: str) -> Mapping[str, Any]:
    if name not in PRESETS:
        raise KitError(
            f"there is no preset {name!r}",
            where=f"{where}, field preset",
            fix=f"use one of {', '.join(PRESETS)}",
        )
    return PRESETS[name]


def number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise KitError(
            f"{value!r} is not a finite number",
            where=where,
            fix="in YAML, 1e-2 is a string; write 0.01 or 1.0e-2",
        )
    return float(value)


def component(row: Mapping[str, Any], where: str) -> Component:
    row = dict(row)
    kind = row.pop("kind", None)
    name = row.pop("name", None) or row.get("verifier") or kind
    weight = number(row.pop("weight", 1.0), f"{where}, field weight")
    cap = row.pop("cap", None)
    active = row.pop("active", True)
    if not isinstance(active, bool):
        raise KitError(f"active is {active!r}", where=where, fix="write true or false")
    components.check_options(kind, row, where)
    return Component(
        kind=kind,
        name=str(name),
        weight=weight,
        active=active,
        options=row,
        cap=None if cap is None else number(cap, f"{where}, field cap"),
    )

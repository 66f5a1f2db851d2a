"""Rubrics that hold for every task of a kind: three failure modes of cited answers, as data (static_rubrics.json)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ..errors import KitError
from ..records import Criterion, criterion_from_json

FILE = Path(__file__).with_name("static_rubrics.json")


@lru_cache(maxsize=1)
def static_sets() -> dict[str, tuple[Criterion, ...]]:
    """All static sets by name. Their criteria name bad things, so their weights are negative.

    >>> sorted(static_sets())
    ['citation_discipline', 'off_query_padding', 'wrong_entity_confabulation']
    """
    rows = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: tuple(
            criterion_from_json(r, where=f"{FILE.name}, set {name}, criterion {i + 1}")
            for i, r in enumerate(rs)
        )
        for name, rs in rows.items()
    }


def static_criteria(names: str | Sequence[str]) -> tuple[Criterion, ...]:
    """The criteria of the named sets ("all", one name, or several), in that order.

    >>> len(static_criteria("all")) >= 3
    True
    """
    sets = static_sets()
    wanted = (
        list(sets) if names in ("all", True) else [names] if isinstance(names, str) else list(names)
    )
    for n in wanted:
        if n not in sets:
            raise KitError(
                f"there is no static rubric set {n!r}",
                where="option static",
                fix=f"use all, or some of {', '.join(sets)}",
            )
    return tuple(c for n in wanted for c in sets[n])

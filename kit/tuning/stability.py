"""Does a judge keep its verdict when the criterion is said in other words?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..records import Task
from ..stats import mean
from ..stats.estimate import Estimate

# Variants that mean the same; "control_negated" and "control_swapped" of the recordings do not.
PARAPHRASES = (
    "original",
    "lexical",
    "syntactic",
    "register_formal",
    "register_casual",
    "form_question",
    "form_imperative",
)


def paraphrase_flips(
    rows: Iterable[Mapping[str, Any]],
    *,
    threshold: float = 2.5,
    kinds: tuple[str, ...] = PARAPHRASES,
    tasks: Iterable[Task] = (),
) -> dict[str, Estimate]:
    """Per judge, the share of items on which at least one paraphrase falls on the other side of the
    threshold.

    rows : judge, item_id, variant_type, score_direct (None unknown). Items without every kind, or
        with an unknown score, are left
    out (counted in `missing`): a flip that could not be seen is no stability.
    tasks : the items as tasks: those of one group are one cluster. Without: items are independent.

    >>> said = ("a", 1, 5), ("b", 4, 4), ("c", 4, None)
    >>> rows = [{"judge": "j", "item_id": i, "variant_type": k, "score_direct": s}
    ...         for i, x, y in said for k, s in (("x", x), ("y", y))]
    >>> print(paraphrase_flips(rows, kinds=("x", "y"))["j"])
    .500 [.09, .91], n=2, 1 unknown
    """
    sides: dict[str, dict[str, dict[str, bool | None]]] = {}
    for r in rows:
        if r["variant_type"] in kinds:
            score = r["score_direct"]
            item = sides.setdefault(r["judge"], {}).setdefault(r["item_id"], {})
            item[r["variant_type"]] = None if score is None else score >= threshold
    groups, out = {t.id: t.group or t.id for t in tasks}, {}
    for judge, items in sides.items():
        full = {i: set(s.values()) for i, s in items.items() if len(s) == len(kinds)}
        flips = [None if None in s else float(len(s) > 1) for s in full.values()]
        out[judge] = mean(flips, cluster=[groups[i] for i in full] if groups else None)
    return out

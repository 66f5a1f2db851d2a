"""Labels of people: a text or number of a file becomes a status and a value."""

import re
from typing import Any

from ..errors import DataError
from ..records import Criterion, Verdict

# In lower case. The colours are those of RLVR's rating columns.
WORDS = {
    **dict.fromkeys(("met", "yes", "true", "🟢 yes", "🟢"), ("met", None)),
    **dict.fromkeys(("unmet", "no", "false", "🔴 no", "🔴"), ("unmet", None)),
    **dict.fromkeys(("partly", "partially", "🟡 partially", "🟡"), ("level", 0.5)),
    "unknown": ("unknown", None),
}
NUMBERS = {"1": ("met", None), "0": ("unmet", None)}
FORMS = "met, unmet, partly, unknown, yes, no, true, false, 1, 0, a level's text, or points as 3/5"


def is_blank(label: Any) -> bool:
    """True for a label that is not filled in."""
    return label is None or (isinstance(label, str) and not label.strip())


def read_label(
    label: Any, criterion: Criterion | None = None
) -> tuple[str, float | None] | None:
    """(status, value in [0, 1] or None) of a label; None where the label has no documented form.

    criterion : needed for a level's text (of a criterion with `levels`) and for points such as "3/5" (of one with
        `points`). The numbers 1 and 0 are labels of a binary criterion only.

    >>> read_label("🟢 Yes"), read_label(True), read_label(0), read_label("perhaps")
    (('met', None), ('met', None), ('unmet', None), None)
    >>> levels = Criterion(id="c", text="Polite", scale="ordinal", levels=("rude", "plain", "kind"))
    >>> read_label("plain", levels), read_label(1, levels)
    (('level', 0.5), None)
    """
    text = str(label).strip()
    if criterion is not None and text in criterion.levels:
        return "level", criterion.levels.index(text) / criterion.top
    if criterion is not None and criterion.points:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)", text)
        if match and float(match[2]) == criterion.points >= float(match[1]):
            return "level", float(match[1]) / criterion.points
    if text in NUMBERS and (criterion is None or criterion.scale == "binary"):
        return NUMBERS[text]
    return WORDS.get(text.casefold())


def verdict_of(
    ids: tuple[str, str, str],
    label: Any,
    criterion: Criterion | None = None,
    *,
    judge: str = "human",
    where: str = "",
) -> Verdict:
    """The verdict of one label; DataError where the label has no documented form.

    ids : task, answer, criterion. judge : "human" or "human:NAME".

    >>> verdict_of(("t", "r", "c"), "partly").value
    0.5
    """
    reading = read_label(label, criterion)
    if reading is None:
        raise DataError(
            f"the label of {ids[2]!r} is {label!r}", where=where, fix=f"write {FORMS}"
        )
    status, value = reading
    return Verdict(
        task_id=ids[0],
        response_id=ids[1],
        criterion_id=ids[2],
        status=status,  # type: ignore[arg-type]
        value=value,
        judge=judge,
        failure="abstain" if status == "unknown" else None,
        meta={"label": label},
    )

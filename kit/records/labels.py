"""What people write about an answer: the label of a criterion, and how it becomes a verdict."""

import re
from typing import Literal

from ..errors import DataError
from . import Criterion, Verdict

Reading = tuple[Literal["met", "unmet", "level", "unknown"], float | None]

# In lower case.
WORDS: dict[str, Reading] = {
    "met": ("met", None),
    "yes": ("met", None),
    "true": ("met", None),
    "unmet": ("unmet", None),
    "no": ("unmet", None),
    "false": ("unmet", None),
    "partly": ("level", 0.5),
    "partially": ("level", 0.5),
    "unknown": ("unknown", None),
}
NUMBERS: dict[str, Reading] = {"1": ("met", None), "0": ("unmet", None)}
# RLVR's annotators write a coloured circle and words of their own.
CIRCLES: dict[str, Reading] = {
    "🟢": ("met", None),
    "🟡": ("level", 0.5),
    "🔴": ("unmet", None),
}
ANY_CIRCLE = re.compile("[🔴🟠🟡🟢🔵🟣🟤⚫⚪]")
POINTS = re.compile(r"(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)")
FORMS = (
    "met, unmet, partly, unknown, yes, no, true, false, 1, 0, a circle (🟢 met, 🟡 partly, 🔴 unmet), "
    "a level's text, or points as 3/5"
)


def is_blank(label: object) -> bool:
    """True for a label that is not filled in."""
    return label is None or (isinstance(label, str) and not label.strip())


def read_label(label: object, criterion: Criterion | None = None) -> Reading | None:
    """(status, value in [0, 1] or None) of a label; None where the label has no documented form.

    criterion : needed for a level's text (of a criterion with `levels`) and for points such as "3/5" (of one with
        `points`). The numbers 1 and 0 are labels of a binary criterion only. Any words may follow a circle.

    >>> read_label("🟢 No issues"), read_label(True), read_label(0), read_label("perhaps")
    (('met', None), ('met', None), ('unmet', None), None)
    >>> levels = Criterion(id="c", text="Polite", scale="ordinal", levels=("rude", "plain", "kind"))
    >>> read_label("plain", levels), read_label(1, levels)
    (('level', 0.5), None)
    """
    text = str(label).strip()
    # A level may be called "1" or "no", so levels come before the words.
    if criterion is not None and text in criterion.levels:
        return "level", criterion.levels.index(text) / criterion.top
    if criterion is not None and criterion.points:
        # The top is a part of the label: a bare 3 could be of 3, 5 or 10.
        match = POINTS.fullmatch(text)
        if match and float(match[2]) == criterion.points >= float(match[1]):
            return "level", float(match[1]) / criterion.points
    if text in NUMBERS and (criterion is None or criterion.scale == "binary"):
        return NUMBERS[text]
    # Two circles could mean either.
    if len(ANY_CIRCLE.findall(text)) == 1:
        return CIRCLES.get(text[0])
    return WORDS.get(text.casefold())


def verdict_of(
    ids: tuple[str, str, str],
    label: object,
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
            f"the label of {ids[2]!r} is {label!r}",
            where=where,
            fix=f"write {FORMS}",
        )
    status, value = reading
    return Verdict(
        task_id=ids[0],
        response_id=ids[1],
        criterion_id=ids[2],
        status=status,
        value=value,
        judge=judge,
        failure="abstain" if status == "unknown" else None,
        meta={"label": label},
    )

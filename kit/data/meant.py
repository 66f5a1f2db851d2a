"""Which criterion of a task another file means: by its id, by its text, or by what people were
shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ..errors import DataError
from ..records import Task, Verdict, grouped
from .findings import Finding
from .values import as_text

# the kit's name of a criterion without an id
MADE = re.compile(r"(?:[cnpqr]|item-)\d+(?:\.\d+)*(?:#\d+)?")
OTHER = "other-criterion"  # than the one that people were shown


def shown(
    v: Verdict, on: str, task: Task, asked: Mapping[tuple[str, str], list[str]]
) -> tuple[str, list[Finding]]:
    """What a label is on by the words that people were shown, whatever its id is by now: the id of
    the criterion of this text, else the text; and an error where another text has its id, or
    several criteria have this one. asked : (task, text) -> ids."""
    text = as_text(v.meta["criterion"])
    fits = asked.get((task.id, " ".join(text.split())), [])
    if on in fits or len(fits) == 1:
        return (on if on in fits else fits[0]), []
    now = next((c.text for c in task.criteria if c.id == on), None)
    if v.meta.get("blank") or (now is None and not fits):
        return text, []
    said, fix = (
        f"the criterion {on!r} was {text!r} when people labelled it, and is {now!r} in this task",
        "label it anew; where its meaning is the same, write its new text into the labels' column "
        "criterion; or give the tasks that were labelled",
    )
    if fits:
        said = f"people labelled {text!r}, and {', '.join(map(repr, fits))} of the task say that"
        fix = "write the id of one of them as the label's criterion_id"
    found = Finding(
        code=OTHER,
        severity="error",
        message=said,
        where=v.meta.get("where"),
        task_id=task.id,
        criterion_id=on,
        text=text,
        suggestion=fix,
    )
    return text, [found]


def numbered(t: Task) -> bool:
    """Whether the kit named a task's criteria."""
    return all(MADE.fullmatch(c.id) for c in t.criteria)


def called(t: Task, lead: Task, file: str) -> Task:
    """A task with its criteria called as those of their texts are in the same task `lead`, where
    the kit named those of one of the two; those that are not there by their texts. DataError where
    a text is that of two criteria there."""
    texts = [c.text for c in t.criteria]
    if not (numbered(t) or numbered(lead)) or len(set(texts)) < len(texts):
        return t
    there = grouped((c.text, c.id) for c in lead.criteria)
    if two := next((x for x in texts if len(there.get(x, ())) > 1), None):
        ids = ", ".join(map(repr, there[two]))
        raise DataError(
            f"the criteria {ids} of the task {lead.id!r} have one text, {two[:60]!r}: which of "
            "them the other file means is not known",
            where=file,
            fix="word them apart, or give each an id of its own (no c1, c2) and write it in both "
            "files",
        )
    names = {c.id: there.get(c.text, [c.text or c.id])[0] for c in t.criteria}
    own = (replace(c, id=names[c.id], parent=names.get(c.parent, c.parent)) for c in t.criteria)
    return replace(t, criteria=tuple(own))

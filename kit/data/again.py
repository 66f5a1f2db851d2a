"""Rows that say again what an earlier one said: another answer to its task, or what other people
say of its answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..records import AFTER, Response, Verdict, to_json
from .findings import Finding
from .names import spelled
from .rows import Context
from .slips import READS, of_answer
from .taskset import Parsed
from .values import as_text

KEPT = (AFTER, "messages", "verifiers", "verifier")  # the kit's own, of what is asked
WHOSE = re.compile(  # makes another answer of the same text
    r"(?:(?:model|generator|generated|llm|policy|source|run|sample|response|answer|completion"
    r"|output)s?(?:_(?:id|by|model|name|source|index|idx))?|seed|temperature)"
)


def settled(p: Parsed, context: Context) -> Parsed:
    """A row with its task in its place: a new one; one that an earlier row asks, of the same id or
    both without one, to which its answers are further ones (as tasks of their own they would count
    as independent); or another task of an id that occurred, which is an error.

    What else stands in a row with an id, or in one that is an answer named by what is asked, tells
    of its answer, but for what that is held against.
    """
    if p.task is None:
        return _heard(p, {}, context) if context.format == "answers" else p
    fresh = context.ids.add(p.task.id)[1]
    named = not fresh or p.task.id != f"row-{p.row}"
    pair = any("role" in r.meta for r in p.responses)  # to imitate, or to prefer
    # the row is an answer, named by what it answers
    bare = bool(p.task.asked.strip()) and not (p.task.criteria or p.task.truth)
    if not named and (pair or not p.responses or not (p.task.criteria or bare)):
        return p
    own = {
        k: v
        for k, v in p.task.meta.items()
        if of_answer(k, v)
        or ((named or bare) and k not in KEPT and not READS.fullmatch(spelled(k)))
    }
    asked = to_json(replace(p.task, id=""))
    asked["meta"] = {k: v for k, v in p.task.meta.items() if k not in own}
    told = {k: json.dumps(v, sort_keys=True, default=str) for k, v in asked.items()}
    first, other = context.tasks.add(p.task.id if named else str(told), p.row, told)
    new = first == p.row
    if new and not (named or bare):
        what = told["prompt"] + told["history"] + told["system"]
        context.alike += not context.asked.add(what)[1]
    if (new and not fresh) or other or pair:
        return p if fresh else _apart(p, first, other, context)
    heard = _heard(_moved(p, p.task.id if named else f"row-{first}"), own, context)
    if new and bare:
        return replace(heard, task=p.task)
    if new:
        alone = [r.source for r in p.responses] in ([None], ["data"])
        return replace(p, responses=tuple(_whose(r, own if alone else {}) for r in p.responses))
    if fresh or heard.responses or heard.verdicts:
        return replace(heard, task=None, judged=len(p.task.criteria))
    return _apart(p, first, other, context)


def _whose(r: Response, own: Mapping[str, Any]) -> Response:
    """An answer with what its row says of whose it is."""
    return replace(r, meta={k: v for k, v in own.items() if WHOSE.fullmatch(spelled(k))} | r.meta)


def _heard(p: Parsed, own: Mapping[str, Any], context: Context) -> Parsed:
    """The row as further answers to its task, or as labels of one that stands there. A reference,
    which each row of a task repeats, counts once. own : what the row says of its answers."""
    answers, names, told, notes = [], {}, {}, []
    for r in p.responses:
        said = {(v.judge, v.criterion_id) for v in p.verdicts if v.response_id == r.id}
        name, again = _named(_whose(r, own), said, context)
        names[r.id], meta = name, {**own, **r.meta}
        if again:
            told[r.id] = meta
        elif again is None or said or p.task is None or r.source in (None, "data"):
            answers.append(replace(r, id=name, meta=meta))
            if again is False or (p.task is None and name != r.id):
                notes.append(_twice(p, r, name))
    verdicts, once = [], []
    for v in p.verdicts:
        if v.response_id in names:
            meta = {**told.get(v.response_id, {}), **v.meta}
            verdicts.append(replace(v, response_id=names[v.response_id], meta=meta))
        elif context.ids.add(as_text([*v.ids, v.judge, v.status, v.value, v.meta]))[1]:
            verdicts.append(v)
        else:
            once.append(v)
    notes += [_equal(p, once[0])] if once else []
    return replace(
        p,
        responses=tuple(answers),
        verdicts=tuple(verdicts),
        findings=(*p.findings, *notes),
    )


def _twice(p: Parsed, r: Response, name: str) -> Finding:
    """An answer that stands twice, or another one of its name."""
    return Finding(
        code="duplicate-id",
        severity=p.again if p.task is None else "warning",
        message=f"the answer {r.id!r} to this task occurs again; this one is called {name!r}",
        where=p.where,
        row=p.row,
        task_id=r.task_id,
        suggestion="give every answer of a task its own response_id, or say whose it is (model, "
        "sample); keep one of two that are the same",
    )


def _equal(p: Parsed, v: Verdict) -> Finding:
    """A label, on an answer by its id, that stands twice."""
    return Finding(
        code="duplicate-row",
        severity="warning",
        message=f"the label of {v.judge} on {v.response_id!r} occurs again: it counts once",
        where=p.where,
        row=p.row,
        task_id=v.task_id,
        criterion_id=v.criterion_id,
        suggestion="remove it; labels of several people need a column rater",
    )


def _named(
    r: Response, said: Iterable[tuple[str, str]], context: Context
) -> tuple[str, bool | None]:
    """(the name of an answer, which gets a number where another one has it; None for a new answer,
    True where labels of other people or on other criteria stood before, False where it stands
    twice). said : (judge, criterion) of its labels."""
    whose = sorted((k, as_text(v)) for k, v in r.meta.items() if WHOSE.fullmatch(spelled(k)))
    key = [*r.ids, r.text, r.source, r.confidence, whose]
    n, new = context.answers.add(as_text(key))
    unheard = [context.ids.add(as_text([*key, *one]))[1] for one in said]
    if not new and unheard and all(unheard):
        return f"{r.id}#{context.numbers[n]}".removesuffix("#0"), True
    name = _free(r.id, f"{r.task_id}\0", context)
    if new:
        context.numbers.append(int(name[len(r.id) + 1 :] or 0))
    return name, None if new else False


def _free(name: str, place: str, context: Context) -> str:
    """The name, with a number behind it where it is taken there."""
    free = name
    while not context.ids.add(place + free)[1]:
        context.again[place + name] += 1
        free = f"{name}#{context.again[place + name] + 1}"
    return free


def _moved(p: Parsed, task_id: str) -> Parsed:
    """What hangs on the row's task, on the task of this id."""
    return replace(
        p,
        responses=tuple(replace(r, task_id=task_id) for r in p.responses),
        verdicts=tuple(replace(v, task_id=task_id) for v in p.verdicts),
        findings=tuple(replace(f, task_id=f.task_id and task_id) for f in p.findings),
    )


def _apart(p: Parsed, first: int, other: Sequence[str], context: Context) -> Parsed:
    """The row with an id of its own: its task's is that of another one."""
    name = _free(p.task.id, "", context)
    which = f" ({', '.join(p.task.meta)})" * (other == ["meta"])
    how = f"with another {other[0]!r}{which}" if other else "which asks the same"
    before = f" of row {first}" * (first < p.row)
    found = Finding(
        code="duplicate-id",
        severity=p.again,
        message=f"the id {p.task.id!r}{before} occurs again in row {p.row}, {how}; this task is "
        f"called {name!r}",
        where=p.where,
        row=p.row,
        task_id=name,
        field=other[0] if other else None,
        suggestion="give every task its own id; rows of one task differ in the answer alone",
    )
    p = _moved(replace(p, task=replace(p.task, id=name)), name)
    return replace(p, findings=(*p.findings, found))

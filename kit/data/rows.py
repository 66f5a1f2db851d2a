"""What the format readers share: a row that knows which of its fields were read, and criteria from
any list.

Rules: one row gives one task; a value of the wrong type is kept as JSON text and reported; a field
that nothing reads
travels in `meta` and is counted; a field that is expected and absent is counted. Nothing is
defaulted in silence.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..records import Criterion, Response, Task, Verdict
from . import labels
from .findings import Finding
from .seen import Seen
from .slips import OWN_CRITERION, OWN_TASK, Unread
from .taskset import Parsed
from .values import (
    Marks,
    absent,
    as_text,
    blank,
    listed,
    number,
    parsed_json,
    says_nothing,
)

TEXT_FIELDS = (
    "criterion",
    "text",
    "description",
    "rubric_item",
    "Ingredient",
    "requirement",
    "requirements",
    "question",
    "checklist_item",
    "rubric",
    "name",
)


SHARED = {  # field of a task -> fields of a row that hold it, where a reader does not say otherwise
    "kind": ("kind", "category", "type", "question_type"),
    "group": ("group",),
    "split": ("split",),
    "system": ("system", "system_prompt"),
}

READ = OWN_TASK | {"messages", "question", "instruction", "rubrics", "checklist", "response"}
READ |= {"chosen", "rejected", "ground_truth", "task_id", "output", "answer"}
READ_OF_CRITERION = (OWN_CRITERION - {"meta"}) | {"criterion", "description", "polarity"}
# What readers put into a criterion's meta themselves, and what judges and rewards read there.
MADE = frozenset(
    (
        "embedding",
        "paraphrases",
        "negation",
        "rubric",
        "pass_at",
        "own_weight",
        "node",
        "entry",
        "instruction",
        "kwargs",
        "levels",
        "meta",
    )
)


LISTED_AS = re.compile(r"(?:[-*•]|\d{1,3}[.)])\s+(?=\S)")  # the mark of a line in a list


@dataclass
class Context:
    """What one file's reading gathers: ids seen, fields unread, missing, or at odds with another.

    scale : (lowest, highest) of the file's numeric labels; None = 0/1. extent : those that occur.
    conflicts : (field read, field left in meta) -> in how many rows they differ.
    changed : (field, type) -> in how many rows a value that JSON does not know became text.
    whole : all rows are held: those of one task of a flat table need not follow each other.
    marks : how weights and labels that are text write their decimals.
    others : other formats -> how many rows look like them.
    """

    name: str = ""
    format: str = ""
    scale: tuple[float, float] | None = None
    extent: tuple[float, float] = (math.inf, 0.0)
    ids: Seen = field(default_factory=Seen)
    again: Counter[str] = field(
        default_factory=Counter
    )  # ids that occurred more than once: how often again
    unread: Unread = field(default_factory=lambda: Unread(READ))
    astray: Unread = field(
        default_factory=lambda: Unread(READ_OF_CRITERION, " of a criterion", "warning")
    )
    missing: Counter[str] = field(default_factory=Counter)
    conflicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    changed: Counter[tuple[str, str]] = field(default_factory=Counter)
    marks: Marks = field(default_factory=Marks)
    others: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    skipped: int = 0
    whole: bool = False
    extra: dict[str, Counter[Any]] = field(default_factory=lambda: defaultdict(Counter))


class Row:
    """One row of a file under reading."""

    def __init__(self, data: Mapping[str, Any], number: int, where: str, context: Context):
        self.data, self.number, self.where, self.context = data, number, where, context
        self.used: set[str] = set()
        self.rivals: dict[str, str] = {}  # field that was passed over -> field read in its place
        self.made = MADE  # fields of a criterion's meta that are no unread field
        self.kept: dict[str, Any] = {}  # what no record has a place for; goes to meta
        self.findings: list[Finding] = []
        self.responses: list[Response] = []
        self.verdicts: list[Verdict] = []

    def find(self, code: str, message: str, *, severity: str = "warning", **more: Any) -> None:
        """Note a finding on this row."""
        self.findings.append(
            Finding(
                code=code,
                severity=severity,
                message=message,
                where=self.where,
                row=self.number,
                **more,
            )
        )

    def take(self, *names: str) -> Any:
        """The value of the first of these fields that is there, not null or NaN (pandas writes a
        missing text so) and, if possible, not blank.

        A later one with the same value, or without one, counts as read too; one that differs goes
        to meta.
        """
        data = self.data
        there = [n for n in names if n in data]
        if len(there) < 2:
            self.used.update(there)
            return None if not there or absent(data[there[0]]) else data[there[0]]
        filled = [n for n in there if not absent(data[n])]
        chosen = next((n for n in filled if not blank(data[n])), filled[0] if filled else None)
        for n in there:
            if n == chosen or blank(data[n]) or as_text(data[n]) == as_text(data[chosen]):
                self.used.add(n)
            elif n not in self.used:
                self.rivals[n] = chosen
        return None if chosen is None else data[chosen]

    def keep(self, name: str, value: Any) -> None:
        """Put a value that no record has a place for into the task's meta; equal names are
        numbered."""
        self.kept[_free_name(name, self.kept)] = value

    def text(self, *names: str, need: bool = False) -> str | None:
        """A text field; another type is kept as JSON text and reported; with `need` an absent one
        is an error."""
        value = self.take(*names)
        if value is None:
            if need:
                self.find(
                    "missing-field",
                    f"the field {names[0]!r} is missing or null",
                    severity="error",
                    field=names[0],
                    suggestion=f"fields of this row: {', '.join(map(str, list(self.data)[:12]))}",
                )
            return None
        if not isinstance(value, str):
            if isinstance(value, (dict, list)):
                self.find(
                    "field-type",
                    f"the field {names[0]!r} should be text",
                    field=names[0],
                    suggestion="it was read as JSON text",
                )
            return as_text(value)
        return value

    def optional(self, *names: str) -> str | None:
        """A short text such as a group or a kind; None when absent."""
        value = self.take(*names)
        return None if value is None else as_text(value)

    def task_id(self, *names: str) -> str:
        """The task's id, made unique within the file; the row number where there is none."""
        value = self.take(*names)
        base = as_text(value) if value not in (None, "") else f"row-{self.number}"
        context = self.context
        if not context.ids.add(base)[1]:
            context.again[base] += 1
            n = context.again[base] + 1
            while not context.ids.add(unique := f"{base}#{n}")[1]:
                n += 1
            self.find(
                "duplicate-id",
                f"the id {base!r} occurs again; this task is called {unique!r}",
                severity="error",
                task_id=unique,
                suggestion="give every row its own id",
            )
            return unique
        return base

    def leftover(self) -> dict[str, Any]:
        """Fields that nothing read."""
        out = {str(k): v for k, v in self.data.items() if k not in self.used}
        for name in out:
            if name in self.rivals:
                self.context.conflicts[self.rivals[name], name] += 1
            else:
                self.context.unread.add(name, self.where, self.data)
        return out

    def respond(self, task_id: str, response_id: str, value: Any, **more: Any) -> bool:
        """Add a response when the value is text (null: none; another type: as JSON text,
        reported)."""
        if absent(value):
            return False
        if not isinstance(value, str):
            self.find(
                "field-type",
                f"response {response_id!r} should be text",
                field=response_id,
                suggestion="it was read as JSON text",
            )
        self.responses.append(
            Response(task_id=task_id, id=response_id, text=as_text(value), **more)
        )
        return True

    def label(
        self,
        task_id: str,
        response_id: str,
        criterion_id: str,
        value: Any,
        *,
        judge: str | None = None,
    ) -> None:
        """Add the verdicts that one label field holds (one rater or several); numbers on the scale
        of the file."""
        for rater, one in labels.by_rater(value):
            self.context.marks.add("label", one)
            verdict, understood = labels.human(
                task_id,
                response_id,
                criterion_id,
                one,
                scale=self.context.scale,
                judge=judge + rater.removeprefix("human") if judge else rater,
            )
            self.verdicts.append(verdict)
            if not understood:
                self.find(
                    "unreadable-label",
                    f"the label {as_text(one)[:40]!r} is not understood",
                    task_id=task_id,
                    criterion_id=criterion_id,
                    suggestion="use green / yellow / red, yes / no, N/A, or one scale of numbers "
                    "for the whole file (0/1, 1-5 or 1-10); it counts as unknown",
                )

    def done(self, task: Task | None) -> Parsed:
        """The finished row; what it lacks is counted."""
        lacks = (f for f in self.findings if f.code == "missing-field" and not f.criterion_id)
        self.context.missing.update({f.field for f in lacks})
        return Parsed(
            row=self.number,
            where=self.where,
            task=task,
            responses=tuple(self.responses),
            verdicts=tuple(self.verdicts),
            findings=tuple(self.findings),
        )

    def task(
        self,
        task_id: str,
        prompt: str | None,
        criteria: Sequence[Criterion] = (),
        *,
        rubric: str | None = None,
        **more: Any,
    ) -> Parsed:
        """Build the task with the fields that most formats share, the rest of the row in its meta.

        rubric : what the format calls a criterion; then a row without one is an error.
        """
        for name, fields in SHARED.items():
            if more.get(name) is None:
                more[name] = self.optional(*fields)
        criteria = self._worded(task_id, criteria)
        for c in criteria:
            if c.meta and (names := c.meta.keys() - self.made - self.context.unread.found.keys()):
                self.astray(names, c.meta)
        if rubric and not criteria:
            self.find("no-criteria", f"the row has no {rubric}", severity="error", task_id=task_id)
        if prompt is not None and not prompt.strip() and not more.get("history"):
            self.find("empty-prompt", "the prompt is empty", severity="error", task_id=task_id)
        meta = beside(beside(more.pop("meta", {}), self.leftover()), self.kept)
        return self.done(
            Task(
                id=task_id,
                prompt=prompt or "",
                criteria=unique(self, criteria),
                meta=meta,
                **more,
            )
        )

    def astray(self, names: Iterable[str], there: Iterable[str] = ()) -> None:
        """Count fields of a criterion that nothing reads."""
        for name in names:
            self.context.astray.add(name, self.where, there)

    def blank(self, task_id: str, criterion_id: str) -> None:
        """Note a criterion without text among others: it does not count."""
        self.find(
            "empty-criterion",
            "the criterion has no text; it does not count",
            task_id=task_id,
            criterion_id=criterion_id,
            suggestion="write it or remove it",
        )

    def _worded(self, task_id: str, criteria: Sequence[Criterion]) -> list[Criterion]:
        """The criteria that say something or name a check; a blank one is no criterion, what hangs
        on it goes to meta."""
        blank = {c.id: c for c in criteria if says_nothing(c.text) and c.check is None}
        if not blank:
            return list(criteria)
        for c in blank.values():
            self.blank(task_id, c.id)
            fields = (("title", c.title), ("tags", list(c.tags)), ("levels", list(c.levels)))
            own = {k: v for k, v in (*fields, *c.meta.items()) if v}
            if own or c.weight != 1:
                own = beside(own, {"weight": c.weight})
                self.keep(f"criterion {c.id} without text", own)
        lost = [v for v in self.verdicts if v.task_id == task_id and v.criterion_id in blank]
        if lost:
            self.verdicts = [v for v in self.verdicts if v not in lost]
            self.keep(
                "labels without criterion", {v.criterion_id: v.meta.get("label") for v in lost}
            )
            self.find(
                "field-mismatch",
                f"{len(lost)} labels are on criteria without text; they are kept in meta",
                task_id=task_id,
            )
        return [c for c in criteria if c.id not in blank]


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    """The name, with a number behind it where it is taken."""
    return next(
        n
        for n in itertools.chain([name], (f"{name} ({i})" for i in itertools.count(2)))
        if n not in taken
    )


def beside(meta: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Both; a name that is taken gets a number.

    >>> beside({"a": 1}, {"a": 2, "b": 3})
    {'a': 1, 'a (2)': 2, 'b': 3}
    """
    out = dict(meta)
    for name, value in more.items():
        out[_free_name(name, out)] = value
    return out


def weight_of(
    row: Row, item: Mapping[str, Any], names: Sequence[str], criterion_id: str, default: float = 1.0
) -> tuple[float, set[str]]:
    """(weight, fields read); a weight that is no number is 0 (recorded, not scored) and an
    error."""
    for n in names:
        if item.get(n) is not None:
            row.context.marks.add(n, item[n])
            value = number(item[n])
            if value is None:
                row.find(
                    "bad-weight",
                    f"the weight {as_text(item[n])[:40]!r} is not a finite number; the "
                    f"criterion does not count",
                    severity="error",
                    criterion_id=criterion_id,
                    field=n,
                    suggestion="write a number",
                )
                return 0.0, {n}
            return value, {n}
    if null := next((n for n in names if n in item), None):
        row.find(
            "null-weight",
            f"the weight is null; it counts {default:g}",
            criterion_id=criterion_id,
            field=null,
            suggestion="write a number, or leave the field out",
        )
    return default, set()


# how an object says that its criterion must not be met
NEGATIVE = {"polarity": ("negative", "neg", "-"), "type": ("negative",), "negative": ("true", "1")}
POSITIVE = ("positive", "pos", "+", "false", "0")
YES = {"true", "yes", "1", "wahr", "ja"}
NO = {"false", "no", "0", "", "falsch", "nein"}


def flag(row: Row, item: Mapping[str, Any], criterion_id: str) -> bool | None:
    """Whether a criterion is required; None where it does not say. A word that is neither yes nor
    no is an error."""
    value = item.get("required")
    if absent(value):
        return None
    said = as_text(value).strip().casefold()
    if said in YES | NO:
        return said in YES
    row.find(
        "bad-required",
        f"'required' is {said[:40]!r}; the criterion is read as not required",
        severity="error",
        criterion_id=criterion_id,
        field="required",
        suggestion="write true or false",
    )
    return None


def tags_of(value: Any) -> tuple[str, ...]:
    """Tags out of a list, nested lists, or text."""
    if isinstance(value, (list, tuple)):
        return tuple(t for v in value for t in tags_of(v))
    return () if absent(value) else (as_text(value),)


def criteria_from(
    row: Row,
    value: Any,
    *,
    prefix: str = "c",
    negative: bool = False,
    names: Sequence[str] = ("weight", "points"),
    field_name: str = "rubrics",
) -> list[Criterion]:
    """Criteria out of a list of texts or objects; an object's other fields go to `meta`. Numbered
    from 1 under `prefix`."""
    value = listed(row, value, field_name)
    if isinstance(value, Mapping) and value and all(isinstance(v, Mapping) for v in value.values()):
        value = [{"id": k, **v} for k, v in value.items()]
    if isinstance(value, Mapping):
        texts = all(isinstance(v, str) for v in value.values())
        value = (
            [{"title": k, "text": v} for k, v in value.items()]
            if value and texts and not set(value) & set(TEXT_FIELDS)
            else [value]
        )
    if isinstance(value, str):
        value = [line.strip() for line in value.split("\n") if line.strip()]
        marked = [LISTED_AS.match(line) for line in value]
        if all(marked):
            value = [line[m.end() :] for line, m in zip(value, marked, strict=True)]
    if not isinstance(value, list) and value is not None:
        row.find(
            "field-type",
            f"the field {field_name!r} should be a list of criteria",
            severity="error",
            field=field_name,
        )
        value = [value]
    return [
        criterion_of(row, item, f"{prefix}{i}", negative, names)
        for i, item in enumerate(value or [], 1)
    ]


def criterion_of(
    row: Row,
    item: Any,
    default_id: str,
    negative: bool = False,
    names: Sequence[str] = ("weight", "points"),
) -> Criterion:
    """One criterion out of a text or an object; what the record has no place for goes to `meta`."""
    if not isinstance(item, Mapping):
        if not isinstance(item, str) and not absent(item):
            row.find(
                "field-type",
                "a criterion should be text or an object",
                severity="error",
                criterion_id=default_id,
            )
        return Criterion(
            id=default_id,
            text="" if absent(item) else as_text(item),
            weight=-1.0 if negative else 1.0,
        )
    field_name = next((n for n in TEXT_FIELDS if isinstance(item.get(n), str)), None)
    text = item[field_name] if field_name else ""
    if not text.strip():
        row.find(
            "missing-field",
            "the criterion has no text",
            severity="error",
            criterion_id=default_id,
            field="criterion",
            suggestion=f"its fields: {', '.join(map(str, list(item)[:8])) or 'none'}",
        )
    weight, used = weight_of(row, item, names, default_id)
    if negative or any(as_text(item.get(k, "")).casefold() in NEGATIVE[k] for k in NEGATIVE):
        weight = -abs(weight)
    own = item.get("rubric_id") if absent(item.get("id")) else item["id"]
    own = None if absent(own) else own
    check = parsed_json(item.get("check"))
    checked = isinstance(check, Mapping) and isinstance(check.get("name"), str)
    if item.get("check") is not None and not checked:
        row.find(
            "bad-check",
            "the check is not an object with a name; the criterion is left to a judge",
            severity="error",
            criterion_id=default_id,
            field="check",
            suggestion='write it as {"name": "words", "max": 20}',
        )
    read = {n for n in used if number(item[n]) is not None} | {field_name, "title", "tags"}
    read |= {"check"} if checked or item.get("check") is None else set()
    read |= {"id" if item.get("id") is not None else "rubric_id"}
    required = flag(row, item, default_id)
    read |= {"required"} if required is not None else set()
    read |= {
        k for k in NEGATIVE if as_text(item.get(k, "")).casefold() in (*NEGATIVE[k], *POSITIVE)
    }
    title = item.get("title")
    return Criterion(
        id=as_text(own) if own not in (None, "") else default_id,
        text=text,
        weight=weight,
        title=None if absent(title) else as_text(title),
        tags=tags_of(item.get("tags")),
        required=required or False,
        check=dict(check) if checked else None,
        meta={str(k): v for k, v in item.items() if k not in read},
    )


def unique(row: Row, criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Criteria with ids made unique; a change is reported."""
    if len({c.id for c in criteria}) == len(criteria):
        return tuple(criteria)
    seen: set[str] = set()
    out = []
    for c in criteria:
        name, n = c.id, 1
        while name in seen:
            n += 1
            name = f"{c.id}#{n}"
        if name != c.id:
            row.find(
                "duplicate-id",
                f"the criterion id {c.id!r} occurs again; it is called {name!r}",
                criterion_id=name,
            )
            c = replace(c, id=name)
        seen.add(name)
        out.append(c)
    return tuple(out)

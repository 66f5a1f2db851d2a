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
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..checks.text import answered
from ..records import Criterion, Response, Task, Verdict
from . import labels
from .chats import PROMPTS, answer_of, is_chat, torn, turns_in, unread_in
from .criteria import unique
from .findings import Finding
from .levels import UNREAD
from .lines import counts
from .names import mark, marked
from .seen import Seen, Tasks
from .slips import OWN_CRITERION, OWN_TASK, TEXTS, Unread, answers_in, asks
from .taskset import Parsed
from .values import (
    absent,
    as_text,
    beside,
    blank,
    literal,
    parsed_json,
    says_nothing,
    unused,
)

SHARED = {  # field of a task -> fields of a row that hold it, where a reader does not say otherwise
    "kind": ("kind", "category", "type", "question_type"),
    "group": ("group",),
    "split": ("split",),
    "system": ("system", "system_prompt"),
}

LISTS = ("checklist", "checklists", "rubrics", "criteria", "requirements", "rubric")
ASKED = frozenset((*PROMPTS, *LISTS)).union(
    "id task_id prompt_id answer expected_answer ground_truth system system_prompt".split()
)
READ = OWN_TASK.union(
    "messages question instruction rubrics checklist response chosen rejected ground_truth task_id "
    "output answer".split()
)
# what judges and rewards read in a criterion's meta; levels that are no levels are an error already
READ_IN_META = frozenset("embedding paraphrases negation rubric pass_at levels".split())


@dataclass
class Context:
    """What one file's reading gathers: ids seen, fields unread, missing, or at odds with another.

    scale : (lowest, highest) of the file's numeric labels; None = 0/1. extent : those that occur.
    counted : what is to be said of the file's rows -> of how many.
    changed : (field, type) -> in how many rows a value that JSON does not know became text.
    whole : all rows are held: labels are read by levels that stand anywhere in the file.
    given : the rows came from Python, not out of a file: their texts may hold anything.
    numbered : whether all texts of a rubric without weights hold a number, or some -> (where,
        field, text) of the first.
    tasks : where each stands first. asked, alike : what tasks of rows without an id ask, and how
        many of them ask what another one asks.
    again : names that are taken -> how often others wanted them.
    answers, numbers : those that may stand again, and the number behind each one's name.
    names : a table's columns that have another name -> as which they are read.
    """

    name: str = ""
    format: str = ""
    scale: tuple[float, float] | None = None
    extent: tuple[float, float] = (math.inf, 0.0)
    ids: Seen = field(default_factory=Seen)
    unread: Unread = field(default_factory=lambda: Unread(READ))
    astray: Unread = field(
        default_factory=lambda: Unread(
            OWN_CRITERION - {"meta"} | {"criterion", "description", "polarity"}, " of a criterion"
        )
    )
    counted: Counter[Finding] = field(default_factory=Counter)
    changed: Counter[tuple[str, str]] = field(default_factory=Counter)
    tasks: Tasks = field(default_factory=Tasks)
    asked: Seen = field(default_factory=Seen)
    alike: int = 0
    again: Counter[str] = field(default_factory=Counter)
    answers: Seen = field(default_factory=Seen)
    numbers: array[int] = field(default_factory=lambda: array("I"))
    names: dict[str | None, str] = field(default_factory=dict)
    rows: int = 0
    skipped: int = 0
    whole: bool = False
    given: bool = False
    numbered: dict[bool, tuple[str, str, str]] = field(default_factory=dict)

    def count(self, code: str, message: str, severity: str, n: int = 1, **more: Any) -> None:
        """Count a row, or several, of which this is to be said."""
        made = Finding(code=code, severity=severity, where=self.name, message=message, **more)
        self.counted[made] += n


class Row:
    """One row of a file under reading."""

    def __init__(self, data: Mapping[str, Any], number: int, where: str, context: Context):
        self.data, self.number, self.where, self.context = data, number, where, context
        self.used: set[str] = set()
        self.again = "error"  # how grave it is that another row has this one's id
        self.rivals: dict[str, str] = {}  # field that was passed over -> field read in its place
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
        if not there:
            return None
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
        self.kept[unused(name, lambda n: n not in self.kept, "{} ({})")] = value

    def aside(self, code: str, name: str, value: Any, message: str, **more: Any) -> None:
        """Put the value of a field that cannot be used into the task's meta, and say so."""
        self.keep(name, value)
        self.find(code, message, field=name, **more)

    def need(self, there: Any, message: str, name: str, **more: Any) -> None:
        """An error unless what the format needs, which the field `name` would hold, is there."""
        if not there:
            self.find(
                "missing-field",
                message,
                severity="error",
                field=name,
                suggestion=f"fields of this row: {', '.join(map(str, list(self.data)[:12]))}",
                **more,
            )

    def text(self, *names: str, need: bool = False) -> str | None:
        """A text field; another type is kept as JSON text and reported; with `need` an absent one
        is an error."""
        value = self.take(*names)
        if need:
            self.need(value is not None, f"the field {names[0]!r} is missing or null", names[0])
        if isinstance(value, (dict, list)):
            self.find(
                "field-type",
                f"the field {names[0]!r} should be text",
                field=names[0],
                suggestion="it was read as JSON text",
            )
        return None if value is None else as_text(value)

    def optional(self, *names: str) -> str | None:
        """A short text such as a group or a kind; None when absent."""
        value = self.take(*names)
        return None if value is None else as_text(value)

    def task_id(self, *names: str) -> str:
        """The task's id as the row has it; the row number where there is none."""
        value = self.take(*names)
        return f"row-{self.number}" if value in (None, "") else as_text(value)

    def leftover(self, bare: bool = False) -> dict[str, Any]:
        """Fields that nothing read. bare : the row has no criterion."""
        out = {str(k): v for k, v in self.data.items() if k not in self.used}
        for name, value in out.items():
            if name in self.rivals and not asks(name, value):
                read = self.rivals[name]
                self.context.count(
                    "field-conflict",
                    f"have {read!r} and another value in {name!r}: {read!r} is read, {name!r} is "
                    "kept in meta",
                    "warning" if name in ASKED else "info",
                    field=name,
                    suggestion="join or rename the fields if the other one is meant",
                )
            elif self.data.get("split") or mark(name, value) is None:
                self.context.unread.add(name, self.where, self.data, bare)
        return out

    def respond(self, task_id: str, response_id: str, value: Any, **more: Any) -> bool:
        """Add a response when the value is text, or a chat that ends with it (null: none; another
        type: as JSON text, reported)."""
        if absent(value):
            return False
        torn(self, response_id, value)
        value = turns_in(value)
        text = value if isinstance(value, str) else answer_of(value)
        turns = len(value) if isinstance(value, list) else 1
        odd = is_chat(value) and unread_in(self, value, f"response {response_id!r}")
        if text is None:
            self.find(
                "field-type",
                f"response {response_id!r} should be text",
                severity="error" if isinstance(value, list) or is_chat(value) else "warning",
                field=response_id,
                suggestion="it was read as JSON text; write a row for each of several answers",
            )
        elif turns > 1:
            self.find(
                "unread-turns",
                f"response {response_id!r} is {turns} turns: the last answer alone is read",
                field=response_id,
                suggestion="put the others into the prompt's chat; they are kept in meta",
            )
        if turns > 1 or odd:
            more["meta"] = {**more.get("meta", {}), "turns": value}
        text = as_text(value) if text is None else text
        self.responses.append(Response(task_id=task_id, id=response_id, text=text, **more))
        return True

    def label(
        self,
        task_id: str,
        response_id: str,
        criterion_id: str,
        value: Any,
        *,
        judge: str = "human",
        **more: Any,
    ) -> None:
        """Add the verdicts that one label field holds (one rater or several); numbers on the scale
        of the file. more : for their meta."""
        self.within("labels", *map(labels.silent, value if isinstance(value, list) else [value]))
        for name, one in labels.by_rater(value, judge):
            verdict, understood = labels.human(
                task_id,
                response_id,
                criterion_id,
                one,
                scale=self.context.scale,
                judge=name,
            )
            self.verdicts.append(replace(verdict, meta={**verdict.meta, **more}))
            if not understood:
                self.find(
                    UNREAD,
                    f"the label {as_text(one)[:40]!r} is not understood",
                    task_id=task_id,
                    criterion_id=criterion_id,
                    suggestion="use green / yellow / red, yes / no, N/A, or one scale of numbers "
                    "for the whole file (0/1, 1-5 or 1-10); it counts as unknown",
                )

    def label_all(self, task_id: str, response_id: str, name: str) -> None:
        """Add the verdicts that a field of labels holds, by criterion; a list or objects, which may
        say more, are kept in meta too."""
        given = self.data[name]
        pairs = labels.by_criterion(given) or ()
        field, judge = labels.giver(self.data)
        self.used |= {name, field or name}
        for criterion, label in pairs:
            self.label(task_id, response_id, criterion, label, judge=judge)
        each = parsed_json(given)
        self.within("labels", *map(labels.silent, each if isinstance(each, list) else ()))
        if isinstance(each, list) or [x for _, x in pairs if labels.entry(x)]:
            self.keep(name, given)

    def done(self, task: Task | None) -> Parsed:
        """The finished row; what it lacks is counted."""
        lost = (f for f in self.findings if f.code == "missing-field" and not f.criterion_id)
        for name in {f.field: None for f in lost}:
            said = f"lack {name!r}, which a reader of this format expects"
            self.context.count("missing-field", said, "error", field=name)
        if any(answered(r.text) != r.text for r in self.responses):
            self.context.count(
                "reasoning",
                "hold an answer with reasoning in tags (<think>): checks and judges do not read it",
                "info",
            )
        return Parsed(
            row=self.number,
            where=self.where,
            task=task,
            responses=tuple(self.responses),
            verdicts=tuple(self.verdicts),
            findings=tuple(self.findings),
            again=self.again,
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
            elif name == "system":  # the chat's own
                self.rivals |= {f: "messages" for f in fields if self.data.get(f) != more[name]}
                self.used.update(f for f in fields if self.data.get(f) == more[name])
        if "criterion" not in self.data:
            self._answers(task_id, criteria)
        if more["split"] is None:
            more["split"] = marked({k: v for k, v in self.data.items() if k not in self.used})
        criteria = self._worded(task_id, criteria)
        if rubric and not criteria:
            self.find("no-criteria", f"the row has no {rubric}", severity="error", task_id=task_id)
        if prompt is not None and not prompt.strip() and not more.get("history"):
            self.find("empty-prompt", "the prompt is empty", severity="error", task_id=task_id)
        meta = beside(beside(more.pop("meta", {}), self.leftover(not criteria)), self.kept)
        return self.done(
            Task(
                id=task_id,
                prompt=prompt or "",
                criteria=unique(self, criteria),
                meta=meta,
                **more,
            )
        )

    def _answers(self, task_id: str, criteria: Sequence[Criterion]) -> None:
        """Add the answers that stand in lists of texts, or as texts by name, in fields for them."""
        names = [n for n in (TEXTS if criteria else TEXTS[:3]) if n not in self.used]
        held = {n: answers_in(literal(self.data.get(n)), criteria) for n in names}
        self.used |= {n for n, each in held.items() if each is not None}
        each = itertools.chain.from_iterable(filter(None, held.values()))
        for i, (name, text) in enumerate(each):
            self.respond(task_id, name or f"r{i}", text, source=name or "data")

    def astray(self, names: Iterable[str], there: Mapping[str, Any]) -> None:
        """Count fields of a criterion that nothing reads."""
        self.context.astray.each(set(names) - READ_IN_META, self.where, there)

    def within(self, field: str, *rests: Mapping[str, Any]) -> None:
        """Count what nothing reads of objects that a field of the row holds."""
        for rest in rests:
            self.context.unread.each(rest, self.where, rest, f"{field}: ")

    def numbers(self, criteria: Sequence[Criterion], field: str, weighed: bool) -> None:
        """Note texts of criteria that hold numbers, unless the criteria have weights."""
        held = [c.text for i, c in enumerate(criteria, 1) if counts(c.text, i) and not c.levels]
        if held and not weighed:
            self.context.numbered.setdefault(
                len(held) == len(criteria) > 1, (self.where, field, held[0])
            )

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
            fields = {"title": c.title, "tags": list(c.tags), "levels": list(c.levels)}
            own = {k: v for k, v in {**fields, **c.meta}.items() if v}
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

"""Which rows of a flat table are one task: they wait for each other on disk, so that memory does
not grow with them."""

from __future__ import annotations

import itertools
import json
import re
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from ..records import grouped
from ..system.paths import naming
from .again import WHOSE
from .findings import Finding
from .jsonl import dumps
from .labels import RATERS, SAID, giver
from .names import spelled
from .rows import Context, Row
from .seen import Seen
from .slips import JUDGED, NOTES
from .values import as_text, blank, prose

IDENT = ("task_id", "id", "prompt", "question", "instruction")  # what tells a flat row's task
ASKED_OF = re.compile(
    "prompt|question|instruction"
)  # what makes two rows of a flat table two tasks
TELLS = re.compile(  # the same where they have no ids: what an answer is held against, too
    rf"{ASKED_OF.pattern}|input|history|system(?:_prompt)?|sources|code|doc_id|background"
    r"|(?:source_)?(?:context|passage|document|article)s?"
)
ROW = "id of the row"
ANSWER = re.compile(rf"task_id|text|{WHOSE.pattern}")
LABEL = re.compile(rf"criteri(?:on|a)(?:_id|_text)?|rubric_item|requirement|{WHOSE.pattern}")
OF_OTHER = re.compile(  # of the criterion, of the answer or of its label, not of what is asked
    rf"{LABEL.pattern}|{NOTES.pattern}|{'|'.join((*SAID, *RATERS))}|response|answer|output"
    r"|(?:criteri(?:on|a)|rubrics?|requirement|model|generator|response|answer|completion|output"
    r"|rater|annotator|judge|llm|policy)s?_.*|title|tags|levels|scale|check|penalty|importance"
    r"|(?:.*_)?(?:rationale|justification|definition|guidance|critique|remark)s?(?:_text)?"
)
FAR = 2**40  # more bytes than a file has


class Shelf:
    """Rows, given back task by task in the order of first sight; 8 bytes of memory a row and 20 a
    task.

    file : where they lie, open for reading and writing.

    >>> with tempfile.TemporaryFile() as file:
    ...     shelf = Shelf(file, Context())
    ...     for i, prompt in enumerate("aba"):
    ...         shelf.put(Row({"prompt": prompt}, i, f"row {i}", Context()))
    ...     [[row.number for row in rows] for rows in shelf]
    [[0, 2], [1]]
    """

    def __init__(self, file: Any, context: Context) -> None:
        self.file, self.context = file, context
        self.names, self.places = Seen(), array("Q")  # of each row: the name's number, its start

    def put(self, row: Row) -> None:
        """Lay down a row; OSError where the disk is full."""
        self.places.append(self.names.add(_name(row))[0] * FAR + self.file.tell())
        held = [row.data, row.number, row.where, [asdict(f) for f in row.findings]]
        with naming(tempfile.gettempdir()):
            self.file.write(dumps(held) + b"\n")

    def __iter__(self) -> Iterator[list[Row]]:
        for _, places in itertools.groupby(sorted(self.places), lambda p: p // FAR):
            yield from _joined(self._row(p % FAR) for p in places)

    def _row(self, start: int) -> Row:
        self.file.seek(start)
        *given, notes = json.loads(self.file.readline())
        row = Row(*given, self.context)
        row.findings += [Finding(**f) for f in notes]
        return row


def _name(row: Row) -> str:
    """What rows of one task have in common, be it of others, too."""
    named = (str(row.data[k]) for k in IDENT if row.data.get(k) is not None)
    return next(named, f"row {row.number}")


def _joined(rows: Iterable[Row]) -> Iterable[list[Row]]:
    """All rows of a task together, in the order of first sight; the rows have one name."""
    out: list[list[Row]] = []
    alike: dict[frozenset[str], dict[str, list[Row]]] = {}  # by fields filled, by values
    for row in rows:
        named, told = _asks(row)
        key = repr((named, told))
        own = alike.setdefault(frozenset(told), {})
        others = (b for g in alike.values() if g is not own for b in g.values())
        near = itertools.chain([own[key]] if key in own else (), others)
        known = next((b for b in near if same_task(b[0], row)), None)
        if known is None:
            known = own[key] = []
            out.append(known)
        known.append(row)
    return out


def same_task(a: Row, b: Row) -> bool:
    """Whether no field tells two rows apart. One id for two prompts: the second gets an id of its
    own, and an error."""
    (one_id, one), (two_id, two) = _asks(a), _asks(b)
    if one_id != two_id or any(v != two.get(k, v) for k, v in one.items()):
        return False
    return bool(one_id) or any(k in one and k in two for k in IDENT)


def _asks(row: Row) -> tuple[list[Any], dict[str, Any]]:
    """(the task's id or none, what tells it). `id` is the row's own where `task_id` is filled."""
    named = [row.data[k] for k in IDENT[:2] if not blank(row.data.get(k))][:1]
    return named, _told(row.data, ASKED_OF if named else TELLS)


def _told(row: Mapping[str, Any], names: re.Pattern[str]) -> dict[str, Any]:
    """The filled fields of a row that are called so."""
    return {k: v for k, v in row.items() if names.fullmatch(spelled(str(k))) and not blank(v)}


class Ids:
    """Whose the `id` of a table's rows is, where no field names the task (of a flat one) or the
    answer (of a row a label): the row's own if each row of a thing has another one, a thing has two
    rows or more in the mean, and no two say the same of it. 60 bytes of memory a row.

    >>> ids = Ids(Context(format="flat"))
    >>> rows = [ids.look({"id": i, "prompt": "P", "criterion": c}) for i, c in enumerate("ab")]
    >>> ids.say()
    >>> ids.context.names
    {'id': 'id of the row'}
    """

    def __init__(self, context: Context) -> None:
        self.context, self.flat = context, context.format == "flat"
        self.rows, self.things, self.named, self.labels = 0, Seen(), Seen(), Seen()

    def look(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """Take in a row; the same row."""
        taken, needed = (
            ("task_id", IDENT[2:]) if self.flat else ("response_id", ("response", "text"))
        )
        named = not blank(row.get("id")) and blank(row.get(taken))
        if named and not all(blank(row.get(k)) for k in needed):
            thing = sorted(_told(row, TELLS if self.flat else ANSWER).items())
            label = sorted(_told(row, LABEL).items())
            self.rows += 1
            self.things.add(repr(thing))
            self.named.add(repr((thing, row["id"])))
            self.labels.add(repr((thing, label, giver(row)[1])))
        return row

    def say(self) -> None:
        """Count what is to be said of it; an id of the row's own has another name."""
        n, things, ids, labels = self.rows, *map(len, (self.things, self.named, self.labels))
        what, field = ("task", "task_id") if self.flat else ("answer", "response_id")
        own = 0 < 2 * things <= n == ids == labels
        if own or (things < ids and (self.flat or (n == ids and labels > things))):
            became = "it is the row's own, and kept in meta" if own else f"each names its {what}"
            self.context.names |= {"id": ROW} if own else {}
            self.context.count(
                "field-conflict" if own else "same-prompt",
                f"have {ids} ids on {things} {what}s: {became}",
                "warning",
                n,
                field="id",
                suggestion=f"call it {field} where it names the {what}, else row_id",
            )


@dataclass
class Differing:
    """A column whose texts differ in tasks: in how many rows, two of them, its criteria in all of
    these tasks, which there are, and with which text."""

    example: str
    rows: int = 0
    each: int = 0
    criteria: Seen = field(default_factory=Seen)
    pairs: Seen = field(default_factory=Seen)


class Texts:
    """Columns whose texts differ among the rows of one task of a flat table, and whose name does
    not say of what: many documents under one instruction would be one task, about the first.

    No error is a text that is said of labels, as one answer has several, or of criteria, each of
    which has the same one in two tasks or more in the mean.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.found: dict[str, Differing] = {}

    def look(self, rows: Sequence[Row]) -> None:
        """Take in the rows of a task."""
        for name in dict.fromkeys(k for r in rows[1:] for k in r.data if not _of_other(k)):
            held = [r for r in rows if prose(r.data.get(name))]
            if len({as_text(r.data[name]) for r in held}) > 1:
                self._differs(name, held)

    def _differs(self, name: str, rows: Sequence[Row]) -> None:
        texts = [as_text(r.data[name]) for r in rows]
        answers = zip((r.data.get("response") for r in rows), texts, strict=True)
        said = grouped((as_text(answer), text) for answer, text in answers if prose(answer))
        if any(len(set(each)) > 1 for each in said.values()):
            return
        other = next(n for n, text in enumerate(texts) if text != texts[0])
        two = (f"row {rows[n].number} {texts[n][:40]!r}" for n in (0, other))
        found = self.found.setdefault(name, Differing(" and ".join(two)))
        found.rows += len(rows)
        criteria = [as_text(r.data.get("criterion")) for r in rows]
        found.each += len(set(criteria))
        for criterion, text in zip(criteria, texts, strict=True):
            found.criteria.add(criterion)
            found.pairs.add(repr((criterion, text)))

    def say(self) -> None:
        """Count what is to be said of them."""
        for name, found in self.found.items():
            criteria = len(found.criteria)
            if not 2 * criteria <= found.each or len(found.pairs) > criteria:
                self.context.count(
                    "field-conflict",
                    f"differ in {name!r} from a row of the same task ({found.example}): what it is "
                    "said of is not known",
                    "error",
                    found.rows,
                    field=name,
                    suggestion="a text that answers are held against stands in the prompt or in "
                    "sources, and its task has a task_id of its own; what is said of a criterion "
                    "is called criterion_note, of an answer response_note",
                )


@lru_cache(maxsize=10_000)
def _of_other(name: str) -> bool:
    """Whether a column is read, or says by its name of what it is."""
    said = spelled(str(name))
    return any(x.fullmatch(said) for x in (ASKED_OF, OF_OTHER, JUDGED)) or said in IDENT

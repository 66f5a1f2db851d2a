"""Two task sets as one: which tasks and answers of both are the same, and what each says of them.

All is found by key: time grows with the files. A place is where a record comes from: (side, ids),
side 0 of the set that is joined to, 1 of the other one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

from ..checks.text import answered
from ..claims.bags import FIELD, SISTERS
from ..errors import DataError
from ..records import Criterion, Response, Task, Verdict, content, grouped
from ..settings.read import closest
from .chats import PROMPTS
from .findings import Finding, noted
from .labels import is_column, means, odd_labels
from .levels import by_levels
from .meant import OTHER, called, numbered, shown
from .names import spelled
from .seen import Alike
from .slips import READS
from .values import as_text, blank, both_of, unused

if TYPE_CHECKING:
    from .taskset import TaskSet

ROW = re.compile(r"row-\d+(?:#\d+)?")  # the kit's name of a task without an id
NAME = re.compile(  # and of an answer
    r"(?:r-[0-9a-f]{12}|response|demonstration|undesired|chosen|rejected|completion|output|answer"
    r"|ideal|reference-\d+)(?:#.+)?"
)
OF = "criterion's "
APART = (
    "model",
    "sample",
    "sample_index",
    "role",
)  # equal texts of two are two answers
HANGS = (
    "unknown-task",
    "unknown-answer",
    "unknown-criterion",
    "two-labels",
)  # said anew
COLUMN = "write its labels as labels: criterion's id -> label, or one row an answer and criterion"
RANKS = (
    (True, True),
    (True, False),
    (False, True),
    (False, False),
)  # criteria, an id of its own
MAPS = ("truth", "sources")
THOUGHTS = "thoughts"  # `kit label` left them out of an answer: it says so there
DERIVED = {FIELD, SISTERS}  # of a truth, by its file
Record = TypeVar("Record", Task, Criterion, Response)


def joined(one: TaskSet, two: TaskSet) -> dict[str, Any]:
    """What the joined set has in place of the first one's fields."""
    sides = (one, two)
    file = str(two.path.name if two.path else "task set")
    ends, notes = _ends(sides, file)
    ids, names, tasks = _tasks(sides, ends, file)
    by_id = {t.id: t for t in tasks}
    moved, responses, renamed = _answers(sides, ids, file)
    there = {(to, place[2]): (to, name) for place, (to, name) in reversed(moved.items())}

    texts = ((t.id, c) for t in tasks for c in t.criteria)
    asked = grouped(((i, " ".join(c.text.split())), c.id) for i, c in texts)

    def on(side: int, v: Verdict) -> Verdict:
        here = _to(ids, side, v.task_id), v.response_id
        here = moved.get((side, v.task_id, v.response_id), there.get(here, here))
        on = names.get((side, *v.ids[::2]), v.criterion_id)
        if v.meta.get("criterion") and here[0] in by_id:  # what people were shown
            on, wrong = shown(v, on, by_id[here[0]], asked)
            notes.extend(wrong)
        return replace(v, task_id=here[0], response_id=here[1], criterion_id=on)

    read = [
        by_levels(
            [on(n, v) for v in s.verdicts],
            [
                replace(
                    f,
                    task_id=_to(ids, n, f.task_id),
                    criterion_id=names.get((n, f.task_id, f.criterion_id), f.criterion_id),
                )
                for f in _found(s, n, ids, by_id)
            ],
            tasks,
        )
        for n, s in enumerate(sides)
    ]
    verdicts = list({means(v): v for v in reversed(read[0][0] + read[1][0])}.values())[::-1]
    criteria = {t.id: {c.id for c in t.criteria} for t in tasks}
    own = set().union(*criteria.values())
    findings = [
        replace(f, severity="error", suggestion=COLUMN) if is_column(f, own) else f
        for f in chain(read[0][1], read[1][1])
        if f.code not in HANGS or f.severity != "error"
    ]
    findings += [*notes, *renamed, *_lost(responses, verdicts, by_id, file)]
    refused = {(f.task_id, f.text) for f in findings if f.code == OTHER}
    odd = (f for f in odd_labels(verdicts, criteria) if (f.task_id, f.criterion_id) not in refused)
    return {
        "tasks": tasks,
        "responses": responses,
        "verdicts": verdicts,
        "findings": list(dict.fromkeys([*findings, *odd])),
        "rows": one.rows + two.rows,
        "skipped": one.skipped + two.skipped,
        "rows_of": {_to(ids, n, i): row for n in (1, 0) for i, row in sides[n].rows_of.items()},
    }


def _to(ids: Mapping[tuple, str], side: int, task_id: str) -> str:
    """The id of the task that an answer or a verdict of this side names."""
    return ids.get((side, task_id)) or ids.get((1 - side, task_id), task_id)


def _found(
    s: TaskSet, side: int, ids: Mapping[tuple, str], tasks: Mapping[str, Task]
) -> Iterator[Finding]:
    """What was found in a set; without a prompt that its rows lack and the other set has."""
    bare = {s.rows_of.get(t.id) for t in s.tasks if not tasks[ids[side, t.id]].asked}
    for f in s.findings:
        lacks = f.code == "missing-field" and f.field in PROMPTS
        if not lacks or f.row in bare or (f.row is None and bare):
            yield f


def _ends(sides: Sequence[TaskSet], file: str) -> tuple[dict[tuple, tuple], list[Finding]]:
    """Place of a task -> that of the same one of the other side, which stays: of the same id; else
    the one with criteria, or with an id of its own, that asks the same."""
    says = {(n, t.id): _says(t) for n, s in enumerate(sides) for t in s.tasks}
    asked = [
        Alike(((*_rank(t), t.asked.strip()), says[n, t.id], t.id) for t in s.tasks)
        for n, s in enumerate(sides)
    ]
    hubs = [any(t.criteria for t in s.tasks) for s in sides]
    ends, apart, lost = {}, {}, 0
    for side, t in ((n, t) for n in (1, 0) for t in sides[n].tasks):
        there, rank, said = 1 - side, _rank(t), says[side, t.id]
        same = sides[there].by_id.get(t.id)
        if same is not None and (rank[1] or same == t):
            ends[1, t.id] = 0, t.id
            continue

        def alike(ranks: Iterable, said: Mapping, there: int = there, t: Task = t) -> list[str]:
            each = (asked[there]((*r, t.asked.strip()), said) for r in ranks if t.asked.strip())
            return list(islice(chain.from_iterable(each), 3))

        above = [r for r in RANKS if r > rank or (side and r == rank and not r[1])]
        found = alike((r for r in above if r[0]), said) or alike(above, said)
        if len(found) > 1:
            raise DataError(
                f"the tasks {', '.join(map(repr, found))} ask what {t.id!r} asks",
                where=file,
                fix="write the task_id of each answer",
            )
        if found:
            ends[side, t.id] = there, found[0]
        elif not rank[0] and not (rank[1] and not side):
            lost += len(sides[side].answers(t.id)) * hubs[there]
        if rank == (True, False) and not alike(RANKS[:2], said):
            near = alike(RANKS[:2], {k: x for k, x in said.items() if not k.startswith(OF)})
            apart |= dict.fromkeys(near if side else [t.id] * bool(near))
    return ends, [
        *noted(
            lost,
            "unknown-task",
            "answers ask what no task asks: no criterion judges them",
            "write the task_id of each answer",
            file,
        ),
        *noted(
            len(apart),
            "same-prompt",
            f"tasks ({', '.join(list(apart)[:3])}) are asked in both files with other criteria: "
            "they are two tasks each",
            "write the task's id, and the same criteria or none",
            file,
        ),
    ]


def _rank(t: Task) -> tuple[bool, bool]:
    return bool(t.criteria), not ROW.fullmatch(t.id)


def _says(t: Task) -> dict[str, str]:
    """What makes tasks that ask the same two: what an answer is held against, and what is said of
    the criteria, by their texts: of their names only those that a file gave."""
    said = {k: v for k, v in t.meta.items() if READS.fullmatch(spelled(k))}
    said |= {"system": t.system, "sources": sorted(t.sources.items())}
    each = [(c.text, {("id", None): c.id} | _said(c)) for c in t.criteria]
    own = grouped(
        (f"{OF}{field}", (text, as_text(x)))
        for text, held in each
        for (field, _), x in held.items()
    )
    said |= {k: sorted(x) for k, x in own.items() if k != f"{OF}id" or not numbered(t)}
    return {k: as_text(v) for k, v in said.items() if v}


def _tasks(
    sides: Sequence[TaskSet], ends: Mapping[tuple, tuple], file: str
) -> tuple[dict[tuple, str], dict[tuple, str], list[Task]]:
    """Place of a task -> its id in the joined set; and of a criterion; and the tasks there, with
    what both say."""
    every = {(n, t.id): t for n, s in enumerate(sides) for t in s.tasks}
    same: dict[tuple, list[tuple]] = {}
    for place in every:
        end = place
        while end in ends:
            end = ends[end]
        same.setdefault(end, []).append(place)
    held = {i: n for n, i in reversed(same)}  # an id of its own is there once
    ids: dict[tuple, str] = {}
    names: dict[tuple, str] = {}
    tasks = []
    for end, places in same.items():
        name = end[1]
        if held[name] != end[0]:
            name = unused(name, lambda n: n not in held)
            held[name] = end[0]
        ids |= dict.fromkeys(places, name)
        # a set without labels was judged: its criteria keep their names
        lead = max(
            places,
            key=lambda p: (bool(every[p].criteria), not sides[p[0]].labels(p[1])),
        )
        for place in places:
            old, every[place] = every[place].criteria, called(every[place], every[lead], file)
            pairs = zip(old, every[place].criteria, strict=True)
            names |= {(*place, a.id): b.id for a, b in pairs}
        task = replace(every[end], id=name)
        for n, i in places:
            part = "flat" in (sides[n].format, sides[end[0]].format)
            theirs = every[n, i]
            if sides[n].answers(i) and not (theirs.criteria or theirs.truth) and task.prompt:
                theirs = replace(theirs, meta={})  # its answers have it
            task = _filled_task(task, theirs, part, file)
        tasks.append(task)
    return ids, names, tasks


def _filled_task(
    a: Task,
    b: Task,
    part: bool,
    file: str,
) -> Task:
    """A task with what the same one of the other set says. part : a table's rows may name a part of
    the criteria, in their labels."""
    if a.asked.strip() == b.asked.strip():
        b = replace(b, prompt=a.prompt, history=a.history)
    if a.held_out != b.held_out:  # the mark wins
        a, b = (replace(t, split=a.split if a.held_out else b.split) for t in (a, b))
    what = f"both sets have another task {a.id!r}"
    each = [{c.id: c for c in t.criteria} for t in (a, b)]
    short, long = sorted((each[1], each[0]), key=len)
    odd = short and short.keys() != long.keys() and not (part and short.keys() <= long.keys())
    if odd:
        raise _clash(f"{what}: its criteria are", *map(list, each), file)
    weights = [[x[i].weight for i in short] for x in (long, short)]
    if weights[0] != weights[1] and all(any(w != 1 for w in x) for x in weights):
        raise _clash(f"{what}: the weights of its criteria are", *weights, file)
    criteria = tuple(
        _filled(c, short.get(i, c), f"{what}: of criterion {i!r} the", file)
        for i, c in long.items()
    )
    return replace(
        _filled(replace(a, criteria=()), replace(b, criteria=()), f"{what}: its", file),
        criteria=criteria,
    )


def _filled(a: Record, b: Record, what: str, file: str) -> Record:
    """A record with what the other one says: what both say must be equal, or DataError; a default
    that no file wrote says nothing, and both values of a field of the meta are kept."""
    one, two = (_said(r, getattr(r, "written", ())) for r in (a, b))
    for field, key in one.keys() & two.keys():
        if one[field, key] != two[field, key] and key not in DERIVED:
            name = f"{field} {key or ''}".strip()
            raise _clash(f"{what} {name} is", one[field, key], two[field, key], file)
    both = two | one
    maps = {n: {k: x for (m, k), x in both.items() if m == n} for n in MAPS if hasattr(a, n)}
    plain = {n: x for (n, k), x in both.items() if k is None}
    if isinstance(a, Criterion):
        plain["written"] = tuple(dict.fromkeys((*a.written, *b.written)))
    return replace(a, **plain, **maps, meta=both_of(a.meta, b.meta))


def _said(
    r: Task | Criterion | Response, written: Sequence[str] = ()
) -> dict[tuple[str, str | None], Any]:
    """(field, None) or (field, key) -> what it says there. written : fields that say their default,
    too."""
    own = {
        f.name: x
        for f in content(type(r))
        if (x := getattr(r, f.name)) != f.default or f.name in written
    }
    said = {(n, k): x for n in MAPS for k, x in own.get(n, {}).items()}
    own = {n: x for n, x in own.items() if n not in (*MAPS, "id", "task_id", "meta")}
    return said | {(n, None): x for n, x in own.items() if not blank(x)}


def _clash(what: str, one: Any, two: Any, file: str) -> DataError:
    return DataError(
        f"{what} {as_text(one)[:60]!r} and {as_text(two)[:60]!r}",
        where=file,
        fix="correct or rename one of them; of answers write the task_id, of labels the "
        "criterion_id",
    )


def _answers(
    sides: Sequence[TaskSet], ids: Mapping[tuple, str], file: str
) -> tuple[dict[tuple, tuple[str, str]], list[Response], list[Finding]]:
    """Place of an answer -> its task and name in the joined set; the answers there; and a warning
    where one is called otherwise, as one of the other side has its name."""
    every = _pairs(sides, ids, file)
    names: dict[tuple[str, str], tuple[int, str]] = {}  # task, name -> whose it is
    moved, out, renamed = {}, {}, []
    for n in sorted(range(len(every)), key=lambda n: _made(every[n][0])):  # own names first
        r, places = every[n]
        side, task, _ = places[0]
        held = names.get(r.ids, (side, task))
        if r.ids in names:  # a row of the same side that asks the same is named by its task
            of = task if held[0] == side else n + 1
            r = replace(r, id=unused(f"{r.id}#{of}", lambda x, r=r: (r.task_id, x) not in names))
        names[r.ids], out[n] = (side, task), r
        renamed += [r.id] * (held[0] != side)
        moved |= dict.fromkeys(places, r.ids)
    alone = [
        {(r.task_id, r.text) for r, places in every if {p[0] for p in places} == {n}}
        for n in (0, 1)
    ]
    notes = [
        *noted(
            len(renamed),
            "duplicate-id",
            f"answers have the name of another one; they are called otherwise ({renamed[:3]})",
            "give every answer of a task its own response_id",
            file,
        ),
        *noted(
            len(alone[1]) * (bool(sides[1].verdicts) and alone[1] <= alone[0]),
            "same-text",
            "labelled answers stand in the other file under other names: they are two answers each",
            "call them alike, or leave the labels' answers unnamed: a row's own id is row_id",
            file,
        ),
    ]
    return moved, [out[n] for n in range(len(every))], notes


def _pairs(
    sides: Sequence[TaskSet], ids: Mapping[tuple, str], file: str
) -> list[tuple[Response, list[tuple]]]:
    """The answers of both sides, one that is the same once, each with its places."""
    groups: dict[tuple, list] = {}  # those that an earlier join could not tell to be the same, too
    bare = {r.id for s in sides for r in s.responses if THOUGHTS in r.meta}
    whole = {
        (_to(ids, n, r.task_id), r.id, answered(r.text)): r.text
        for n, s in enumerate(sides)
        for r in s.responses
        if r.id in bare and THOUGHTS not in r.meta
    }
    for n, r in ((n, r) for n, s in enumerate(sides) for r in s.responses):
        to = _to(ids, n, r.task_id)
        if THOUGHTS in r.meta and (text := whole.get((to, r.id, r.text))) is not None:
            meta = {k: x for k, x in r.meta.items() if k != THOUGHTS}
            r = replace(r, text=text, meta=meta)
        entry = replace(r, task_id=to), [(n, *r.ids)]
        groups.setdefault((n, bool(ROW.fullmatch(r.task_id))), []).append(entry)
    every: list[tuple[Response, list[tuple]]] = []
    for group in groups.values():
        same = _same([r for r, _ in every], [r for r, _ in group], file)
        for n, i in same.items():
            (one, held), (r, places) = every[i], group[n]
            every[i] = _both(one, r), held + places
        every += [x for n, x in enumerate(group) if n not in same]
    return every


def _same(mine: Sequence[Response], theirs: Sequence[Response], file: str) -> dict[int, int]:
    """Which of their answers (its number) is which one here: of equal text, and of its name or,
    where the kit named one of the two, of any. DataError for two of one name of their own."""
    named = {r.ids: i for i, r in enumerate(mine)}
    like = Alike(((r.task_id, _made(r)), _told(r), i) for i, r in enumerate(mine))
    same: dict[int, int] = {}
    first = sorted(enumerate(theirs), key=lambda x: (_made(x[1]), x[1].ids not in named))
    for n, r in first:
        i, told = named.get(r.ids), _told(r)
        here = {} if i is None else _told(mine[i])
        if not here or i in like.gone or any(told.get(k, x) != x for k, x in here.items()):
            if here and not _made(r) and not _made(mine[i]):
                raise _clash(f"both sets have another answer {r.id!r}:", here, told, file)
            kinds = (True, False) if _made(r) else (True,)
            found = chain.from_iterable(like((r.task_id, k), told) for k in kinds)
            i = next(found, None)
        if i is not None:
            same[n] = i
            like.gone.add(i)
    return same


def _made(r: Response) -> bool:
    """Whether the kit named an answer."""
    return r.source == "data" or bool(NAME.fullmatch(r.id))


def _told(r: Response) -> dict[str, str]:
    """What makes an answer another one, where it is said; a table's model is the source."""
    said = {k: r.meta.get(k) for k in APART} | {"text": r.text, "confidence": r.confidence}
    source = None if r.source in ("data", said["model"]) else r.source
    said["model" if said["model"] is None else "source"] = source
    return {k: as_text(x) for k, x in said.items() if x is not None}


def _both(a: Response, b: Response) -> Response:
    """An answer with what another set says of it, too, under the name that a file gave it."""
    name = b.id if _made(a) and not _made(b) else a.id
    one, two = (replace(r, source=None) if r.source == "data" else r for r in (a, b))
    both = _filled(one, two, "the answer's", "")
    return replace(both, id=name, source=both.source or a.source or b.source)


def _lost(
    responses: Sequence[Response], verdicts: Sequence[Verdict], tasks: Mapping[str, Any], file: str
) -> list[Finding]:
    """What is said of no task; and labels on no answer."""
    named = Counter(("responses", r.task_id) for r in responses)
    named.update(("verdicts", v.task_id) for v in verdicts)
    there = {r.ids for r in responses}
    labels = (v.ids[:2] for v in verdicts if "label" in v.meta and v.task_id in tasks)
    lost = [ids for ids in labels if ids not in there]
    what = f"{len(lost)} labels are on answers that are not there, first {lost[:1]} (task, answer)"
    odd = [(of, i, n) for (of, i), n in named.items() if i not in tasks]
    near = closest(odd[0][1], tasks) if odd else None  # of the first: each costs a look at all
    said = [
        (
            "unknown-task",
            i,
            f"{n} {of} name the task {i!r}, which is not there",
            f"the nearest is {near!r}" if near and i == odd[0][1] else None,
        )
        for of, i, n in odd
    ]
    fix = "join the answers too; a label's response_id is its answer's"
    said += [("unknown-answer", None, what, fix)] * bool(lost)
    return [
        Finding(code=c, severity="error", message=m, task_id=i, suggestion=f, where=file)
        for c, i, m, f in said
    ]

"""Which format a file is in, by the fields of its first rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any

from ..errors import DataError
from .formats import benchmarks, rubric, training, trees
from .formats.benchmarks import LABELS, LISTS
from .formats.instructions import instructions
from .formats.kit import kit
from .formats.rubric import numbered
from .formats.training import drawn
from .labels import FIELDS, SAID, by_criterion, by_rater
from .rows import READ, Row
from .slips import OWN_CRITERION, OWN_TASK, slip
from .taskset import Parsed
from .values import blank, number, parsed_json

READERS: dict[str, Callable[[Row], Parsed]] = {
    "kit": kit,
    "answers": training.answers,
    "rlvr": rubric.rlvr,
    "instructions": instructions,
    "verifier": training.verifier,
    "refiner": rubric.refiner,
    "open-instruct": rubric.open_instruct,
    "healthbench": benchmarks.healthbench,
    "infobench": benchmarks.infobench,
    "tree": trees.tree,
    "dpo": training.dpo,
    "checklist": benchmarks.checklist,
    "qa": training.qa,
    "sft": training.sft,
    "prompts": training.prompts,
}  # "flat" reads several rows at once
WIDE = re.compile(r"(?:Q|question|criterion|dimension|rubric)[ _-]?\d+\Z", re.I)
TEXT = re.compile(r"\s*(?:\S+\s+){4}.*[.!?。！？]\W*\Z", re.S)  # a sentence, nobody's name
RATED = re.compile(r"rubric\s*[-–—]\s*\d{1,6}\s*\.\s*rating[A-Z]\s*\Z", re.I)
FORMATS = (*READERS, "flat")


def _own_task(row: Mapping[str, Any]) -> bool:
    """True for a task of our own format without its `record`: nothing but our fields, and at
    least one that no list of criteria has.

    >>> _own_task({"id": "t", "prompt": "p", "criteria": [{"id": "c", "text": "x", "parent": "b"}]})
    True
    """
    criteria = row["criteria"]
    if not (isinstance(criteria, list) and all(isinstance(c, Mapping) for c in criteria)):
        return False
    named = all(
        isinstance(c.get("id"), str)
        and {"id", "text"} <= c.keys() <= OWN_CRITERION
        and isinstance(levels := c.get("levels") or [], list)
        and all(isinstance(x, str) for x in levels)
        for c in criteria
    )
    used = set(row).union(*criteria)
    return (
        named
        and isinstance(row.get("id"), str)
        and isinstance(row.get("prompt"), str)
        and row.keys() <= OWN_TASK
        # a field that no list of criteria has
        and not used.isdisjoint("truth history sources meta scale levels parent check".split())
    )


def own(row: Mapping[str, Any]) -> bool:
    """True for a row of our own format; in a file of another one it is still read as ours."""
    return row.get("record") in ("task", "response", "verdict") or (
        "criteria" in row and ({"id", "prompt", "truth", "meta"} <= row.keys() or _own_task(row))
    )


def _says(rubric: Any) -> bool:
    """True for a text, list or object that holds something."""
    held = parsed_json(rubric)
    return isinstance(held, (str, list, Mapping)) and bool(held) and not blank(held)


NAMED = {"checklist", "checklists", "rubrics", "criteria", "requirements"}
TASKS = {"question", "query", "instruction", "messages", "conversations", "input", *LISTS}


def format_of(row: Mapping[str, Any]) -> str | None:
    """The format that one row looks like, or None.

    >>> (format_of({"prompt": "p", "rubric - 1. criterion": "c"}),
    ...  format_of({"prompt": "p", "chosen": "a", "rejected": "b"}))
    ('rlvr', 'dpo')
    """
    if own(row):
        return "kit"
    full = {k: v for k, v in row.items() if v is not None and v not in ([], {})}
    return _format_of(full) or _format_of(row)


def _format_of(row: Mapping[str, Any]) -> str | None:
    return next((name for name, fits in SIGNS if fits(row.keys(), row)), None)


def _each_has(row: Mapping[str, Any], key: str, name: str) -> bool:
    """True for a field that is a list with an object that has this field."""
    held = parsed_json(row.get(key))
    return isinstance(held, list) and any(isinstance(x, Mapping) and name in x for x in held)


def criterion_of(has: Set[str]) -> str | None:
    """The column of a flat table that holds its criterion under another name."""
    sure = has & {"weight", "points", "criterion_id", "label"}
    names = ("criterion_text", "rubric_item", *["requirement"] * bool(sure))
    return next((n for n in names if n in has), None)


def columns(row: Mapping[str, Any]) -> dict[str | None, str]:
    """The columns of a flat table that have another name: its criterion's, and that of a text
    which an answer is held against."""
    names = {} if "criterion" in row else {criterion_of(row.keys()): "criterion"}
    text = isinstance(row.get("source"), str) and "sources" not in row and TEXT.match(row["source"])
    return {**names, "source": "sources"} if text else names


# a format and the sign of it, the first that fits
SIGNS: tuple[tuple[str, Callable[[Set[str], Mapping[str, Any]], Any]], ...] = (
    ("rlvr", lambda has, row: any(map(numbered, has))),
    (  # a row a label, on what has ids
        "answers",
        lambda has, row: (
            drawn(has)
            or (
                has >= {"task_id", "criterion_id"}
                and not has.isdisjoint(SAID)
                and not (  # what a criterion says, beside a label on an answer with an id
                    ("criterion" in has or criterion_of(has))
                    and ("response_id" not in has or "response" in has)
                )
            )
        ),
    ),
    (
        "answers",
        lambda has, row: (
            has.isdisjoint({"prompt", "criterion"}) and has >= {"task_id", "response_id", "labels"}
        ),
    ),
    (
        "answers",
        lambda has, row: (
            has.isdisjoint({"prompt", "criterion"})
            and has >= {"task_id", "response"}
            and (TASKS.isdisjoint(has) or {"response_id", "labels"} & has)
        ),
    ),
    (
        "answers",
        lambda has, row: (
            has.isdisjoint({"prompt", "criterion", *TASKS}) and has >= {"task_id", "id", "text"}
        ),
    ),
    ("verifier", lambda has, row: {"applicable_verifiers", "verifiers"} & has),
    ("verifier", lambda has, row: "question_type" in has and {"truth", "ground_truth"} & has),
    ("refiner", lambda has, row: {"positive_rubrics", "negative_rubrics"} & has),
    ("instructions", lambda has, row: "instruction_id_list" in has),
    ("infobench", lambda has, row: "decomposed_questions" in has),
    ("tree", lambda has, row: {"sub_tasks", "graded_task_tree"} & has),
    ("open-instruct", lambda has, row: "Answer Critical" in has),
    ("open-instruct", lambda has, row: "ground_truth" in has and {"messages", "dataset"} & has),
    ("open-instruct", lambda has, row: _each_has(row, "rubric", "rubric_item")),
    ("dpo", lambda has, row: "chosen" in has and bool(has & {"rejected", "reject"})),
    (  # a chat with points for each criterion, or a physician's labels on one
        "healthbench",
        lambda has, row: (
            _each_has(row, "rubrics", "points") and isinstance(parsed_json(row.get("prompt")), list)
        ),
    ),
    ("healthbench", lambda has, row: has >= {"rubric", "completion", "binary_labels"}),
    ("checklist", lambda has, row: NAMED & has or _says(row.get("rubric"))),
    ("flat", lambda has, row: "criterion" in has or criterion_of(has)),
    ("qa", lambda has, row: "question" in has and {"answer", "expected_answer"} & has),
    ("sft", lambda has, row: {"messages", "conversations"} & has),
    ("sft", lambda has, row: "text" in has and not {"prompt", "question", "query"} & has),
    ("sft", lambda has, row: {"prompt", "instruction"} & has and {"completion", "output"} & has),
    ("prompts", lambda has, row: {"prompt", "question", "query", "instruction"} & has),
)


def _ratings(row: Mapping[str, Any]) -> list[str]:
    """The columns of a wide table such as LLM-Rubric's, Q0 ... Q9 with a rating or its
    distribution; [] for other rows.

    >>> _ratings({"text": "Hi", "Q0": "3", "Q1": 4, "Q2": [0.1, 0.9]}), _ratings({"Q1": "Who?"})
    (['Q0', 'Q1', 'Q2'], [])
    """
    found = [k for k, v in row.items() if isinstance(k, str) and WIDE.match(k) and _rating(v)]
    return found if len(found) >= 3 and "criterion" not in row else []


def _rating(value: Any) -> bool:
    value = parsed_json(value)
    if isinstance(value, (list, Mapping)):
        return bool(value) and all(
            map(_rating, value.values() if isinstance(value, Mapping) else value)
        )
    return number(value) is not None


def labels_of(row: Mapping[str, Any]) -> Iterator[Any]:
    """The labels of people in a row, one by one: of our answers, an RLVR row, or a flat table.

    >>> list(labels_of({"labels": {"c1": [1, 4]}})), list(labels_of({"label": "3", "score": 90}))
    ([1, 4], ['3'])
    """
    named = next((x for n in FIELDS if (x := by_criterion(row.get(n)))), None)
    rated = [v for k, v in row.items() if isinstance(k, str) and RATED.match(k)]
    rated = rated or [row[k] for k in LABELS if row.get(k) is not None][:1]
    held = [label for _, label in named] if named else rated
    return (one for label in held for _, one in by_rater(label))


def detect(rows: Iterable[Mapping[str, Any]], *, where: str = "the file") -> str:
    """The format that most of the rows look like; DataError, which names the fields found, when
    none of them looks like any."""
    votes: Counter[str] = Counter()
    fields: dict[str, None] = {}
    for row in rows:
        fields.update(dict.fromkeys(str(k) for k in row))
        if columns := _ratings(row):
            raise DataError(
                f"this is a wide table of ratings: one column a question "
                f"({', '.join(columns[:4])}, ...)"
                ", and the questions' texts are not in it",
                where=where,
                fix="write one row per answer and question with task_id, prompt, response, "
                "criterion "
                "(the question's text), label and rater",
            )
        if found := format_of(row):
            votes[found] += 1
    if votes:
        order = list(FORMATS)  # of formats with as many rows the first, whatever stands first
        return max(votes, key=lambda name: (votes[name], -order.index(name)))
    meant = [f"{f!r} for {k!r}?" for f in fields for k in sorted(READ) if slip(f, k)]
    raise DataError(
        f"the format is not recognised; fields: {', '.join(list(fields)[:12]) or 'none'}",
        where=where,
        fix=" ".join([*meant[:3], "rename the fields (prompt, rubrics, criteria, messages, ...),"])
        + f" or give format= one of {', '.join(FORMATS)}",
    )

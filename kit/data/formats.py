"""The forms of rows that are read. A form is recognised by the fields of the first row.

| form | a row | becomes |
|---|---|---|
| kit | `{record: "task" / "response" / "verdict", ...}`, all fields of `kit.records` | the record |
| rlvr | `prompt`, `rubric - N. criterion`, `rubric - N. weight / check / required / levels / title / tags`, `responseA`, `rubric - N. ratingA`, `gemini_completion_N` | a task, its answers, people's labels; origins and other notes in meta |
| rubric | `prompt` (a text or a chat), `rubrics` / `criteria` / `checklist`: texts, or objects with `text` and `weight`; HealthBench's `criterion` and `points`, `ideal_completions_data`; `response` | a task, its answers |
| refiner | `prompt`, `positive_rubrics`, `negative_rubrics`, `sources`: id -> text, or snippets in `tool_output` or the prompt | a task; negative weights for the second list |
| open-instruct | `messages`, `dataset`, `ground_truth`: JSON with `rubrics`, or an answer; `Question` and `Answer Critical` / `Valuable` / `Context` of `{Ingredient, Handle}`; `rubric` of `{type, rubric_item}` | a task; a type or section is a tag |
| verifier | `prompt`, `ground_truth` or `truth`, `question_type`, `applicable_verifiers` or `verifiers`, `tissue` or `group` (BioRLHF) | a task with a truth |
| ifeval | `prompt`, `instruction_id_list`, `kwargs` | a task with checks, by the table `ifeval.json` |
| table | one row a criterion or a label: `task_id, prompt, criterion_id, criterion, weight`, `response_id, response, label, rater` | a task with its criteria, answers, labels |
| answers | `task_id, response_id, response, source`, `labels`: criterion -> label, or -> rater -> label | an answer to a task of another file |
| labels | `task_id, response_id, criterion_id, label, rater` | labels on answers of other files |
| dpo | `prompt`, `chosen`, `rejected`: texts or chats | a task and two answers |
| qa | `question`, `answer` or `expected_answer`, `type` or `category` | a task with a truth |
| sft | `messages`, or `prompt` and `completion` / `output`, or `text` with "### Instruction:" and "### Response:" | a task and a demonstration |
| prompts | `prompt`, a text or a chat | a task without criteria |

All forms read `task_id` (or `id`, `prompt_id`), `group`, `split`, `kind`, `system`, `tags` and `meta`. Other fields are
kept in meta and named once in the findings. In a criterion, such a field is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from .. import checks
from ..errors import DataError
from ..records import Criterion, Response, Task, Verdict, fingerprint, from_json
from .files import _json
from .labels import is_blank, verdict_of
from .rows import (
    LAYOUT,
    QUESTION,
    Reading,
    Row,
    answer,
    chat,
    criteria,
    criterion,
    finish,
    label,
    question,
)
from .taskset import Finding

RUBRIC = re.compile(r"rubric - (\d+)\. (\w+)")
ANSWER = re.compile(r"response([A-Z])|(\w+)_completion_\d+")
SNIPPET = re.compile(r"<snippet id=(?:\"([^\">]+)\"|([^\s\">]+))>(.*?)</snippet>", re.S)
SECTIONS = ("Answer Critical", "Valuable", "Context")
LISTS = ("rubrics", "criteria", "checklist")


def kit(row: Row) -> Reading:
    """A record of the kit in its own JSON form."""
    record = from_json(row.data, Task | Response | Verdict, where="")
    if isinstance(record, Task):
        return Reading(task=record)
    if isinstance(record, Response):
        return Reading(responses=[record])
    return Reading(verdicts=[record])


def rlvr(row: Row) -> Reading:
    """Numbered rubric fields. A number without a text is no criterion: rows of a table have as many as the longest."""
    numbered: dict[int, dict[str, Any]] = {}
    for key in [k for k in row if RUBRIC.fullmatch(k)]:
        n, name = RUBRIC.fullmatch(key).groups()  # type: ignore[union-attr]
        numbered.setdefault(int(n), {})[name] = row.pop(key)
    if not numbered:
        raise DataError("there is no field 'rubric - 1. criterion'")
    texts = {
        (m[1] or k): (row.take(k), m[2] or k)
        for k in list(row)
        if (m := ANSWER.fullmatch(k)) and isinstance(row[k], str)
    }
    made, ratings, last = [], [], max((n for n, f in numbered.items() if _filled(f)), default=0)
    for n, fields in sorted(numbered.items()):
        if not _filled(fields):
            _blank(row, n, fields, placeholder=n > last)
            continue
        rated = {k[6:]: fields.pop(k) for k in list(fields) if k[6:] in texts and k[:6] == "rating"}
        ratings += [(name, f"c{n}", value) for name, value in rated.items()]
        notes = {k: fields.pop(k) for k in list(fields) if k.startswith("rating")}
        made += criteria(row, [{"id": f"c{n}", "meta": notes, **fields}], f"rubric - {n}.")
    reading = finish(row, made, question(row, "prompt"))
    answers = {
        k: answer(row, k, text, source=source) for k, (text, source) in texts.items() if text
    }
    for name, c, value in ratings:
        if name in answers:
            label(row, answers[name], c, value)
    return reading


def _filled(fields: Mapping[str, Any]) -> bool:
    return bool(str(fields.get("criterion", "")).strip())


def _blank(row: Row, n: int, fields: Mapping[str, Any], *, placeholder: bool) -> None:
    """Note a rubric number without a text. Other fields of it that are filled would be lost: an error."""
    lost = [k for k, v in fields.items() if not is_blank(v)]
    if lost:
        raise DataError(
            f"'rubric - {n}. {lost[0]}' is filled, but 'rubric - {n}. criterion' is not",
            fix="write the criterion, or empty the other field",
        )
    if placeholder:
        code, severity, text = (
            "placeholder",
            "info",
            "rubric fields after the last criterion are blank",
        )
    else:
        code, severity = "empty-criterion", "warning"
        text = f"the criterion c{n} has no text; it does not count"
    row.reading.findings.append(
        Finding(
            code=code,
            severity=severity,
            message=text,
            where=row.where,
            task_id=None if placeholder else row.get("task_id"),
            criterion_id=None if placeholder else f"c{n}",
        )
    )


def refiner(row: Row) -> Reading:
    """Positive and negative rubrics, and the snippets that an answer may cite."""
    made = _two_signs(row)
    fields = question(row)
    raw = row.take("sources", "snippets")
    if isinstance(raw, str):
        raw = _json(raw, "field 'sources'") if raw.lstrip()[:1] == "{" else _snippets(raw)
    if raw is None:  # the tool output stays in meta: it is part of what a model reads
        tool = row.take("tool_output", default="")
        row.extra |= {"tool_output": tool} if tool else {}
        raw = _snippets(f"{tool}\n{fields['prompt']}")
    return finish(row, made, fields, sources=raw)


def _two_signs(row: Row) -> list[Criterion]:
    names = ("positive_rubrics", "negative_rubrics")
    if not any(n in row for n in names):
        raise DataError(f"there is no field {names[0]!r} or {names[1]!r}")
    good, bad = (row.json(n, kind=list) for n in names)
    return criteria(row, good, names[0], "p") + criteria(row, bad, names[1], "n", -1.0)


def _snippets(text: str) -> dict[str, str]:
    """id -> text of the <snippet id=...> marks; DataError where one id has two texts."""
    out: dict[str, str] = {}
    for a, b, body in SNIPPET.findall(text):
        if out.setdefault(a or b, body.strip()) != body.strip():
            raise DataError(
                f"two snippets have the id {a or b!r}", fix="give each an id of its own"
            )
    return out


def open_instruct(row: Row) -> Reading:
    """A rubric or an answer in `ground_truth`, or the legacy rubric forms as a row of their own."""
    truth: dict[str, Any] = {}
    inner = row
    fields = question(row)
    if "ground_truth" in row:
        raw = row.take("ground_truth")
        is_object = isinstance(raw, str) and raw.lstrip()[:1] == "{"
        truth = _json(raw, "field 'ground_truth'") if is_object else raw
        truth = truth if isinstance(truth, dict) else {"answer": truth}
        inner = Row(truth, row.where)
    made = _open_rubrics(inner)
    if inner is row:
        if not made:
            raise missing_list(row)
        return finish(row, made, fields)
    if "dataset" in row:
        row.extra["verifier"] = row.take("dataset")
    return finish(row, made, fields, truth=dict(inner))


def _open_rubrics(row: Row) -> list[Criterion]:
    made = criteria(row, row.json("rubrics", kind=list), "rubrics")
    kinds = row.take("rubrics_types")
    if isinstance(kinds, list):
        if len(kinds) != len(made):
            raise DataError(f"rubrics_types has {len(kinds)} entries, rubrics {len(made)}")
        made = [
            msgspec.structs.replace(c, tags=(*c.tags, str(k)))
            for c, k in zip(made, kinds, strict=True)
        ]
    elif kinds is not None:
        row["rubrics_types"] = kinds
    if {"positive_rubrics", "negative_rubrics"} & row.keys():
        made += _two_signs(row)
    for name in (*SECTIONS, "rubric"):
        for item in row.json(name, kind=list) if isinstance(row.get(name), list) else ():
            # "type" of the oldest form is a tag, and says the sign where it is "negative"
            kind = item.get("type") if name == "rubric" and isinstance(item, dict) else name
            rest = {k: v for k, v in item.items() if k != "type"} if kind != name else item
            rest = {"text": rest} if isinstance(rest, str) else rest
            tagged = {**rest, "tags": [*rest.get("tags", []), *([kind] if kind else [])]}
            n, sign = len(made) + 1, -1.0 if kind == "negative" else 1.0
            made += criteria(row, [{"id": f"c{n}", **tagged}], name, sign=sign)
    return made


def missing_list(row: Row) -> DataError:
    """The error for a row that should have a rubric and has none."""
    return DataError(
        f"there is no rubric in {', '.join(map(repr, LISTS))}",
        fix=f"the row has {', '.join(map(repr, list(row)[:12])) or 'no other fields'}",
    )


def rubric(row: Row) -> Reading:
    """A prompt with a list of criteria; a response and HealthBench's ideal answers beside it."""
    name = next((n for n in LISTS if n in row), None)
    if name is None:
        raise missing_list(row)
    made = criteria(row, row.json(name, kind=list), name)
    fields = question(row)
    ideal = row.json("ideal_completions_data") if "ideal_completions_data" in row else {}
    texts = {"ideal": ideal.pop("ideal_completion", None), "response": row.take("response")}
    row.extra |= {"ideal_completions_data": ideal} if ideal else {}
    reading = finish(row, made, fields)
    for key, text in texts.items():
        if text is not None:
            answer(row, key, text)
    return reading


def verifier(row: Row) -> Reading:
    """A truth, the type of the question, the verifiers that apply, and the group to hold out (BioRLHF)."""
    own = "truth" in row
    raw = row.json("truth", "ground_truth")
    names = row.json("verifiers", "applicable_verifiers", kind=list)
    fields = question(row)
    fields["kind"] = row.take("question_type")
    fields["group"] = row.take("group", "tissue")
    row.extra["verifiers"] = names
    return finish(row, [], fields, truth=raw if own else checks.truth_of(raw))


@cache
def _instructions() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("ifeval.json").read_text("utf-8"))


def ifeval(row: Row) -> Reading:
    """Instruction ids with arguments: each becomes a check by the data table, or is left to a judge."""
    names, arguments = row.json("instruction_id_list", kind=list), row.json("kwargs", kind=list)
    if len(arguments) != len(names):
        raise DataError(f"kwargs has {len(arguments)} entries, instruction_id_list {len(names)}")
    if "key" in row and "id" not in row:
        row["id"] = row.pop("key")
    made = [_instruction(row, n, *x) for n, x in enumerate(zip(names, arguments, strict=True), 1)]
    return finish(row, made, question(row))


def _instruction(row: Row, n: int, name: Any, raw: Any) -> Criterion:
    values = {k: v for k, v in (raw or {}).items() if v is not None}
    entry = _instructions().get(name)
    fields: dict[str, Any] = {"id": f"i{n}", "meta": {"instruction": name, "kwargs": values}}
    fields["tags"] = [str(name).partition(":")[0]]
    if entry is None:
        about = f" ({', '.join(f'{k}: {v}' for k, v in values.items())})" if values else ""
        fields["text"] = f"Follows the instruction {name!r}{about}."
        row.reading.findings.append(
            Finding(
                code="no-check",
                severity="info",
                message=f"no check decides the instruction {name!r}; a judge does",
                where=row.where,
            )
        )
        return criterion(fields, "")
    check = dict(entry["check"])
    if "bounds" in entry:
        relation, count = entry["bounds"]
        low = _number(values, count, name)
        stated = values.get(relation, relation)
        try:
            words, bounds = {
                "at least": (f"at least {low}", {"min": low}),
                "less than": (f"fewer than {low}", {"max": low - 1}),
                "exactly": (f"exactly {low}", {"min": low, "max": low}),
            }[stated]
        except KeyError:
            raise DataError(
                f"the argument {relation!r} of {name!r} is {stated!r}",
                fix="write at least, less than or exactly",
            ) from None
        values = {**values, "bounds": words}
        check |= bounds
    fields["check"] = {k: _fill(v, values, name, escape=k == "pattern") for k, v in check.items()}
    fields["text"] = _fill(entry["text"], values, name, escape=False, whole=False)
    return criterion(fields, "")


def _number(values: Mapping[str, Any], key: str, name: str) -> int:
    n = values.get(key)
    if isinstance(n, bool) or not isinstance(n, int | float) or n != int(n) or n < 0:
        raise DataError(f"the argument {key!r} of {name!r} is {n!r}, not a whole number")
    return int(n)


def _fill(
    value: Any, values: Mapping[str, Any], name: str, *, escape: bool, whole: bool = True
) -> Any:
    """A template with its arguments in it: @word@ is a text, @n-m@ a difference of whole numbers.

    whole : a template that is one argument alone gives that argument, for example a list.
    """
    if not isinstance(value, str):
        return value

    def one(match: re.Match[str]) -> str:
        first, second = match[1], match[2]
        if second:
            less = int(second) if second.isdigit() else _number(values, second, name)
            return str(max(0, _number(values, first, name) - less))
        x = values.get(first)
        if x in (None, "", []):
            raise DataError(f"the argument {first!r} of {name!r} is missing")
        x = ", ".join(map(repr, x)) if isinstance(x, list) else str(x)
        return re.escape(x) if escape else x

    alone = re.fullmatch(r"@(\w+)@", value)
    if alone and whole and not escape:
        one(alone)
        return values[alone[1]]
    return re.sub(r"@(\w+?)(?:-(\w+))?@", one, value)


OF_TASK = ("prompt", "group", "kind", "split", "system")
OF_CRITERION = ("criterion_id", "weight", "points", "required", "title", "parent")


def table(row: Row) -> Reading:
    """A row a criterion or a label. `load` puts the rows of a task together."""
    item: dict[str, Any] = {"text": row.text("criterion")}
    item |= {k: row.take(k) for k in OF_CRITERION if k in row}
    item |= {k: row.json(k, kind=list) for k in ("levels", "tags") if k in row}
    item |= {"check": row.json("check")} if "check" in row else {}
    # `finish` would take an id of its own making, and then no two rows were of one task
    fields = {k: row.take(k) for k in OF_TASK if k in row}
    name, text = row.id("task_id"), row.take("response")
    if name is None:
        raise _no_id("task_id", row)
    one = criterion(item, "c-" + fingerprint(item)[:8])
    task = from_json({"id": name, "criteria": [one], **fields}, Task, where="")
    row.reading.task = task
    if text is None:
        if "label" in row or "response_id" in row:
            raise DataError("there is a label or a response_id, but no field 'response'")
        return row.reading
    about = {"source": row.take("source")} if "source" in row else {"source": None}
    key = row.id("response_id") or made_id(row, name, text)
    response = answer(row, key, text, **about)
    rater, value = row.take("rater"), row.take("label")
    if not is_blank(value):
        label(row, response, one.id, {str(rater): value} if rater else value, **row)
    return row.reading


def _no_id(wanted: str, row: Row) -> DataError:
    from .rows import missing

    return missing((wanted,), row)


def made_id(row: Row, task_id: str, text: str) -> str:
    """The id of an answer without one: of its content, so that it is the same each time."""
    row.reading.made_id = True
    return "r-" + fingerprint([task_id, text])[:12]


def answers(row: Row) -> Reading:
    """An answer to a task of another file, with its labels."""
    text = row.need("response", "text")
    task_id = row.id("task_id")
    if task_id is None:
        raise _no_id("task_id", row)
    name = row.id("response_id", "id") or made_id(row, task_id, text)
    labels = row.json("labels")
    fields: dict[str, Any] = {"source": row.take("source")}
    fields |= {"truncated": row.take("truncated")} if "truncated" in row else {}
    if "confidence" in row or isinstance(row.get("stated_confidence"), int | float):
        fields["confidence"] = row.take("confidence", "stated_confidence")
    if not 0 <= (fields.get("confidence") or 0) <= 1:
        raise DataError(f"the field 'confidence' is {fields['confidence']}, not in [0, 1]")
    response = answer(row, name, text, task_id=task_id, meta=dict(row), **fields)
    for key, value in labels.items():
        label(row, response, key, value)
    return row.reading


SHOWN = ("prompt", "response", "criterion", "group", "kind", "source", "weight", "title")


def labels(row: Row) -> Reading:
    """A label on an answer of another file. A row that is not filled in is none; texts beside it are for the rater."""
    ids = [row.id(k) for k in ("task_id", "response_id", "criterion_id")]
    for key, value in zip(("task_id", "response_id", "criterion_id"), ids, strict=True):
        if value is None:
            raise _no_id(key, row)
    # a spreadsheet would read such a text as a formula, so a quote stands before it
    clean = tuple(re.sub(r"^'(?=[=+\-@\t\r])", "", str(i)) for i in ids)
    levels, value = row.json("levels", kind=list), row.take("label")
    judge = f"human:{row.take('rater')}" if row.get("rater") else "human"
    for key in SHOWN:
        row.take(key)
    scale = {"levels": levels} if levels else {}
    one = criterion({"text": "-", **scale}, clean[2]) if scale else None
    if not is_blank(value):
        verdict = verdict_of(clean, value, one, judge=judge)  # type: ignore[arg-type]
        verdict.meta.update(row)
        row.reading.verdicts.append(verdict)
    return row.reading


def pair(row: Row) -> Reading:
    """A preferred and a rejected answer, texts or chats that begin alike."""
    sides = {k: _side(k, row.need(k)) for k in ("chosen", "rejected")}
    starts = [start for start, _ in sides.values() if start is not None]
    fields = question(row) if any(n in row for n in QUESTION if n != "messages") else None
    if fields is None and not starts:
        raise _no_id("prompt", row)
    fields = fields or starts[0]
    for start in starts:
        if start["prompt"] != fields["prompt"] or start["history"] != fields.get("history", []):
            raise DataError("chosen and rejected answer different prompts")
    reading = finish(row, [], fields)
    for key, (_, text) in sides.items():
        answer(row, key, text, role=key)
    return reading


def _side(name: str, value: Any) -> tuple[dict[str, Any] | None, str]:
    """(the fields of the question if the value is a whole chat, the answer)."""
    if isinstance(value, str):
        return None, value
    is_turn = isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict)
    if is_turn and value[0].get("role") == "assistant":
        _, text = chat([{"role": "user", "content": "-"}, *value])
        return None, str(text)
    fields, text = chat(value)
    if text is None:
        raise DataError(f"the chat in {name!r} does not end with an answer")
    return fields, text


def sft(row: Row) -> Reading:
    """A demonstration: a chat, a prompt and a completion, or one text in the instruction layout."""
    completion = row.take("completion", "output")
    if completion is not None:
        start, text = _side("completion", completion)
        fields = start if start is not None else question(row, "prompt", "instruction", "question")
    elif "messages" in row:
        value = row.json("messages", kind=list)
        fields, text = _side("messages", value)
    else:
        value = row.text("text")
        match = LAYOUT.fullmatch(value)
        if match is None:
            raise DataError("the field 'text' has no '### Instruction:' and '### Response:'")
        row.extra["layout"] = value
        fields, text = {"prompt": match[1].strip()}, match[2].strip()
    if not text or not text.strip() or fields is None:
        raise DataError("there is no answer to learn from", fix="remove the row")
    reading = finish(row, [], fields)
    answer(row, "demonstration", text, source="data", role="demonstration")
    return reading


def qa(row: Row) -> Reading:
    """A question with its answer."""
    for wanted, name in (("expected_answer", "answer"), ("category", "type")):
        if wanted not in row and name in row:
            row.reading.findings.append(
                Finding(
                    code="field-mismatch",
                    severity="warning",
                    message=f"rows have {name!r} and no {wanted!r}: an evaluator that reads {wanted!r} "
                    "finds nothing and marks every answer wrong",
                    field=name,
                )
            )
    fields = question(row, "question", "prompt")
    truth = {"answer": row.need("expected_answer", "answer")}
    return finish(row, [], fields, truth=truth, kind=row.take("category", "type", "kind"))


def prompts(row: Row) -> Reading:
    """A prompt alone."""
    return finish(row, [], question(row))


def _numbered(r: Mapping[str, Any]) -> bool:
    return any(k.startswith("rubric - ") and RUBRIC.fullmatch(k) for k in r)


def _open(r: Mapping[str, Any]) -> bool:
    legacy = any(isinstance(r.get(k), list) for k in ("Answer Critical", "rubric"))
    return legacy or {"messages", "ground_truth"} <= r.keys()


def _is_labels(r: Mapping[str, Any]) -> bool:
    ids = {"task_id", "response_id", "criterion_id"} <= r.keys()
    return ids and ("inclusion" in r or ("label" in r and "criterion" not in r))


def _is_answer(r: Mapping[str, Any]) -> bool:
    asks = {"prompt", "question", "messages", "instruction", "query"} & r.keys()
    return "response" in r and not asks


Fits = Callable[[Mapping[str, Any]], Any]
# To add a form: write a reader above, add it here (the first that fits the first row is taken), and to the table at
# the top of this file.
FORMATS: dict[str, tuple[Fits, Callable[[Row], Reading]]] = {
    "kit": (lambda r: "record" in r, kit),
    "labels": (_is_labels, labels),
    "table": (lambda r: "criterion" in r, table),
    "rlvr": (_numbered, rlvr),
    "ifeval": (lambda r: "instruction_id_list" in r, ifeval),
    "verifier": (lambda r: {"verifiers", "applicable_verifiers"} & r.keys(), verifier),
    "refiner": (lambda r: {"positive_rubrics", "negative_rubrics"} & r.keys(), refiner),
    "open-instruct": (_open, open_instruct),
    "rubric": (lambda r: not r.keys().isdisjoint(LISTS), rubric),
    "dpo": (lambda r: {"chosen", "rejected"} & r.keys(), pair),
    "answers": (_is_answer, answers),
    "qa": (lambda r: "question" in r and {"answer", "expected_answer"} & r.keys(), qa),
    "sft": (lambda r: {"messages", "text", "completion", "output"} & r.keys(), sft),
    "prompts": (lambda r: not r.keys().isdisjoint(QUESTION), prompts),
}


def format_of(row: Mapping[str, Any]) -> str:
    """The name of the form of a row; DataError where it is in none.

    >>> format_of({"prompt": "p", "rubrics": ["Is kind."]})
    'rubric'
    """
    for name, (fits, _) in FORMATS.items():
        if fits(row):
            return name
    raise DataError(
        f"the row is in no form that is read; its fields are {', '.join(map(repr, list(row)[:12]))}",
        fix="rename fields with fields={'yours': 'prompt'}; the forms are in kit/data/formats.py",
    )

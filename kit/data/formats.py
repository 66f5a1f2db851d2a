"""The forms of rows that are read. A form is recognised by the fields of the first row.

kit            {"record": "task" | "response" | "verdict", ...} with the fields of `kit.records`
rlvr           prompt; "rubric - N. criterion", beside it weight, check, required, levels, title, tags;
               responseA or gemini_completion_N; "rubric - N. ratingA" (a label on responseA).
               "rubric - N. criterion_origin", instruction_type and instruction_necessity are notes.
rubric         prompt (a text or a chat); rubrics, criteria or checklist: texts, or objects with text and weight.
               HealthBench writes criterion and points. response, ideal_completions_data: answers
refiner        prompt; positive_rubrics; negative_rubrics (their weights are sizes); sources: id -> text, or
               <snippet id=ID>text</snippet> in tool_output or in the prompt
open-instruct  messages; dataset; ground_truth: an answer, or JSON with rubrics (description, title, weight).
               Older: Question and "Answer Critical", Valuable, Context: [{Ingredient, Handle}];
               query and rubric: [{type, rubric_item}], where the type "negative" turns the sign
verifier       prompt; truth or ground_truth; verifiers or applicable_verifiers; question_type; group or tissue
ifeval         prompt; instruction_id_list; kwargs. `ifeval.json` has the check of each instruction id.
table          one row a criterion or a label: task_id, prompt, criterion_id, criterion, weight, required, check,
               levels, title, tags; response_id, response, source, label, rater
answers        task_id (of another file), response_id, response, source, confidence; labels: criterion -> label,
               or criterion -> rater -> label
labels         task_id, response_id, criterion_id (of other files), label, rater, levels
dpo            prompt; chosen; rejected: texts, or chats
qa             question; answer or expected_answer; type or category
sft            messages; or prompt and completion (output); or a text with "### Instruction:" and "### Response:"
prompts        prompt, question, query or instruction; messages: a chat that ends with the user

All forms read `task_id` (or `id`, `prompt_id`), `group`, `split`, `kind`, `system`, `tags` and `meta`. Other fields are
kept in meta and named once in the findings. In a criterion, such a field is an error.
"""

import itertools
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .. import checks
from ..errors import DataError
from ..records import Criterion, Response, Task, Verdict, fingerprint, from_json
from .files import parse
from .rows import (
    LAYOUT,
    QUESTION,
    Row,
    answer,
    chat,
    criteria,
    criterion,
    finish,
    is_blank,
    label,
    missing,
    question,
    refuse,
)

RUBRIC = re.compile(r"rubric - (0|[1-9]\d*)\. (\w+)")
ANSWER = re.compile(r"response([A-Z])|(\w+)_completion_\d+")
SNIPPET = re.compile(
    r"<snippet id=(?:\"([^\">]+)\"|([^\s\">]+))>(.*?)</snippet>", re.S
)
OPENED = re.compile(r"<snippet\s")
# An interval such as [0, 1] is an answer.
JSON_TEXT = re.compile(r"\s*(?:\{|\[\s*[{\"])")
FORMULA = re.compile(r"'[=+\-@\t\r]")
# List of criteria -> (what their ids begin with, the sign of their weights).
LISTS = {
    **dict.fromkeys(("rubrics", "criteria", "checklist"), ("c", 1.0)),
    "positive_rubrics": ("p", 1.0),
    "negative_rubrics": ("n", -1.0),
}


def kit(row: Row) -> None:
    """A record of the kit in its own JSON form."""
    record = from_json(row.data, Task | Response | Verdict, where="")
    row.clear()
    if isinstance(record, Task):
        row.task = record
    else:
        row.records.append(record)


def rlvr(row: Row) -> None:
    """Numbered rubric fields. A number without a text is no criterion: a table has as many as its longest row."""
    parts: dict[int, dict[str, Any]] = {}
    for key in [k for k in row if k.startswith("rubric - ")]:
        match = RUBRIC.fullmatch(key)
        refuse(
            match is None,
            f"nothing reads the field {key!r}",
            fix="write 'rubric - N. criterion'",
        )
        value, part = row.pop(key), parts.setdefault(int(match[1]), {})
        if not is_blank(value):
            part[match[2]] = value
    items, ratings = [], []
    last = max((n for n, part in parts.items() if part), default=0)
    for n, part in sorted(parts.items()):
        if not part and n < last:
            about = {"task_id": row.get("task_id"), "criterion_id": f"c{n}"}
            row.note(
                "empty-criterion",
                f"the criterion c{n} has no text",
                severity="warning",
                **about,
            )
        elif not part:
            row.note(
                "placeholder", "a rubric field after the last criterion is blank"
            )
        elif "criterion" not in part:
            raise missing((f"rubric - {n}. criterion",), part)
        # The labels stand among the fields of the criterion; they are no part of it.
        names = [name for name in part if name.startswith("rating")]
        ratings += [(name[6:], f"c{n}", part.pop(name)) for name in names]
        items += [{"id": f"c{n}", **part}] if part else []
    texts = {}
    for key in list(row):
        if (match := ANSWER.fullmatch(key)) and not is_blank(text := row.pop(key)):
            texts[match[1] or key] = (key, text)
    finish(row, criteria(items, "rubric"), question(row, "prompt"))
    made = {n: answer(row, n, text, source=key) for n, (key, text) in texts.items()}
    for name, criterion_id, rating in ratings:
        if name not in made:
            raise missing((f"response{name}",), row)
        label(row, (*made[name].ids, criterion_id), rating)


def rubric(row: Row) -> None:
    """A prompt with lists of criteria; beside it the snippets that an answer may cite, and answers."""
    made, fields = _lists(row), question(row)
    if "sources" not in row:
        # The tool output stays in meta, because it is a part of what a model reads.
        tool = row.take("tool_output", default="")
        row.extra |= {"tool_output": tool} if tool else {}
        refuse(
            not isinstance(tool, str | dict),
            "the field 'tool_output' is no text and no object",
        )
        fields["sources"] = _snippets(
            "\n".join(
                map(
                    str,
                    [
                        *(tool.values() if isinstance(tool, dict) else [tool]),
                        fields["prompt"],
                    ],
                )
            )
        )
    # HealthBench's ideal answer lies in an object that stays in meta.
    ideal = (row.get("ideal_completions_data") or {}).get("ideal_completion")
    texts = {"response": row.take("response"), "ideal": ideal}
    finish(row, made, fields)
    for key, text in texts.items():
        if text is not None:
            answer(row, key, text)


def _lists(row: Row) -> list[Criterion]:
    made = []
    names = [name for name in LISTS if name in row]
    if not names:
        raise missing(LISTS, row)
    for name in names:
        items = row.take(name) if name == "rubrics" else row.json(name, kind=list)
        made += criteria(items, name, *LISTS[name])
    return made


def _snippets(text: str) -> dict[str, str]:
    whole = SNIPPET.findall(text)
    refuse(
        len(OPENED.findall(text)) != len(whole),
        "a <snippet> is not closed, nested, or without its id",
        fix="write <snippet id=ID>text</snippet>, one after another",
    )
    pairs = {(a or b, body.strip()) for a, b, body in whole}
    # With one id for two texts, a citation could not be checked.
    refuse(
        len(dict(pairs)) < len(pairs),
        "two snippets have one id",
        fix="give each snippet an id of its own",
    )
    return dict(sorted(pairs))


def open_instruct(row: Row) -> None:
    """A rubric or an answer in `ground_truth`, or the older rubric forms as a row of their own."""
    fields, raw = question(row), row.take("ground_truth")
    # The dataset is mixed: for one verifier the truth is a text, for another JSON.
    if isinstance(raw, str) and JSON_TEXT.match(raw):
        raw = parse(raw, "field 'ground_truth'")
    truth = Row(raw if isinstance(raw, dict) else {"answer": raw})
    refuse(
        isinstance(raw, list)
        or (
            isinstance(raw, dict)
            and truth.keys().isdisjoint((*LISTS, *OLDER, "rubric"))
        ),
        f"the field 'ground_truth' holds a {type(raw).__name__} without a rubric",
        fix='write an answer as a text, or {"rubrics": [...]}',
    )
    source = row if raw is None else truth
    items = _older(source)
    if items:
        source["rubrics"] = source.json("rubrics", kind=list) + items
    made = [] if source.keys().isdisjoint(LISTS) else _lists(source)
    row.extra |= {"verifier": row.take("dataset")} if "dataset" in row else {}
    finish(row, made, {**fields, "truth": dict(truth)})


OLDER = ("Answer Critical", "Valuable", "Context")


def _older(row: Row) -> list[dict[str, Any]]:
    items = []
    for name in OLDER:
        items += [{**item, "tags": [name]} for item in row.json(name, kind=list)]
    for item in row.json("rubric", kind=list):
        # The type is a tag, and says the sign of the weight, which is a size.
        kind, size = item.pop("type", None), item.pop("weight", None)
        size = 1.0 if size is None else size
        refuse(
            kind not in (None, "positive", "negative")
            or (kind == "negative" and size < 0),
            f"the type of a rubric is {kind!r}, its weight {size!r}",
            where="field 'rubric'",
            fix="write positive or negative; the weight of a negative one is its size",
        )
        weight = -size if kind == "negative" and size is not True else size
        items.append({**item, "weight": weight, "tags": [kind] if kind else []})
    return items


def verifier(row: Row) -> None:
    """A truth, the type of the question, the verifiers that apply, and the group to hold out (BioRLHF)."""
    fields = question(row)
    truth = row.json("truth") or checks.truth_of(row.json("ground_truth"))
    names = row.json("verifiers", "applicable_verifiers", kind=list)
    row.extra["verifiers"] = checks.verifiers_of(names)
    kind, group = row.take("question_type"), row.take("group", "tissue")
    finish(row, [], {**fields, "truth": truth, "kind": kind, "group": group})


# Instruction id -> the text of its criterion, and its check.
INSTRUCTIONS: dict[str, Any] = json.loads(
    Path(__file__).with_name("ifeval.json").read_text("utf-8")
)


def ifeval(row: Row) -> None:
    """Instruction ids with arguments: each becomes a check by the data table, or is left to a judge."""
    names = row.json("instruction_id_list", kind=list)
    arguments = row.json("kwargs", kind=list)
    refuse(
        len(arguments) != len(names),
        f"kwargs has {len(arguments)} entries, instruction_id_list {len(names)}",
    )
    if "key" in row:
        row["task_id"] = row.pop("key")
    pairs = enumerate(zip(names, arguments, strict=True), 1)
    made = [_instruction(f"i{n}", name, k or {}) for n, (name, k) in pairs]
    finish(row, made, question(row))


def _instruction(criterion_id: str, name: Any, values: dict[str, Any]) -> Criterion:
    values = {k: v for k, v in values.items() if v is not None}
    meta = {"instruction": name, "kwargs": dict(values)}
    entry = INSTRUCTIONS.get(name)
    if entry is None:
        # A new instruction is no fault of the file: a judge decides it.
        text = f"Follows the instruction {name!r} ({', '.join(f'{k}: {v}' for k, v in values.items())})."
        return criterion({"text": text, "meta": meta}, criterion_id)
    # A template may name an argument, the number 1, or a difference of two ("@num_paragraphs-1@"):
    # counts of a regular expression are one less than counts of what it parts.
    numbers = {k: v for k, v in values.items() if isinstance(v, int | float)} | {
        "1": 1
    }
    for (a, x), (b, y) in itertools.permutations(numbers.items(), 2):
        values[f"{a}-{b}"] = int(x - y)
    try:
        check = dict(entry["check"])
        for argument, options in entry.get("if", {}).items():
            check |= options[values[argument]]
        for key, value in check.items():
            check[key] = _fill(value, values, is_pattern=key == "pattern")
        text = re.sub(r"@([\w-]+)@", lambda m: str(values[m[1]]), entry["text"])
    except (KeyError, TypeError) as e:
        raise DataError(
            f"the arguments of {name!r} are {meta['kwargs']}: {e}"
        ) from None
    return criterion({"text": text, "check": check, "meta": meta}, criterion_id)


def _fill(value: Any, values: Mapping[str, Any], *, is_pattern: bool) -> Any:
    """A template of a check with its arguments in it; in a pattern they stand for themselves."""
    if is_pattern:
        return re.sub(r"@([\w-]+)@", lambda m: re.escape(str(values[m[1]])), value)
    is_template = isinstance(value, str) and value[:1] == value[-1:] == "@"
    return values[value.strip("@")] if is_template else value


OF_CRITERION = ("criterion_id", "weight", "points", "required", "title", "parent")
NESTED = {"levels": list, "tags": list, "check": dict}


def table(row: Row) -> None:
    """A row a criterion or a label. `load` puts the rows of a task together."""
    item = {"text": row.need("criterion")}
    item |= {k: row.pop(k) for k in OF_CRITERION if k in row}
    item |= {k: row.json(k, kind=kind) for k, kind in NESTED.items() if k in row}
    made = criterion(item, "c-" + fingerprint(item)[:8])
    fields = {
        k: row.take(k) for k in ("prompt", "group", "kind", "split", "system")
    }
    fields |= {"id": row.id("task_id", is_needed=True), "criteria": [made]}
    row.task = task = from_json(fields, Task, where="")
    text, value = row.take("response"), row.take("label")
    if text is None and ("response_id" in row or not is_blank(value)):
        raise missing(("response",), row)
    if text is not None:
        name = row.id("response_id") or "r-" + fingerprint([task.id, text])[:12]
        response = answer(row, name, text, source=row.take("source"))
        by_rater = {row.take("rater"): value}
        label(row, (*response.ids, made.id), by_rater, **row)


def answers(row: Row) -> None:
    """An answer to a task of another file, with its labels."""
    text, task_id = row.need("response"), row.id("task_id", is_needed=True)
    name = (
        row.id("response_id")
        or row.id("id")
        or "r-" + fingerprint([task_id, text])[:12]
    )
    labels = row.json("labels")
    fields = {
        "source": row.take("source"),
        "confidence": row.take("stated_confidence", "confidence"),
        "truncated": row.take("truncated", default=False),
    }
    response = answer(row, name, text, task_id=task_id, meta=dict(row), **fields)
    for criterion_id, value in labels.items():
        label(row, (*response.ids, criterion_id), value)


IDS = ("task_id", "response_id", "criterion_id")
# Texts that a page for raters repeats; the other files have them.
FOR_RATERS = "prompt response criterion group kind source weight title"


def labels(row: Row) -> None:
    """A label on an answer of another file. A row that is not filled in is none."""
    # A spreadsheet takes a text that begins so for a formula; people.save_labels puts a quote before it.
    for key, value in row.items():
        if isinstance(value, str) and FORMULA.match(value):
            row[key] = value[1:]
    ids = tuple(row.id(name, is_needed=True) for name in IDS)
    value, rater = row.take("label"), row.take("rater")
    points, levels = row.take("points"), row.json("levels", kind=list)
    scale = {"scale": "points", "points": points} if points else {"levels": levels}
    for key in FOR_RATERS.split():
        row.take(key)
    one = criterion({"text": "-", **scale}, "-") if points or levels else None
    label(row, ids, {rater: value}, one, **row)


def pair(row: Row) -> None:
    """A preferred and a rejected answer, texts or chats that begin alike."""
    sides = {name: _side(row.need(name)) for name in ("chosen", "rejected")}
    starts = [start for start, _ in sides.values() if start is not None]
    is_apart = "prompt" in row or "question" in row or not starts
    fields = question(row, "prompt", "question") if is_apart else starts[0]
    fields = {
        "history": [],
        "system": next((x.get("system") for x in starts), None),
        **fields,
    }
    refuse(
        any({"system": None, **start} != fields for start in starts),
        "chosen and rejected answer different prompts",
        fix="make their system and all turns before the answer equal",
    )
    finish(row, [], fields)
    for name, (_, text) in sides.items():
        answer(row, name, text, meta={"role": name})


def _side(value: Any) -> tuple[dict[str, Any] | None, Any]:
    """(the fields of the question if the value is a whole chat, the answer)."""
    if not isinstance(value, list):
        return None, value
    # TRL writes an answer as a chat of one turn where the prompt is a field.
    is_turn = len(value) == 1
    start = [{"role": "user", "content": "-"}] if is_turn else []
    fields, text = chat([*start, *value])
    refuse(
        text is None,
        "a chat does not end with an answer",
        fix="end it with the assistant",
    )
    return None if is_turn else fields, text


def sft(row: Row) -> None:
    """A demonstration: a chat, a prompt and a completion, or one text in the instruction layout."""
    if "text" not in row:
        fields, text = _side(row.need("completion", "output", "messages"))
        fields = fields or question(row, "prompt", "instruction", "question")
    else:
        layout = LAYOUT.fullmatch(row["text"])
        refuse(
            layout is None,
            "the field 'text' has no '### Instruction:' and '### Response:'",
        )
        row.extra["layout"], text = row.pop("text"), layout[2].strip()
        # The input of an instruction is a part of the prompt, without its heading.
        fields = {"prompt": layout[1].strip().replace("### Input:\n", "", 1)}
    refuse(is_blank(text), "there is no answer to learn from", fix="remove the row")
    finish(row, [], fields)
    answer(
        row, "demonstration", text, source="data", meta={"role": "demonstration"}
    )


def qa(row: Row) -> None:
    """A question with its answer."""
    for wanted, name in (("expected_answer", "answer"), ("category", "type")):
        if wanted not in row and name in row:
            what = f"an evaluator that reads {wanted!r} finds nothing: the field is {name!r}"
            row.note("field-mismatch", what, severity="warning", field=name)
    fields = question(row, "question")
    fields["truth"] = {"answer": row.need("expected_answer", "answer")}
    fields["kind"] = row.take("category", "type", "kind")
    finish(row, [], fields)


def prompts(row: Row) -> None:
    """A prompt alone."""
    finish(row, [], question(row))


Fits = Callable[[Mapping[str, Any]], bool]


def _is_open(r: Mapping[str, Any]) -> bool:
    older = any(
        isinstance(r.get(name), list) for name in ("Answer Critical", "rubric")
    )
    return older or {"messages", "ground_truth"} <= r.keys()


def _is_demonstration(r: Mapping[str, Any]) -> bool:
    last = (r.get("messages") or [None])[-1]
    is_chat = isinstance(last, dict) and last.get("role") == "assistant"
    return is_chat or not r.keys().isdisjoint(("completion", "output", "text"))


def _has(*names: str, beside: tuple[str, ...] = ()) -> Fits:
    """One of these fields is there, and all those beside it."""
    return lambda r: not r.keys().isdisjoint(names) and r.keys() >= set(beside)


# To add a form: write its reader above, put it here (the first form that fits the first row is taken), and into the
# table at the top of this file.
FORMATS: dict[str, tuple[Fits, Callable[[Row], None]]] = {
    "kit": (_has("record"), kit),
    "table": (lambda r: "criterion" in r and "inclusion" not in r, table),
    "labels": (_has("label", "inclusion", beside=IDS), labels),
    "rlvr": (lambda r: any(k.startswith("rubric - ") for k in r), rlvr),
    "ifeval": (_has("instruction_id_list"), ifeval),
    "verifier": (_has("verifiers", "applicable_verifiers"), verifier),
    "refiner": (_has("positive_rubrics", "negative_rubrics"), rubric),
    "open-instruct": (_is_open, open_instruct),
    "rubric": (_has(*LISTS), rubric),
    "dpo": (_has("chosen", "rejected"), pair),
    "answers": (
        lambda r: "response" in r and r.keys().isdisjoint(QUESTION),
        answers,
    ),
    "qa": (_has("answer", "expected_answer", beside=("question",)), qa),
    "sft": (_is_demonstration, sft),
    "prompts": (_has(*QUESTION), prompts),
}


def format_of(row: Mapping[str, Any]) -> str:
    """The name of the form of a row; DataError where it is in none.

    >>> format_of({"prompt": "p", "rubrics": ["Is kind."]})
    'rubric'
    """
    for name, (fits, _) in FORMATS.items():
        if fits(row):
            return name
    names = ", ".join(map(repr, list(row)[:12]))
    raise DataError(
        f"the row is in no form that is read; its fields are {names}",
        fix="rename yours with fields={'YOURS': 'OURS'}. Ours: rubrics have task_id, prompt, criteria; answers have "
        "task_id, response_id, response; labels have task_id, response_id, criterion_id, label. "
        "More forms: kit/data/formats.py",
    )

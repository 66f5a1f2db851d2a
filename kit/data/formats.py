"""The forms of rows that are read. A file has the form of its rows, all of which must have the same one.

kit            {"record": "task" | "response" | "verdict", ...} with the fields of `kit.records`
rlvr           prompt; "rubric - N. criterion", beside it weight, check, required, levels, title, tags;
               responseA or gemini_completion_N; "rubric - N. ratingA" (a label on responseA: a coloured circle, words).
               "rubric - N. criterion_origin", instruction_type and instruction_necessity are notes.
rubric         prompt or question (a text or a chat); rubrics, rubric, criteria or checklist: texts, or objects with
               text (criterion, description) and weight (points). HealthBench writes criterion and points.
               response with response_id: an answer. answer or ground_truth: the truth
refiner        prompt; positive_rubrics; negative_rubrics (their weights are sizes); sources: id -> text, or
               <snippet id=ID>text</snippet> in tool_output or in the prompt
verl           prompt; reward_model: {rubrics or ground_truth}; ability; extra_info: {split}
open-instruct  messages; dataset; ground_truth: an answer, or JSON with rubrics (description, title, weight)
verifier       prompt; truth or ground_truth; verifiers or applicable_verifiers; question_type; group or tissue
ifeval         prompt; instruction_id_list; kwargs. `ifeval.json` has the check of each instruction id.
table          one row a criterion or a label: task_id, prompt, criterion_id, criterion, weight, required, check,
               levels, title, tags; response_id, response, source, label, rater
answers        task_id (of another file), response_id, response, source, confidence; labels: criterion -> label,
               or criterion -> rater -> label
labels         task_id, response_id, criterion_id (of other files), label, rater, levels (in the order of the
               task) or points
dpo            prompt; chosen; rejected: texts, or chats
qa             question; answer or expected_answer; type or category
sft            messages; or prompt and completion (output); or instruction, input and output; or a text with
               "### Instruction:" and "### Response:". label: true
prompts        prompt, question, query or instruction; messages: a chat that ends with the user; response: an answer

All forms read `task_id` (or `id`, `prompt_id`), `group`, `split`, `kind`, `system`, `tags` and `meta`. A prompt may be
called question, query or instruction, or be a chat in messages. Other fields are kept in meta and named once in the
findings. A field that another form reads (`READ_BY_A_FORM`) is an error; so is one
that is named nearly so, and an unread field of a criterion. What is renamed to "note" stays in meta under its own name.
"""

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from .. import checks
from ..errors import DataError
from ..records import (
    Criterion,
    Response,
    Task,
    Verdict,
    fingerprint,
    from_json,
    is_blank,
    read_label,
)
from ..system.texts import parse_json
from .files import Fields
from .rows import (
    LAYOUT,
    QUESTION,
    Row,
    add_answer,
    add_label,
    instruction_of,
    make_criteria,
    make_criterion,
    make_task,
    missing_field,
    near_names,
    read_chat,
    read_question,
)

RUBRIC = re.compile(r"rubric - (0|[1-9]\d*)\. (\w+)")
ANSWER = re.compile(r"response([A-Z])|(\w+)_completion_\d+")
SNIPPET = re.compile(
    r"<snippet id=(?:\"([^\">]+)\"|([^\s\">]+))>(.*?)</snippet>", re.S
)
OPENED = re.compile(r"<snippet\s")
# An interval such as [0, 1] is an answer.
JSON_TEXT = re.compile(r"\s*(?:\{|\[\s*[{\"])")
# The fields of all records that a file holds.
RECORD_FIELDS = (
    *Task.__struct_fields__,
    *Criterion.__struct_fields__,
    *Response.__struct_fields__,
    *Verdict.__struct_fields__,
)
FORMULA = re.compile(r"'[=+\-@\t\r]")
# List of criteria -> (what their ids begin with, the sign of their weights).
LISTS = {
    **dict.fromkeys(("rubrics", "rubric", "criteria", "checklist"), ("c", 1.0)),
    "positive_rubrics": ("p", 1.0),
    "negative_rubrics": ("n", -1.0),
}


def read_kit(row: Row) -> None:
    """A record of the kit in its own JSON form."""
    kinds: Any = Task | Response | Verdict
    try:
        record = from_json(row.data, kinds, where="")
    except DataError as e:
        # The message names the field, also where it is one of a criterion.
        unread = tuple(re.findall("unknown field `(.+?)`", e.what))
        e.renames = near_names(unread, RECORD_FIELDS)
        raise
    row.clear()
    if isinstance(record, Task):
        row.task = record
    else:
        row.records.append(record)


def read_rlvr(row: Row) -> None:
    """Numbered rubric fields, answers, and people's ratings of them."""
    items, ratings = [], []
    for n, part in _numbered_parts(row).items():
        if "criterion" not in part:
            raise DataError(
                f"there is no field 'rubric - {n}. criterion'",
                fix=f"add it, or leave the other fields of 'rubric - {n}.' out",
            )
        # The labels stand among the fields of the criterion; they are no part of it.
        names = [name for name in part if name.startswith("rating")]
        ratings += [(name[6:], f"c{n}", part.pop(name)) for name in names]
        items.append({"id": f"c{n}", **part})
    texts = {key: row.pop(key) for key in list(row) if ANSWER.fullmatch(key)}
    make_task(row, make_criteria(row, items, "rubric"), read_question(row))
    ids = {}
    for key, text in texts.items():
        if not is_blank(text):
            # responseA is called A, gemini_completion_1 keeps its name.
            name = key.removeprefix("response")
            ids[name] = add_answer(row, name, text, source=key).ids
    for name, criterion_id, rating in ratings:
        if name not in ids:
            raise DataError(
                f"there is a rating of an answer that the row does not have, 'response{name}'",
                fix="write the answer, or leave its ratings out",
            )
        add_label(row, (*ids[name], criterion_id), rating)


def _numbered_parts(row: Row) -> dict[int, Fields]:
    """Number -> the fields of a criterion. A number whose fields are all blank is not a criterion, and is noted."""
    parts: dict[int, Fields] = {}
    for key in [k for k in row if k.startswith("rubric - ")]:
        match = RUBRIC.fullmatch(key)
        if match is None:
            raise DataError(
                f"nothing reads the field {key!r}",
                fix="write 'rubric - N. criterion'",
            )
        value, part = row.pop(key), parts.setdefault(int(match[1]), {})
        if not is_blank(value):
            part[match[2]] = value
    filled = {n: parts[n] for n in sorted(parts) if parts[n]}
    for n in parts.keys() - filled.keys():
        # A table has as many numbers as its longest row: blank ones at the end say nothing.
        if n < max(filled, default=0):
            row.note(
                "empty-criterion",
                f"the criterion c{n} has no text",
                severity="warning",
                task_id=row.get("task_id"),
                criterion_id=f"c{n}",
            )
    return filled


def read_rubric(row: Row) -> None:
    """A question, and beside it what is there: lists of criteria, snippets to cite, the truth, answers."""
    made, fields = _criteria_of_lists(row), read_question(row)
    if made and "sources" not in row:
        fields["sources"] = _snippets_to_cite(row, fields["prompt"])
    truth = row.take("expected_answer", "answer", "ground_truth")
    if not is_blank(truth):
        fields["truth"] = {"answer": truth}
    text = row.take("response", "completion", "output")
    name = row.id("response_id")
    if name and text is None and "text" in row:
        raise missing_field(("response",), row)
    make_task(row, made, fields)
    if text is not None:
        add_answer(row, name or "response", text)


def _criteria_of_lists(row: Row) -> list[Criterion]:
    made: list[Criterion] = []
    for name in filter(row.__contains__, LISTS):
        made += make_criteria(row, row.json(list, name), name, *LISTS[name])
    return made


def _snippets_to_cite(row: Row, prompt: Any) -> dict[str, str]:
    """Snippet id -> text, of the tool output and the prompt."""
    tool = row.take("tool_output", default="")
    # The tool output stays in meta, because it is a part of what a model reads.
    if tool:
        row.extra["tool_output"] = tool
    if not isinstance(tool, str | dict):
        raise DataError(
            "the field 'tool_output' is not a text or an object",
            fix='write the text, or {"name": "text"}',
        )
    parts = tool.values() if isinstance(tool, dict) else [tool]
    text = "\n".join(map(str, [*parts, prompt]))
    whole = SNIPPET.findall(text)
    pairs = {(a or b, body.strip()) for a, b, body in whole}
    # With one id for two texts, a citation could not be checked.
    if len(OPENED.findall(text)) != len(whole) or len(dict(pairs)) < len(pairs):
        raise DataError(
            "a <snippet> is not closed, nested, without its id, or has the id of another one",
            fix="write <snippet id=ID>text</snippet>, one after another, each with an id of its own",
        )
    return dict(sorted(pairs))


def read_verl(row: Row) -> None:
    """A rubric or an answer in `reward_model`; the split in `extra_info`."""
    # A copy: the id of the row is made of its content.
    reward = dict(row.json(dict, "reward_model"))
    extra = row.json(dict, "extra_info")
    for name in (*LISTS, "ground_truth"):
        if not is_blank(reward.get(name)):
            row[name] = reward.pop(name)
    row |= {"kind": row.take("ability"), "split": extra.get("split")}
    row.extra |= {"reward_model": reward, "extra_info": extra}
    read_rubric(row)


def read_open_instruct(row: Row) -> None:
    """A rubric or an answer in `ground_truth`, whose object is a row of its own."""
    source = Row(_rubric_or_answer(row.pop("ground_truth")))
    made = _criteria_of_lists(source)
    row.notes += source.notes
    if "dataset" in row:
        row.extra["verifier"] = row.pop("dataset")
    make_task(row, made, read_question(row) | {"truth": dict(source)})


def _rubric_or_answer(raw: Any) -> Fields:
    """The object in a `ground_truth`; the dataset is mixed, and for some verifiers it is a text."""
    # Newer sets put the answer and its verifier into lists of one.
    if isinstance(raw, list) and len(raw) == 1 and isinstance(raw[0], str):
        raw = raw[0]
    if isinstance(raw, str) and JSON_TEXT.match(raw):
        if "instruction_id" in raw or "func_name" in raw:
            raise DataError(
                "the field 'ground_truth' holds instructions of IFEval, not an answer or a rubric",
                fix="write such rows in the form ifeval: prompt, instruction_id_list, kwargs",
            )
        raw = parse_json(raw, "field 'ground_truth'")
    if not isinstance(raw, dict | list):
        return {"answer": raw}
    if isinstance(raw, dict) and not raw.keys().isdisjoint(LISTS):
        return raw
    raise DataError(
        f"the field 'ground_truth' holds a {type(raw).__name__} without a rubric",
        fix='write an answer as a text, or {"rubrics": [...]}',
    )


def read_verifier(row: Row) -> None:
    """A truth, the type of the question, the verifiers that apply, and the group to hold out (BioRLHF)."""
    fields = read_question(row)
    fields |= {
        "truth": row.json(dict, "truth")
        or checks.truth_of(row.json(dict, "ground_truth")),
        "kind": row.take("question_type"),
        "group": row.take("group", "tissue"),
    }
    row.extra["verifiers"] = checks.verifiers_of(
        row.json(list, "verifiers", "applicable_verifiers")
    )
    make_task(row, [], fields)


# Instruction id -> the text of its criterion, and its check.
INSTRUCTIONS: dict[str, Any] = json.loads(
    Path(__file__).with_name("ifeval.json").read_text("utf-8")
)


def read_ifeval(row: Row) -> None:
    """Instruction ids with arguments: each becomes a check by the data table, or is left to a judge."""
    names = row.json(list, "instruction_id_list")
    arguments = row.json(list, "kwargs")
    if len(arguments) != len(names):
        raise DataError(
            f"kwargs has {len(arguments)} entries, instruction_id_list {len(names)}",
            fix="write an object of arguments for each instruction, {} where it has none",
        )
    if "key" in row:
        row["task_id"] = row.pop("key")
    items = list(map(_read_instruction, itertools.count(1), names, arguments))
    made = make_criteria(row, items, "instruction_id_list")
    make_task(row, made, read_question(row))


def _read_instruction(
    n: int, name: Any, arguments_by_name: Fields | None
) -> Fields:
    """The fields of the criterion of the n-th instruction."""
    # A data frame turns whole numbers into 5.0.
    values = {
        k: int(v) if isinstance(v, float) and v.is_integer() else v
        for k, v in (arguments_by_name or {}).items()
        if v is not None
    }
    meta = {"instruction": name, "kwargs": dict(values)}
    # A new instruction is no fault of the file: a judge decides it.
    arguments = ", ".join(f"{k}: {v}" for k, v in values.items())
    check, text = None, f"Follows the instruction {name!r} ({arguments})."
    if name in INSTRUCTIONS:
        try:
            check, text = _filled_check(INSTRUCTIONS[name], values)
        except (KeyError, TypeError) as e:
            raise DataError(
                f"the arguments of {name!r} are {meta['kwargs']}: {e}",
                fix="write the arguments that the instruction has in IFEval",
            ) from None
    return {"id": f"i{n}", "text": text, "check": check, "meta": meta}


def _filled_check(entry: Mapping[str, Any], values: Fields) -> tuple[Fields, str]:
    """The check and the text of an instruction with its arguments in them."""
    # A template may name an argument, the number 1, or a difference of two ("@num_paragraphs-1@"):
    # counts of a regular expression are one less than counts of what it parts.
    numbers = {k: v for k, v in values.items() if isinstance(v, int | float)} | {
        "1": 1
    }
    for (a, x), (b, y) in itertools.permutations(numbers.items(), 2):
        values[f"{a}-{b}"] = int(x - y)
    check = dict(entry["check"])
    for argument, options in entry.get("if", {}).items():
        check |= options[values[argument]]
    for key, value in check.items():
        # In a pattern the arguments stand for themselves.
        if key == "pattern":
            check[key] = re.sub(
                r"@([\w-]+)@", lambda m: re.escape(str(values[m[1]])), value
            )
        elif isinstance(value, str) and value[:1] == value[-1:] == "@":
            check[key] = values[value.strip("@")]
    return check, re.sub(r"@([\w-]+)@", lambda m: str(values[m[1]]), entry["text"])


OF_CRITERION = ("criterion_id", "weight", "points", "required", "title", "parent")
JSON_OF_CRITERION: dict[str, type[Any]] = {
    "levels": list,
    "tags": list,
    "check": dict,
}


def read_table(row: Row) -> None:
    """A row a criterion or a label. `load` puts the rows of a task together."""
    item = {"text": row.need("criterion")}
    item |= {k: row.pop(k) for k in OF_CRITERION if k in row}
    for name, kind in JSON_OF_CRITERION.items():
        if name in row:
            item[name] = row.json(kind, name)
    made = make_criterion(item, "c-" + fingerprint(item)[:8])
    if isinstance(row.get("label"), list):
        raise DataError(
            f"the label is a list, {row['label']!r}",
            fix="write a row for each rater",
        )
    label = {row.take("rater"): row.take("label")}
    text, source = row.take("response"), row.take("source")
    row["task_id"], answer_id = row.need_id("task_id"), row.id("response_id")
    make_task(row, [made], read_question(row))
    if text is not None:
        response = add_answer(row, answer_id, text, source=source)
        add_label(row, (*response.ids, made.id), label, **row)
    elif answer_id or not all(map(is_blank, label.values())):
        raise missing_field(("response",), row)


def read_answers(row: Row) -> None:
    """An answer to a task of another file, with its labels."""
    text, task_id = row.need("response"), row.need_id("task_id")
    labels = row.json(dict, "labels")
    response = add_answer(
        row,
        row.id("response_id", "id"),
        text,
        task_id=task_id,
        source=row.take("source"),
        confidence=row.take("stated_confidence", "confidence"),
        truncated=row.take("truncated", default=False),
        meta=row.rest(),
    )
    # The file of the tasks has the question.
    row.take(*QUESTION)
    for criterion_id, value in labels.items():
        add_label(row, (*response.ids, criterion_id), value)


IDS = ("task_id", "response_id", "criterion_id")
# Texts that a page for raters repeats; the other files have them.
FOR_RATERS = (
    "prompt", "response", "criterion", "group", "kind", "source", "weight", "title",
)  # fmt: skip


def read_labels(row: Row) -> None:
    """A label on an answer of another file. A row that is not filled in is none."""
    # A spreadsheet takes a text that begins so for a formula; people.save_labels puts a quote before it.
    for key, value in row.items():
        if isinstance(value, str) and FORMULA.match(value):
            row[key] = value[1:]
    ids = (row.need_id(IDS[0]), row.need_id(IDS[1]), row.need_id(IDS[2]))
    label, points = {row.take("rater"): row.take("label")}, row.take("points")
    if all(map(is_blank, label.values())):
        row.note("blank-label", "a label is not filled in")
    about = {"text": "-", "levels": row.json(list, "levels")}
    for key in FOR_RATERS:
        row.take(key)
    meta = dict(row)
    # Levels, in their order, and points must be those of the task, which is known when both are joined.
    if about["levels"]:
        meta["levels"] = about["levels"]
    if points:
        meta["points"] = points
        about |= {"points": points, "scale": "points"}
    try:
        add_label(row, ids, label, make_criterion(about, "-"), **meta)
    except DataError as e:
        if not points and not about["levels"]:
            e.fix += (
                "; a level's text needs a column 'levels' beside it (a JSON list in the order of the task), "
                "3/5 a column 'points'"
            )
        raise


def read_preference(row: Row) -> None:
    """A preferred and a rejected answer, texts or chats that begin alike."""
    start, chosen = _start_and_answer(row.need("chosen"))
    other, rejected = _start_and_answer(row.need("rejected"))
    fields: Fields = {"history": [], "system": None, **start}
    if not start or not row.keys().isdisjoint(QUESTION):
        fields |= read_question(row)
    for begin in filter(None, (start, other)):
        if begin != fields:
            raise DataError(
                "chosen and rejected answer different prompts",
                fix="make their system and all turns before the answer equal",
            )
    make_task(row, [], fields)
    add_answer(row, "chosen", chosen, meta={"role": "chosen"})
    add_answer(row, "rejected", rejected, meta={"role": "rejected"})


def _start_and_answer(value: Any) -> tuple[Fields, Any]:
    """(the fields of the question where the value is a whole chat, the answer)."""
    if not isinstance(value, list):
        return {}, value
    # TRL writes an answer as a chat of one turn where the prompt is a field.
    is_turn = len(value) == 1
    start = [{"role": "user", "content": "-"}] if is_turn else []
    fields, text = read_chat([*start, *value])
    if text is None:
        raise DataError(
            "a chat does not end with an answer", fix="end it with the assistant"
        )
    return {} if is_turn else fields, text


def read_sft(row: Row) -> None:
    """A demonstration: a chat, a prompt and a completion, or one text in the instruction layout."""
    ids = near_names(tuple(row), ()).values() | row.keys()
    is_answer = "task_id" in ids and row.keys().isdisjoint((*QUESTION, "text"))
    if is_answer or "response_id" in ids:
        raise missing_field(("response",), row)
    if row.keys().isdisjoint(DEMONSTRATIONS):
        layout = LAYOUT.fullmatch(row["text"])
        if layout is None and "criterion_id" in ids:
            raise missing_field(("criterion",), row)
        if layout is None:
            raise DataError(
                "the field 'text' is not '### Instruction:', its text, '### Response:', its text",
                fix="write these headings, each on a line of its own, or the fields prompt and completion; "
                "rename it to 'prompt' if it is a question, to 'response' if it answers the row's task_id",
            )
        row.extra["layout"], text = row.pop("text"), layout[2].strip()
        fields: Fields = {"prompt": instruction_of(layout)}
    else:
        fields, text = _start_and_answer(row.need(*DEMONSTRATIONS))
        fields = fields or read_question(row)
    if is_blank(text):
        raise DataError("there is no answer to learn from", fix="remove the row")
    # TRL's unpaired preferences: a false label marks an answer that nobody should learn.
    mark = row.take("label", default=True)
    if read_label(mark) != ("met", None):
        raise DataError(
            f"the label of a demonstration is {mark!r}",
            fix="write true, or leave the row out",
        )
    make_task(row, [], fields)
    add_answer(
        row, "demonstration", text, source="data", meta={"role": "demonstration"}
    )


RowTest = Callable[[Mapping[str, Any]], bool]


def _has_fields(*names: str, beside: tuple[str, ...] = ()) -> RowTest:
    """One of these fields is there, and all those beside it."""
    return lambda r: not r.keys().isdisjoint(names) and r.keys() >= set(beside)


def _is_demonstration(r: Mapping[str, Any]) -> bool:
    turns = r.get("messages")
    if isinstance(turns, list) and turns and isinstance(turns[-1], dict):
        return turns[-1].get("role") == "assistant"
    return not r.keys().isdisjoint((*DEMONSTRATIONS[:2], "text"))


DEMONSTRATIONS = ("completion", "output", "messages")
# To add a form: write its reader above, put it here (the first form that fits a row is its form), and into the
# table at the top of this file. The last form is for rows that have no other one.
FORMATS: dict[str, tuple[RowTest, Callable[[Row], None]]] = {
    "kit": (_has_fields("record"), read_kit),
    "table": (lambda r: "criterion" in r and "inclusion" not in r, read_table),
    "labels": (_has_fields("label", "inclusion", beside=IDS), read_labels),
    "rlvr": (lambda r: any(k.startswith("rubric - ") for k in r), read_rlvr),
    "ifeval": (_has_fields("instruction_id_list"), read_ifeval),
    "verifier": (_has_fields("verifiers", "applicable_verifiers"), read_verifier),
    "verl": (_has_fields("reward_model"), read_verl),
    "refiner": (_has_fields("positive_rubrics", "negative_rubrics"), read_rubric),
    "open-instruct": (
        _has_fields("ground_truth", beside=("messages",)),
        read_open_instruct,
    ),
    "rubric": (_has_fields(*LISTS), read_rubric),
    "dpo": (_has_fields("chosen", "rejected"), read_preference),
    # A response beside its question is an answer to a task of this file, unless it has an id of its own.
    "answers": (
        lambda r: (
            "response" in r
            and ("response_id" in r or r.keys().isdisjoint(QUESTION))
        ),
        read_answers,
    ),
    "qa": (
        _has_fields("answer", "expected_answer", beside=("question",)),
        read_rubric,
    ),
    "sft": (_is_demonstration, read_sft),
    "prompts": (_has_fields(*QUESTION), read_rubric),
}
# Fields with a meaning in some form. Where the form of a row does not read one, its meaning would be lost.
READ_BY_A_FORM = frozenset(
    (
        *QUESTION, *LISTS, "input", "context", "criterion", "weight", "points", "required", "check", "label",
        "labels", "response", "chosen", "rejected", "completion", "output", "answer", "expected_answer", "truth",
        "ground_truth", "verifiers", "applicable_verifiers", "instruction_id_list", "kwargs", "reward_model",
        "answer critical",
    )
)  # fmt: skip


KNOWN_FIELDS = READ_BY_A_FORM | frozenset(
    "record group split kind system tags meta source rater confidence truncated sources levels title history".split()
)
# What labels, answers and criteria of a table need. A row in no form that has all but one of these is told of it.
NEEDED = ((*IDS, "label"), (*IDS[:2], "response"), (IDS[0], IDS[2], "criterion"))


def format_of(row: Mapping[str, Any]) -> str | None:
    """The name of the form of a row; None where it is in none.

    >>> format_of({"prompt": "p", "rubrics": ["Is kind."]})
    'rubric'
    """
    return next((name for name, (fits, _) in FORMATS.items() if fits(row)), None)


def format_of_rows(rows: Iterable[Mapping[str, Any]]) -> str:
    """The form of most rows; "" where no row has one.

    Rows that are nothing but prompts say little: beside rows of another form, they do not count.

    >>> format_of_rows([{"prompt": "p"}, {"prompt": "q", "rubrics": ["Is kind."]}])
    'rubric'
    """
    counts = Counter(filter(None, map(format_of, rows)))
    if len(counts) > 1:
        del counts["prompts"]
    return max(counts, key=counts.__getitem__, default="")


def no_form(row: Mapping[str, Any]) -> DataError:
    """The error for a row that is in no form: what it lacks, where its fields say so."""
    ids = near_names(tuple(row), ()).values() | row.keys()
    for needed in NEEDED:
        lacks = list(itertools.filterfalse(row.__contains__, needed))
        if lacks and len(ids.intersection(needed)) >= len(needed) - 1:
            error = missing_field(lacks[:1], row)
            error.what = f"the row is in no form that is read: {error.what}"
            return error
    names = list(row)[:12]
    return DataError(
        f"the row is in no form that is read; its fields are {', '.join(map(repr, names))}",
        fix="rename yours with fields= (--map). Rubrics have task_id, prompt, criteria; answers have "
        "task_id, response_id, response; labels have task_id, response_id, criterion_id, label. "
        "More forms: kit/data/formats.py",
        renames=near_names(tuple(names), READ_BY_A_FORM),
    )

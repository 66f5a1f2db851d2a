"""Formats without a rubric, or with answers only: SFT, DPO, verifier rows, question / answer tests,
our answers, prompts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from ...records import fingerprint
from ..chats import ROLES, Chat, ask, chat_of, is_chat, turn_of, turns_in, unread_in
from ..criteria import criteria_from, tags_of
from ..labels import FIELDS, SAID, by_criterion, fraction, giver, read_label
from ..rows import Row
from ..schemas import readable
from ..taskset import Parsed
from ..values import absent, as_text, beside, blank, literal, number, parsed_json, prose, unguarded
from . import biorlhf
from .benchmarks import given_answers
from .biorlhf import VERIFIERS
from .rubric import object_of, snippets

LAYOUT = re.compile(
    r"^\s*###\s*Instruction:[ \t]*\n?(.*?)\n*^\s*###\s*(?:Response|Answer):[ \t]*\n?(.*)\Z",
    re.S | re.M,
)
# what `kit label` writes beside a label
DRAWN = {"criterion", "scale", "prompt", "design", "inclusion", "schema", "thoughts"}
SPEAKERS = {"Human": "user", "Assistant": "assistant"}
SPEAKER = re.compile(r"\n\n(Human|Assistant):")
INPUT = re.compile(r"\n+^\s*###\s*Input:[ \t]*\n?", re.M)


def split_layout(text: str) -> tuple[str, str] | None:
    """(instruction, response) of a text in the "### Instruction: / ### Response:" layout; None when
    it is not.

    >>> split_layout("### Instruction:\\nSay hi.\\n\\n### Response:\\nhi")
    ('Say hi.', 'hi')
    """
    m = LAYOUT.search(text)
    return (INPUT.sub("\n\n", m[1]).strip(), m[2].strip()) if m else None


def sft(row: Row) -> Parsed:
    """`{text}` in an instruction / response layout, `{messages}`, or prompt / completion pairs."""
    task_id, meta, chat = row.task_id("id", "task_id"), {}, Chat()
    parted = ("messages", "conversations", "completion", "response", "output")
    if row.data.get("text") is not None and all(row.data.get(k) is None for k in parted):
        text = meta["layout"] = row.text("text") or ""
        if parts := split_layout(text):
            chat, answer = Chat(prompt=parts[0]), parts[1]
        else:
            row.find(
                "unreadable-layout",
                "the text has no '### Instruction:' / '### Response:' parts; it is kept as "
                "the answer",
                field="text",
            )
            chat, answer = Chat(prompt=""), text
    elif row.data.get("messages") is not None or row.data.get("conversations") is not None:
        chat = chat_of(row, row.take("messages", "conversations"), answered=True)
        answer = chat.answer
    else:
        chat = ask(row, "prompt", "instruction", "question", "query")
        answer = row.take("completion", "response", "output", "answer")
        chat = chat.followed(row, answer)
        answer = answer if chat.answer is None else chat.answer
    role = "demonstration"
    for name in ("label", "kto_tag"):  # KTO's rows; from a CSV as text
        said = row.data.get(name)
        kto = row.data.get("completion") is not None and name in row.data
        wanted = (
            read_label(said)[0] if kto or as_text(said).casefold() in ("true", "false") else "?"
        )
        role = "undesired" if wanted == "unmet" else role
        if wanted in ("met", "unmet"):
            row.used.add(name)
        elif kto:
            row.find(
                "bad-label",
                f"the {name} {as_text(said)[:40]!r} does not say whether the answer is wanted",
                severity="error",
                field=name,
                suggestion="write true or false, as in TRL's KTO rows",
            )
    if not row.respond(task_id, role, answer, source="data", meta={"role": role}):
        row.find(
            "missing-field",
            "the row has no answer to learn from",
            severity="error",
            field="response",
        )
    elif not row.responses[-1].text.strip():
        row.find(
            "empty-answer",
            "the answer to learn from is empty: a model would learn to say nothing",
            task_id=task_id,
            suggestion="remove the row",
        )
    row.need(chat.prompt is not None, "the row has no prompt", "prompt")
    return row.task(
        task_id,
        chat.prompt,
        meta={**chat.meta, **meta},
        sources=snippets(row, row.take("sources")),
        kind=row.optional("kind", "category", "type") or "sft",
        **chat.fields,
    )


def transcript(value: Any) -> Any:
    r"""A chat written as one text, "Human: ... Assistant: ...", as turns; another value as it is.

    >>> transcript("\n\nHuman: Hi\n\nAssistant: Hello")[1]
    {'role': 'assistant', 'content': 'Hello'}
    """
    if not isinstance(value, str) or not value.lstrip().startswith("Human:"):
        return value
    parts = SPEAKER.split("\n\n" + value.lstrip())[1:]
    said = zip(parts[::2], parts[1::2], strict=True)
    return [{"role": SPEAKERS[who], "content": text.strip()} for who, text in said]


def dpo(row: Row) -> Parsed:
    """`{prompt, chosen, rejected}`, texts or chats; without a prompt, transcripts too
    ("Human: ... Assistant: ...")."""
    pair = any(not blank(row.data.get(k)) for k in ("id", "task_id"))  # else its prompt's id
    task_id = row.task_id("id", "task_id", "prompt_id")
    row.again = "error" if pair else "info"
    names = ("prompt", "question", "instruction", "query")
    sides = {"chosen": ("chosen",), "rejected": ("rejected", "reject")}
    chats = {k: row.take(*fields) for k, fields in sides.items()}
    kept = {
        k: v["messages"] for k, v in chats.items() if isinstance(v, Mapping) and "messages" in v
    }
    for k in kept:
        rest = {name: x for name, x in chats[k].items() if name != "messages"}
        row.within(k, rest)
        row.kept |= {k: rest} if rest else {}
    chats = {k: turns_in(v) for k, v in {**chats, **kept}.items()}
    alone = all(row.data.get(n) is None for n in names)
    if alone:
        chats = {k: transcript(v) for k, v in chats.items()}
    whole = {k: v for k, v in chats.items() if isinstance(v, list)}
    chats |= {k: _answered(row, k, v) for k, v in whole.items()}
    own = Chat() if alone else ask(row, *names)
    for k in whole:
        if not alone and _later(chats[k]):
            chats[k] = [*own.turns, *chats[k]]
    turns = chats["chosen"] if isinstance(chats["chosen"], list) else []
    asks = any(isinstance(t, Mapping) and _role(t) == "user" for t in turns)
    chat = own if asks else own.followed(row, turns)
    if asks and (alone or len(turns) > len(own.history) + 2):
        chat = chat_of(row, turns, answered=True)
    prompt, meta = chat.prompt, dict(chat.meta)
    row.need(row.findings or prompt is not None, "the row has no prompt", "prompt")
    if prompt and "### Response:" in prompt and (parts := split_layout(prompt + "\n")):
        meta["layout"] = prompt
        prompt = parts[0]
    lists = (v for v in chats.values() if isinstance(v, list))
    turns = [[t for t in v if isinstance(t, Mapping)] for v in lists]
    contexts = [[turn_of(t)[0] for t in ts][:-1] for ts in turns]
    apart = len(contexts) == 2 and contexts[0] != contexts[1]
    asked = [
        c[: max((i for i, t in enumerate(c, 1) if t["role"] == "user"), default=0)]
        for c in contexts
    ]
    texts = {t.strip() for c in asked if c and isinstance(t := c[-1]["content"], str)}
    said = literal(own.prompt)  # one turn of the user's, or a list of some
    said = {as_text(t).strip() for t in (said if isinstance(said, list) else [said or ""])}
    users = {as_text(t["content"]).strip() for c in asked for t in c if t["role"] == "user"}
    other = not alone and bool(texts - said) and (apart or not said <= users)
    prompt = own.prompt if other else prompt
    if apart and not other and asked[0] == asked[1]:
        row.find(
            "unread-turns",
            "chosen and rejected are answers of several turns, which differ before the last one: "
            "the last text of each is read",
            severity="error",
            task_id=task_id,
            field="rejected",
            suggestion="write each answer as one text, or pair them at the turn where they part",
        )
    elif apart or other:
        row.find(
            "context-mismatch",
            "chosen and rejected answer different chats: preferring one to the other means nothing"
            if apart
            else "the chats of chosen and rejected answer another prompt than the row's",
            severity="error",
            task_id=task_id,
            field="rejected",
            suggestion="pair answers to the same turns",
        )
    for role, value in chats.items():
        if isinstance(value, list):
            meta[role] = whole[role]
            value = value[-1:] if is_chat(value) else value
        row.need(
            row.respond(task_id, role, value, source=role, meta={"role": role}),
            f"the field {role!r} is missing or null",
            role,
        )
    texts = [r.text for r in row.responses]
    if texts and not texts[0].strip() and row.responses[0].id == "chosen":
        row.find(
            "empty-answer",
            "the chosen answer is empty: a model would learn to say nothing",
            task_id=task_id,
            field="chosen",
            suggestion="remove the row",
        )
    if len(texts) == 2 and texts[0] == texts[1] and not apart:
        row.find(
            "same-pair", "chosen and rejected are the same text", severity="error", task_id=task_id
        )
    return row.task(
        task_id,
        prompt,
        meta=meta,
        sources=snippets(row, row.take("sources")),
        kind=row.optional("kind", "category", "type") or "dpo",
        **chat.fields,
    )


def _answered(row: Row, name: str, turns: list[Any]) -> list[Any]:
    """The turns up to the last answer; what follows it would be taken for the prompt."""
    unread_in(row, turns)
    at = [i for i, t in enumerate(turns) if isinstance(t, Mapping) and _role(t) == "assistant"]
    if not at or at[-1] == len(turns) - 1:
        return turns
    row.find(
        "unread-turns",
        f"{name!r} does not end with an answer: {len(turns) - 1 - at[-1]} turns behind it are "
        "not read",
        severity="error",
        field=name,
        suggestion="end both chats with the answer; the turns are kept in meta",
    )
    return turns[: at[-1] + 1]


def _later(turns: list[Any]) -> bool:
    """True for turns that follow a prompt: an answer to it, and another question."""
    if not is_chat(turns):
        return False
    roles = [turn_of(t)[0]["role"] for t in turns]
    return roles[:1] == ["assistant"] and "user" in roles


def _role(turn: Mapping[str, Any]) -> str:
    role = as_text(turn.get("role", turn.get("from", ""))).casefold()
    return ROLES.get(role, role)


def verifier(row: Row) -> Parsed:
    """Verifier rows: ground truth (JSON), question type, applicable verifiers, hold-out group
    (group, or tissue), criteria where it has some."""
    task_id, chat = row.task_id("task_id", "id"), ask(row, "prompt", "question")
    truth = object_of(row, "truth", "ground_truth")
    row.need(
        row.take("truth", "ground_truth") is not None,
        "the row has no ground truth",
        "ground_truth",
    )
    asked = parsed_json(row.take("verifiers", "applicable_verifiers"))
    names = (
        [n.strip() for n in asked.split(",") if n.strip()]
        if isinstance(asked, str)
        else list(tags_of(asked))
    )
    for says, do in biorlhf.faults(truth):
        row.find("field-type", says, task_id=task_id, field="ground_truth", suggestion=do)
    truth = biorlhf.truth_of(truth)
    read = biorlhf.verifiers(names, truth)
    for theirs, ours in read.items():
        if theirs != ours and ours in VERIFIERS:
            row.context.count(
                "verifier-mapped",
                f"ask for {theirs}: by what their truth holds, this is the {ours} verifier",
                "info",
                field="verifiers",
            )
    meta = {**chat.meta, **({"verifiers": list(read.values())} if asked is not None else {})}
    if names != list(read.values()):
        meta["applicable_verifiers"] = names  # as the row has them
    if asked is not None:
        _check_verifiers(row, task_id, names, read)
    group = row.optional("group", "tissue", "hold_out_group")
    more = (f for f in ("tissue", "source", "difficulty") if row.data.get(f) is not None)
    meta |= {field: row.take(field) for field in more}
    for field in ("answer", "response", "chosen"):
        row.respond(task_id, field, row.take(field), source="data")
    return row.task(
        task_id,
        chat.prompt,
        criteria_from(row, row.take("criteria"), field_name="criteria"),
        truth=truth,
        group=group,
        kind=row.optional("question_type", "kind", "type"),
        meta=meta,
        **chat.fields,
    )


def _check_verifiers(row: Row, task_id: str, names: Sequence[str], read: Mapping[str, str]) -> None:
    """Findings for names that no verifier has, and for rows whose reward would be unknown."""
    wrong = [n for n, ours in read.items() if ours not in VERIFIERS]
    if wrong:
        row.find(
            "no-verifier",
            f"there is no verifier {wrong[0]!r} (known: V1-V4, {', '.join(VERIFIERS)})",
            severity="error",
            task_id=task_id,
            field="verifiers",
        )
    elif names and not read:
        row.find(
            "no-verifier",
            f"the row asks for {', '.join(names)} and its truth holds nothing for them: "
            "its reward is unknown",
            task_id=task_id,
            field="verifiers",
        )
    elif not names:
        row.find(
            "no-verifier", "no verifier applies to this row; its reward is unknown", task_id=task_id
        )


def qa(row: Row) -> Parsed:
    """Question / answer tests: the answer goes to `truth["answer"]`; names that another reader
    would expect are reported."""
    task_id = row.task_id("id", "task_id")
    chat = ask(row, "question", "prompt", "query")
    for wanted, here in (("expected_answer", "answer"), ("category", "type")):
        if row.data.get(wanted) is None and row.data.get(here) is not None:
            row.context.count(
                "field-mismatch",
                f"have {here!r} and no {wanted!r}: an evaluator that reads {wanted!r} finds "
                "nothing and marks every answer wrong",
                "warning",
                field=wanted,
                suggestion=f"the kit reads {here!r}; rename the field for other readers",
            )
    answer = row.take("expected_answer", "answer", "expected")
    row.need(answer is not None, "the question has no answer", "answer")
    return row.task(
        task_id,
        chat.prompt,
        truth={} if answer is None else {"answer": answer},
        kind=row.optional("category", "type", "question_type"),
        meta=chat.meta,
        **chat.fields,
    )


def answers(row: Row) -> Parsed:
    """Our answers: `{task_id, response_id, response, source, labels: {criterion: label}}`, or a row
    a label: `{task_id, response_id, criterion_id, label}`; no task. Without its text an answer is
    named by labels alone."""
    ours = drawn(row.data.keys())
    if ours:
        given = readable("labels", row.data, where=row.where)
        row.data = {k: unguarded(x) for k, x in given.items()}
    task_id = row.text("task_id", need=True)
    if task_id is None:
        return row.done(None)
    value = row.take("response", "text", *["answer"] * ours)
    own = row.take("response_id", "id")
    row.used |= DRAWN if ours else set()
    labelled = not row.data.keys().isdisjoint(SAID)
    on = row.optional("criterion_id") if labelled else None
    name = "r-" + fingerprint([task_id, as_text(value)])[:12] if own is None else as_text(own)
    row.again = "warning" if own is None else "error"
    # a column that a labeller adds tells of the label
    stated = None if ours else row.take("stated_confidence", "confidence")
    sure = _chance(stated)
    if not absent(stated) and (sure is None or not 0 <= sure <= 1):
        row.find(
            "bad-confidence",
            f"the confidence {as_text(stated)[:40]!r} is not in [0, 1]; it is left out",
            field="confidence",
        )
        sure = None
    source = None if value is None or ours else row.optional("source")
    for field in FIELDS:
        if by_criterion(row.data.get(field)) is not None:
            row.label_all(task_id, name, field)
        elif not absent(row.data.get(field)):
            row.find(
                "field-type",
                f"{field} should be an object: criterion id -> label",
                severity="error",
                field=field,
            )
    if on is not None:
        _label(row, task_id, name, on, ours)
    by_name = value is None and own is not None and bool(row.verdicts)
    rest = row.leftover()
    meta = beside(rest, row.kept)
    if ours:
        row.verdicts = [replace(v, meta={**v.meta, **_columns(rest)}) for v in row.verdicts]
        meta |= {"thoughts": "left out"} if row.data.get("thoughts") else {}
    if stated is not None and sure is None:
        meta["stated_confidence"] = stated  # a word ("high"), or out of range
    row.need(
        by_name or row.respond(task_id, name, value, source=source, confidence=sure, meta=meta),
        "the field 'response' is missing or null",
        "response",
        task_id=task_id,
    )
    return row.done(None)


def _label(row: Row, task_id: str, name: str, on: str, ours: bool) -> None:
    """Add the label of a row a label. ours : `kit label` wrote the row."""
    field, judge = giver(row.data)
    row.used.add(field or "criterion_id")
    label, text = row.take(*SAID), row.data.get("criterion")
    more = _design(row) if ours else {}
    if ours or prose(text):  # what it is on: ids of criteria may be others by now
        row.used.add("criterion")
        more |= {"criterion": text, "where": row.where} if text else {}
    if blank(label):
        more["blank"] = True
    row.label(task_id, name, on, label, judge=judge, **more)


def _columns(rest: Mapping[str, Any]) -> dict[str, Any]:
    """What labellers added to a row of `kit label`, for the label's meta."""
    said = {k: x for k, x in rest.items() if not blank(x)}
    return {"columns": said} if said else {}


def drawn(fields: Set[str]) -> bool:
    """True for the fields of a row that `kit label` wrote."""
    marks = fields & {"design", "inclusion", "schema"}
    return len(marks) > 1 and fields >= {"task_id", "criterion_id"}


def _design(row: Row) -> dict[str, Any]:
    """How a row to label was drawn, the probability of that, and the scale of its label."""
    stated = row.data.get("inclusion")
    share = _chance(as_text(stated).replace(",", "."))  # a spreadsheet's decimal comma
    said = {k: row.data.get(k) for k in ("design", "scale")} | {"inclusion": share}
    needed = "inclusion" in row.data and said["design"] == "stratified"
    if (needed or not blank(stated)) and not 1e-9 < (share or 0) <= 1:
        row.find(
            "bad-inclusion",
            f"the probability to be drawn is {as_text(stated)[:40]}, not in (0, 1]",
            severity="error",
            field="inclusion",
            suggestion="write the number that `kit label` wrote there",
        )
    return {k: x for k, x in said.items() if x}


def _chance(stated: Any) -> float | None:
    """A confidence in [0, 1] out of a number, a percentage or a fraction; None for other words.

    >>> _chance("80%"), _chance("8/10"), _chance(0.8), _chance("high")
    (0.8, 0.8, 0.8, None)
    """
    share = re.sub(r"%\s*\Z", "/100", stated) if isinstance(stated, str) else stated
    one, two = fraction(share) or (number(stated), 1)
    return one / two if two and one is not None else None


def prompts(row: Row) -> Parsed:
    """Prompts alone."""
    task_id = row.task_id("task_id", "id", "prompt_id")
    chat = ask(row, "prompt", "question", "query", "instruction", "messages", "input")
    given_answers(row, task_id, "response")
    return row.task(
        task_id,
        chat.prompt,
        sources=snippets(row, row.take("sources")),
        meta=chat.meta,
        **chat.fields,
    )

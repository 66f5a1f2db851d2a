"""The lint's rules on one row: criteria alone, criteria among each other, the task, its labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..checks import check
from ..data.findings import Finding
from ..data.taskset import Parsed
from ..data.words import tokens_of, words
from ..errors import DataError
from ..records import Criterion, Response, Task, grouped
from .limits import mismatch
from .meaning import (
    best_first,
    extreme_weights,
    injected,
    missing_reference,
    unattached,
    unverifiable,
    wrong_sign,
)
from .notes import THRESHOLD, note_score
from .same import Found, compare
from .wording import (
    encoding,
    given,
    several,
    subjective,
    unfinished,
)


class Read:
    """The text of a criterion with what several rules need of it."""

    def __init__(self, text: str):
        self.tokens = words(text)
        self.folded = " ".join(self.tokens)
        self.set = frozenset(self.tokens)


QUOTED = re.compile("[\"'“‘«](.{12,})[\"'”’»]", re.S)
read = lru_cache(maxsize=4096)(Read)  # texts that many rows repeat


@dataclass(frozen=True)
class At:
    """A criterion where it stands."""

    c: Criterion
    r: Read
    task: Task
    given: frozenset[str]  # the words of an answer that its prompt gives away


Said = str | tuple[str, str] | None  # what is wrong, or with what to do; None (or ""): nothing


@dataclass(frozen=True)
class Rule:
    """One rule on a criterion: its code, how bad that is, what it says, what to do."""

    code: str
    severity: str
    says: Callable[[At], Said]
    fix: str


def judged(says: Callable[[At], Said]) -> Callable[[At], Said]:
    """A rule for criteria that no code decides."""
    return lambda at: None if at.c.check is not None else says(at)


def _found(thing: object, text: str) -> Said:
    return text.format(thing) if thing else None


def _check_fault(at: At) -> Said:
    """What is wrong with the arguments of a check; it is tried on an answer."""
    if at.c.check is None:
        return None
    try:
        check(at.task, Response(task_id=at.task.id, id="lint", text="x"), at.c)
    except DataError as e:
        return f"no answer can be checked: {e.what}", e.fix or "correct its arguments"
    return None


RULES = (
    Rule(
        "check-mismatch",
        "warning",
        lambda at: None if at.c.check is None or _check_fault(at) else mismatch(at.c),
        "correct the text or its check",
    ),
    Rule("impossible-check", "error", _check_fault, "correct its arguments"),
    Rule(
        "subjective",
        "info",
        judged(
            lambda at: _found(
                "" if at.c.levels else ", ".join(map(repr, subjective(at.r.set, at.c.text)[:3])),
                "nothing to measure {} by",
            )
        ),
        "say what an outsider would look for, with a number or an example",
    ),
    Rule(
        "levels-order",
        "warning",
        lambda at: _found(best_first(at.c.levels), "levels are read worst first: {}"),
        "turn the list round",
    ),
    Rule(
        "answer-leak",
        "info",
        lambda at: _found(
            at.c.weight > 0 and at.given and at.given <= at.r.set,
            "the prompt gives away what the criterion wants",
        ),
        "take it out of the prompt",
    ),
    Rule(
        "several-requirements",
        "info",
        judged(
            lambda at: _found(
                at.c.weight > 0 and at.c.scale == "binary" and several(at.c.text, at.r.tokens),
                "the criterion asks for several things: half of it can be met",
            )
        ),
        "split it into one criterion each",
    ),
    Rule(
        "sign",
        "warning",
        lambda at: _found(
            wrong_sign(at.c), f"the sign of its weight ({at.c.weight:g}) looks wrong: {{}}"
        ),
        "turn the sign, or the wording",
    ),
    Rule(
        "injected",
        "warning",
        judged(
            lambda at: _found(
                injected(at.c.text, at.r.set),
                "the criterion gives orders to the judge instead of describing an answer",
            )
        ),
        "remove it, and look where it came from",
    ),
    Rule(
        "unverifiable",
        "warning",
        judged(
            lambda at: _found(
                unverifiable(at.c.text, at.r.set),
                "neither the answer nor the task can show whether it holds",
            )
        ),
        "say what in the answer would show it",
    ),
    Rule(
        "no-reference",
        "warning",
        lambda at: _found(
            missing_reference(at.c, at.r.set, at.task),
            "it needs {!r}, which the task does not hold",
        ),
        "put it into the sources or the truth, or into the criterion itself",
    ),
    Rule(
        "unfinished",
        "warning",
        judged(lambda at: _found(unfinished(at.c.text, at.task.asked), "the criterion {}")),
        "write the rest of it",
    ),
    Rule(
        "encoding",
        "warning",
        lambda at: _found(encoding(at.c.text), "the criterion holds {}"),
        "repair the text at its source",
    ),
)


def check_row(p: Parsed, *, prompt_tokens: int) -> list[Finding]:
    """All findings on one parsed row."""
    task, out = p.task, []
    if task is None:
        return out

    def found(
        code: str, severity: str, message: str, c: Criterion | None = None, **more: object
    ) -> None:
        if c is not None:
            more |= {"criterion_id": c.id, "text": c.text[:200]}
        out.append(
            Finding(
                code=code,
                severity=severity,
                message=message,
                row=p.row,
                where=p.where,
                task_id=task.id,
                **more,
            )
        )  # type: ignore[arg-type]

    for code, severity, message, fix in _prompt(task, prompt_tokens):
        found(code, severity, message, field="prompt", suggestion=fix)
    told = given(task.asked[:20_000])
    all_at = [At(c, read(c.text), task, told) for c in task.criteria]
    for at in all_at:
        _one(at, found)
    if len(all_at) > 1:
        compare([(at.c, at.r.folded) for at in all_at if at.r.tokens], found)
    _weights(task, found)
    _labels(p, task, found)
    return out


def _prompt(task: Task, prompt_tokens: int) -> Iterator[tuple[str, str, str, str]]:
    """(code, severity, message, what to do) of what is wrong with the prompt."""
    if not task.prompt.strip():
        yield "empty-prompt", "error", "the prompt is empty", "write it or remove the row"
    elif (n := tokens_of(task.asked)) > prompt_tokens:
        said = f"the prompt has about {n} tokens; the profile takes {prompt_tokens}"
        yield "long-prompt", "warning", said, "shorten it, or raise the profile's prompt length"
    if thing := unattached(task):
        said = f"the prompt speaks of {thing!r}, which the task does not hold"
        yield "no-reference", "warning", said, "put it into the sources, or into the prompt"
    if fault := encoding(task.asked):
        yield "encoding", "warning", f"the prompt holds {fault}", "repair the text at its source"


def _one(at: At, found: Found) -> None:
    """A criterion without words, or that is a note, is none: the other rules are for criteria."""
    text, c = at.c.text, at.c
    if not at.r.tokens or (len(at.r.tokens) == 1 and text.strip().isdecimal()):
        said = "the criterion has no words"
        found("empty-criterion", "error", said, c, suggestion="write it or remove it")
        return
    own = QUOTED.sub(lambda m: " " if m[1].strip() in at.task.asked else m[0], text)
    score = 0.0 if c.by_code else note_score(own, at.r.set)
    if score >= THRESHOLD and not injected(text, at.r.set):
        found(
            "annotator-note",
            "warning",
            "this looks like an annotator's note, not like a demand on the answer",
            c,
            confidence=score,
            suggestion="remove it from the criteria, or say what the answer must do",
        )
        return
    for rule in RULES:
        if said := rule.says(at):
            message, fix = said if isinstance(said, tuple) else (said, rule.fix)
            found(rule.code, rule.severity, message, c, suggestion=fix)


def _weights(task: Task, found: Found) -> None:
    weights = [c.weight for c in task.criteria]
    if weights and not any(weights):
        said = "every weight is 0: nothing is scored"
        found("zero-weights", "error", said, suggestion="give the criteria weights")
    elif weights and max(weights) <= 0:
        said = "every weight is negative: the best answer is the one that does nothing"
        found("one-signed", "warning", said, suggestion="add what the answer must do")
    for c, why in extreme_weights(task.criteria):
        found("extreme-weight", "warning", why, c, suggestion="check the decimal point")


def _labels(p: Parsed, task: Task, found: Found) -> None:
    people = (v for v in p.verdicts if v.judge.startswith("human") and v.value is not None)
    told = grouped(((v.response_id, v.criterion_id), v.value) for v in people)
    known = {c.id for c in task.criteria}
    for v in p.verdicts:
        if v.criterion_id not in known:
            found(
                "unknown-criterion",
                "error",
                f"a label names the criterion {v.criterion_id!r}, which the task does not have",
                criterion_id=v.criterion_id,
                suggestion="correct the id",
            )
    for (response, criterion), values in told.items():
        if len(values) > 1 and max(values) - min(values) >= 0.75:
            found(
                "raters-disagree",
                "info",
                f"the raters disagree on response {response!r} ({len(values)} labels)",
                criterion_id=criterion,
                suggestion="make the criterion more exact, or leave it out of the agreement",
            )

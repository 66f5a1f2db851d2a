"""Criteria checked by code: declared in the data, decided without a model, written as the same
verdict record.

A check is an object, `{"name": "words", "max": 50}`. `"not": true` turns any of them round.
A negative criterion states the bad thing, and its check is met when the bad thing is present. An
empty answer meets no positive criterion, whatever its check says: nothing is not "at most fifty
words". Neither does one without any word, as "..." or "&nbsp;", but where a check looks for the
very marks ("{}" is JSON). Thoughts (<think> ... </think>) are no part of an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..errors import DataError
from ..records import Criterion, Response, Task, Verdict, fingerprint, unknown
from . import text as text_of
from .arguments import Arguments, Finding
from .rules import CHECKS as RULES

VERSION = 18  # part of every key: raise it when a measure changes

Function = Callable[[Task, Response, Criterion], Any]
_FUNCTIONS: dict[str, Function] = {}


def register(name: str) -> Callable[[Function], Function]:
    """Decorator: make `f(task, response, criterion)` a check of this name.

    f returns True / False, a number in [0, 1] (met from .5 on; P is the number), (result, reason),
    or None for "cannot tell".

    >>> @register("no_shouting")
    ... def no_shouting(task, response, criterion):
    ...     return "!!!" not in response.text
    >>> check(Task(id="t", prompt="p"), Response(task_id="t", id="r", text="Hi!!!"),
    ...       Criterion(id="c", text="Calm.", check={"name": "no_shouting"})).status
    'unmet'
    """
    if name in RULES:
        raise DataError(
            f"{name!r} is a built-in check", where="register(name)", fix="choose another name"
        )

    def keep(function: Function) -> Function:
        _FUNCTIONS[name] = function
        return function

    return keep


def names() -> tuple[str, ...]:
    """All check names, built in and registered."""
    return tuple(sorted({*RULES, *_FUNCTIONS}))


def accepted(task: Task) -> str | None:
    """The first answer that an exact check of the task accepts; None where it has no such check.
    DataError where its arguments are malformed.

    >>> c = Criterion(id="c", text="It is 7.", check={"name": "exact", "answers": ["7", "seven"]})
    >>> accepted(Task(id="t", prompt="3 + 4?", criteria=(c,)))
    '7'
    """
    paid = [c for c in task.criteria if c.check and c.weight > 0]
    exact = [_arguments(task, c) for c in paid if c.check.get("name") == "exact"]
    asked = [args for args in exact if not args.flag("not", False)]
    return asked[0].strings("answers", needed=True)[0] if asked else None


def check(
    task: Task,
    response: Response,
    criterion: Criterion,
) -> Verdict:
    """One verdict by code: judge "code", p 1.0 or 0.0, a reason that states what was measured.

    Unknown (abstain) where a check cannot tell, unknown (error) where a user's function or a slow
    pattern failed.
    DataError names task, criterion and field when the arguments are malformed.

    >>> v = check(Task(id="t", prompt="p"), Response(task_id="t", id="r", text="one two three"),
    ...           Criterion(id="c", text="At most two words.", check={"name": "words", "max": 2}))
    >>> v.status, v.p, v.reason
    ('unmet', 0.0, '3 words; at most 2')
    """
    args = _arguments(task, criterion)
    said = response
    if "<" not in str(criterion.check):  # else it may ask for the thoughts' own tags
        said = replace(response, text=text_of.answered(response.text))
    ids = (task.id, response.id, criterion.id)
    name, kind = args["name"], "abstain"
    try:
        found, p = (
            (RULES[name][1](task, said, args), None)
            if name in RULES
            else _user(task, response, criterion, args)
        )
    except DataError:
        raise
    # a user's function or a pattern that takes too long: the verdict is unknown, the run goes on
    except Exception as e:
        kind = "error"
        found = Finding(None, f"check {name!r} failed: {type(e).__name__}: {e}")
    made = dict(judge="code", key=key(task, response, criterion))
    if found.met is None:
        return unknown(*ids, kind, reason=found.reason, **made)
    met, reason = found.met, found.reason
    if args.get("not", False):
        met, p, reason = not met, None if p is None else 1 - p, f"{reason}; wanted the contrary"
    if criterion.weight >= 0 and (said_nothing := _nothing(task, said, args)):
        met, p, reason = False, None, f"{said_nothing} ({reason})"
    p = float(met) if p is None else p
    return Verdict(
        task_id=task.id,
        response_id=response.id,
        criterion_id=criterion.id,
        status="met" if met else "unmet",
        p=p,
        reason=reason,
        **made,
    )


# they look for something in an answer, which may be marks; the others measure it
_FIND = ("contains", "ends", "exact", "json", "regex", "starts")


def _nothing(task: Task, said: Response, args: Arguments) -> str:
    """Why an answer meets no positive criterion: it is empty, or it has no word and meets this one
    as an empty one would; "" for others. A user's function decides itself on what is not empty.
    """
    if not text_of.visible(said.text).strip():
        return "the answer is empty"
    if args["name"] not in RULES or not text_of.wordless(said.text):
        return ""
    of_nothing = RULES[args["name"]][1](task, replace(said, text=""), args).met
    found = args["name"] in _FIND and of_nothing is args.get("not", False)
    return "" if found else "the answer has no word"


def key(task: Task, response: Response, criterion: Criterion) -> str:
    """Fingerprint of everything that a check can see."""
    spec = dict(criterion.check or {})
    seen = (
        [task.prompt, sorted(task.sources)]
        if spec.get("name") in RULES
        else [task.id, task.asked, dict(task.truth), dict(task.sources), response.id]
    )
    if spec.get("name") in ("all_met", "number"):  # it sees what the other criteria ask for
        seen = [*seen, [(c.id, c.weight < 0, dict(c.check or {})) for c in task.criteria]]
    return fingerprint(
        ["check", VERSION, *seen, response.text, criterion.id, criterion.weight < 0, spec]
    )


def _arguments(task: Task, criterion: Criterion) -> Arguments:
    where = f"task {task.id!r}, criterion {criterion.id!r}"
    raw = criterion.check
    if not isinstance(raw, Mapping) or not isinstance(raw.get("name"), str):
        raise DataError(
            "a check needs a name",
            where=f"{where}, field check",
            fix=f'write {{"name": one of {", ".join(names())}, ...}}',
        )
    args = Arguments({k: v for k, v in raw.items() if v is not None})  # Parquet fills with null
    args.where = where
    name = raw["name"]
    if name not in RULES and name not in _FUNCTIONS:
        raise args.wrong("name", "there is no such check", f"use one of {', '.join(names())}")
    if name in RULES and (extra := sorted(set(args) - {"name", "not", *RULES[name][0]})):
        raise args.wrong(
            extra[0],
            f"unknown argument {extra[0]!r}",
            f"it takes {', '.join(RULES[name][0]) or 'no arguments'}",
        )
    args.flag("not", False)
    return args


def _user(
    task: Task,
    response: Response,
    criterion: Criterion,
    args: Arguments,
) -> tuple[Finding, float | None]:
    result = _FUNCTIONS[args["name"]](task, response, criterion)
    reason = f"by {args['name']}"
    if isinstance(result, tuple) and len(result) == 2:
        result, reason = result[0], str(result[1])
    if result is None:
        return Finding(None, reason), None
    if not isinstance(result, (bool, int, float)) or not 0 <= result <= 1:
        raise TypeError(f"it returned {result!r}, not True, False, None or a number in [0, 1]")
    return Finding(result >= 0.5, reason), float(result)

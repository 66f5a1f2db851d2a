"""From a criterion's `check` to a verdict: the form of its arguments, the call, the reason."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from ..errors import DataError
from ..records import (
    Criterion,
    Response,
    Task,
    Verdict,
    fingerprint,
    leaves,
    strip_thinking,
    unknown,
)
from ..system.settings import nearest
from . import text as text_of
from .rules import RULES, Result, Terms, terms_of

VERSION = 21  # part of every key: raise it when a measure changes

Rule = Callable[..., Any]


def register(name: str) -> Callable[[Rule], Rule]:
    """Make `f(task, answer, *, arguments)` a check of this name; annotations are its form.

    f gives True, False or None ("cannot tell"), or (one of these, what was measured).

    >>> @register("calm")
    ... def calm(task, answer, *, marks: int = 3):
    ...     return "!" * marks not in answer
    >>> criterion = Criterion(id="c", text="Calm.", check={"name": "calm"})
    >>> response = Response(task_id="t", id="r", text="Hi!!!")
    >>> check(Task(id="t", prompt="p"), response, criterion).status
    'unmet'
    """
    if name in BUILT_IN:
        raise DataError(f"{name!r} is a built-in check", fix="take another name")

    def add(function: Rule) -> Rule:
        RULES[name] = function
        return function

    return add


def check(task: Task, response: Response, criterion: Criterion) -> Verdict:
    """One verdict by code, with what was measured as its reason.

    Unknown where the check cannot tell, fails, or runs too long. DataError for a malformed check.
    A thought (<think> ... </think>) is no part of the answer.

    >>> criterion = Criterion(id="c", text="At most 2 words.", check={"name": "words", "max": 2})
    >>> v = check(Task(id="t", prompt="p"), Response(task_id="t", id="r", text="a b c"), criterion)
    >>> v.status, v.reason
    ('unmet', '3 words; at most 2')
    """
    validate(criterion, task)
    ids = (task.id, response.id, criterion.id)
    answer = strip_thinking(response.text)
    # The key holds all that a check can see, so a stored verdict is never stale.
    key = fingerprint([VERSION, task, criterion, response.text])
    about: dict[str, Any] = {"judge": "code", "key": key}
    try:
        met, reason = measure(task, answer, criterion)
        # Silence has no comma and few words: a limit alone must not pay it.
        if criterion.weight >= 0 and _says_nothing(task, answer, criterion):
            met, reason = False, "the answer has no word"
    except Exception as e:  # a user's function, or a pattern that runs too long
        return unknown(
            *ids, "error", reason=f"{type(e).__name__}: {e}"[:200], **about
        )
    if met is None:
        return unknown(*ids, "abstain", reason=reason, **about)
    return Verdict(
        task_id=task.id,
        response_id=response.id,
        criterion_id=criterion.id,
        status="met" if met else "unmet",
        p=float(met),
        reason=reason,
        **about,
    )


def measure(task: Task, answer: str, criterion: Criterion) -> Result:
    """What a check measures, with `not` applied."""
    rule, arguments = _call(criterion)
    result = rule(task, answer, **arguments)
    met, reason = result if isinstance(result, tuple) else (result, "")
    if met not in (True, False, None):
        raise TypeError(f"the check gave {met!r}, not True, False or None")
    if met is not None and (criterion.check or {}).get("not"):
        return not met, f"{reason}; the contrary is wanted"
    return met, reason


def _says_nothing(task: Task, answer: str, criterion: Criterion) -> bool:
    """True for an answer without a word, unless its marks ("{}") do what silence does not."""
    if text_of.has_word(answer):
        return False
    return not text_of.visible(answer).strip() or bool(
        measure(task, "", criterion)[0]
    )


def validate(criterion: Criterion, task: Task | None = None) -> None:
    """DataError where a criterion's check does not exist or its arguments are not in its form.

    task : names the place, and holds the criteria that `all_met` may ask for.

    >>> validate(Criterion(id="c", text="x", check={"name": "word", "max": 3}))
    Traceback (most recent call last):
    ...
    kit.errors.DataError: there is no check 'word'
      where: criterion 'c', field check
      to do: did you mean 'words'?
    """
    try:
        rule, arguments = _call(criterion)
        if task and rule is all_met:
            others = {c.id for c in task.criteria} - {criterion.id}
            for i in set(terms_of(arguments["of"])) - others:
                raise DataError(
                    f"there is no other criterion {i!r}", fix=nearest(i, others)
                )
    except DataError as e:
        place = f"task {task.id!r}, " if task else ""
        where = f"{place}criterion {criterion.id!r}, field check"
        raise DataError(e.what, where=where, fix=e.fix) from None


def _call(criterion: Criterion) -> tuple[Rule, dict[str, Any]]:
    """The function of a check and its arguments, read in its form."""
    # Parquet fills absent fields with null, so null is "not there".
    raw = {k: v for k, v in (criterion.check or {}).items() if v is not None}
    name, turn = raw.pop("name", ""), raw.pop("not", False)
    if name not in RULES:
        raise DataError(f"there is no check {name!r}", fix=nearest(name, RULES))
    form = _form(RULES[name])
    try:
        msgspec.convert(turn, bool)
        arguments = msgspec.structs.asdict(msgspec.convert(raw, form))
    except msgspec.ValidationError as e:
        names = ", ".join((*form.__struct_fields__, "not"))
        raise DataError(
            f"check {name!r}: {e}", fix=f"its arguments are {names}"
        ) from None
    if name in BUILT_IN:
        # A probe: bounds out of order, a pattern or a schema that is not sound.
        try:
            RULES[name](Task(id="probe", prompt="probe"), "{}", **arguments)
        except Exception as e:  # each library has an error class of its own
            raise DataError(f"check {name!r}: {str(e)[:200]}") from None
    return RULES[name], arguments


@functools.lru_cache(maxsize=256)
def _form(rule: Rule) -> type[msgspec.Struct]:
    """The keyword arguments of a function as a Struct, which reads and refuses."""
    hints = get_type_hints(rule, include_extras=True)
    fields: list[Any] = []
    for p in inspect.signature(rule).parameters.values():
        if p.kind is p.KEYWORD_ONLY:
            default = msgspec.NODEFAULT if p.default is p.empty else p.default
            fields.append((p.name, hints.get(p.name, Any), default))
    # A slip in an argument's name would make a check that always holds.
    options = {"kw_only": True, "forbid_unknown_fields": True}
    return msgspec.defstruct("Arguments", fields, **options)


def all_met(task: Task, answer: str, *, of: Terms | None = None) -> Result:
    """The other criteria (or those in `of`) hold: the good ones met, the bad ones not.

    Unknown where none of the checks fails and a judge must still decide one.
    """
    chosen = terms_of(of)
    holds: dict[str, bool | None] = {}
    for c in leaves(task.criteria):
        # Two of them could ask for each other without end.
        is_all = (c.check or {}).get("name") == "all_met"
        if not is_all and (not chosen or c.id in chosen):
            met = measure(task, answer, c)[0] if c.check else None
            holds[c.id] = None if met is None else met == (c.weight >= 0)
    failures = [i for i, ok in holds.items() if ok is False]
    pending = [i for i, ok in holds.items() if ok is None]
    reason = f"fail: {failures}, not decided: {pending}"
    # One failure decides; a success needs all of them.
    if failures or (holds and not pending):
        return not failures, reason
    return None, reason


RULES["all_met"] = all_met
BUILT_IN = frozenset(RULES)

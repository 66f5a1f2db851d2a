"""Criteria that code decides (`{"name": "words", "max": 50}`), and the stated answer form.

A negative criterion names the bad thing, and its check is met when the bad thing is there.
`"not": true` turns any check round. Checks: see `rules.py`; `register` adds one of your own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_type_hints

import msgspec

from ..errors import DataError
from ..records import Criterion, Response, Task, Verdict, fingerprint, unknown
from ..system.settings import nearest
from . import text as text_of
from .biorlhf import truth_of, verifiers_of
from .rules import RULES

__all__ = ["check", "measure", "register", "truth_of", "validate", "verifiers_of"]

VERSION = 19  # part of every key: raise it when a measure changes
BUILT_IN = frozenset(RULES)

F = TypeVar("F", bound=Callable[..., Any])


def register(name: str) -> Callable[[F], F]:
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
        raise DataError(f"{name!r} is a built-in check", where="register", fix="take another name")

    def add(function: F) -> F:
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
    ids, answer = (task.id, response.id, criterion.id), text_of.without_thought(response.text)
    about = {"judge": "code", "key": fingerprint([VERSION, task, criterion, response.text])}
    try:
        met, reason = measure(task, answer, criterion)
        met, reason = _unearned(task, answer, criterion, met) or (met, reason)
    except Exception as e:  # a user's function, or a pattern that runs too long
        why = f"check {criterion.check['name']!r} failed: {type(e).__name__}: {e}"  # type: ignore[index]
        return unknown(*ids, "error", reason=why[:200], **about)
    if met is None:
        return unknown(*ids, "abstain", reason=reason, **about)
    return Verdict(
        task_id=task.id,
        response_id=response.id,
        criterion_id=criterion.id,
        status="met" if met else "unmet",
        p=float(met),
        reason=reason,
        **about,  # type: ignore[arg-type]
    )


def measure(task: Task, answer: str, criterion: Criterion) -> tuple[bool | None, str]:
    """What a check measures, with `not` applied."""
    rule, arguments = _call(criterion)
    result = rule(task, answer, **arguments)
    met, reason = result if isinstance(result, tuple) else (result, "")
    if met not in (True, False, None):
        raise TypeError(f"the check gave {met!r}, not True, False or None")
    flip = bool((criterion.check or {}).get("not"))
    return (None if met is None else bool(met) != flip), f"{reason}; `not`" if flip else reason


def _unearned(task: Task, answer: str, c: Criterion, met: bool | None) -> tuple[bool, str] | None:
    """A good criterion is unmet by an answer without a word that silence would meet as well."""
    if c.weight < 0 or any(char.isalnum() for char in answer):
        return None
    if not text_of.visible(answer).strip():
        return False, "the answer is empty"
    built_in = (c.check or {}).get("name") in BUILT_IN
    return (False, "the answer has no word") if built_in and measure(task, "", c)[0] else None


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
        _, arguments = _call(criterion)
        others = {c.id for c in task.criteria} - {criterion.id} if task else set()
        of = arguments.get("of") or ()
        for i in [of] if isinstance(of, str) else of:
            if task and criterion.check["name"] == "all_met" and i not in others:  # type: ignore[index]
                raise DataError(f"there is no other criterion {i!r}", fix=nearest(i, others))
    except DataError as e:
        place = f"task {task.id!r}, " if task else ""
        raise DataError(
            e.what, where=f"{place}criterion {criterion.id!r}, field check", fix=e.fix
        ) from None


def _call(criterion: Criterion) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function of a check and its arguments, read in its form."""
    spec = criterion.check or {}
    name = spec.get("name")
    if name not in RULES:
        raise DataError(f"there is no check {name!r}", fix=nearest(str(name), RULES))
    # Parquet fills absent fields with null, so null is "not there".
    raw = {k: v for k, v in spec.items() if k not in ("name", "not") and v is not None}
    try:
        if not isinstance(spec.get("not", False), bool | None):
            raise msgspec.ValidationError("Expected `bool` - at `$.not`")
        arguments = msgspec.structs.asdict(msgspec.convert(raw, _form(RULES[name])))
    except msgspec.ValidationError as e:
        fields = [f"{f.name}: {_shown(f.type)}" for f in msgspec.structs.fields(_form(RULES[name]))]
        fix = f"arguments: {', '.join(fields) or 'none'}"
        raise DataError(f"check {name!r}: {e}", fix=fix) from None
    if fault := _fault(name, arguments):
        raise DataError(f"check {name!r}: {fault}")
    return RULES[name], arguments


@functools.lru_cache(maxsize=256)
def _form(rule: Callable[..., Any]) -> type[msgspec.Struct]:
    """The keyword arguments of a function as a Struct, which reads and refuses."""
    hints = get_type_hints(rule, include_extras=True)
    parameters = inspect.signature(rule).parameters.items()
    fields = [
        (name, hints.get(name, Any), *([] if p.default is p.empty else [p.default]))
        for name, p in parameters
        if p.kind is p.KEYWORD_ONLY
    ]
    return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)


def _shown(kind: Any) -> str:
    return getattr(kind, "__name__", None) or str(kind).replace("typing.", "")


def _fault(name: str, arguments: dict[str, Any]) -> str:
    """What types cannot say: bounds in order, a pattern and a schema that are sound."""
    low, high = arguments.get("min"), arguments.get("max")
    if isinstance(low, int) and isinstance(high, int) and low > high:
        return f"min {low} is above max {high}"
    if name == "contains" and not any(arguments[k] for k in ("any", "all", "none")):
        return "none of any, all and none is there"
    if name == "regex":
        return _pattern_fault(arguments["pattern"])
    if name == "json" and arguments["schema"] is not None:
        return _schema_fault(arguments["schema"])
    return ""


@functools.lru_cache(maxsize=4096)
def _pattern_fault(pattern: str) -> str:
    import regex

    try:
        regex.compile(pattern)
    except regex.error as e:
        return f"the pattern is no regular expression: {e}"
    return ""


def _schema_fault(schema: dict[str, Any]) -> str:
    import jsonschema

    try:
        jsonschema.validators.validator_for(schema).check_schema(schema)
    except jsonschema.SchemaError as e:
        return f"the schema is no JSON schema: {e.message[:120]}"
    return ""

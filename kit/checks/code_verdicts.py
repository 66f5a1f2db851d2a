"""From a criterion's `check` to a verdict: the form of its arguments, the call, the reason."""

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
from ..system.settings import nearest, require_name
from .builtin_checks import CHECKS_BY_NAME, Measured, TermOrTerms, as_terms
from .text_measures import has_word, visible_text

# Part of every key: raise it when a measure changes.
CHECKS_VERSION = 21

CheckFunction = Callable[..., Any]


def register(name: str) -> Callable[[CheckFunction], CheckFunction]:
    """Make `f(task, answer, *, arguments)` a check of this name; annotations are its form.

    f gives True, False or None ("cannot tell"), or (one of these, what was measured).

    >>> @register("calm")
    ... def calm(task, answer, *, marks: int = 3):
    ...     return "!" * marks not in answer
    >>> criterion = Criterion(id="c", text="Calm.", check={"name": "calm"})
    >>> response = Response(task_id="t", id="r", text="Hi!!!")
    >>> check_answer(Task(id="t", prompt="p"), response, criterion).status
    'unmet'
    """
    if name in BUILT_IN_NAMES:
        raise DataError(f"{name!r} is a built-in check", fix="take another name")

    def add(function: CheckFunction) -> CheckFunction:
        CHECKS_BY_NAME[name] = function
        return function

    return add


def check_answer(task: Task, response: Response, criterion: Criterion) -> Verdict:
    """One verdict by code, with what was measured as its reason.

    Unknown where the check cannot tell, fails, or runs too long. DataError for a malformed check.
    A thought (<think> ... </think>) is not part of the answer.

    >>> criterion = Criterion(id="c", text="At most 2 words.", check={"name": "words", "max": 2})
    >>> v = check_answer(Task(id="t", prompt="p"), Response(task_id="t", id="r", text="a b c"), criterion)
    >>> v.status, v.reason
    ('unmet', '3 words; at most 2')
    """
    validate_check(criterion, task)
    ids = (task.id, response.id, criterion.id)
    answer = strip_thinking(response.text)
    # The key holds all that a check can see, so a stored verdict is never stale.
    key = fingerprint([CHECKS_VERSION, task, criterion, response.text])
    try:
        is_met, reason = measure_check(task, answer, criterion)
        # Silence has no comma and few words: a limit alone must not pay it. Nor an answer without a
        # word, unless its marks ("{}") do what silence does not.
        if criterion.weight >= 0 and not has_word(answer):
            is_blank = not visible_text(answer).strip()
            if is_blank or measure_check(task, "", criterion)[0]:
                is_met, reason = False, "the answer has no word"
    # A user's function, or a pattern that runs too long.
    except Exception as e:
        reason = f"{type(e).__name__}: {e}"[:200]
        return unknown(*ids, "error", reason=reason, judge="code", key=key)
    if is_met is None:
        return unknown(*ids, "abstain", reason=reason, judge="code", key=key)
    return Verdict(
        task_id=task.id,
        response_id=response.id,
        criterion_id=criterion.id,
        status="met" if is_met else "unmet",
        p=float(is_met),
        reason=reason,
        judge="code",
        key=key,
    )


def measure_check(task: Task, answer: str, criterion: Criterion) -> Measured:
    """What a check measures, with `not` applied."""
    function, arguments = _read_check(criterion)
    result = function(task, answer, **arguments)
    is_met, reason = result if isinstance(result, tuple) else (result, "")
    if is_met not in (True, False, None):
        raise TypeError(f"the check gave {is_met!r}, not True, False or None")
    if is_met is not None and (criterion.check or {}).get("not"):
        return not is_met, f"{reason}; the contrary is wanted"
    return is_met, reason


def validate_check(criterion: Criterion, task: Task | None = None) -> None:
    """DataError where a criterion's check does not exist or its arguments are not in its form.

    task : names the place, and holds the criteria that `all_met` may ask for.

    >>> validate_check(Criterion(id="c", text="x", check={"name": "word", "max": 3}))
    Traceback (most recent call last):
    ...
    kit.errors.DataError: there is no check 'word'
      where: criterion 'c', field check
      to do: did you mean 'words'?
    """
    try:
        function, arguments = _read_check(criterion)
        if task and function is all_met:
            others = {c.id for c in task.criteria} - {criterion.id}
            for i in set(as_terms(arguments["of"])) - others:
                raise DataError(
                    f"there is no other criterion {i!r}", fix=nearest(i, others)
                )
    except DataError as e:
        place = f"task {task.id!r}, " if task else ""
        raise e.at(f"{place}criterion {criterion.id!r}, field check") from None


def _read_check(criterion: Criterion) -> tuple[CheckFunction, dict[str, Any]]:
    """The function of a check and its arguments, read in its form."""
    # Parquet fills absent fields with null, so null is "not there".
    raw = {k: v for k, v in (criterion.check or {}).items() if v is not None}
    name, is_negated = raw.pop("name", ""), raw.pop("not", False)
    require_name("check", name, CHECKS_BY_NAME)
    function = CHECKS_BY_NAME[name]
    form = _arguments_struct(function)
    try:
        msgspec.convert(is_negated, bool)
        arguments = msgspec.structs.asdict(msgspec.convert(raw, form))
    except msgspec.ValidationError as e:
        raise DataError(
            f"check {name!r}: {e}",
            fix=f"its arguments are {', '.join((*form.__struct_fields__, 'not'))}",
        ) from None
    if name in BUILT_IN_NAMES:
        # A probe: bounds out of order, a pattern or a schema that is not sound.
        try:
            function(Task(id="probe", prompt="probe"), "{}", **arguments)
        # Each library has an error class of its own.
        except Exception as e:
            raise DataError(f"check {name!r}: {str(e)[:200]}") from None
    return function, arguments


@functools.lru_cache(maxsize=256)
def _arguments_struct(function: CheckFunction) -> type[msgspec.Struct]:
    """The keyword arguments of a function as a Struct, which reads and refuses."""
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.KEYWORD_ONLY:
            default = msgspec.NODEFAULT if p.default is p.empty else p.default
            fields.append((p.name, hints.get(p.name, Any), default))
    # A slip in an argument's name would make a check that always holds.
    return msgspec.defstruct(
        "Arguments", fields, kw_only=True, forbid_unknown_fields=True
    )


def all_met(task: Task, answer: str, *, of: TermOrTerms | None = None) -> Measured:
    """The other criteria (or those in `of`) hold: the good ones met, the bad ones not.

    Unknown where none of the checks fails and a judge must still decide one.
    """
    chosen = as_terms(of)
    passes, failures, pending = [], [], []
    for c in leaves(task.criteria):
        check = c.check or {}
        # Two of them could ask for each other without end.
        if check.get("name") == "all_met" or (chosen and c.id not in chosen):
            continue
        is_met = measure_check(task, answer, c)[0] if check else None
        if is_met is None:
            pending.append(c.id)
        elif is_met == (c.weight >= 0):
            passes.append(c.id)
        else:
            failures.append(c.id)
    reason = f"fail: {failures}, not decided: {pending}"
    # One failure decides; a success needs all of them.
    if failures or (passes and not pending):
        return not failures, reason
    return None, reason


CHECKS_BY_NAME["all_met"] = all_met
BUILT_IN_NAMES = frozenset(CHECKS_BY_NAME)

"""The built-in checks: functions (task, answer, *, arguments) -> (met or None, what was measured).

The annotations are the form of the arguments: msgspec reads them and refuses everything else.
A check measures; what a sentence means is a question for a judge.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import msgspec

from ..records import Task
from ..system.settings import Count, NonNegative, Share
from . import text as t

Result = tuple[bool | None, str]
Whole = Annotated[int, msgspec.Meta(ge=0)]
Term = Annotated[str, msgspec.Meta(min_length=1)]
Bound = Whole | None
Terms = Term | Annotated[list[Term], msgspec.Meta(min_length=1)]

REGEX_SECONDS = 2.0
_NUMBER = r"(?<![\w.])-?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[-+]?\d+)?"
_QUANTITY = re.compile(rf"({_NUMBER})\s?([^\s\d.,;:!?)]*)")
# Whoever lists six numbers or more states none of them.
_LIST = re.compile(rf"{_NUMBER}(?:[\s,;]+{_NUMBER}){{5,}}")
_FENCE = re.compile(r"```(?:json)?\n(.*)\n```", re.S)
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.S)
# A model that is trained to state its confidence still answers the question.
_CONFIDENCE = re.compile(r"\s*Confidence:\s*[\d.]+\s?%\.?\s*$", re.I)


def within(n: float, noun: str, low: float | None, high: float | None) -> Result:
    """Is n in [low, high]? With neither bound, one is enough.

    >>> within(3, "words", None, 2)
    (False, '3 words; at most 2')
    """
    if low is None and high is None:
        low = 1
    bounds = {"at least": low, "at most": high}
    words = [f"{word} {x:g}" for word, x in bounds.items() if x is not None]
    high = math.inf if high is None else high
    return (low or 0) <= n <= high, f"{n:g} {noun}; {' and '.join(words)}"


def _count(noun: str, measure: Callable[[str], Sequence[Any]]) -> Callable[..., Result]:
    def rule(
        task: Task, answer: str, *, min: Bound = None, max: Bound = None
    ) -> Result:
        return within(len(measure(answer)), noun, min, max)

    return rule


def terms_of(terms: Terms | None) -> list[str]:
    """One term, several or none, as a list."""
    return [terms] if isinstance(terms, str) else list(terms or ())


def contains(
    task: Task,
    answer: str,
    *,
    any: Terms | None = None,
    all: Terms | None = None,
    none: Terms | None = None,
    case: bool = False,
    whole: bool = True,
) -> Result:
    """All, one or none of these terms stand in the answer; whole words, unless `whole: false`."""
    normal = (lambda s: s) if case else t.fold
    text, raw = normal(t.plain(answer)), normal(answer)
    edge = r"(?<!\w){}(?!\w)" if whole else "{}"

    def has(term: str) -> bool:
        # Marks ("**", "_id") are no longer in the plain text: they are looked for in the raw one.
        here = re.search(edge.format(re.escape(normal(term))), text)
        return bool(here) or (not term.isalnum() and normal(term) in raw)

    missing = [w for w in terms_of(all) if not has(w)]
    choices = [w for w in terms_of(any) if has(w)]
    hits = [w for w in terms_of(none) if has(w)]
    met = not missing and not hits and bool(choices or not any)
    what = f"lacks {missing}, has {choices} of the choices and {hits} of the unwanted"
    return met, what


def regex(
    task: Task,
    answer: str,
    *,
    pattern: Term,
    min: Bound = None,
    max: Bound = None,
    case: bool = True,
    dotall: bool = False,
    multiline: bool = False,
) -> Result:
    """Matches of a pattern, counted. ^ and $ are the ends of the answer, unless `multiline`."""
    import regex as rx

    # `re` cannot stop a pattern that takes exponential time; `regex` can.
    flags = 0 if case else rx.I
    if dotall:
        flags |= rx.S
    if multiline:
        flags |= rx.M
    text = t.visible(answer).strip()
    matches = rx.finditer(pattern, text, flags, timeout=REGEX_SECONDS)
    return within(sum(1 for _ in matches), "matches", min, max)


def _edge(method: str) -> Callable[..., Result]:
    def rule(task: Task, answer: str, *, text: Terms, case: bool = False) -> Result:
        same = (lambda s: t.visible(s).strip()) if case else t.fold
        terms = terms_of(text)
        # With its markdown, too: "**" may be what the answer must start with.
        sides = same(answer), same(t.plain(answer))
        met = any(getattr(s, method)(same(x)) for s in sides for x in terms)
        return met, f"{method} {terms}"

    return rule


def no_char(task: Task, answer: str, *, chars: Terms, case: bool = False) -> Result:
    """None of these characters stands in the answer."""
    normal = t.visible if case else t.fold
    text = normal(answer)
    hits = [c for c in "".join(terms_of(chars)) if normal(c) in text]
    return not hits, f"has {hits}"


def json_(task: Task, answer: str, *, schema: dict[str, Any] | None = None) -> Result:
    """The answer is JSON (a ``` fence around it is allowed), and fits a JSON schema."""
    text = t.visible(answer).strip()
    fence = _FENCE.fullmatch(text)
    # msgspec refuses what `json` reads although it is no JSON, such as NaN.
    try:
        value = msgspec.json.decode(fence[1] if fence else text)
    except msgspec.DecodeError as e:
        return False, f"not valid JSON: {e}"
    if schema is None:
        return True, "valid JSON"
    import jsonschema
    from referencing import Registry

    # The empty registry keeps a "$ref" to a web address from being fetched.
    validator = jsonschema.validators.validator_for(schema)(schema, registry=Registry())
    fault = next(validator.iter_errors(value), None)
    if fault is None:
        return True, "fits the schema"
    return False, f"at {fault.json_path}: {fault.message[:120]}"


def _letters(kind: str) -> Callable[..., Result]:
    def rule(task: Task, answer: str) -> Result:
        letters = [c for c in answer if c.isupper() or c.islower()]
        wrong = [c for c in letters if not getattr(c, kind)()]
        met = bool(letters) and not wrong
        return met, f"{len(wrong)} of {len(letters)} letters are not"

    return rule


def exact(task: Task, answer: str, *, answers: Terms, case: bool = False) -> Result:
    """The answer, or what its last <answer> block holds, is one of these.

    A last line "Confidence: 80%", end marks and markdown are no part of it.
    """

    def same(text: str) -> str:
        return (t.visible(text).strip() if case else t.fold(text)).strip(" .!?\n")

    blocks = _ANSWER.findall(answer)
    # The last block counts: a model may repeat the question's form before it answers.
    body = _CONFIDENCE.sub("", blocks[-1] if blocks else answer)
    met = same(t.plain(body)) in [same(x) for x in terms_of(answers)]
    return met, f"the answer is {body[:60]!r}"


def number(
    task: Task,
    answer: str,
    *,
    value: float,
    tolerance: NonNegative = 0.0,
    unit: str = "",
    which: Literal["any", "first", "last"] = "any",
) -> Result:
    """A number of the answer is `value`, behind it literally this unit (no unit is converted)."""
    # U+2212 is the minus of typeset text.
    text = _LIST.sub(" ", t.plain(answer).replace("−", "-"))
    numbers = [(float(n.replace(",", "")), u) for n, u in _QUANTITY.findall(text)]
    candidates = {"any": numbers, "first": numbers[:1], "last": numbers[-1:]}[which]
    # Floats: 0.1 + 0.2 is 0.3 here.
    slack = tolerance + 1e-9 * abs(value)
    near = [u for n, u in candidates if abs(n - value) <= slack]
    met = (unit in near) if unit else bool(near)
    return met, f"{which} of {len(numbers)} numbers; wanted {value:g} {unit}".strip()


def cites(
    task: Task, answer: str, *, min: Whole = 1, only_known: bool = True
) -> Result:
    """At least `min` source ids are cited; with `only_known`, none that the task does not have."""
    ids = set(t.citation_ids(answer))
    strange = ids - set(task.sources) if only_known else set()
    met = len(ids) >= min and not strange
    return met, f"cites {sorted(ids)}; unknown are {sorted(strange)}"


def own_words(
    task: Task, answer: str, *, min: Bound = None, max: Bound = None
) -> Result:
    """Different words of the answer that the prompt does not have."""
    new = set(t.parts(answer)) - set(t.parts(task.prompt))
    return within(len(new), "words that the prompt has not", min, max)


def no_copy(task: Task, answer: str, *, words: Count = 5) -> Result:
    """No run of so many words of the prompt stands in the answer."""
    copies = set(t.runs(t.parts(task.prompt), words))
    hits = copies & set(t.runs(t.parts(answer), words))
    return not hits, f"{len(hits)} runs of {words} words are copied"


def unique_words(task: Task, answer: str, *, min_share: Share) -> Result:
    """Share of distinct words."""
    words = t.parts(answer)
    share = len(set(words)) / len(words) if words else 0.0
    return share >= min_share, f"{share:.0%} of the words are distinct"


RULES: dict[str, Callable[..., Any]] = {
    "words": _count("words", t.words),
    "sentences": _count("sentences", t.sentences),
    "paragraphs": _count("paragraphs", t.paragraphs),
    "lines": _count("lines", t.lines),
    "chars": _count("characters", lambda answer: t.visible(answer).strip()),
    "bullets": _count("bullet items", lambda answer: t.ITEM.findall(t.visible(answer))),
    "numbered": _count(
        "numbered items", lambda answer: t.NUMBERED_ITEM.findall(t.visible(answer))
    ),
    "contains": contains,
    "regex": regex,
    "starts": _edge("startswith"),
    "ends": _edge("endswith"),
    "no_char": no_char,
    "json": json_,
    "lowercase": _letters("islower"),
    "uppercase": _letters("isupper"),
    "exact": exact,
    "number": number,
    "cites": cites,
    "own_words": own_words,
    "no_copy": no_copy,
    "unique_words": unique_words,
}

"""The built-in checks: functions (task, answer, *, arguments) -> (met or None, what was measured).

The annotations are the form of the arguments: msgspec reads them and refuses everything else.
A check measures; what a sentence means is a question for a judge.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec

from ..records import Task
from ..system.settings import Count, NonNegative, Share
from . import text as t
from .form import CONFIDENCE

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
# Ids in <snippet id=A,B> and <cite id="A">.
_CITATION = re.compile(
    r"<\s*(?:snippet|cite)\s[^<>]*?ids?\s*=\s*[\"']?([^<>\"']+)", re.I
)
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.S)


def within(n: float, noun: str, low: float | None, high: float | None) -> Result:
    """Is n in [low, high]? With neither bound, one is enough. ValueError where none can be.

    >>> within(3, "words", None, 2)
    (False, '3 words; at most 2')
    """
    if low is None and high is None:
        low = 1
    if None not in (low, high) and low > high:
        raise ValueError(f"min {low} is above max {high}")
    bounds = {"at least": low, "at most": high}
    words = [f"{word} {x:g}" for word, x in bounds.items() if x is not None]
    top = math.inf if high is None else high
    return (low or 0) <= n <= top, f"{n:g} {noun}; {' and '.join(words)}"


def _count(
    noun: str, measure: Callable[[str], Sequence[Any]]
) -> Callable[..., Result]:
    def rule(
        task: Task, answer: str, *, min: Bound = None, max: Bound = None
    ) -> Result:
        return within(len(measure(t.visible(answer).strip())), noun, min, max)

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
    if not (any or all or none):
        raise ValueError("none of any, all and none is there")
    text, raw = t.norm(t.plain(answer), case), t.norm(answer, case)
    edge = r"(?<!\w){}(?!\w)" if whole else "{}"

    def has(term: str) -> bool:
        # Marks ("**", "_id") are no longer in the plain text: they are looked for in the raw one.
        word = t.norm(term, case)
        here = re.search(edge.format(re.escape(word)), text)
        return bool(here) or (not term.isalnum() and word in raw)

    missing = [w for w in terms_of(all) if not has(w)]
    choices = [w for w in terms_of(any) if has(w)]
    hits = [w for w in terms_of(none) if has(w)]
    what = (
        f"lacks {missing}, has {choices} of the choices and {hits} of the unwanted"
    )
    return not missing and not hits and bool(choices or not any), what


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
    matches = rx.findall(pattern, text, flags, timeout=REGEX_SECONDS)
    return within(len(matches), "matches", min, max)


def _edge(method: str) -> Callable[..., Result]:
    def rule(task: Task, answer: str, *, text: Terms, case: bool = False) -> Result:
        edges = tuple(t.norm(x, case) for x in terms_of(text))
        # With its markdown, too: "**" may be what the answer must start with.
        sides = t.norm(answer, case), t.norm(t.plain(answer), case)
        return any(getattr(s, method)(edges) for s in sides), f"{method} {edges}"

    return rule


def no_char(task: Task, answer: str, *, chars: Terms, case: bool = False) -> Result:
    """None of these characters stands in the answer."""
    characters = list("".join(terms_of(chars)))
    return contains(task, answer, none=characters, case=case, whole=False)


def json_(
    task: Task, answer: str, *, schema: dict[str, Any] | None = None
) -> Result:
    """The answer is JSON (a ``` fence around it is allowed), and fits a JSON schema."""
    import jsonschema
    from referencing import Registry

    text = t.visible(answer).strip()
    fence = _FENCE.fullmatch(text)
    try:
        # msgspec refuses what `json` reads although it is no JSON, such as NaN.
        value = msgspec.json.decode(fence[1] if fence else text)
        # The empty registry keeps a "$ref" to a web address from being fetched.
        jsonschema.validate(value, schema or {}, registry=Registry())
    except (msgspec.DecodeError, jsonschema.ValidationError) as e:
        return False, f"no JSON that fits: {getattr(e, 'message', e)}"[:160]
    return True, "valid JSON"


def exact(task: Task, answer: str, *, answers: Terms, case: bool = False) -> Result:
    """The answer, or what its last <answer> block holds, is one of these.

    A last line "Confidence: 80%", end marks and markdown are no part of it.
    """

    blocks = _ANSWER.findall(answer)
    # The last block counts: a model may repeat the question's form before it answers.
    # A model that is trained to state its confidence still answers the question.
    body = re.sub(
        CONFIDENCE.format("confidence"), "", [answer, *blocks][-1], flags=re.I
    )
    texts = [t.plain(body), *terms_of(answers)]
    first, *others = [t.norm(x, case).strip(" .!?\n") for x in texts]
    return first in others, f"the answer is {body[:60]!r}"


def number(
    task: Task,
    answer: str,
    *,
    value: float,
    tolerance: NonNegative = 0.0,
    unit: str = "",
) -> Result:
    """A number of the answer is `value`, behind it literally this unit (no unit is converted)."""
    # U+2212 is the minus of typeset text.
    text = _LIST.sub(" ", t.plain(answer).replace("−", "-"))
    numbers = [(float(n.replace(",", "")), u) for n, u in _QUANTITY.findall(text)]
    # Floats: 0.1 + 0.2 is 0.3 here.
    slack = tolerance + 1e-9 * abs(value)
    near = [u for n, u in numbers if abs(n - value) <= slack]
    met = (unit in near) if unit else bool(near)
    return met, f"{len(numbers)} numbers; wanted {value:g} {unit}"


def cites(
    task: Task, answer: str, *, min: Whole = 1, only_known: bool = True
) -> Result:
    """At least `min` source ids are cited; with `only_known`, none that the task does not have."""
    names = ",".join(_CITATION.findall(answer)).split(",")
    ids = {name.strip() for name in names} - {""}
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
    first, second = (set(t.runs(t.parts(x), words)) for x in (task.prompt, answer))
    hits = first & second
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
    "chars": _count("characters", str),
    "bullets": _count("bullet items", t.ITEM.findall),
    "numbered": _count("numbered items", t.NUMBERED_ITEM.findall),
    "contains": contains,
    "regex": regex,
    "starts": _edge("startswith"),
    "ends": _edge("endswith"),
    "no_char": no_char,
    "json": json_,
    "lowercase": lambda task, answer: (answer.islower(), "small letters only"),
    "uppercase": lambda task, answer: (answer.isupper(), "capital letters only"),
    "exact": exact,
    "number": number,
    "cites": cites,
    "own_words": own_words,
    "no_copy": no_copy,
    "unique_words": unique_words,
}

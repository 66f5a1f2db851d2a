"""The built-in checks: functions (task, answer, *, arguments) -> (met or None, what was measured).

The annotations are the form of the arguments: msgspec reads them and refuses everything else.
A check measures; what a sentence means is a question for a judge.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import msgspec

from ..records import Task, count_of
from ..system.settings import Count, NonNegative, Share
from .stated_form import CONFIDENCE_LINE
from .text_measures import (
    BULLET_ITEM,
    NUMBERED_ITEM,
    comparable_text,
    lines_of,
    lowercase_words,
    paragraphs_of,
    sentences_of,
    visible_text,
    without_markdown,
    word_runs,
    words_of,
)

# Met, unmet or cannot tell; and what was measured.
Measured = tuple[bool | None, str]
WholeNumber = Annotated[int, msgspec.Meta(ge=0)]
NonEmptyText = Annotated[str, msgspec.Meta(min_length=1)]
CountBound = WholeNumber | None
TermOrTerms = (
    NonEmptyText | Annotated[list[NonEmptyText], msgspec.Meta(min_length=1)]
)

REGEX_SECONDS = 2.0
NUMBER_PATTERN = (
    r"(?<![\w.])-?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[-+]?\d+)?"
)
QUANTITY_PATTERN = re.compile(rf"({NUMBER_PATTERN})\s?([^\s\d.,;:!?)]*)")
# Whoever lists six numbers or more states none of them.
NUMBER_LIST = re.compile(rf"{NUMBER_PATTERN}(?:[\s,;]+{NUMBER_PATTERN}){{5,}}")
CODE_FENCE = re.compile(r"```(?:json)?\n(.*)\n```", re.S)
# Ids in <snippet id=A,B> and <cite id="A">.
CITED_IDS = re.compile(
    r"<\s*(?:snippet|cite)\s[^<>]*?ids?\s*=\s*[\"']?([^<>\"']+)", re.I
)
ANSWER_BLOCK = re.compile(r"<answer>(.*?)</answer>", re.S)


def within_bounds(
    n: int, noun: str, low: float | None, high: float | None
) -> Measured:
    """Is n in [low, high]? With neither bound, one is enough. ValueError where none can be.

    >>> within_bounds(3, "word", None, 2)
    (False, '3 words; at most 2')
    """
    if low is None and high is None:
        low = 1
    limits = {"at least": low, "at most": high}
    bounds = [f"{word} {x:g}" for word, x in limits.items() if x is not None]
    least, most = low or 0, math.inf if high is None else high
    if least > most:
        raise ValueError(f"min {low} is above max {high}")
    return least <= n <= most, f"{count_of(n, noun)}; {' and '.join(bounds)}"


def _count_check(
    noun: str, measure: Callable[[str], Sequence[Any]]
) -> Callable[..., Measured]:
    def count_check(
        task: Task, answer: str, *, min: CountBound = None, max: CountBound = None
    ) -> Measured:
        return within_bounds(
            len(measure(visible_text(answer).strip())), noun, min, max
        )

    return count_check


def as_terms(terms: TermOrTerms | None) -> list[str]:
    """One term, several or none, as a list."""
    return [terms] if isinstance(terms, str) else list(terms or ())


def contains_check(
    task: Task,
    answer: str,
    *,
    any: TermOrTerms | None = None,
    all: TermOrTerms | None = None,
    none: TermOrTerms | None = None,
    case: bool = False,
    whole: bool = True,
) -> Measured:
    """All, one or none of these terms stand in the answer; whole words, unless `whole: false`."""
    if not (any or all or none):
        raise ValueError("none of any, all and none is there")
    plain = comparable_text(without_markdown(answer), case)
    raw = comparable_text(answer, case)
    edge = r"(?<!\w){}(?!\w)" if whole else "{}"

    def is_there(term: str) -> bool:
        # The plain text has lost its marks ("**", "_id"): they are looked for in the raw one.
        word = comparable_text(term, case)
        if not term.isalnum() and word in raw:
            return True
        return bool(re.search(edge.format(re.escape(word)), plain))

    missing = [term for term in as_terms(all) if not is_there(term)]
    choices = list(filter(is_there, as_terms(any)))
    unwanted = list(filter(is_there, as_terms(none)))
    return (
        not missing and not unwanted and bool(choices or not any),
        f"lacks {missing}, has {choices} of the choices and {unwanted} of the unwanted",
    )


def regex_check(
    task: Task,
    answer: str,
    *,
    pattern: NonEmptyText,
    min: CountBound = None,
    max: CountBound = None,
    case: bool = True,
    dotall: bool = False,
    multiline: bool = False,
) -> Measured:
    """Matches of a pattern, counted. ^ and $ are the ends of the answer, unless `multiline`."""
    # `re` cannot stop a pattern that takes exponential time; `regex` can.
    import regex

    flags = (
        regex.IGNORECASE * (not case)
        | regex.DOTALL * dotall
        | regex.MULTILINE * multiline
    )
    matches = regex.findall(
        pattern, visible_text(answer).strip(), flags, timeout=REGEX_SECONDS
    )
    return within_bounds(len(matches), "match", min, max)


def _edge_check(
    method: Literal["startswith", "endswith"],
) -> Callable[..., Measured]:
    def edge_check(
        task: Task, answer: str, *, text: TermOrTerms, case: bool = False
    ) -> Measured:
        edges = tuple(comparable_text(term, case) for term in as_terms(text))
        # With its markdown, too: "**" may be what the answer must start with.
        texts = (answer, without_markdown(answer))
        return (
            any(getattr(comparable_text(x, case), method)(edges) for x in texts),
            f"{method} {edges}",
        )

    return edge_check


def no_char(
    task: Task, answer: str, *, chars: TermOrTerms, case: bool = False
) -> Measured:
    """None of these characters stands in the answer."""
    return contains_check(
        task, answer, none=list("".join(as_terms(chars))), case=case, whole=False
    )


def json_check(
    task: Task, answer: str, *, schema: dict[str, Any] | None = None
) -> Measured:
    """The answer is JSON (a ``` fence around it is allowed), and fits a JSON schema."""
    import jsonschema
    from referencing import Registry

    text = visible_text(answer).strip()
    fence = CODE_FENCE.fullmatch(text)
    try:
        # msgspec refuses what `json` reads although it is not JSON, such as NaN.
        value = msgspec.json.decode(fence[1] if fence else text)
        # The empty registry keeps a "$ref" to a web address from being fetched.
        jsonschema.validate(value, schema or {}, registry=Registry())
    except (msgspec.DecodeError, jsonschema.ValidationError) as e:
        return False, f"no JSON that fits: {getattr(e, 'message', e)}"[:160]
    return True, "valid JSON"


def exact_check(
    task: Task, answer: str, *, answers: TermOrTerms, case: bool = False
) -> Measured:
    """The answer, or what its last <answer> block holds, is one of these.

    A last line "Confidence: 80%", end marks and markdown are not part of it.
    """
    # A model that is trained to state its confidence still answers the question.
    body = re.sub(
        CONFIDENCE_LINE.format("confidence"),
        "",
        # The last block counts: a model may repeat the question's form before it answers.
        [answer, *ANSWER_BLOCK.findall(answer)][-1],
        flags=re.I,
    )

    def bare_text(text: str) -> str:
        return comparable_text(text, case).strip(" .!?\n")

    is_met = bare_text(without_markdown(body)) in map(bare_text, as_terms(answers))
    return is_met, f"the answer is {body[:60]!r}"


def number_check(
    task: Task,
    answer: str,
    *,
    value: float,
    tolerance: NonNegative = 0.0,
    unit: str = "",
) -> Measured:
    """A number of the answer is `value`, behind it literally this unit (no unit is converted)."""
    # U+2212 is the minus of typeset text.
    text = NUMBER_LIST.sub(" ", without_markdown(answer).replace("−", "-"))
    quantities = QUANTITY_PATTERN.findall(text)
    units_behind = {
        behind
        for digits, behind in quantities
        # Floats: 0.1 + 0.2 is 0.3 here.
        if abs(float(digits.replace(",", "")) - value)
        <= tolerance + 1e-9 * abs(value)
    }
    is_met = unit in units_behind if unit else bool(units_behind)
    return is_met, f"{count_of(len(quantities), 'number')}; wanted {value:g} {unit}"


def cites_check(
    task: Task, answer: str, *, min: WholeNumber = 1, only_known: bool = True
) -> Measured:
    """At least `min` source ids are cited; with `only_known`, none that the task does not have."""
    ids = {*map(str.strip, ",".join(CITED_IDS.findall(answer)).split(","))} - {""}
    strange = ids - task.sources.keys() if only_known else set()
    return (
        len(ids) >= min and not strange,
        f"cites {sorted(ids)}; unknown are {sorted(strange)}",
    )


def own_words(
    task: Task, answer: str, *, min: CountBound = None, max: CountBound = None
) -> Measured:
    """Different words of the answer that the prompt does not have."""
    new = set(lowercase_words(answer)).difference(lowercase_words(task.prompt))
    return within_bounds(len(new), "new word", min, max)


def no_copy(task: Task, answer: str, *, words: Count = 5) -> Measured:
    """No run of so many words of the prompt stands in the answer."""
    copied = word_runs(task.prompt, words) & word_runs(answer, words)
    return (
        not copied,
        f"copied: {count_of(len(copied), 'run')} of {count_of(words, 'word')}",
    )


def unique_words(task: Task, answer: str, *, min_share: Share) -> Measured:
    """Share of distinct words."""
    words = lowercase_words(answer)
    share = len(set(words)) / len(words) if words else 0.0
    return share >= min_share, f"{share:.0%} of the words are distinct"


CHECKS_BY_NAME: dict[str, Callable[..., Any]] = {
    "words": _count_check("word", words_of),
    "sentences": _count_check("sentence", sentences_of),
    "paragraphs": _count_check("paragraph", paragraphs_of),
    "lines": _count_check("line", lines_of),
    "chars": _count_check("character", str),
    "bullets": _count_check("bullet item", BULLET_ITEM.findall),
    "numbered": _count_check("numbered item", NUMBERED_ITEM.findall),
    "contains": contains_check,
    "regex": regex_check,
    "starts": _edge_check("startswith"),
    "ends": _edge_check("endswith"),
    "no_char": no_char,
    "json": json_check,
    "lowercase": lambda task, answer: (answer.islower(), "small letters only"),
    "uppercase": lambda task, answer: (answer.isupper(), "capital letters only"),
    "exact": exact_check,
    "number": number_check,
    "cites": cites_check,
    "own_words": own_words,
    "no_copy": no_copy,
    "unique_words": unique_words,
}

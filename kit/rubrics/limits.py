"""What a text limits: counts ("at most 50 words") and its letters; and whether a check measures
that.

A bound is (noun, least, most); two criteria contradict where no answer meets both, and a text
differs from its check where a bound that the text names is not the check's.
"""

from __future__ import annotations

import re

from ..checks.quantities import NUMBER_WORDS
from ..records import Criterion

INF = float("inf")
NUMBER = NUMBER_WORDS | {"hundred": 100}
_N = rf"(\d{{1,3}}(?:,\d{{3}})+|\d+|{'|'.join(NUMBER)})"
_LEAST = (
    r"at\s+least|no\s+fewer\s+than|no\s+less\s+than|not\s+(?:fewer|less)\s+than|"
    r"(?:a\s+)?minimum\s+of|minimum"
)
_MOST = (
    r"at\s+most|no\s+more\s+than|not\s+more\s+than|no\s+longer\s+than|not\s+longer\s+than|up\s+to|"
    r"(?:a\s+)?maximum\s+of|maximum|(?:does\s+not|doesn't|must\s+not|should\s+not|not)\s+"
    r"(?:exceed|go\s+over)"
)
LIMIT = re.compile(
    rf"\b(?:(?P<least>{_LEAST})|(?P<over>more\s+than|over|longer\s+than|exceeds)|(?P<most>{_MOST})"
    rf"|(?P<under>fewer\s+than|less\s+than|under|below|shorter\s+than)|(?P<exact>exactly|precisely)"
    rf"|(?P<range>between|from))?\s*\b{_N}"
    rf"(?:\s*(?:-|–|to|and|and\s+(?:{_MOST}))\s*{_N})?"
    r"(?:\s+(?P<early>or\s+(?:more|fewer|less)))?\s+(?:(?:consecutive|different|separate"
    rf"|distinct|main|full|short|"
    r"long|key|unique|specific|relevant|complete)\s+)?(?P<noun>[a-z]{3,})"
    r"(?!\s+(?:per|each|every|in\s+(?:each|every)|for\s+(?:each|every))\b)"
    r"(?:,?\s+(?P<after>or\s+(?:more|fewer|less)|maximum|minimum|at\s+most|at\s+least))?",
    re.I,
)
BEFORE = ("range", "least", "over", "most", "under", "exact")
# Words of which one must occur before the pattern is tried.
LIMITING = (
    "least", "most", " than", "exact", "precise", "under", "over", "below", "up to", "imum",
    "exceed", "go over", "between", " or more", " or fewer", " or less",
)  # fmt: skip
RANGE = re.compile(r"\d\s*(?:-|–|to|and)\s*\d")
# What a check counts -> what texts call it.
COUNTED = {
    "words": ("word",),
    "sentences": ("sentence",),
    "paragraphs": ("paragraph",),
    "lines": ("line", "verse"),
    "chars": ("character", "char"),
    "bullets": ("bullet", "point", "item"),
    "numbered": ("step", "item", "point", "entry"),
}
# What an answer may be, or a part of it: two that differ are two things.
PIECES = frozenset(
    "poem story essay email letter summary list code function article post slogan haiku card "
    "note message tweet joke review report speech limerick toast memo "
    "description".split()
)
# Words that speak of the whole answer, whatever it is.
WHOLE = frozenset(
    "whole entire it length long total stay stays remain remains keep keeps kept limited only "
    "everything text answer response reply output word words letters sentence tone style narrative "
    "narrator told written consist consists continuous".split()
)
_UPPER = r"(?:all[\s-]caps|capitals|capital\s+letters|capitali[sz]ed|upper[\s-]?case)"
_LOWER = r"(?:lower[\s-]?case|small\s+letters)"
_ALL = r"\b(?:all|everything|entirely|completely|only|wholly|every|each)\b[^.,;]{0,30}?\b"
CASES = (
    ("upper", re.compile(rf"{_ALL}{_UPPER}\b|\ball[\s-]caps\b|\b{_UPPER}\s+only\b", re.I)),
    ("lower", re.compile(rf"{_ALL}{_LOWER}\b|\b{_LOWER}\s+only\b", re.I)),
)
EXACT = re.compile(
    rf"\A\s*(?:the\s+)?(?:(\w+)\s+)?(?:has|contains?|consists?\s+of|is)\s+{_N}\s+"
    r"(word|sentence|paragraph|line|verse|stanza|page|character|chapter|slide)s?(?:\s+long)?[\s.]*\Z",
    re.I,
)
# Ways of which a whole text has one: alternatives by what they are of.
MANNERS = {
    w: (k, float(i))
    for k, v in {
        "language": "english spanish french german italian portuguese dutch russian chinese "
        "japanese korean arabic hindi turkish polish swedish danish norwegian finnish greek hebrew "
        "latin czech hungarian ukrainian romanian vietnamese thai indonesian",
        "person": "first-person second-person third-person",
        "tense": "past-tense present-tense future-tense",
        "tone": "formal-tone informal-tone",
    }.items()
    for i, w in enumerate(v.split())
}
MANNER = re.compile(
    r"\b(?:(?:is|are|be|written|told|narrated|(?<!\ban )(?<!\bthe )answers?|responds?|repl(?:y|ies)"
    r"|stays|remains)\s+"
    r"(?:(?:entirely|completely|fully|only|wholly|exclusively|all|written|told|narrated)\s+)*in\s+"
    r"(?:the\s+|an?\s+|(?:fluent|correct|good|plain|simple|proper)\s+)?|(?:uses|has|keeps)\s+an?\s+"
    rf"|language\s+is\s+|uses\s+only\s+)({'|'.join(w.replace('-', '[ -]') for w in MANNERS)})"
    r"(?:\s+(?:only|throughout))?[\s.!]*\Z",
    re.I,
)
QUOTE = re.compile(r"[\"“]([^\"”]{2,80})[\"”]")
NEGATED = re.compile(r"\b(?:not|never|no|without|avoids?|isn't|doesn't)\b", re.I)


def _number(text: str) -> float:
    return float(NUMBER.get(text.lower(), text.replace(",", "")))


def _bounds(m: re.Match[str]) -> tuple[float, float] | None:
    """(least, most) of one match; None for a number alone, or one that is no limit."""
    kind = next((k for k in BEFORE if m[k]), None)
    first, second = m[7], m[8]
    n = _number(first)
    after = (m["after"] or m["early"] or "").lower()
    if second:
        rising = n <= _number(second) or kind == "least" or m["range"] in ("between", "Between")
        return None if not rising or kind in ("over", "under", "exact") else (n, _number(second))
    if after:
        return (n, INF) if after in ("or more", "minimum", "at least") else (0.0, n)
    return {
        "least": (n, INF),
        "over": (n + 1, INF),
        "most": (0.0, n),
        "under": (0.0, n - 1),
        "exact": (n, n),
    }.get(kind or "")


def limits(text: str) -> list[tuple[str, float, float]]:
    """(noun, least, most) for every counted limit in a text; a number alone is one where the text
    says no more.

    >>> limits("It has at least 3 words and fewer than ten lines.")
    [('word', 3.0, inf), ('line', 0.0, 9.0)]
    >>> limits("Between 1,000 and 2,000 words, 5 sentences or fewer.")
    [('word', 1000.0, 2000.0), ('sentence', 0.0, 5.0)]
    """
    if m := EXACT.match(text):
        return [(m[3].lower(), _number(m[2]), _number(m[2]))]
    if m := MANNER.search(text):
        name, n = MANNERS[m[1].lower().replace(" ", "-")]
        return [(name, n, n)]
    low = text.lower()
    if not (any(w in low for w in LIMITING) or RANGE.search(low)):
        return []
    return [
        (m["noun"].lower().rstrip("s"), *found)
        for m in LIMIT.finditer(text)
        if (found := _bounds(m)) is not None
    ]


def measured(c: Criterion) -> tuple[str, float, float] | None:
    """(name, least, most) of a check that counts; None for another check."""
    check = c.check or {}
    if str(check.get("name")) not in COUNTED or check.get("not"):
        return None
    low = check.get("min") or 0
    high = check.get("max")
    return check["name"], low, INF if high is None else high


def case(text: str) -> str | None:
    """ "upper" or "lower" where a text wants all letters so."""
    found = [name for name, pattern in CASES if pattern.search(text)]
    return found[0] if len(found) == 1 else None


def mismatch(c: Criterion) -> str | None:
    """What the text of a criterion says and its check does not measure, or None.

    >>> c = Criterion(id="c", text="At least 300 words.", check={"name": "words", "max": 300})
    >>> mismatch(c)
    'the text says at least 300, its check counts at most 300 words'
    """
    check = c.check or {}
    if check.get("not") or NEGATED.search(LIMIT.sub(" ", c.text)):
        return None
    if (found := measured(c)) is not None:
        return _other_bounds(c.text, *found)
    if check.get("name") in ("uppercase", "lowercase"):
        said = case(c.text)
        if said and not check["name"].startswith(said):
            return f"the text wants {said} case, its check {check['name']}"
    return _other_words(c)


def _other_bounds(text: str, name: str, low: float, high: float) -> str | None:
    for noun, least, most in limits(text):
        if noun not in COUNTED[name]:
            continue
        if (least > 0 and least != low) or (most < INF and most != high):
            return (
                f"the text says {_shown(least, most)}, its check counts {_shown(low, high)} {name}"
            )
    return None


def _shown(low: float, high: float) -> str:
    if low == high:
        return f"exactly {low:g}"
    if low <= 0 or high == INF:
        return f"at least {low:g}" if high == INF else f"at most {high:g}"
    return f"{low:g} to {high:g}"


def _other_words(c: Criterion) -> str | None:
    """Quoted words of a text of which its check knows none."""
    check = c.check or {}
    if check.get("name") not in ("contains", "starts", "ends"):
        return None
    held = [check.get(k) or () for k in ("any", "all", "none", "text")]
    known = " | ".join(w for v in held for w in ([v] if isinstance(v, str) else v)).casefold()
    quoted = [q.strip(" .,").casefold() for q in QUOTE.findall(c.text)]
    parts = known.split(" | ")
    if not quoted or any(q in known or any(p in q for p in parts) for q in quoted):
        return None
    return f"the text quotes {quoted[0]!r}, which its check does not look for"

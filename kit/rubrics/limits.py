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
    "description recipe plan explanation argument proof solution translation script program "
    "biography advert ad announcement itinerary outline guide overview answer text reply "
    "invitation contract song blog obituary instructions".split()
)
# Words that speak of the whole answer, whatever it is.
WHOLE = frozenset(
    "whole entire it length long total stay stays remain remains keep keeps kept limited only "
    "everything text answer response reply output word words letters sentence tone style narrative "
    "narrator told written consist consists continuous".split()
)
_ALL = r"\b(?:all|everything|entirely|completely|only|wholly|every|each)\b[^.,;]{0,30}?\b"
CASES = {  # a check -> what a text says that wants the other
    name: re.compile(rf"{_ALL}{letters}\b|\ball[\s-]{letters}\b|\b{letters}\s+only\b", re.I)
    for name, letters in {
        "uppercase": r"(?:lower[\s-]?case|small\s+letters)",
        "lowercase": r"(?:(?:all[\s-])?caps|capital(?:s|\s+letters|i[sz]ed)|upper[\s-]?case)",
    }.items()
}
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
# What must not be there at all; what must. The last word is the thing, those before it say which.
ABSENT = re.compile(
    r"(?P<who>.*?)\b(?:no|zero|without(?:\s+any)?|free\s+(?:of|from)|avoids?(?:\s+using)?"
    r"|not\s+(?:\w+\s+)?any|(?:does\s+not|doesn['’]t|never)(?:\s+(?:use|contain|include|have))?)"
    r"\s+(?P<thing>(?:[a-z-]+\s+)?[a-z-]+)\s*(?=[.,;]|\Z)",
    re.I | re.S,
)
PRESENT = re.compile(
    r"(?P<who>.*?)\b(?:contains?|includes?|uses?|has|gives?|provides?|presents?|offers?"
    r"|consists?\s+of|(?:is|are)\s+(?:\w+\s+)?(?:as|in)|is)\s+(?:(?:at\s+least|exactly)\s+)?"
    rf"(?:(?:an?|some|several|{_N})\s+)?(?P<thing>(?:[a-z-]+\s+){{0,2}}[a-z-]+)[\s.!]*\Z",
    re.I | re.S,
)
FAR = 50  # times: limits so far apart are on two things (letters and those who act, in a story)
QUOTE = re.compile(r"[\"“]([^\"”]{2,80})[\"”]")
NEGATED = re.compile(r"\b(?:not|never|no|without|avoids?|isn't|doesn't)\b", re.I)


def _number(text: str) -> float:
    return float(NUMBER.get(text.lower(), text.replace(",", "")))


def _bounds(m: re.Match[str]) -> tuple[float, float] | None:
    """(least, most) of one match; None for a number alone, or one that is no limit."""
    kind = next((k for k in "range least over most under exact".split() if m[k]), None)
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
    return check["name"], check.get("min") or 0, INF if check.get("max") is None else check["max"]


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
    if (other := CASES.get(str(check.get("name")))) and other.search(c.text):
        return f"the text wants the other letters, its check {check['name']}"
    return _other_words(c)


def _other_bounds(text: str, name: str, low: float, high: float) -> str | None:
    for noun, least, most in limits(text):
        other = (least > 0 and least != low) or (most < INF and most != high)
        if noun in COUNTED[name] and other:
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
    quoted = [q.strip(" .,").casefold() for q in QUOTE.findall(c.text)]
    if check.get("name") not in ("contains", "starts", "ends") or not quoted:
        return None
    held = [check.get(k) or () for k in ("any", "all", "none", "text")]
    known = [w.casefold() for v in held for w in ([v] if isinstance(v, str) else v)]
    if any(p in q or q in p for q in quoted for p in known):
        return None
    return f"the text quotes {quoted[0]!r}, which its check does not look for"

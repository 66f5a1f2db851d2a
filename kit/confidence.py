"""Where a confidence comes from: stated in words, from token probabilities, from agreement between answers. No defaults anywhere.

What cannot be read is None / NaN and counted; it is never .5.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import DataError
from .stats.estimate import Estimate

LEVELS = ("low", "medium", "high")  # ordered; their probabilities are fitted from data (`fit_levels`), not constants
STATUSES = ("value", "level", "ambiguous", "invalid", "missing")
ASK = "the scale is not said: pass scale=1, 10 or 100, or ask for a percentage in the prompt"


@dataclass(frozen=True)
class Stated:
    """A confidence as an answer states it.

    status : "value" (then `value` in [0, 1]), "level" (then `level`), "ambiguous" (a number whose scale is not said),
    "invalid" (250%, 12/10) or "missing". text : the words it was read from. note : what to do.
    """

    status: str
    value: float | None = None
    level: str | None = None
    text: str = ""
    note: str = ""

    @property
    def known(self) -> bool:
        """True for a value or a level."""
        return self.status in ("value", "level")


_ONES = {w: i for i, w in enumerate("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
                                    "seventeen eighteen nineteen".split())}
_TENS = {w: 10 * (i + 2) for i, w in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split())}
_NUM = r"(?:\d+(?:[.,]\d+)?|[.,]\d+)"
_PCT = r"\s*(?:\\?%|percent\b|per cent\b|pct\b)"
_WORDNUM = rf"(?:(?:{'|'.join(_TENS)})(?:[ -](?:{'|'.join(list(_ONES)[1:10])}))?|(?:a |one )?hundred|{'|'.join(sorted(_ONES, key=len, reverse=True))})"
_STAT = r"(?:confidence|credible)\s+(?:interval|limit|bound|region|band)s?\b|confidence\s+sets?\b"
# The first alternative that fits names the token.
_TOKENS = re.compile("|".join((
    rf"(?P<other>{_STAT})",
    r"(?P<scale>\(?(?:on )?(?:an? |the )?(?:scale )?(?:of |from |between )?\b[01](?:\.0)?\s*%?\s*(?:-|–|to|and)\s*(?P<top>100|10|5|1(?:\.0)?)\b\s*%?(?:\s*scale\b)?\)?"
    r"|\(\s*(?:out of|/|max\.?)\s*(?P<top2>100|10|5|1)\s*\)|\(\s*(?:in |as )?(?:a )?(?P<top3>%|percent(?:age)?)\s*\)|\(\s*(?:as )?(?:a )?(?P<top4>fraction|decimal|probability)\s*\))",
    r"(?P<half>\b50\s*/\s*50\b|\bfifty[- ]fifty\b)",
    rf"(?P<range>{_NUM}(?:{_PCT})?\s*(?:-|–|—|to|and)\s*{_NUM}{_PCT})",
    rf"(?P<ratio>(?<![\w.)])-?{_NUM}\s*(?:/|out of|in)\s*{_NUM}(?![\w/]))",
    rf"(?P<ratio_words>\b(?:{_WORDNUM})\s+(?:out of|in)\s+(?:{_WORDNUM})\b)",
    rf"(?P<percent>(?<![\w.)])-?{_NUM}{_PCT}|\b{_WORDNUM}{_PCT})",
    rf"(?P<number>(?<![\w.)])-?{_NUM}(?![\w]))",
    r"(?P<anchor>\b(?:confidence|certainty|credence)\b(?=s?\b)|p\s*\(\s*(?:correct|true)\s*\))",
    r"(?P<adjective>\b(?:confident|certain|sure)\b|(?<=\bun)(?:certain|sure)\b)",
    r"(?P<weak>\b(?:probability|likelihood|chances?|likely|odds)\b)",
    r"(?P<mixed>\b(?:low|medium|moderate)\s*(?:-|–|/|to|or)\s*(?:medium|moderate|high)\b)",
    r"(?P<low>\b(?:not (?:at all|very|so|too|particularly|fully|entirely|completely|terribly)|(?:very|extremely|quite|fairly|relatively|rather|pretty) (?:low|little)|low|minimal|little|barely|hardly|slightly|un(?=certain|sure))\b|\bun(?=certain\b|sure\b))",
    r"(?P<medium>\b(?:(?:fairly|quite|relatively) )?(?:medium|moderate|intermediate)\b|\b(?:moderately|somewhat|fairly|reasonably|partially)\b(?!\s+(?:low|high)))",
    r"(?P<high>\b(?:(?:very|extremely|quite|fairly|relatively|rather|pretty) )?high\b|\b(?:very|highly|extremely|absolutely|completely|totally|entirely|strongly|quite)\b)",
    r"(?P<not>\b(?:not|never|isn.t|don.t|cannot|without|lack|no)\b|n.t\b)",
    r"(?P<that>\bthat\b)",
    r"(?P<filler>\b(?:levels?|scores?|rating|value|estimated?|is|was|are|be|would|will|of|at|about|around|approximately|roughly|nearly|almost|over|under|above|below|"
    r"least|most|in|my|this|the|answer|response|conclusion|prediction|claim|result|finding|overall|say|as|set|to|i.d|i|give|it|an?|final|currently|stands?|percentage|rated?|which|being|"
    r"correct|right|only|still|just|now|here|put|assign|statement|assessment|judge?ment|equals|degree|self|reported|for|remains|between|with|by|comes?|out|expressed|so|or|than|more|less|up)\b|\bapprox\b\.?)",
    r"(?P<stop>[.!?;](?=\s|$)|\n\s*\n)",
    r"(?P<word>[^\W\d_]+)",
    r"(?P<punct>\S)",
)), re.IGNORECASE)
_VALUES = ("half", "range", "ratio", "ratio_words", "percent", "number")
_CORRECT = re.compile(r"\b(?:correct|right|true|accurate|my|answer|response)\b", re.IGNORECASE)


def _float(text: str) -> float:
    text = text.strip().lower()
    if re.fullmatch(rf"-?{_NUM}", text):
        return float(text.replace(",", "."))
    parts = text.replace("-", " ").split()
    return 100.0 if "hundred" in parts else float(sum(_TENS.get(p, _ONES.get(p, 0)) for p in parts))


def _read(kind: str, text: str, top: float | None, scale: float | None) -> Stated:
    """A number token as a confidence; `top` is a scale said beside it, `scale` one given by the caller."""
    text = text.strip()
    if kind == "half":
        return Stated("value", 0.5, text=text)
    if kind == "range":
        low, high = (float(v.replace(",", ".")) for v in re.findall(_NUM, text)[:2])
        ok = 0 <= low <= high <= 100
        return Stated("value", (low + high) / 200, text=text, note="middle of a range") if ok else Stated("invalid", text=text, note="not a range of percentages")
    if kind.startswith("ratio"):
        a, b = (_float(v) for v in re.split(r"/|out of|\bin\b", text, maxsplit=1, flags=re.IGNORECASE))
        return _checked(a, b, text)
    if kind == "percent":
        digits = re.sub(_PCT + "$", "", text, flags=re.IGNORECASE)
        v = _float(digits)
        if 0 < v < 1 and scale is None:
            return Stated("ambiguous", text=text, note="a fraction or less than one percent? pass scale=1 or scale=100")
        return _checked(v, 1.0 if 0 < v < 1 and scale == 1 else 100.0, text)
    v = _float(text)
    if scale is not None or top is not None:
        return _checked(v, float(scale if scale is not None else top), text)  # type: ignore[arg-type]
    if v == 0 or (0 < v < 1) or (v == 1 and re.search(r"[.,]\d", text)):
        return Stated("value", v, text=text)
    if 1 <= v <= 10:
        return Stated("ambiguous", text=text, note=ASK)
    return _checked(v, 100.0, text)


def _checked(value: float, top: float, text: str) -> Stated:
    if top <= 0 or not 0 <= value <= top:
        return Stated("invalid", text=text, note=f"{value:g} of {top:g} is no probability")
    return Stated("value", value / top, text=text)


def _top(token: re.Match[str]) -> float:
    found = next((v for v in (token["top"], token["top2"]) if v), None)
    return float(found) if found else (100.0 if token["top3"] else 1.0)


def _after(tokens: list[re.Match[str]], i: int) -> tuple[int, str, str, float | None] | None:
    """From the anchor at i forward over filler: (position, kind, text, scale) of what it states."""
    top, level = None, None
    for j in range(i + 1, min(i + 22, len(tokens))):
        kind, text = _kind(tokens[j]), tokens[j][0]
        if kind == "scale":
            top = _top(tokens[j])
        elif kind in _VALUES:
            if not _counts(tokens, j, kind):
                break
            return tokens[j].start(), kind, text, top
        elif kind in ("low", "medium", "high", "mixed") and level is None:
            level = (tokens[j].start(), kind, text, top)
        elif kind == "that" and _kind(tokens[i]) != "adjective":
            pass
        elif kind in ("stop", "word", "not", "anchor", "adjective", "weak", "that", "other", "low", "medium", "high", "mixed"):
            break
    return level


def _kind(token: re.Match[str]) -> str:
    """Name of the alternative that matched (inner groups are scales)."""
    return next(k for k in ("other", "scale", *_VALUES, "anchor", "adjective", "weak", "mixed", "low", "medium", "high", "not", "that", "filler", "stop", "word",
                            "punct") if token[k] is not None)


def _counts(tokens: list[re.Match[str]], j: int, kind: str) -> bool:
    """False for a number that counts something: "confidence that 3 genes", "80% of patients"."""
    if j + 1 >= len(tokens):
        return True
    follower = _kind(tokens[j + 1])
    if follower == "word" and kind == "number":
        gap = tokens[j + 1].string[tokens[j].end():tokens[j + 1].start()]
        return "\n" in gap
    if tokens[j + 1][0].lower() == "of" and j + 2 < len(tokens):
        return _kind(tokens[j + 2]) not in ("word",) and not tokens[j + 2][0].lower() == "the"
    return True


def _before(tokens: list[re.Match[str]], i: int) -> tuple[int, str, str, float | None] | None:
    """From the anchor at i backwards: "80% confident", "a high degree of confidence"; negated numbers are no statement."""
    for j in range(i - 1, max(-1, i - 5), -1):
        kind = _kind(tokens[j])
        if kind in _VALUES:
            denied = any(_kind(t) in ("not",) or (_kind(t) == "low" and t[0].lower().startswith("not")) for t in tokens[max(0, j - 3):j]
                         if tokens[j].string[t.end():tokens[j].start()].count(".") == 0)
            return None if denied or kind == "number" and i - j > 1 else (tokens[j].start(), kind, tokens[j][0], None)
        if kind in ("low", "medium", "high", "mixed"):
            denied = j > 0 and _kind(tokens[j - 1]) == "not"
            return tokens[j].start(), "low" if denied and kind == "high" else kind, tokens[j][0], None
        if kind == "not":
            return (tokens[j].start(), "low", tokens[j][0], None) if i - j == 1 else None
        if not (kind == "filler" and tokens[j][0].lower() in ("of", "degree", "level", "levels", "in", "my", "a", "an", "estimated", "overall", "self", "reported")) and tokens[j][0] not in "-*_()":
            return None
    return None


def _last_statement(text: str) -> tuple[int, str, str, float | None] | None:
    """The last anchored statement as (position, kind, words, scale said beside it)."""
    plain = re.sub(r"[*_`\"'’#]|</?\w+>", lambda m: (" " if m[0][0] != "<" else " : ").ljust(len(m[0])) if not re.match(r"</?(?:confidence|certainty)>", m[0], re.I) else
                   (" confidence:" if m[0][1] != "/" else "").ljust(len(m[0])), text)
    tokens = list(_TOKENS.finditer(plain))
    for i in range(len(tokens) - 1, -1, -1):  # no statement reaches across another anchor, so the last anchor that states something wins
        kind = tokens[i].lastgroup if tokens[i].lastgroup in ("anchor", "adjective", "weak") else ""
        if not kind or (kind == "weak" and not _CORRECT.search(_sentence(plain, tokens[i].start()))):
            continue
        found = [_before(tokens, i)]
        if not (kind == "adjective" and tokens[i][0].lower() == "sure"):
            found.append(_after(tokens, i))
        here = [f for f in found if f and not (kind == "weak" and f[1] in ("low", "medium", "high", "mixed"))]
        if here:
            return max(here, key=lambda f: f[0])
    return None


def _sentence(text: str, at: int) -> str:
    start = max((m.end() for m in re.finditer(r"[.!?](?=\s)|\n", text[:at])), default=0)
    end = re.search(r"[.!?](?=\s)|\n", text[at:])
    return text[start:at + end.start() if end else len(text)]


def extract(text: str, *, scale: float | None = None) -> Stated:
    """The last confidence that an answer states, or why there is none.

    Read: 80%, 80 percent, 0.8, 8/10, "eighty percent", "4 out of 5", ranges in percent (their middle), bare numbers above 10
    (percent), and the levels low / medium / high. A number counts only beside a word such as confidence, certain, sure, or
    beside "probability" in a sentence about the answer. A bare 1 to 10 and "0.95%" are ambiguous until the caller gives the
    scale (1, 5, 10 or 100) or the text says it ("on a scale of 1-10").

    >>> extract("So it is B. Confidence: 80%").value, extract("The confidence level is **high**.").level
    (0.8, 'high')
    >>> extract("Confidence: 250%").status, extract("Confidence: 1").status, extract("It is B.").status
    ('invalid', 'ambiguous', 'missing')
    """
    if not isinstance(text, str):
        raise DataError(f"the answer is {type(text).__name__}, not text", where="argument text", fix="pass the reply's text")
    if scale is not None and not (isinstance(scale, (int, float)) and scale > 0):
        raise DataError(f"scale is {scale!r}", where="argument scale", fix="use the largest value: 1, 5, 10 or 100")
    found = _last_statement(text)
    if found is None:
        return Stated("missing", note="no confidence is stated")
    _, kind, words, top = found
    if kind in LEVELS:
        return Stated("level", level=kind, text=words.strip())
    if kind == "mixed":
        return Stated("ambiguous", text=words, note="between two levels; ask for one of low / medium / high")
    return _read(kind, words, top, scale)


@dataclass(frozen=True)
class Extraction:
    """Confidences of many answers. values : (n,) in [0, 1], NaN where no number was stated; levels : (n,) level or None.

    parse_rate : share with a value or a level, Wilson interval. counts : how many of each status.
    """

    stated: tuple[Stated, ...]
    values: np.ndarray
    levels: tuple[str | None, ...]
    parse_rate: Estimate
    counts: Mapping[str, int]

    def __str__(self) -> str:
        return f"parse rate {self.parse_rate}; " + ", ".join(f"{k} {v}" for k, v in self.counts.items() if v)

    def table(self) -> list[dict[str, Any]]:
        """One dict per answer."""
        return [{"row": i, "status": s.status, "value": s.value, "level": s.level, "text": s.text, "note": s.note} for i, s in enumerate(self.stated)]


def extract_all(texts: Iterable[str | None], *, scale: float | None = None) -> Extraction:
    """`extract` over many answers with the parse rate; None (no answer) counts as missing.

    >>> str(extract_all(["Confidence: 80%", "B"]).counts["value"])
    '1'
    """
    from .calibration.scores import wilson

    stated = tuple(Stated("missing", note="no answer") if t is None else extract(t, scale=scale) for t in texts)
    known, n = sum(s.known for s in stated), len(stated)
    low, high = wilson(known, n) if n else (math.nan, math.nan)
    rate = Estimate(known / n if n else math.nan, low, high, n, method="share with a stated confidence, Wilson")
    counts = {k: sum(s.status == k for s in stated) for k in STATUSES}
    return Extraction(stated, np.array([math.nan if s.value is None else s.value for s in stated]), tuple(s.level for s in stated), rate, counts)


def fit_levels(levels: Sequence[str | None], correct: Sequence[Any]) -> dict[str, Estimate]:
    """How often each stated level is right, Wilson interval: the probabilities that the words stand for.

    >>> round(fit_levels(["high", "high", "low"], [1, 1, 0])["high"].value, 2)
    1.0
    """
    from .calibration.scores import wilson

    if len(levels) != len(correct):
        raise DataError(f"{len(levels)} levels, {len(correct)} outcomes", where="arguments levels, correct", fix="pass one outcome per level")
    out = {}
    for level in LEVELS:
        hits = [float(c) for lv, c in zip(levels, correct, strict=True) if lv == level]
        low, high = wilson(sum(hits), len(hits)) if hits else (math.nan, math.nan)
        out[level] = Estimate(sum(hits) / len(hits) if hits else math.nan, low, high, len(hits), method=f"share right at {level}, Wilson")
    return out


@dataclass(frozen=True)
class TokenMass:
    """A probability read from token probabilities; NaN when `mass`, what the counted tokens capture, is below the minimum."""

    value: float
    mass: float

    def __float__(self) -> float:
        return self.value


def _pairs(logprobs: Any) -> list[tuple[str, float]]:
    pairs = list(logprobs.items() if isinstance(logprobs, Mapping) else logprobs)
    for token, lp in pairs:
        if not isinstance(lp, (int, float)) or math.isnan(lp) or lp > 1e-3:
            raise DataError(f"log probability {lp!r} of token {token!r}", where="argument logprobs", fix="pass natural logarithms, <= 0")
    return pairs


def p_true(logprobs: Mapping[str, float] | Iterable[tuple[str, float]], *, positive: Sequence[str] = ("yes", "true", "a"),
           negative: Sequence[str] = ("no", "false", "b"), least: float = 0.5) -> TokenMass:
    """P(true) at one position: mass on the positive token's variants over positives plus negatives.

    logprobs : token -> natural log probability of the top tokens. Variants: case and surrounding spaces and punctuation.
    NaN when both together hold less than `least`. Source: Kadavath et al. 2022, section 3.

    >>> m = p_true({" Yes": math.log(.6), "yes": math.log(.2), "No": math.log(.1)}); round(m.value, 4), round(m.mass, 4)
    (0.8889, 0.9)
    """
    def bare(token: str) -> str:
        return token.strip(" \t\n▁Ġ*_\"'`.:,()").casefold()

    sums = [sum(math.exp(lp) for t, lp in _pairs(logprobs) if bare(t) in {v.casefold() for v in side}) for side in (positive, negative)]
    mass = sum(sums)
    return TokenMass(sums[0] / mass if mass >= least else math.nan, mass)


def sequence(logprobs: Sequence[float]) -> float:
    """exp(mean log probability) of an answer's tokens, a score in [0, 1]: recalibrate before reading it. NaN when empty.

    >>> round(sequence([math.log(.5), math.log(.5)]), 3)
    0.5
    """
    values = [lp for _, lp in _pairs([(str(i), lp) for i, lp in enumerate(logprobs)])]
    return min(1.0, math.exp(sum(values) / len(values))) if values else math.nan


def consistency(answers: Sequence[Any], *, same: Callable[[Any], Any] | None = None) -> np.ndarray:
    """Leave-one-out agreement (n,): (k-1)/(n-1), k answers equal to this one of n known; NaN for None or a single answer.

    same : maps an answer to what must be equal (default: text, case and spaces ignored).

    >>> consistency(["A", "a ", "B", None]).tolist()
    [0.5, 0.5, 0.0, nan]
    """
    fold = same or (lambda a: " ".join(a.casefold().split()) if isinstance(a, str) else a)
    keys = [None if a is None else fold(a) for a in answers]
    counts, n = Counter(k for k in keys if k is not None), sum(k is not None for k in keys)
    return np.array([math.nan if k is None or n < 2 else (counts[k] - 1) / (n - 1) for k in keys])


@dataclass(frozen=True)
class JudgeScore:
    """Expected score at the last score position. probs : score -> probability, renormalised; mass : what they captured."""

    value: float
    mass: float
    position: int | None
    probs: Mapping[float, float]


def judge_score(positions: Sequence[tuple[str, Mapping[str, float]]], *, scores: Sequence[float] = (1, 2, 3, 4, 5), least: float = 0.5) -> JudgeScore:
    """Expectation of a judge's score over the tokens at the *last* position where it wrote one.

    positions : per generated token (token, top tokens -> natural log probability). A score of several tokens ("10") is not
    seen. NaN when no score was written or the scores hold less than `least` of the mass. Source: G-Eval (Liu et al. 2023).

    >>> s = judge_score([("4", {"4": math.log(.75), "2": math.log(.25)}), (".", {".": 0.0})]); s.value, s.position
    (3.5, 0)
    """
    names = {f"{s:g}": float(s) for s in scores}
    at = next((i for i in range(len(positions) - 1, -1, -1) if positions[i][0].strip(" *\n▁Ġ") in names), None)
    if at is None:
        return JudgeScore(math.nan, 0.0, None, {})
    probs: dict[float, float] = {}
    for token, lp in _pairs(positions[at][1]):
        if (name := token.strip(" *\n▁Ġ")) in names:
            probs[names[name]] = probs.get(names[name], 0.0) + math.exp(lp)
    mass = sum(probs.values())
    if mass < least:
        return JudgeScore(math.nan, mass, at, {})
    return JudgeScore(sum(k * v for k, v in probs.items()) / mass, mass, at, {k: v / mass for k, v in probs.items()})

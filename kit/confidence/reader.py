"""The confidence that an answer states, of one answer and of many; what cannot be read is None /
NaN and counted, never .5."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import DataError
from ..stats.estimate import Estimate
from ..stats.shares import wilson
from .grammar import LEVELS, STATUSES, Stated, measure
from .statements import SEVERAL, TURNED, Statement, statements


def extract(text: str, *, scale: float | None = None) -> Stated:
    """The last confidence that an answer states, or why there is none.

    Read: 80%, 80 percent, 0.8, 8/10, "eighty percent", "4 out of 5", "7 of 10", ranges in percent
    (their middle), bare numbers
    above 10 (percent), and the levels low / medium / high. A number counts beside a word such as
    confidence, certain, sure, doubt;
    beside "probability" in a sentence about the answer; or as a closing estimate ("I would say
    35%.", then noted as such). A level
    counts when the writer says it of themselves ("I am not sure"), not of others. A bare 1 to 10
    and "0.95%" are ambiguous until
    the caller gives the scale (1, 5, 10 or 100) or the text says it ("on a scale of 1-10").

    >>> (extract("So it is B. Confidence: 80%").value,
    ...  extract("The confidence level is **high**.").level)
    (0.8, 'high')
    >>> (extract("Confidence: 250%").status, extract("Confidence: 1").status,
    ...  extract("It is B.").status)
    ('invalid', 'ambiguous', 'missing')
    """
    found = extract_each(text, scale=scale)
    return found[-1] if found else Stated("missing", note="no confidence is stated")


def extract_each(text: str, *, scale: float | None = None) -> list[Stated]:
    """Every confidence that an answer states, in its order; empty where none is.

    >>> [s.value for s in extract_each("I am 90% sure. On reflection, confidence: 40%")]
    [0.9, 0.4]
    """
    DataError.first(
        (
            not isinstance(text, str),
            f"the answer is {type(text).__name__}, not text",
            "argument text",
            "pass the reply's text",
        ),
        (
            scale is not None and not (isinstance(scale, (int, float)) and scale > 0),
            f"scale is {scale!r}",
            "argument scale",
            "use the largest value: 1, 5, 10 or 100",
        ),
    )
    return [_stated(s, scale) for s in statements(text)]


def _stated(s: Statement, scale: float | None) -> Stated:
    if s.note in (TURNED, SEVERAL):
        return Stated("ambiguous", text=s.words.strip(), note=s.note)
    if s.kind in LEVELS:
        return Stated("level", level=s.kind, text=s.words.strip())
    if s.kind == "mixed":
        return Stated(
            "ambiguous", text=s.words, note="between two levels; ask for one of low / medium / high"
        )
    got = measure(s.kind, s.words, s.top, scale)
    return replace(got, note=s.note) if s.note and got.status == "value" else got


def without(text: str) -> str:
    """The text without its numeric statements of confidence, so that their numbers are not read as
    facts.

    >>> without("It is about 91% nitrogen. I am 60% sure.")
    'It is about 91% nitrogen. I am  .'
    """
    for s in reversed(statements(text)):
        if s.kind not in (*LEVELS, "mixed"):
            text = text[: s.start] + " " + text[s.end :]
    return text


@dataclass(frozen=True)
class Extraction:
    """Confidences of many answers. values : (n,) in [0, 1], NaN where no number was stated; levels
    : (n,) level or None.

    parse_rate : share with a value or a level, Wilson interval. counts : how many of each status.
    """

    stated: tuple[Stated, ...]
    values: np.ndarray
    levels: tuple[str | None, ...]
    parse_rate: Estimate
    counts: Mapping[str, int]

    def __str__(self) -> str:
        return f"parse rate {self.parse_rate}; " + ", ".join(
            f"{k} {v}" for k, v in self.counts.items() if v
        )

    def table(self) -> list[dict[str, Any]]:
        """One dict per answer."""
        return [
            {
                "row": i,
                "status": s.status,
                "value": s.value,
                "level": s.level,
                "text": s.text,
                "note": s.note,
            }
            for i, s in enumerate(self.stated)
        ]


def extract_all(texts: Iterable[str | None], *, scale: float | None = None) -> Extraction:
    """`extract` over many answers with the parse rate; None (no answer) counts as missing.

    >>> str(extract_all(["Confidence: 80%", "B"]).counts["value"])
    '1'
    """
    stated = tuple(
        Stated("missing", note="no answer") if t is None else extract(t, scale=scale) for t in texts
    )
    known = sum(s.known for s in stated)
    rate = _share(known, len(stated), "share with a stated confidence, Wilson")
    counts = {k: sum(s.status == k for s in stated) for k in STATUSES}
    return Extraction(
        stated,
        np.array([math.nan if s.value is None else s.value for s in stated]),
        tuple(s.level for s in stated),
        rate,
        counts,
    )


def fit_levels(levels: Sequence[str | None], correct: Sequence[Any]) -> dict[str, Estimate]:
    """How often each stated level is right, Wilson interval: the probabilities that the words stand
    for.

    >>> round(fit_levels(["high", "high", "low"], [1, 1, 0])["high"].value, 2)
    1.0
    """
    if len(levels) != len(correct):
        raise DataError(
            f"{len(levels)} levels, {len(correct)} outcomes",
            where="arguments levels, correct",
            fix="pass one outcome per level",
        )
    pairs = [*zip(levels, map(float, correct), strict=True)]
    rows = {level: [c for said, c in pairs if said == level] for level in LEVELS}
    return {k: _share(sum(v), len(v), f"share right at {k}, Wilson") for k, v in rows.items()}


def _share(hits: float, n: int, method: str) -> Estimate:
    return (
        replace(wilson(hits, n), method=method)
        if n
        else Estimate(math.nan, math.nan, math.nan, 0, method=method)
    )


_SCORES = ("1", "2", "3", "4", "5")
_AROUND = " *\n▁Ġ"  # of a token


def _pairs(logprobs: Any) -> list[tuple[str, float]]:
    pairs = list(logprobs.items() if isinstance(logprobs, Mapping) else logprobs)
    for token, lp in pairs:
        if not isinstance(lp, (int, float)) or math.isnan(lp) or lp > 1e-3:
            raise DataError(
                f"log probability {lp!r} of token {token!r}",
                where="argument logprobs",
                fix="pass natural logarithms, <= 0",
            )
    return pairs


def judge_score(positions: Sequence[tuple[str, Mapping[str, float]]]) -> dict[float, float]:
    """The probability of each score from 1 to 5 over the tokens at the *last* position where a
    judge wrote one, renormalised; {} where none was written, or no score has any mass.

    positions : per generated token (token, top tokens -> natural log probability). What stands
        behind "/" ("4/5") is no score. Their mean is G-Eval's score (Liu et al. 2023).

    >>> judge_score([("4", {"4": math.log(.75), "2": math.log(.25)}), (".", {".": 0.0})])
    {4.0: 0.75, 2.0: 0.25}
    """
    words = [token.strip(_AROUND) for token, _ in positions]
    behind = [False, *(w.endswith("/") for w in words[:-1])]
    at = [i for i, w in enumerate(words) if w in _SCORES and not behind[i]]
    probs: dict[float, float] = {}
    for token, lp in _pairs(positions[at[-1]][1]) if at else ():
        if (name := token.strip(_AROUND)) in _SCORES:
            probs[float(name)] = probs.get(float(name), 0.0) + math.exp(lp)
    mass = sum(probs.values())
    return {k: v / mass for k, v in probs.items()} if mass > 0 else {}

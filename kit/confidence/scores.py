"""Confidences that are scores: from token probabilities, from agreement between answers, from a
judge's score tokens."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError


@dataclass(frozen=True)
class TokenMass:
    """A probability read from token probabilities; NaN when `mass`, what the counted tokens
    capture, is below the minimum."""

    value: float
    mass: float

    def __float__(self) -> float:
        return self.value


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


def p_true(
    logprobs: Mapping[str, float] | Iterable[tuple[str, float]],
    *,
    positive: Sequence[str] = ("yes", "true", "a"),
    negative: Sequence[str] = ("no", "false", "b"),
    least: float = 0.5,
) -> TokenMass:
    """P(true) at one position: mass on the positive token's variants over positives plus negatives.

    logprobs : token -> natural log probability of the top tokens. Variants: case and surrounding
        spaces and punctuation.
    NaN when both together hold less than `least`. Source: Kadavath et al. 2022, section 3.

    >>> m = p_true({" Yes": math.log(.6), "yes": math.log(.2), "No": math.log(.1)})
    >>> round(m.value, 4), round(m.mass, 4)
    (0.8889, 0.9)
    """

    def bare(token: str) -> str:
        return token.strip(" \t\n▁Ġ*_\"'`.:,()").casefold()

    sums = [
        sum(math.exp(lp) for t, lp in _pairs(logprobs) if bare(t) in {v.casefold() for v in side})
        for side in (positive, negative)
    ]
    mass = sum(sums)
    return TokenMass(sums[0] / mass if mass >= least else math.nan, mass)


def sequence(logprobs: Sequence[float]) -> float:
    """exp(mean log probability) of an answer's tokens, a score in [0, 1]: recalibrate before
    reading it. NaN when empty.

    >>> round(sequence([math.log(.5), math.log(.5)]), 3)
    0.5
    """
    values = [lp for _, lp in _pairs([(str(i), lp) for i, lp in enumerate(logprobs)])]
    return min(1.0, math.exp(sum(values) / len(values))) if values else math.nan


def consistency(answers: Sequence[Any], *, same: Callable[[Any], Any] | None = None) -> np.ndarray:
    """Leave-one-out agreement (n,): (k-1)/(n-1), k answers equal to this one of n known; NaN for
    None or a single answer.

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
    """Expected score at the last score position. probs : score -> probability, renormalised; mass :
    what they captured."""

    value: float
    mass: float
    position: int | None
    probs: Mapping[float, float]


def judge_score(
    positions: Sequence[tuple[str, Mapping[str, float]]],
    *,
    scores: Sequence[float] = (1, 2, 3, 4, 5),
    least: float = 0.5,
) -> JudgeScore:
    """Expectation of a judge's score over the tokens at the *last* position where it wrote one.

    positions : per generated token (token, top tokens -> natural log probability). A score of
        several tokens ("10") is not
    seen. NaN when no score was written or the scores hold less than `least` of the mass. Source:
    G-Eval (Liu et al. 2023).

    >>> s = judge_score([("4", {"4": math.log(.75), "2": math.log(.25)}), (".", {".": 0.0})])
    >>> s.value, s.position
    (3.5, 0)
    """
    names = {f"{s:g}": float(s) for s in scores}
    at = next(
        (i for i in range(len(positions) - 1, -1, -1) if positions[i][0].strip(" *\n▁Ġ") in names),
        None,
    )
    if at is None:
        return JudgeScore(math.nan, 0.0, None, {})
    probs: dict[float, float] = {}
    for token, lp in _pairs(positions[at][1]):
        if (name := token.strip(" *\n▁Ġ")) in names:
            probs[names[name]] = probs.get(names[name], 0.0) + math.exp(lp)
    mass = sum(probs.values())
    if mass < least:
        return JudgeScore(math.nan, mass, at, {})
    return JudgeScore(
        sum(k * v for k, v in probs.items()) / mass,
        mass,
        at,
        {k: v / mass for k, v in probs.items()},
    )

"""P(met) from the log-probabilities of a reply's tokens."""

from __future__ import annotations

import bisect
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..records import Criterion, is_number
from .parse import spoken
from .templates import names
from .words import MET, UNMET, Foreign, Reading, word

Mass = tuple[float, float]
_HEAD = r"(?<!\\)%s\s*:\s*\{"
_VERDICT = re.compile(r'(?<!\\)"(?:verdict|level|rating)"\s*:\s*"')
LEAST = 0.5  # captured mass under which nothing is said


def token_p(
    tokens: Any, criteria: Sequence[Criterion], readings: Sequence[Reading] | None = None
) -> list[Mass | None]:
    """(P(met), captured mass) of each binary criterion at its verdict's first token, else None.

    tokens : the `logprobs.content` of a chat completion; one that is no such list says nothing.
    readings : what was read; a place where the tokens spell another verdict says nothing either.
    Mass on words other than met / unmet is left out of P and shown as the missing part of the mass.
    """
    nothing: list[Mass | None] = [None] * len(criteria)
    if not isinstance(tokens, list) or not all(isinstance(t, Mapping) for t in tokens):
        return nothing
    words = [str(t.get("token", "")) for t in tokens]
    text = "".join(words)
    starts = list(itertools.accumulate(map(len, words[:-1]), initial=0))
    ids = names(criteria)
    try:
        said = len(text) - len(spoken(text))  # no draft's words
    except Foreign:
        return nothing
    for i, (name, c) in enumerate(zip(ids, criteria, strict=True)):
        at = _place(text, said, name, ids) if tokens and c.scale == "binary" else None
        if at is None or (readings is not None and not _spells(c, text[at:], readings[i])):
            continue
        index = bisect.bisect_right(starts, at) - 1
        before = text[starts[index] : at]
        side = _side(words[index], before)
        if side and (readings is None or side == readings[i].status):
            nothing[i] = _split(tokens[index], before)
    return nothing


def _spells(c: Criterion, text: str, r: Reading) -> bool:
    """True when the text begins with the verdict that was read."""
    m = re.match(r"[A-Za-z_ ]{1,30}", text)
    return bool(m) and (word(c, m[0]) or ("",))[0] == r.status  # type: ignore[index]


def _place(text: str, said: int, name: str, ids: Sequence[str]) -> int | None:
    """Where in a reply, from `said` on, the verdict word of a criterion begins."""
    heads_of = {n: re.compile(_HEAD % re.escape(json.dumps(n))) for n in ids}
    parts = [(m.end(), n) for n, head in heads_of.items() for m in head.finditer(text, said)]
    heads = [at for at, n in parts if n == name]
    if heads or len(ids) == 1:
        start = heads[-1] if heads else said
        end = min((at for at, n in parts if at > start), default=len(text))  # another's part
        m = _VERDICT.search(text, start, end)
        if m:
            return m.end()
    lines = list(
        re.finditer(
            rf"^[^\w\n]{{0,12}}verdict\s+\W?{re.escape(name)}(?![\w.-])\W*[:=]\s*",
            text[said:],
            re.I | re.M,
        )
    )
    return said + lines[-1].end() if lines else None


def _split(said: Mapping[str, Any], before: str) -> Mass | None:
    """P(met) and mass at a token; None where an alternative is broken, or the token none of
    them.
    """
    top, mass = said.get("top_logprobs"), {"met": 0.0, "unmet": 0.0, "": 0.0}
    own = False
    for t in top if isinstance(top, list) else []:
        w = str(t.get("token", "")) if isinstance(t, Mapping) else ""
        p = _probability(t.get("logprob")) if w else 0.0
        side = _side(w, before)
        if math.isnan(p) and side:
            return None
        mass[side] += p
        own = own or w == said.get("token")
    total = mass["met"] + mass["unmet"]
    fits = own and LEAST <= total < 1.01
    return (min(1.0, mass["met"] / total), min(1.0, total)) if fits else None


def _side(token: str, before: str) -> str:
    """The verdict that a token begins, behind the text `before` in it; "" where that is open."""
    w = token[len(before) :] if before and token.startswith(before) else token
    w = w.strip(" \"'*\n").casefold()
    if w and ("met".startswith(w) or w in MET):
        return "met"
    return "unmet" if w and ("unmet".startswith(w) or w in ("not", *UNMET)) else ""


def _probability(logprob: Any) -> float:
    """exp of a logarithm; NaN for what is none (text, NaN, a number above 0)."""
    fits = is_number(logprob) and logprob <= 1e-6
    return math.exp(max(logprob, -1e4)) if fits else math.nan

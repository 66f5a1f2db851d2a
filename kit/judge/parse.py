"""From a judge's raw reply to one reading per criterion: by id, never by position; the last verdict counts; no guessing.

A word that is not an allowed verdict ("Partially") is a parse failure of that criterion, not a No. A criterion that is missing,
named twice or broken harms no sibling. Nothing is ever padded, clamped or defaulted.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..records import Criterion
from .templates import names

log = logging.getLogger(__name__)

MET = frozenset("met|yes|true|pass|passed|satisfied|fulfilled|is met".split("|"))
UNMET = frozenset(
    "unmet|not met|no|false|fail|failed|not satisfied|unsatisfied|not fulfilled|is not met".split(
        "|"
    )
)
ABSTAIN = frozenset(
    "cannot tell|can't tell|cannot assess|unclear|unknown|undecidable|n a|not applicable|none|null".split(
        "|"
    )
)
_THINK = re.compile(r"\A.*</think(?:ing)?>", re.S)
_LINE = re.compile(r"^[^\w\n]{0,12}(verdict|reason|confidence)\b([^\n]*)$", re.I | re.M)
_NAMED = re.compile(r"[\s<\[\"'`*(]*([A-Za-z][\w.-]*?)[>\]\"'`*)]*\s*(?:[:=]+|->)\s*(.*)", re.S)
_TAIL = re.compile(r"[.;,(\[]|\s[-\u2013\u2014]\s|\s(?=because\b|since\b|as\b)", re.I)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a reply says of one criterion. failure : None, or "parse", "missing", "contradiction", "abstain", "refusal".

    confidence : stated, in [0, 1], or None when none (or none that can be read) was given.
    """

    status: str = "unknown"
    value: float | None = None
    reason: str | None = None
    confidence: float | None = None
    failure: str | None = None
    how: str = "json"


class _Twice(list[Any]):
    """All values of a key that a JSON object names more than once."""


def word(c: Criterion, raw: Any) -> tuple[str, float | None] | None:
    """(status, value) of a verdict word for this criterion, ("unknown", None) for an abstention, None when it is not allowed.

    >>> c = Criterion(id="c", text="t")
    >>> word(c, "YES."), word(c, "Partially"), word(c, "cannot_tell")
    (('met', 1.0), None, ('unknown', None))
    """
    if raw is None:
        return None
    if c.scale == "binary" and raw in ("met", "unmet"):  # what nearly all replies say
        return raw, float(raw == "met")
    text = _plain(raw)
    if c.scale == "ordinal":
        plain = [_plain(v) for v in c.levels]
        if plain.count(text) == 1:
            return "level", plain.index(text) / (len(plain) - 1)
    elif c.scale == "points":
        number = _number(raw, c.points or 1.0)
        if number is not None:
            return "level", number / (c.points or 1.0)
    elif text in MET:
        return "met", 1.0
    elif text in UNMET:
        return "unmet", 0.0
    return ("unknown", None) if text in ABSTAIN else None


def _plain(raw: Any) -> str:
    if not isinstance(raw, (str, bool)):
        return "\0"
    text = re.sub(r"[\s_/-]+", " ", str(raw)).strip(" \t\n*`\"'.!:;,()[]{}<>#").casefold()
    return text.replace("\u2019", "'")


def _number(raw: Any, top: float) -> float | None:
    """Points in [0, top]; anything outside is not a verdict (never clamped)."""
    if isinstance(raw, str):
        m = re.fullmatch(
            r"\s*\**\s*([+-]?\d+(?:\.\d+)?)\s*(?:/\s*(\d+(?:\.\d+)?))?\s*(?:points?|pts)?\s*\**\s*\.?\s*",
            raw,
        )
        if not m or (m[2] and float(m[2]) != top):
            return None
        raw = float(m[1])
    if isinstance(raw, bool) or not isinstance(raw, (int, float)) or not math.isfinite(raw):
        return None
    return float(raw) if 0 <= raw <= top else None


def percent(raw: Any) -> float | None:
    """A stated confidence in percent as [0, 1]; None when absent or not readable (never a made-up .5).

    >>> percent("85%"), percent(90), percent(250), percent(None), percent(0.9)
    (0.85, 0.9, None, None, None)
    """
    if isinstance(raw, str):
        m = re.fullmatch(r"\s*(\d{1,3}(?:\.\d+)?)\s*%?\s*\.?\s*", raw)
        raw = float(m[1]) if m else None
    if (
        raw is None
        or isinstance(raw, bool)
        or not isinstance(raw, (int, float))
        or not math.isfinite(raw)
    ):
        return None
    if not 0 <= raw <= 100 or 0 < raw < 1:  # .9 could be nine tenths or under one percent
        return None
    return raw / 100


def read(
    text: str, criteria: Sequence[Criterion], *, mode: str = "schema", cut: bool = False
) -> list[Reading]:
    """One reading per criterion, in order, from the raw text of a reply.

    mode : how the reply was asked for; JSON is tried first for "schema", lines first for "text", then the other.
    cut : the reply ended at the token limit; what is not finished is not believed.

    >>> [r.status for r in read('{"b": {"verdict": "unmet"}, "a": "met"}', [Criterion(id="a", text=""), Criterion(id="b", text="")])]
    ['met', 'unmet']
    """
    body = _THINK.sub("", text) if "</think" in text else text
    ways = (_from_json, _from_text) if mode == "schema" else (_from_text, _from_json)
    for way in ways:
        found = way(body, criteria, cut)
        if found is not None:
            return found
    lost = "missing" if body.strip() and mode == "text" else "parse"
    return [Reading(failure=lost, how="none") for _ in criteria]


# -- JSON -------------------------------------------------------------------------------------------------------------
def _hook(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for k, v in pairs:
        if k in out:
            out[k] = _Twice([*(out[k] if isinstance(out[k], _Twice) else [out[k]]), v])
        else:
            out[k] = v
    return out


_DECODER = json.JSONDecoder(object_pairs_hook=_hook, parse_constant=str)


def _from_json(text: str, criteria: Sequence[Criterion], cut: bool) -> list[Reading] | None:
    ids = names(criteria)
    try:
        whole = _DECODER.decode(text.strip())
        found = occurrences(whole, ids)
        if found:
            return _readings(found, ids, criteria, "json")
        return [Reading(failure="missing") for _ in criteria] if isinstance(whole, dict) else None
    except (ValueError, RecursionError):
        pass
    best = None
    for value in _inside(text):
        found = occurrences(value, ids)
        best = found or best  # the last JSON that names a criterion counts
    if best:
        return _readings(best, ids, criteria, "json found in text")
    return _repaired(text, ids, criteria)


def _inside(text: str) -> Iterator[Any]:
    """JSON objects and lists that stand in a text, from left to right."""
    at, tries = 0, 0
    while tries < 64:
        m = re.compile(r"[{\[]").search(text, at)
        if not m:
            return
        try:
            value, at = _DECODER.raw_decode(text, m.start())
            yield value
        except (ValueError, RecursionError):
            at, tries = m.end(), tries + 1


def _repaired(text: str, ids: Sequence[str], criteria: Sequence[Criterion]) -> list[Reading] | None:
    """Broken JSON: a logged fall-back through json-repair; what was not closed in the text is not believed."""
    start = text.find("{")
    if start < 0 or len(text) > 200_000:
        return None
    try:
        import json_repair

        value = json_repair.loads(text[start:], skip_json_loads=True)
    except Exception:  # a repair library may fail in any way; the reply is then simply not readable
        return None
    found = occurrences(value, ids)
    if not found:
        return None
    log.info("a reply was broken JSON and was repaired; its ids were checked again")
    out = _readings(found, ids, criteria, "json repaired")
    return [_closed(r, text, n) for r, n in zip(out, ids, strict=True)]


def _closed(r: Reading, text: str, name: str) -> Reading:
    """Keep a repaired reading only if its own object stands complete in the text."""
    whole = list(_objects_of(text, name))
    return (
        r if whole or r.failure else Reading(failure="parse", how="json repaired", reason=r.reason)
    )


def _objects_of(text: str, name: str) -> Iterator[Any]:
    for m in re.finditer(re.escape(json.dumps(name)) + r"\s*[:,]\s*", text):
        start = m.end() if text[m.end() : m.end() + 1] == "{" else text.rfind("{", 0, m.start())
        try:
            value, end = _DECODER.raw_decode(text, max(start, 0))
            if isinstance(value, dict) and end > m.end():
                yield value
        except (ValueError, RecursionError):
            continue


def occurrences(value: Any, ids: Sequence[str]) -> dict[str, list[Any]]:
    """Every mention of an asked id in a decoded reply, by id; ids that were not asked are left out.

    Accepts the asked form (an object keyed by id) and a list of objects with an "id" each; never positions.
    """
    fold = {i.casefold(): i for i in ids}
    out: dict[str, list[Any]] = {}

    def add(name: Any, item: Any) -> None:
        own = fold.get(name.strip().casefold()) if isinstance(name, str) else None
        if own is not None:
            out.setdefault(own, []).extend(item if isinstance(item, _Twice) else [item])

    if isinstance(value, dict):
        if (
            len(ids) == 1
            and "verdict" in value
            and not any(k.strip().casefold() in fold for k in value)
        ):
            add(value.get("id", ids[0]), value)  # one question, one answer: nothing to mix up
            return out
        for k, v in value.items():
            add(k, v)
        if not out:
            for v in value.values():
                if isinstance(v, (list, dict)) and not isinstance(v, _Twice):
                    inner = (
                        occurrences(v, ids)
                        if isinstance(v, list) or any(str(k).strip().casefold() in fold for k in v)
                        else {}
                    )
                    for name, items in inner.items():
                        out.setdefault(name, []).extend(items)
    elif isinstance(value, list) and not isinstance(value, _Twice):
        for item in value:
            if isinstance(item, dict):
                add(
                    next((item[k] for k in ("id", "criterion_id", "criterion") if k in item), None),
                    item,
                )
    return out


def _readings(
    found: dict[str, list[Any]], ids: Sequence[str], criteria: Sequence[Criterion], how: str
) -> list[Reading]:
    out = []
    for n, c in zip(ids, criteria, strict=True):
        items = [_item(c, x, how) for x in found.get(n, [])]
        if not items:
            out.append(Reading(failure="missing", how=how))
        elif len(items) == 1:
            out.append(items[0])
        else:
            differ = len({(i.status, i.value) for i in items}) > 1
            out.append(
                Reading(
                    failure="contradiction" if differ else "missing",
                    how=how,
                    reason="named twice in one reply",
                )
            )
    return out


def _item(c: Criterion, item: Any, how: str) -> Reading:
    """One criterion's part of a JSON reply."""
    if not isinstance(item, dict):
        return _reading(c, item, None, None, how)
    key = next((k for k in ("verdict", "status", "rating", "answer") if k in item), None)
    raw = item[key] if key else None
    reason = next(
        (item[k] for k in ("reason", "rationale", "explanation") if isinstance(item.get(k), str)),
        None,
    )
    if isinstance(raw, _Twice):
        return Reading(failure="contradiction", reason=reason, how=how)
    return _reading(c, raw, reason, item.get("confidence"), how)


def _reading(c: Criterion, raw: Any, reason: str | None, confidence: Any, how: str) -> Reading:
    got = word(c, raw)
    if reason and not reason.isascii():
        reason = reason.encode("utf-8", "replace").decode("utf-8")  # no half of a surrogate pair
    if got is None:
        shown = f"not an allowed verdict: {str(raw)[:60]!r}".encode("utf-8", "replace").decode(
            "utf-8"
        )
        return Reading(failure="parse", reason=reason or shown, how=how)
    status, value = got
    return Reading(
        status=status,
        value=value,
        reason=reason,
        confidence=percent(confidence),
        how=how,
        failure="abstain" if status == "unknown" else None,
    )


# -- lines of text ------------------------------------------------------------------------------------------------------
def _from_text(text: str, criteria: Sequence[Criterion], cut: bool) -> list[Reading] | None:
    """`VERDICT <id>: <word>` lines: the last one of each id counts, and is then validated (never an earlier one instead)."""
    ids = names(criteria)
    fold = {n.casefold(): n for n in ids}
    said: dict[str, dict[str, str]] = {n: {} for n in ids}
    end = len(text.rstrip())
    for m in _LINE.finditer(text):
        kind, rest = m[1].casefold(), m[2]
        named = _NAMED.match(rest)
        own = fold.get(named[1].casefold()) if named else None
        if own:
            said[own][kind] = named[2]  # type: ignore[index]
        elif len(ids) == 1 and (
            bare := re.match(r"[\s*\"'`]*(?:[:=]+|->|\bis\b)\s*(.*)", rest, re.S)
        ):
            own = ids[0]
            said[own][kind] = bare[1]
        if own and kind == "verdict" and cut and m.end() >= end:
            said[own][kind] = ""  # the line at the cut may be half a word
    if not any("verdict" in s for s in said.values()):
        return None
    return [_line(c, said[n]) for n, c in zip(ids, criteria, strict=True)]


def _line(c: Criterion, said: dict[str, str]) -> Reading:
    if "verdict" not in said:
        return Reading(
            failure="missing", how="text", reason=(said.get("reason") or "").strip() or None
        )
    raw, reason = said["verdict"].strip(), (said.get("reason") or "").strip() or None
    first = _TAIL.split(raw, maxsplit=1)[0] if c.scale != "points" else raw
    full = _reading(c, raw, reason, said.get("confidence"), "text")
    return (
        full
        if full.failure != "parse"
        else _reading(c, first, reason, said.get("confidence"), "text")
    )


# -- token probabilities --------------------------------------------------------------------------------------------------
def token_p(
    tokens: Sequence[Any], criteria: Sequence[Criterion]
) -> list[tuple[float, float] | None]:
    """(P(met), captured mass) of each binary criterion from the top logprobs at its verdict's first token, else None.

    tokens : the `logprobs.content` of a chat completion. Mass on words other than met / unmet is left out of P and shown as the
    missing part of the mass; under .5 captured nothing is said.
    """
    text, starts = "", []
    for t in tokens:
        starts.append(len(text))
        text += str(t.get("token", ""))
    out: list[tuple[float, float] | None] = []
    for n, c in zip(names(criteria), criteria, strict=True):
        at = _place(text, n, len(criteria) == 1) if c.scale == "binary" else None
        index = (
            max((i for i, s in enumerate(starts) if s <= at), default=None)
            if at is not None
            else None
        )
        out.append(
            None
            if index is None
            else _split(tokens[index].get("top_logprobs") or [], text[starts[index] : at])
        )
    return out


def _place(text: str, name: str, only: bool) -> int | None:
    """Where in a reply the verdict word of a criterion begins."""
    heads = [
        m.end() for m in re.finditer(r"(?<!\\)" + re.escape(json.dumps(name)) + r"\s*:\s*\{", text)
    ]
    if heads or only:
        m = re.compile(r'(?<!\\)"verdict"\s*:\s*"').search(text, heads[-1] if heads else 0)
        if m:
            return m.end()
    lines = list(
        re.finditer(rf"^[^\w\n]{{0,12}}verdict\s+\W?{re.escape(name)}\W*[:=]\s*", text, re.I | re.M)
    )
    return lines[-1].end() if lines else None


def _split(top: Sequence[Any], before: str) -> tuple[float, float] | None:
    met = unmet = 0.0
    for t in top:
        w = str(t.get("token", ""))
        w = (w[len(before) :] if before and w.startswith(before) else w).strip(" \"'*\n").casefold()
        p = math.exp(min(0.0, float(t.get("logprob", -math.inf))))
        if w and ("met".startswith(w) or w == "yes"):
            met += p
        elif w and ("unmet".startswith(w) or w == "no"):
            unmet += p
    mass = met + unmet
    return (min(1.0, met / mass), min(1.0, mass)) if mass >= 0.5 else None


def refused(readings: Sequence[Reading]) -> list[Reading]:
    """The same readings, all refused."""
    return [replace(r, status="unknown", value=None, failure="refusal") for r in readings]

"""The two forms of a judge's reply, and what of it only repeats the judged answer.

In text: lines `REASON <id>: ...`, `VERDICT <id>: <word>`, `CONFIDENCE <id>: <n>`. In JSON: one
value, an object by criterion id with the asked fields. Anything besides is Foreign.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..records import Criterion
from .keys import letters
from .words import Foreign, Said, against

LINES = 10_000  # of one reply
SMALL = 10  # letters; fewer may stand anywhere
# what changes nothing: a list mark or heading before the line, bold, brackets around the id
_LINE = re.compile(
    r"[ \t]*(?:(?:[-*+\u2022]|\d{1,3}[.)]|\#{1,6})[ \t]{1,4})?(?P<bold>[*_`]{0,3})"
    r"(?P<what>reason|verdict|confidence)\b[ \t\u00a0\u202f*_`]{0,4}"
    r"(?:[<\[(\"'`]?(?P<name>[A-Z][\w.-]{0,39})[>\])\"'`]?[ \t\u00a0\u202f*_`]{0,4})?"
    r"(?:[:=\uff1a]|->)(?P<rest>.*)",
    re.I | re.S,
)
_ID = re.compile(r"\d")
_OPENED = re.compile(r"(?:\S:|<\w{1,20}>|(?:^|\s)[\"'`\u201c\u201e\u00ab]+)\Z")
_RULE = re.compile(r"\s*(?:-{3,}|\*{3,})?\s*")
_LETTERS = re.compile(r"[^\W_]+")


def lines(text: str, ids: Sequence[str]) -> dict[str, Said]:
    """What the lines of a reply say, by id; Foreign for any line that is no such line.

    A reason may go on over several lines until the next line of the form.
    """
    if text.count("\n") > LINES:
        raise Foreign(text)
    said = {n: Said() for n in ids}
    fold = {n.casefold(): n for n in ids}
    waiting: dict[str, str] = {}  # reasons whose verdict has not come yet
    body: list[str] | None = None  # the reason that may go on
    for line in text.split("\n"):
        m = _LINE.fullmatch(line)
        name, what = _addressed(m, fold) if m else (None, "")
        if m is None or name is None:
            # a line of the form on an id that was not asked; "Reason enough: ..." is none
            stray = m and m["name"] and (m["what"].isupper() or _ID.search(m["name"]))
            if body is not None and what != "verdict" and not stray:
                body.append(line)
            elif not _RULE.fullmatch(line):
                raise Foreign(line)
            continue
        place, rest, before, body = said[name], _rest(m), body, None
        if what == "reason":
            body, waiting[name] = place.reasons, line
            body.append(rest)
        elif what == "verdict":
            if _quoting(before):
                raise Foreign(line)
            place.verdicts.append(rest)
            place.lines.append(line)
            waiting.pop(name, None)
        else:
            place.confidences.append(rest)
    behind = [line for n, line in waiting.items() if said[n].lines]
    if behind:  # a "reason" behind its verdict may take it back
        raise Foreign(behind[0])
    return said


def _addressed(m: re.Match[str], fold: Mapping[str, str]) -> tuple[str | None, str]:
    """(the asked id that a line names, what it says of it); the only id where it names none."""
    only = next(iter(fold.values())) if len(fold) == 1 else None
    named = (m["name"] or "").casefold()
    name = fold.get(named, fold.get(named.rstrip("_"))) if named else only
    return name, m["what"].casefold()


def _quoting(body: Sequence[str] | None) -> bool:
    """True for a reason that goes on with a quotation: the line behind it is perhaps the answer's.

    >>> _quoting(["It says:"]), _quoting(["a", "```", "b"]), _quoting(['It says "met"'])
    (True, True, False)
    """
    text = "\n".join(body or ()).rstrip()
    return bool(_OPENED.search(text)) or text.count("```") % 2 == 1


def _rest(m: re.Match[str]) -> str:
    """What a line says, without the other end of what makes the line or its head bold.

    Other marks may be part of a level: "A*" is not "A".
    """
    rest, bold = m["rest"].strip(), m["bold"]
    return rest.removeprefix(bold).strip() if rest.startswith(bold) else rest.removesuffix(bold)


class Judged:
    """The judged answer, to see which words of a reply are only said back."""

    def __init__(self, text: str) -> None:
        self._low, self._letters = text.casefold(), ""

    def has(self, words: str) -> bool:
        """True when these words stand in the answer: blanks, marks and capitals aside.

        >>> Judged("I say: VERDICT c1: met!").has("**Verdict c1: met.**"), Judged("").has("met")
        (True, False)
        """
        first = _LETTERS.search(words)
        if first is None or first[0].casefold() not in self._low:
            return False
        said, self._letters = letters(words), self._letters or letters(self._low)
        if len(said) < SMALL:  # "a: met" stands in "dolor sit amet"
            return "".join(words.split()).casefold() in "".join(self._low.split())
        return said in self._letters

    def told(self, said: Said) -> bool:
        """True when a verdict and the reason beside it stand in the answer, in whatever dress.

        A line for the answer's good that stands in the answer is told whatever the reason says:
        its last words may announce a quotation, and no list holds all such words.

        >>> Judged('{"reason": "All is good here.", "verdict": "met"}').told(
        ...     Said(reasons=["All is good here."], verdicts=["Met"])
        ... )
        True
        """
        good = [s for s, v in zip(said.lines, said.verdicts, strict=False) if not against(v)]
        if any(map(self.has, good)):
            return True
        if said.lines and not said.reason:
            return all(map(self.has, said.lines))
        if not self.has(said.reason) or len(letters(said.reason)) < SMALL:
            return False
        words = "|".join({re.escape(letters(str(v))) for v in said.verdicts})
        label = r"(?:verdict|level|rating)\w{0,40}?(?<!un)(?<!not)"
        return bool(re.search(f"{label}(?:{words})", self._letters))


VERDICTS = ("verdict", "level", "rating")
REASONS = ("reason", "rationale", "explanation", "justification", "evidence", "quote")
IDS = ("id", "criterion_id", "criterion")


class Fields(list[tuple[str, Any]]):
    """A JSON object as its pairs, so that a key that stands twice is seen twice."""


_DECODER = json.JSONDecoder(object_pairs_hook=Fields, parse_constant=str, strict=False)


def objects(text: str, ids: Sequence[str], criteria: Sequence[Criterion]) -> dict[str, Said]:
    """What one JSON value says, by id; Foreign for anything in it or behind it that was not asked.

    The asked form is {id: {"reason": ..., "verdict": ...}}; {id: verdict}, and one part alone for
    a single question, are the same thing in another dress.
    """
    try:
        value, end = _DECODER.raw_decode(text)
    except json.JSONDecodeError as e:
        raise Foreign(text[e.pos :] or text[-60:]) from None
    except (ValueError, RecursionError):  # a number of 5,000 digits, 1,000 brackets
        raise Foreign(text) from None
    if text[end:].strip():
        raise Foreign(text[end:])
    said = {n: Said() for n in ids}
    by_name = dict(zip(ids, criteria, strict=True))
    for name, part in _parts(value, {n.casefold(): n for n in ids}):
        _hear(said[name], part, {name.casefold(), by_name[name].id.casefold()}, by_name[name])
    return said


def _parts(value: Any, fold: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """(id, its part) of each criterion that a decoded reply speaks of."""
    if not isinstance(value, Fields):
        raise Foreign(value)
    keys = [_key(k) for k, _ in value]
    alone = len(fold) == 1 and any(k in VERDICTS for k in keys)
    if alone and not all(k in fold for k in keys):
        yield next(iter(fold.values())), value
        return
    for key, (k, v) in zip(keys, value, strict=True):
        if key not in fold:
            raise Foreign(k)
        yield fold[key], v


def _hear(said: Said, part: Any, mine: set[str], c: Criterion) -> None:
    """Note one criterion's part: its verdict alone, or an object with the asked fields."""
    if not isinstance(part, Fields):
        said.verdicts.append(part)
        return
    keys = [_key(k) for k, _ in part]
    given = any(k in VERDICTS for k in keys)
    for key, (k, v) in zip(keys, part, strict=True):
        if keys.count(key) > 1 and key not in VERDICTS:
            raise Foreign(k)
        if key in VERDICTS:
            said.verdicts.append(v)
        elif key in REASONS and isinstance(v, (str, type(None))):
            if said.verdicts and (said.reasons or not given):  # it may take the verdict back
                raise Foreign(v or k)
            said.reasons.append(v or "")
        elif key == "confidence":
            said.confidences.append(v)
        elif key not in IDS or _key(v) not in mine | {_key(c.text)}:
            raise Foreign(k if key not in IDS else v)


def _key(name: Any) -> str:
    return name.strip().casefold() if isinstance(name, str) else ""

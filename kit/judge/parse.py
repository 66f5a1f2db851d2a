"""From a judge's raw reply to one reading per criterion: by id, never by position; no guessing.

The world is closed. A reply is believed only when all of it has the form that was asked for:

    [a closed <think> block] [one line such as "Here is my evaluation:"] [a code fence around]
    [behind all: a token such as <|im_end|>]
    lines  REASON <id>: text / VERDICT <id>: word / CONFIDENCE <id>: number, and blank lines
    or     one JSON value {id: {"reason": text, "verdict": word, "confidence": number}, ...}

- Anything else in it (a sentence, a quotation, a second value, an unknown key or id) makes all of
  it unknown: it may speak of any criterion. Its reason quotes the beginning of what was not
  expected. So does a draft: an unclosed <think>, an unclosed object, a reply that was cut.
- A slip is its criterion's own affair: a line that is missing, a word that is not allowed.
- A verdict is the whole of its place: "met", "**Met.**", "2", not "met, mostly" or "2.5" of 0-3.
- Two verdicts on one criterion that disagree are a contradiction, as is a reason that states
  another verdict (`reasons.py`). That a reason argues for its verdict is not checked beyond that.
- A confidence that may be on another scale than 0 to 100, or is said twice, is None.
- A verdict that only repeats the judged answer is none.

Nothing is ever padded, clamped or defaulted. What is unknown is asked once more, by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..records import Criterion
from .lines import Judged, lines
from .logprobs import token_p
from .objects import objects
from .reasons import stated
from .templates import names
from .thoughts import spoken
from .words import Foreign, Reading, Said, at_odds, percent, settled, slip, word

RUNAWAY = 8  # blanks at the end of a whole JSON reply that was cut: the model had finished
CUT = "the reply was cut at the token limit"
MADE = ("met", 1.0)
REPEATED = "its words stand in the answer"
_END = re.compile(r"(?:<\|\w{1,20}\|>|</s>)\Z")  # a token that the server should have kept
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*(?:json|text)?\s(.*)\1", re.S | re.I)
_HEADER = re.compile(r"[#*_ \t]*([a-z][a-z'\u2019, ]{0,60}):[*_ \t\r]*", re.I)
HEADER = frozenset(
    "here here's heres is are my the evaluation evaluations verdict verdicts assessment assessments "
    "judgment judgments judgement judgements result results json output reply final for of each all "
    "criterion criteria sure okay ok".split()
)


def read(
    text: str, criteria: Sequence[Criterion], *, cut: bool = False, answer: str = ""
) -> list[Reading]:
    """One reading per criterion, in order, from the raw text of a reply, in lines or in JSON.

    cut : the reply ended at the token limit. It is a draft, and is not believed: where it stops,
        the judge had perhaps not made up its mind. (Whole JSON that runs on in blanks is none.)
    answer : the judged answer, whose words are not the judge's.

    >>> a, b = Criterion(id="a", text=""), Criterion(id="b", text="")
    >>> [r.status for r in read('{"b": {"verdict": "unmet"}, "a": "met"}', [a, b])]
    ['met', 'unmet']
    >>> read("VERDICT a: met\\nOn second thought, no.", [a])[0].reason
    "not the form that was asked for: 'On second thought, no.'"
    """
    ids, how = names(criteria), "none"
    try:
        body = _body(text)
        how = "json" if body[:1] in ("{", "[") else "text"
        if cut and (how == "text" or len(text) - len(text.rstrip()) < RUNAWAY):
            return [Reading(failure="parse", how="none", reason=CUT) for _ in criteria]
        said = objects(body, ids, criteria) if how == "json" else lines(body, ids)
        for c, n in zip(criteria, ids, strict=True):
            _slips(c, said[n], ids)
    except Foreign as e:
        how, why = how.replace("text", "none"), CUT if cut else str(e)
        return [Reading(failure="parse", how=how, reason=why) for _ in criteria]
    judged = Judged(answer)
    if how == "json" and judged.has(body):
        return [Reading(failure="missing", how=how, reason=REPEATED) for _ in criteria]
    rows = [_settled(c, said[n], how, judged) for c, n in zip(criteria, ids, strict=True)]
    by_id = dict(zip(ids, criteria, strict=True))
    return _agreeing(dict(zip(ids, rows, strict=True)), said, by_id, judged)


def refused(readings: Sequence[Reading]) -> list[Reading]:
    """The same readings, all refused."""
    return [replace(r, status="unknown", value=None, failure="refusal") for r in readings]


def agreed(choices: Sequence[Sequence[Reading]]) -> list[Reading]:
    """Several choices of one reply as one; a contradiction where they disagree."""
    rows = list(zip(*choices, strict=True))
    states = [{(r.status, r.value) for r in row} for row in rows]
    return [
        row[0] if len(s) == 1 else at_odds(s, row[0].how)
        for row, s in zip(rows, states, strict=True)
    ]


def _body(text: str) -> str:
    """A reply without the thoughts, the header and the code fence around what was asked for."""
    text = _END.sub("", text.rstrip())
    body = _framed(text)
    return body if body[:1] == "{" else _framed(spoken(text))


def _framed(text: str) -> str:
    text = text.strip("\ufeff \t\r\n")
    first, _, rest = text.partition("\n")
    m = _HEADER.fullmatch(first)
    if m and set(m[1].casefold().replace("\u2019", "'").replace(",", " ").split()) <= HEADER:
        text = rest.strip()
    fenced = _FENCE.fullmatch(text)
    return fenced[2].strip() if fenced else text


def _slips(c: Criterion, said: Said, ids: Sequence[str]) -> None:
    """Foreign where the place of a verdict or a confidence holds more than a slip."""
    wrong = [raw for raw in said.verdicts if word(c, raw) is None]
    wrong += [raw for raw in said.confidences if percent(raw) is None]
    for raw in wrong:
        if not slip(raw, ids):
            raise Foreign(raw)


def _settled(c: Criterion, said: Said, how: str, judged: Judged) -> Reading:
    """One criterion's reading; none where its lines are the answer's."""
    if judged.told(said):
        return Reading(failure="missing", how=how, reason=REPEATED)
    return settled(c, said, how)


def _agreeing(
    rows: dict[str, Reading],
    said: dict[str, Said],
    criteria: dict[str, Criterion],
    judged: Judged,
) -> list[Reading]:
    """The readings, those left out that some reason contradicts in so many words.

    Words for the criterion that stand in the answer are a quotation: what it would like to hear.
    """
    for name, place in said.items():
        for other, state, words in stated(place.reason, name, criteria):
            r = rows[other]
            quoted = state == MADE and judged.has(words)
            if r.complete and (r.status, r.value) != state and not quoted:
                rows[other] = at_odds({(r.status, r.value), state}, r.how)
    return list(rows.values())


__all__ = ["Reading", "agreed", "percent", "read", "refused", "token_p", "word"]

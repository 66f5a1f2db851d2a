"""Consistency: an answer that addresses the question and does not contradict itself or what is
settled.

Score: (.5 x coverage + .5 x [no contradiction]) x the share of facts and directions that are
right; 0 when nothing is
addressed: neither silence nor firm nonsense is consistency. Coverage is the share of the task's
facts, directed subjects
and comparison that the answer speaks of. For a question without an answer: coverage (it says so,
on topic) x
(.5 + .5 x [no contradiction]).
"""

from __future__ import annotations

import re
from typing import Any

from ..records import Part, Response, Task
from . import lexicon as lx
from .clauses import together
from .compare import relation
from .confidence import stated_values
from .cues import CLASH
from .direction import held, told, wanted_claims
from .factual import contradicted, found, precision, statements
from .text import find, phrase_words
from .varying import ACROSS, varying

_KNOW = (
    r"(?:know|known|tell|told|say|said|predict|predicted|give|given|determine|determined|answer"
    r"|answered|count|"
    r"counted|name|named|state|stated|measure|measured|foresee|foreseen|forecast|establish"
    r"|established|settle|"
    r"settled|decide|decided|record|recorded|compute|computed|guess|guessed|estimate|estimated"
    r"|identify|identified|"
    r"specify|specified|verify|verified)(?! specific| dependent)"  # not "state-specific"
)
_SAID = re.compile(  # over normalised words: somebody's not knowing, not just any negation
    rf"\b(?:nobody|no one|none|nothing|no (?:method|model|data|study|record|theory|source"
    rf"|measurement)s?)"
    rf"(?: \w+)?(?: can| could| has| have| is| ha)?(?: really| ever| be| been)* {_KNOW}\b"
    rf"|\b(?:cannot|can't|can not|could not|couldn't|can only|could only|may never)(?: really| ever"
    rf"| yet| be)* {_KNOW}\b"
    rf"|\b(?:not|never|n't|isn't|hasn't|wasn't)(?: yet| ever| been| really| truly| think it ha| "
    rf"think it| be)* {_KNOW}\b"
    r"|\b(?:unknown|unsolved|unsettled|unpredictable|unanswerable|unknowable|unclear)\b"
    r"|\b(?:not|n't|isn't|aren't|too|(?:not|don't|doesn't) have)"
    r" (?:enough|sufficient|little|few)\b|\binsufficient\b"
    rf"|\bnot something that can be {_KNOW}\b"
    r"|\b(?:no|lack of|little) (?:\w+ ){0,2}(?:data|information|evidence|research|stud(?:y|ie)"
    rf"|measurement)\b|\b(?:unable|not able|not allow(?: \w+)?) ?to {_KNOW}\b"
    r"|\b(?:not|never|n't|hasn't|isn't)(?: yet| ever| been)* (?:studied|tested|investigated)\b"
    r"|\bmore (?:data|research|work|stud(?:y|ie)|evidence) (?:is|are|would be) needed\b"
    r"|\b(?:still open|open question|no proof|no evidence|hard to say|no way to|only a probability"
    r"|only (?:a )?rough|no reliable)\b"
    rf"|\bno(?: (?!doubt|question|that)\w+){{1,3}}(?: (?:can|could|ha|is|are|wa|be|been|yet|ever))+"
    rf" (?:{_KNOW}|shown|proven|found)\b"
    r"|\bno (?:such|single|exact|sure|definite|certain)(?: \w+){0,3} (?:is|are|exist|known"
    r"|established)\b"
    r"|\bno(?: (?:exact|definite|certain|single|one|sure|known))+ (?:answer|number|value|date|year"
    r"|cause)\b"
    rf"|\b(?:impossible|not possible|isn't possible|no method)(?: for \w+)? to(?: (?:exactly|ever"
    rf"|really|precisely))? {_KNOW}\b"
    r"|\b(?:do not|don't|does not) know\b|\bresearcher disagree\b|\bno answer\b"
)
_HEDGED = re.compile(
    r"\b(?:disputed|debated|unclear|uncertain|perhaps|maybe|may|might|could|rough|roughly|estimate"
    r"|possibly|probably|"
    r"guess|not sure|several|depend|about|suggest|around|somewhere|average)\b"
)
_SURE = re.compile(
    r"\b(?:(?:cannot|can't|will not|won't|never) (?:fail|be wrong|err)|full stop|without (?:a |any "
    r")?doubt|guaranteed|"
    r"definitely|certainly|no doubt|for sure|proven|beyond doubt|undeniabl[ey])\b"
)
_SPECIFIC = re.compile(  # a value given as the answer: "is exactly 500", "will strike on 14 March"
    r"\b(?:exactly|precisely)(?: \w+){0,2} \d|\b(?:is|are|was|were|will|equal|in the year)(?: "
    r"\w+){0,4}? \d|^\W*[\d.,]+\b"
    r"|\b(?:should|must|need|take|give|use|require|recommend)(?: \w+){0,4}? \d"
    r"|\d(?: \w+){0,3} (?:work|suffice|is|are|will|should)\b"
)
_CLAUSE = re.compile(r"[;:()]|,(?!\d)|\bbut\b|\band\b|\balthough\b|\bthough\b")


def specifics(text: str, prompt: str = "") -> list[str]:
    """The clauses that give a definite value, or claim certainty, without a hedge: no way to
    answer the unanswerable.

    >>> specifics("The dose is exactly 500 mg a day, and it cannot fail.")
    ['The dose is exactly 500 mg a day', 'it cannot fail.']
    >>> specifics("Nobody can count them; estimates are about 20 quadrillion.")
    []
    """
    asked = {w for w in phrase_words(prompt) if w[0].isdigit()}
    out = []
    for clause, words in _clauses(text, prompt):
        digits = {w for w in words.split() if w[0].isdigit()} - asked
        if (digits and _SPECIFIC.search(words) and not _open(words)) or (
            _SURE.search(words) and (not _denied(words) or re.search("fail|doubt|wrong|err", words))
        ):
            out.append(clause)
    return out


def _clauses(text: str, prompt: str) -> list[tuple[str, str]]:
    """The clauses of a text, each with its normalised words."""
    parts = (c.strip() for s in statements(text, prompt) for c in _CLAUSE.split(s))
    return [(c, " ".join(phrase_words(c))) for c in parts]


def _open(words: str) -> bool:
    return bool(_HEDGED.search(words) or _SAID.search(words))


def _denied(words: str) -> bool:
    return any(w in lx.NEGATORS for w in words.split())


def unread(task: Task, text: str) -> str:
    """Why it is not sure that a text leaves a question without an answer open: beside saying so, it
    says what "will" or "should" be, as the question asks; "" elsewhere.

    >>> t = Task(id="t", prompt="Who will be first?", truth={"answerable": False})
    >>> unread(t, "It is unknown who will be first."), unread(t, "Unknown, but Ann will be first.")
    ('', 'whether it is answered all the same is not said plainly: Ann will be first.')
    """
    if task.truth.get("answerable") is not False or acknowledges(task, text) < 1:
        return ""
    if contradicted(task, statements(text, task.prompt)):
        return ""  # wrong for certain
    asks = _ASKS.intersection(phrase_words(task.prompt.lower()))
    topic = _topic(phrase_words(task.prompt))
    for clause, words in _clauses(text, task.prompt):
        on_topic = topic & _topic(words.split()) or _IT.match(words)
        firm = not (_open(words) or _denied(words) or _WHO.match(words))
        if firm and on_topic and asks.intersection(words.split()):
            return f"whether it is answered all the same is not said plainly: {clause}"
    return ""


_ASKS = {"will", "should", "must", "shall"}
_IT = re.compile(r"it (?:will|should|must|shall) be\b")
_WHO = re.compile(r"(?:which|what|who|whom|whose|when|where|how|why|whether|if)\b")


def acknowledges(task: Task, text: str) -> float:
    """How clearly a text says that the answer is not known: 1 said, .5 hedged, 0 neither.

    On topic: some content word of the prompt occurs in it. What would fit any question is worth
    .25 at most.
    An answer that gives a definite value all the same, or is certain of it, acknowledges nothing.
    Where truth["depends"] (case -> direction) is, saying that it depends counts (`varying`).
    """
    sentences = statements(text, task.prompt)
    words = [w for s in sentences for w in phrase_words(s)]
    joined = " ".join(words)
    on_topic = bool(_topic(phrase_words(task.prompt)) & _topic(words))
    if "depends" in task.truth:
        cases = task.truth["depends"]
        named = [(c, c) for c in (*cases, *ACROSS.findall(task.prompt.lower()))]
        on_topic = on_topic or bool(find(words, named))
        depends = varying(sentences, cases, task.prompt)
        if depends is not None:
            return depends if on_topic else min(depends, 0.25)
    elif specifics(text, task.prompt):
        return 0.0
    said = bool(_SAID.search(joined))
    return 0.25 * said if not on_topic else max(float(said), 0.5 * bool(_HEDGED.search(joined)))


def _topic(words: list[str]) -> set[str]:
    return {w[:5] for w in words if len(w) > 3 and w not in lx.COMMON}


def contradictions(task: Task, text: str) -> list[str]:
    """What the answer says against itself or against truth["contradictions"]: one sentence each."""
    said = statements(text, task.prompt)
    out = [f"says {bad!r}" for bad in contradicted(task, said)]
    ways = together(told(task, text, task.truth.get("claims", ())))
    out += [f"{s} goes both ways" for s, way in ways.items() if way == CLASH]
    comparison = task.truth.get("comparison")
    if comparison and relation(said, comparison, task.truth.get("facts", ())) == "wrong":
        out.append("turns the comparison round")
    levels = stated_values(text)
    if levels and max(levels) - min(levels) > 0.4:
        out.append(f"states confidences from {min(levels):g} to {max(levels):g}")
    return out


def coverage(task: Task, text: str) -> float:
    """Share of the task's facts, subjects and comparison that the text speaks of, in [0, 1]."""
    facts, wanted, comparison = (
        task.truth.get("facts", ()),
        task.truth.get("claims", ()),
        task.truth.get("comparison"),
    )
    total = len(facts) + len(wanted) + bool(comparison)
    said = statements(text, task.prompt)
    stated_subjects = {c.subject for c in told(task, text, wanted) if c.direction != "unstated"}
    addressed = (
        len(found(task, text))
        + len(stated_subjects)
        + bool(comparison and relation(said, comparison, facts))
    )
    return min(1.0, addressed / max(total, 1))


def score(task: Task, response: Response, *, name: str = "consistency") -> Part:
    """(.5 coverage + .5 [no contradiction]) x share right, in [0, 1]; 0 when nothing is
    addressed.
    """
    against = contradictions(task, response.text)
    unanswerable = task.truth.get("answerable") is False
    covered = (acknowledges if unanswerable else coverage)(task, response.text)
    right = rightness(task, response.text)
    details: dict[str, Any] = {"coverage": covered, "contradictions": against, "right": right}
    whole = covered if unanswerable else float(covered > 0)
    value = 0.5 * covered + 0.5 * whole * (not against)
    return Part.known(name, value * (1.0 if right is None else right), **details)


def rightness(task: Task, text: str) -> float | None:
    """Share of the task's facts and directions that are right, times precision; None where it has
    none.
    """
    facts, wanted = task.truth.get("facts", ()), wanted_claims(task)
    total = len(facts) + len(wanted)
    if not total:
        return None
    hits = len(found(task, text)) * precision(task, text)[0] if facts else 0.0
    return (hits + len(held(task, text)["matching"])) / total

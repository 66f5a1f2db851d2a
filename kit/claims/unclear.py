"""Answers that are read neither as right nor as wrong: they may be right, in a form not known.

What is wrong for certain stays wrong: were a wrong guess unknown, guessing would cost nothing.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from ..checks import units
from ..checks.quantities import datings, readable
from ..records import Task
from . import lexicon as lx
from . import polar
from .bags import FIELD, SISTERS, given, named, names, right_numbers, surname, wanted
from .choice import offered, others, sides
from .compare import clauses, opaque, ranked, ungraded
from .factual import SPLIT, facts_of, found, matched, polar_of, precision, says_fact, statements
from .listing import repeated
from .text import find, phrase_words

_PARALLEL = re.compile(
    r"(?P<one>\d[\d.,]*(?: \w+)? (?P<by>for|in|with|under|on|at|of) [^,;]*?),? "
    r"(?:and|but|while|whereas) (?P<two>\d[\d.,]*(?: \w+)? (?P=by) [^,;]*)"
)


def unread(task: Task, text: str) -> str:
    """Why the right number may be one of something else: another stands beside it in the same way,
    and the question's words do not tell them apart; "" elsewhere.

    >>> t = Task(id="t", prompt="How many legs?", truth={"facts": [{"text": "6", "number": 6}]})
    >>> unread(t, "It is 6 for flies and 8 for spiders.")
    'which number answers is not said: 6 for flies and 8 for spiders.'
    """
    asked = task.prompt, statements(text, task.prompt)
    if compared := opaque(*asked, sides(task)) or ungraded(
        *asked, task.truth.get("comparison", {})
    ):
        return f"which of the two is the one asked for is not said plainly: {compared}"
    why = _why(task, text)
    return "" if why and _paid_elsewhere(task, text) else why


def _why(task: Task, text: str) -> str:
    hit, every = found(task, text), statements(text, task.prompt)
    row = repeated(every, task.prompt, partial(says_fact, task)) if hit else []
    told = [polar_of(task, f, text) for f in facts_of(task)]
    if told == [SPLIT]:
        return "which of the groups is the one asked about is not said"
    if told == [polar.UNREAD] and not hit:
        return "whether it is yes or no, up or down, is not said plainly"
    if days := [d for f in facts_of(task) for d in _datable(f["text"], text)]:
        return f"whether the day or the month comes first is not said: {days[0]}"
    if person := not hit and surname(task, text):
        return f"which person is meant is not said: {person}"
    if hit and (side := _side(task, text)):
        return f"whether the right side is meant is not said plainly: {side}"
    if kin := not hit and _kin(task, text):
        return f"whether this is {kin!r} is not known: its words are there in other forms"
    if scale := hit and _scale(task, text):
        return f"which unit the key's number is in is not said: {scale}"
    if row and not precision(task, text)[1]:  # a listing costs
        return f"whether one frame lists guesses or explains is not said: {', '.join(row)}"
    if hit and (other := _options(task, text)):
        return f"whether the answer is {other[0]!r} is not said plainly"
    # what is not paid is known: if a wrong guess were unknown, guessing would cost nothing
    facts = [f for f in facts_of(task) if not f.get("about") and hit]
    for m in (m for s in every for m in _PARALLEL.finditer(s)):
        right = [m[k] for k in ("one", "two") if right_numbers(m[k], facts)]
        if (
            len(right) == 1
            and not {*phrase_words(right[0])} & {*phrase_words(task.prompt)} - lx.LEADS
        ):
            return f"which number answers is not said: {m[0]}"
    known = {w.lower() for t in (task.prompt, *names(task)) for w in phrase_words(t)}.union(
        lx.FREE, lx.CONCLUDES, lx.SPEECH, lx.LEAD_WORDS
    )
    parts = (c for s in every for c in _CLAUSES.split(s))
    said = [c for c in parts if any(matched(f, [c], task.prompt) for f in facts)]
    rows = ((c, (w.lower() for w in phrase_words(c) if w.isalpha())) for c in said)
    free = (ranked(task.prompt, c) or known.issuperset(words) for c, words in rows)
    clear = not said or any(free) or precision(task, text)[1]  # a listing costs
    return "" if clear else f"what comes first is not said plainly: {said[0]}"


_RIGHT = re.compile(  # "That's right, the left."
    r"\b(?:(?:that|this) is|all) right\b"
    r"|(?:\A|,)\W*right\b(?=\s*(?:[,.;:!–—]|\Z))(?!, not\b)",
    re.I,
)


def _side(task: Task, text: str) -> str:
    """The "right" of a text that may agree, where it names both sides and the fact is the right."""
    said = ". ".join(statements(text, task.prompt))
    both = {*phrase_words(said.lower())} >= {"left", "right"}
    agrees = _RIGHT.search(said) if both else None
    right = agrees and "right" in phrase_words(" ".join(names(task)).lower())
    return agrees[0].strip(" ,") if agrees and right else ""


def _scale(task: Task, text: str) -> str:
    """Where a text gives a fact's number in one of several units that its own may be; "" elsewhere.

    >>> t = Task(id="t", prompt="How hot?", truth={"facts": [{"text": "30 degrees", "number": 30}]})
    >>> _scale(t, "It is 30 °F."), _scale(t, "30 degrees.")
    ('It is 30 °F.', '')
    """
    rows = [named(f["text"]) | f for f in facts_of(task)]
    facts = [(f, wanted(f)[2]) for f in rows if f.get("number") is not None]
    return next(
        (
            s
            for s in statements(text, task.prompt)
            for f, unit in facts
            for q in given(s, f)
            if units.several(q.value, s[q.end :] if "far" in f else q.tail, unit)
        ),
        "",
    )


def _options(task: Task, text: str) -> list[str]:
    """The other options of a question that a text names, and neither denies nor compares.

    >>> t = Task(id="t", prompt="Rescue or suppression?", truth={"facts": [{"text": "rescue"}]})
    >>> _options(t, "Rescue, then suppression."), _options(t, "Rescue, not suppression.")
    (['suppression'], [])
    """
    fact, *more = facts_of(task)
    rivals = () if more else offered(task.prompt, fact["text"])
    if all(map(lx.way, (fact["text"], *rivals))):
        return []  # `polar_of` tells
    said = (c for s in statements(text, task.prompt) for c in clauses(s, [(n, n) for n in rivals]))
    denying = lx.NEGATORS | {"than", "twice"}  # "twice as much as the eye"
    return [n for names, words, _ in said if denying.isdisjoint(words) for n in names]


def _paid_elsewhere(task: Task, text: str) -> bool:
    """True where a text would hold were another answer the right one: an option, what the data set
    answers like questions with, the other direction.

    >>> t = Task(id="t", prompt="Up or down?", truth={"facts": [{"text": "decrease"}]})
    >>> _paid_elsewhere(t, "An increase rather than a decrease."), _paid_elsewhere(t, "It may be.")
    (True, False)
    """
    fact, *more = facts_of(task)
    own = lx.way(fact["text"])
    ways = {w.lower() for w in phrase_words(text) if own and lx.way(w) not in (None, own)}
    every = () if more else (*ways, *others(task.truth, task.prompt, fact))
    known = {k: v for k, v in task.truth.items() if k in (FIELD, SISTERS, "candidates")}
    rows = (replace(task, truth={**known, "facts": [named(n)]}) for n in every)
    return any(found(t, text) and not _why(t, text) for t in rows)


_ENDING = re.compile(
    r"(?<=\w{4})(?:ations?|ions?|ing|ed|es|al|ar|ic|ive|ly|ity|us|um|on|is|[aeiys])$"
)


def _stems(text: str) -> set[str]:
    """The words of a text that name something, without their endings; of a direction, the way."""
    words = {w.lower() for w in phrase_words(text)} - (lx.SMALL - lx.SIGNED) - lx.LEADS
    return {lx.way(w) or _ENDING.sub("", w) for w in words}


def _kin(task: Task, text: str) -> str:
    """The one fact where an answer has its words in other forms or in another order, denies nothing
    beside them and names no alternative; else "".

    >>> t = Task(id="t", prompt="Which lobe?", truth={"facts": [{"text": "occipital lobe"}]})
    >>> _kin(t, "Occipital."), _kin(t, "Not occipital."), _kin(t, "The frontal lobe.")
    ('occipital lobe', '', '')
    """
    said, facts = statements(text, task.prompt), facts_of(task)
    worded = len(facts) == 1 and not lx.way(facts[0]["text"])
    own = _stems(facts[0]["text"]) - _stems(task.prompt) if worded else set()
    denying = lx.NEGATORS | lx.DOUBTS | {"than", "unlike", "instead", "except"}
    plain = (_stems(s) for s in said if denying.isdisjoint(phrase_words(s)))
    if (
        not any(w.isalpha() and len(w) > 2 for w in own)
        or facts[0].get("number") is not None
        or not any(own <= s for s in plain)
    ):
        return ""
    named = *names(task), *others(task.truth, task.prompt, facts[0])
    told = any(find(phrase_words(s), [(n, n) for n in named]) for s in said)
    return "" if told or precision(task, text)[1] else facts[0]["text"]


def _datable(fact: str, text: str) -> list[str]:
    """The days that both may be, where one of them may have its day or its month first."""
    wanted, told = datings(fact), readable(text)
    said = [d for d in datings(text) if d in (readable(fact), *wanted)]
    return [] if fact in text else said + [d for d in wanted if re.search(rf"\b{d}\b", told)]


_CLAUSES = re.compile(
    r"[,;:.()–—](?!\d)|\b(?:and|but|because|since|as|so|while|whereas|which|with|due|by)\b"
)

"""Bags: whatever their frame, many numbers or many answers of other questions are guesses.

`listing` reads the form of an answer; this reads only what it names. A number counts where the
truth holds one; a name counts when another task of the same data set expects it (`known_names`).
A few are free: an explanation needs them.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import dropwhile, islice, pairwise, takewhile
from typing import Any

from ..checks import units
from ..checks.quantities import Quantity, agrees, limit, limited, quantities, readable
from ..records import Task, grouped
from . import lexicon as lx
from .choice import spellings
from .text import find, norm, phrase_words, spans, tokens

FREE_NUMBERS = 3
FREE_NAMES = 2
STEPS = 6  # numbers of one calculation: "0.5 x 9.8 x 9 = 44.1"
MOST_NAMES = 200
MOST_ALIKE = 12  # answers of questions of one shape that are alternatives
FIELD, SISTERS = "elsewhere", "sisters"
LEAST = {FIELD: FREE_NAMES, SISTERS: 1}


def known_names(tasks: Iterable[Task]) -> list[Task]:
    """The tasks, each with truth["elsewhere"]: names that the facts of its group's tasks have; and
    with truth["sisters"]: the answers to questions for one thing of the same kind ("Which tissue"),
    and those that recur where questions have one shape (`alike`).

    A truth that has the field, or no facts, stays. At most MOST_NAMES, the most frequent first.

    >>> ts = [Task(id=n, prompt="Which?", truth={"facts": [{"text": n}]}) for n in ("W", "U", "Os")]
    >>> known_names(ts)[0].truth["elsewhere"]
    ['W', 'U', 'Os']
    """
    tasks = list(tasks)
    said = grouped((t.group, str(f["text"])) for t in tasks for f in _facts(t))
    names = {of: [n for n, _ in Counter(x).most_common(MOST_NAMES)] for of, x in said.items()}
    sisters = alike(tasks)
    rows = ({FIELD: names[t.group], SISTERS: sisters.get(t.id, ())} for t in tasks if _facts(t))
    kept = ({k: v for k, v in row.items() if len(v) > LEAST[k]} for row in rows)
    return [dataclasses.replace(t, truth=next(kept) | t.truth) if _facts(t) else t for t in tasks]


def alike(tasks: Iterable[Task]) -> dict[str, list[str]]:
    """Per task (id) with one fact: what questions for its kind of thing ("Which tissue") are
    answered with, and the few answers that recur where questions have its shape; its own, too.

    What stands in the question is left out where its own answer does not: it is what it is about.

    >>> asked = [(f"Was {i} seen after 5 or 7 days?", f"{n} days") for i, n in zip("ABCD", "5757")]
    >>> ts = [Task(id=p, prompt=p, truth={"facts": [{"text": n}]}) for p, n in asked]
    >>> alike(ts)[ts[0].id]
    ['5 days', '7 days']
    """
    out: dict[str, dict[str, None]] = {}
    facts = [(t, f) for t in tasks if len(truths(t)) == 1 for f in _facts(t)]
    one = [(t, str(f["text"])) for t, f in facts if "poles" not in f]
    kinds = grouped(  # a letter is no alternative to what it stands for
        ((kind, text.isdigit() or text in tuple("ABCDEFGH")), (t, text))
        for t, text in one
        for kind in {_asked(t.prompt), _shape(t.prompt)}
    )
    for (kind, _), rows in kinds.items():
        names = Counter(text for _, text in rows)
        few = len(names) <= MOST_ALIKE and len(rows) >= 2 * len(names)
        parts = [(n, set(phrase_words(n))) for n, _ in names.most_common(MOST_NAMES)]
        for t, text in rows if kind and len(names) > 1 else ():
            asked = set(phrase_words(t.prompt))
            offers = asked.issuperset(phrase_words(text))
            kept = (n for n, w in parts if (offers if w <= asked else few or ":" not in kind))
            out.setdefault(t.id, {}).update(dict.fromkeys(kept))
    return {id: list(names) for id, names in out.items()}


def _shape(prompt: str) -> tuple[str, ...]:
    """What questions of one shape have in common: the words between those that name things."""
    return (*_asked(prompt), ":", *filter((lx.SMALL | lx.LEADS).__contains__, phrase_words(prompt)))


def _asked(prompt: str) -> tuple[str, ...]:
    """What kind of thing a question asks for; () where it does not say so.

    >>> _asked("Which tissue responds?"), _asked("What is the capital of Norway?")
    (('tissue',), ('capital',))
    """
    _, *after = [*dropwhile(lambda w: w not in lx.ASKS_FOR, phrase_words(prompt)), "", ""]
    kind = takewhile(lambda w: w not in lx.LEADS, dropwhile(lambda w: w in lx.LEADS, after))
    return tuple(w for w in islice(kind, None if after[0] in lx.BE else 1) if w)


def truths(task: Task) -> list[Mapping[str, Any]]:
    """The expected facts, as the truth has them, and a value as the value alone (`alone`)."""
    facts = task.truth.get("facts")
    rows = facts if isinstance(facts, (list, tuple)) else ()
    texts = (
        (f, alone(f["text"], task.prompt)) for f in rows if isinstance(f, Mapping) and "text" in f
    )
    facts = (f if text == f["text"] else {**f, **named(text)} for f, text in texts)
    return [_in_unit(f, task.prompt) for f in facts]


def _in_unit(fact: Mapping[str, Any], prompt: str) -> Mapping[str, Any]:
    """The fact in the unit that the question asks for, where its own may be several: "degrees"."""
    unit = units.meant(f"1 {fact.get('unit') or ''}", prompt)[2:]
    text, *also = [units.meant(name, prompt) for name in (fact["text"], *fact.get("aliases", ()))]
    own = {**fact, "unit": unit} if unit else fact
    if text == fact["text"]:
        return own
    return {
        **named(text),
        **{key: value for key, value in own.items() if value is not None},
        "text": text,
        "aliases": also,
    }


_END = r"-?\d+(?:,\d{3})*(?:\.\d+)?(?!\d)"
_MEASURE = r"(?:\s?[%°](?:[CF]\b)?|\s[^\W\d_]+(?:/[^\W\d_]+)?)?"
_TESTED = r"(?:\s*[,;]\s*[pn]\s*[<>=≤≥]\s*[\d.]+)*\s*"
_SPREAD = re.compile(  # "0.72 (0.60 to 0.86)", "0.72, 95% CI 0.60-0.86"
    rf"(?<![\d.,])(?P<value>{_END})(?P<unit>{_MEASURE})[\s,;]*(?:(?:with|and)\s)?"
    r"(?:(?:an?|the|its)\s)?(?P<open>[(\[])?\s*"
    r"(?P<label>(?:\d\d(?:\.\d)?\s?%[\s-]?)?\b(?:CI|CrI|IQR|(?:confidence|credible) interval"
    r"|inter-?quartile range|range)\b[\s,:=]*(?:(?:of|was|from|ranging)\s)*(?:from\s)?)?[(\[]?\s*"
    rf"(?P<low>{_END}){_MEASURE}\s*(?:\bto\b|\band\b|[-–—−,;])\s*(?P<high>{_END})(?P<of>{_MEASURE})"
    rf"(?:(?<=[\w%])[)\]])?(?(open){_TESTED}[)\]])",
    re.I,
)
_ASKS_SPREAD = re.compile(
    r"\b(?:CI|CrI|IQR|intervals?|rang\w+|bounds?|limits?|quartiles?|SD|SEM|deviations?|errors?"
    r"|(?:between|from) (?:which|what))\b",
    re.I,
)
_BESIDE = re.compile(  # "45 g (SD 4)", "45, n = 12"
    rf"(?<![\d.,])({_END}[^.;\d]{{0,30}}?)[\s,;]*[(\[]?\s*(?:with\s)?(?:an?\s|the\s)?\b(?:n\s*="
    rf"|(?:SD|SEM|standard (?:deviation|error)(?: of the mean)?)\b[\s,:=±]*(?:(?:of|was)\s)?)\s*"
    rf"{_END}{_MEASURE}{_TESTED}[)\]]?",
    re.I,
)
_COUNTS = re.compile(r"\b(?:how many|numbers?|counts?|size|n)\b", re.I)


@lru_cache(maxsize=4_096)
def alone(text: str, prompt: str) -> str:
    """The text with each value in place of the value with its spread, where that is not what is
    asked for: an interval that holds it, the standard deviation, the n.

    >>> alone("It was 0.72 (95% CI, 0.60 to 0.86).", "What was it?"), alone("5 (6-7)", "")
    ('It was 0.72.', '5 (6-7)')
    """
    if _ASKS_SPREAD.search(prompt):
        return text
    text = _SPREAD.sub(_alone, text)
    return text if _COUNTS.search(prompt) else _BESIDE.sub(r"\1", text)


def _alone(m: re.Match[str]) -> str:
    low, value, high = (float(m[k].replace(",", "")) for k in ("low", "value", "high"))
    fits = m["label"] or (m["open"] and m["of"].strip() in ("", m["unit"].strip()))
    return m["value"] + m["unit"] if low <= value <= high and fits else m[0]


def _facts(task: Task) -> list[Mapping[str, Any]]:
    return [part for f in truths(task) for part in parts(f)]


def names(task: Task) -> list[str]:
    """Every text that stands for an expected fact: names and aliases."""
    return [t for f in _facts(task) for t in (f["text"], *f.get("aliases", ()))]


_JOINED = re.compile(r"\s*(?:[,;](?:\s+and)?\s|&|\band\b)\s*")


def parts(fact: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The limits that a fact joins, each about what it names, since all must hold; else the fact.

    >>> [(f["text"], f["side"], f["about"]) for f in parts({"text": "padj < 0.05 and FC > 2"})]
    [('padj < 0.05', 'under', ['padj']), ('FC > 2', 'over', ['FC'])]
    """
    limits = [stated({**fact, "text": t}) for t in _JOINED.split(fact["text"])]
    joined = len(limits) > 1 and all("side" in f and f.get("number") is not None for f in limits)
    if fact.get("number") is None and (forms := spellings(fact["text"])):
        also = {"aliases": [*fact.get("aliases", ()), *forms]}
        return [fact | also | {"alone": "".join(filter(str.isdigit, forms[0]))}]
    if fact.get("number") is not None or not joined:
        return [stated(fact)]
    of = [f["of"] for f in limits]
    return [f | {"joined": True, "about": [f["of"]] * (of.count(f["of"]) == 1)} for f in limits]


def stated(fact: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fact; with its number, unit, `side` ("over", "under") and what it is a limit `of`, where
    its text is one.

    >>> list(stated({"text": "p < 5%"}).values()), stated({"text": ">LOD"})
    (['p < 5%', 5.0, '%', 'under', 'p'], {'text': '>LOD', 'side': 'over'})
    """
    return {**fact, **_limit(fact["text"])} if fact.get("number") is None else fact


@lru_cache(maxsize=4_096)
def _limit(text: str) -> Mapping[str, Any]:
    said = readable(text)
    found = quantities(said)
    sign = _SIGN.match(said)
    if sign and not found:
        return {"side": limit(said, sign.end(), "")[0]}
    rows: list[dict[str, Any]] = [
        {
            "number": q.value,
            "unit": units.said(q.tail),
            "side": q.part,
            "of": said[: limit(said, q.start, q.tail)[1]].strip() or q.tail.strip(" %"),
        }
        for q in found
        if q.part in SIDES
    ]
    ends = _ranges(said) if lx.SIGNED.isdisjoint(phrase_words(text)) else []  # no change
    rows += [
        {"number": a.value, "far": b.value, "unit": units.said(b.tail)}
        for a, b in ends
        if a.value < b.value
    ]
    return rows[0] if rows and len(found) == 1 + ("far" in rows[0]) else {}


_JOINT = re.compile(
    r"\b(?:(?P<between>between (?:the )?[a-z]+(?: of)?)|(?:until|till|up to|to)(?: [a-z]+)?)(?= \d)"
)


def _head(sentence: str, at: int) -> int:
    """Where the "between" of what starts there stands, else there."""
    m = re.search(r"\bbetween [a-z ]*\Z", sentence[max(0, at - 30) : at], re.I)
    return at - len(m[0]) if m else at


def _ranges(sentence: str) -> list[tuple[Quantity, Quantity]]:
    """The two ends of each range, where they stand in the sentence."""
    same = _JOINT.sub(  # as long
        lambda m: ("between" if m["between"] else "to").rjust(len(m[0])), sentence.replace("—", "–")
    )
    return [
        (dataclasses.replace(a, start=_head(sentence, a.start)), b)
        for a, b in pairwise(quantities(same))
        if a.far == b.value != a.value == b.far and " or " not in same[a.end : b.start]
    ]


SIDES = {"over": "under", "under": "over"}
_SIGN = re.compile(r"\s*[<>≤≥]=?\s*(?=[^\W\d])")
_TURNED = str.maketrans("<>≤≥", "><≥≤")
_SIGNED = re.compile(r"(?<!\w)[-+−](?=[.\d])")


def signed(text: str) -> bool:
    """True for a limit and for a number with its sign, no range."""
    return "side" in _limit(text) or bool(_SIGNED.search(text) and not _limit(text))


def opposite(fact: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What an answer must not say beside a limit or a change: the other side, the other sign."""
    if side := fact.get("side"):
        return [
            {"number": None, **fact, "text": fact["text"].translate(_TURNED), "side": SIDES[side]}
        ]
    if fact.get("number") is None or not (fact.get("direction") or signed(fact["text"])):
        return []
    value, tolerance, unit = wanted(fact)
    row = {"text": "", "number": -value, "tolerance": tolerance, "unit": unit}
    return [{**row, "direction": "up" if value < 0 else "down"}]


def surplus(task: Task, sentences: Sequence[str]) -> list[str]:
    """The numbers and the names beyond question, truth, and what is free; each is a rival."""
    return _numbers(task, sentences) + _names(task, sentences)


def _names(task: Task, sentences: Sequence[str]) -> list[str]:
    asked = set(phrase_words(task.prompt))
    others = {n for n in task.truth.get(FIELD, ()) if not asked.issuperset(phrase_words(n))}
    right = {*names(task)}
    own = {" ".join(phrase_words(t)) for t in right}
    named = find([norm(t) for s in sentences for t in tokens(s)], [(n, n) for n in others | right])
    said = dict.fromkeys(" ".join(phrase_words(m.of)) for m in named)
    return [name for name in said if name not in own][FREE_NAMES:]


def _numbers(task: Task, sentences: Sequence[str]) -> list[str]:
    facts = [f for f in _facts(task) if f.get("number") is not None]
    if not facts:
        return []
    given = named_numbers(task)
    beside: dict[float, None] = {}
    for s in sentences:
        said, known = numbers(s), given.union(right_numbers(s, facts))
        new = [n for n in said if n not in known]
        calculation = "=" in s and len(new) < len(said) and len(new) <= STEPS
        beside.update(dict.fromkeys([] if calculation else new))
    return [f"{n:g}" for n in beside][FREE_NUMBERS:]


def right_numbers(sentence: str, facts: Iterable[Mapping[str, Any]]) -> set[float]:
    """The numbers of a sentence that are the number of a fact, and the counts that a percentage is
    of: "128 of 200 patients (64%)".
    """
    known = [f for f in facts if f.get("number") is not None]
    said = readable(sentence)
    found = quantities(said)
    right = {q.value for f in known for q in given(said, f)}
    pairs = ((a, b) for a, b in pairwise(found) if "of" in said[a.end : b.start].split())
    shares = (({a.value, b.value}, 100 * a.value / b.value) for a, b in pairs if b.value)
    return right.union(*(two for two, x in shares if any(abs(x - n) <= 0.5 for n in right)))


def named_numbers(task: Task) -> set[float]:
    """The numbers of a question and of the names of its facts."""
    return {n for text in (task.prompt, *names(task)) for n in numbers(text)}


def numbers(text: str) -> list[float]:
    """Every number of a text, in digits or words.

    >>> numbers("A body cell holds forty-six, an egg cell 23.")
    [46.0, 23.0]
    """
    return [q.value for q in quantities(readable(text))]


def named(text: str) -> dict[str, Any]:
    """A name as a fact, with its number where it holds one: "5 mg"."""
    found = quantities(readable(text))
    return {"text": text} | ({"number": found[0].value} if len(found) == 1 else {}) | _limit(text)


Wanted = tuple[float, float, str]  # value, tolerance, unit


def wanted(fact: Mapping[str, Any]) -> Wanted:
    """The number of a fact, its tolerance and its unit; a scale in the unit is multiplied in.

    A fact without a unit has the one that follows its number in its text ("71%").

    >>> wanted({"text": "4.5 billion years", "number": 4.5, "unit": "billion years"})
    (4500000000.0, 0.0, 'years')
    >>> wanted({"text": "71% of it", "number": 71})
    (71.0, 0.0, '%')
    """
    return _wanted(
        float(fact["number"]),
        float(fact.get("tolerance") or 0.0),
        str(fact.get("unit") or ""),
        str(fact["text"]),
    )


@lru_cache(maxsize=4_096)
def _wanted(number: float, tolerance: float, unit: str, text: str) -> Wanted:
    if unit:
        scale = quantities(readable(f"1 {unit}"))
        by, unit = (scale[0].value, scale[0].tail.strip()) if len(scale) == 1 else (1.0, unit)
        return number * by, tolerance * by, unit
    own = (q for q in quantities(readable(text)) if agrees(q, number, percent=True))
    return number, tolerance, next((units.said(q.tail) for q in own), "")


def given(sentence: str, fact: Mapping[str, Any]) -> list[Quantity]:
    """The quantities of a sentence that are the number of a fact.

    A negative number is also said by a word: "a 5% decrease" is -5%. A fact with the direction "up"
    wants its word or a plus sign: "a 5% decrease" is none of "a 5% increase". A limit wants its
    side: "over 5%" is not "<5%", and neither is 5%.
    """
    if "far" in fact:
        pairs = ((a, b) for a, b in _ranges(sentence) if _ends(a, fact, "number"))
        return [dataclasses.replace(a, end=b.end) for a, b in pairs if _ends(b, fact, "far")]
    value, tolerance, unit = wanted(fact)
    by, found = fact.get("rate"), quantities(sentence)
    if ratio := _RATIO.search(f"{unit} {fact['text']}"):
        found += _multiples(sentence, ratio[0][0] in "%p")
    if "either" in fact:  # "0% or 10%" names both
        found = tuple(dataclasses.replace(q, far=q.value) for q in found)
    if side := fact.get("side"):
        on = (q for q in found if limit(sentence, q.start, q.tail)[0] == side)
        found = tuple(dataclasses.replace(q, part="" if q.part in SIDES else q.part) for q in on)
    out = [q for q in found if agrees(q, value, tolerance, unit, by=by)]
    if fact.get("direction") == "up":
        return [q for q in out if sentence[q.start] == "+" or _move(sentence, q) in lx.UP]
    if value < 0:
        down = [q for q in found if _move(sentence, q) in lx.DOWN]
        out += [q for q in down if agrees(q, -value, tolerance, unit, by=by)]
    plus = value > 0 and not side and signed(fact["text"])  # which "it fell by 5%" is not
    return [
        q for q in out if not plus or sentence[q.start] == "+" or _move(sentence, q) not in lx.DOWN
    ]


def _ends(q: Quantity, fact: Mapping[str, Any], which: str) -> bool:
    value, tolerance, unit = wanted({**fact, "number": fact[which]})
    q = dataclasses.replace(q, far=q.value)
    return agrees(q, value, tolerance, unit, by=fact.get("rate"))


_RATIO = re.compile(r"\b(?:fold|times|factor|percent)\b|%|\dx\b", re.I)
_MULTIPLE = re.compile(
    r"\b(?:(doubl|halv|tripl|quadrupl)(?:e|es|ed|ing)|(two|three|four|five|ten)fold)\b",
    re.I,
)
_FACTORS = {"doubl": 2, "halv": 0.5, "tripl": 3, "quadrupl": 4} | {
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "ten": 10,
}


def _multiples(sentence: str, percent: bool) -> tuple[Quantity, ...]:
    """Factors said in a word, or the change in percent: "doubled" is 2 times, or 100 %."""
    found = [(m.span(), _FACTORS[(m[1] or m[2]).lower()]) for m in _MULTIPLE.finditer(sentence)]
    said = [(at, abs(x - 1) * 100, "%") if percent else (at, x, " times") for at, x in found]
    return tuple(limited(sentence, Quantity(x, *at, x, tail, "")) for at, x, tail in said)


def _move(sentence: str, q: Quantity) -> str:
    """The word of direction that is nearest to a quantity; "" where there is none."""
    rows = ((max(q.start - at - len(w), at - q.end), w) for w, at in _signed_words(sentence))
    return min(rows, default=(0, ""))[1]


@lru_cache(maxsize=2_048)
def _signed_words(sentence: str) -> list[tuple[str, int]]:
    return [(w.lower(), at) for w, at in spans(sentence) if w.lower() in lx.SIGNED]


def as_named(sentence: str, start: int, end: int, name: str) -> bool:
    """True where the numbers of sentence[start:end] read as those of the name that stands there.

    >>> as_named("It is twice 343 m/s.", 12, 19, "343 m/s"), as_named("3 m", 0, 3, "3 m")
    (False, True)
    """
    own = quantities(readable(name))
    said = [q for q in quantities(sentence) if start <= q.start < end or start < q.end <= end]
    joined = "-" in sentence[start:end]  # the tokens agree; "Carbon-14" is no quantity
    return all(any(_same(q, n) for n in own) for q in said) if said else joined or not own


def _same(q: Quantity, n: Quantity) -> bool:
    return (
        (q.value, q.far, q.part) == (n.value, n.far, n.part)
        if n.part or n.far != n.value
        else agrees(q, n.value, unit=units.said(n.tail))
    )


# Persons: a surname tells who it is where no other answer of the data set has it
_WHO = re.compile(
    r"\b(?:whom?|whose)\b|\b(?:which|what) (?:\w+ ){0,2}?(?:\w+(?:naut|ist|ian)|person|doctor"
    r"|researcher|engineer|author|inventor|(?:wo)?man|president|laureate|winner)s?\b",
    re.I,
)
_TITLES = r"(?:(?:Drs?|Doctor|Prof|Professor|Sir|Dame|Lord|Lady|Mr|Mrs|Ms|Madame|Mme|St)\.? )*"
_WORD = r"(?:(?:[A-Z]\.)+|[A-Z][^\W\d_]*(?:['’-][^\W\d_]+)*)"
_PERSON = re.compile(
    rf"{_TITLES}({_WORD})(?: (?:{_WORD}|d[aei]|v[ao]n|der?))* ([A-Z][\w-]+[^\W\d])"
)
_AND = re.compile(r"\s*,\s*(?:and\s+)?|\s+(?:and|&)\s+")
_BEFORE = re.compile(rf"({_WORD}) \Z")


@lru_cache(maxsize=4_096)
def _person(name: str) -> re.Pattern[str]:
    first, last = _PERSON.fullmatch(name).groups()  # type: ignore[union-attr]
    full = first if len(first) > 2 else rf"{first[0]}[a-z]+"  # "A. Fleming" may be Alexander
    given = rf"(?P<given>{first[0]}(?:\.[A-Z])*\.?|{full}) (?:{_WORD} )*"
    return re.compile(rf"(?<![\w-]){_TITLES}(?:{given})?{last}\b(?!-)")


def _meant(task: Task, text: str) -> Iterable[tuple[re.Match[str], str]]:
    """Where a text means a person of the key or of another answer of the data set, and the name; ""
    where one of the key may be another one."""
    keys = names(task) if _WHO.search(task.prompt) else []
    own = [part for key in keys for part in _AND.split(key) if _PERSON.fullmatch(part)]
    texts = *keys, *task.truth.get(FIELD, ()), *task.truth.get(SISTERS, ())
    others = [part for text in texts for part in _AND.split(text) if own]
    for name in dict.fromkeys((*own, *filter(_PERSON.fullmatch, others))):
        found, last = _person(name), name.split()[-1]
        shared = any(n.endswith(f" {last}") and not found.fullmatch(n) for n in others)
        for m in found.finditer(text):
            before = _BEFORE.search(text[: m.start()])
            alone = shared and not m["given"]
            if (before and before[1].lower() not in lx.SMALL | lx.LEADS) or (
                alone and name not in own
            ):
                continue
            yield m, "" if alone else name.replace(".", "")


def called(task: Task, text: str) -> str:
    """The text with the key's name for each person whom it means.

    >>> asked = Task(id="t", prompt="Who?", truth={"facts": [{"text": "Alexander Fleming"}]})
    >>> called(asked, "Dr. Fleming, not J. Fleming"), called(asked, "Not A. J. Fleming")
    ('Alexander Fleming, not J. Fleming', 'Not Alexander Fleming')
    """
    found = {m.span(): name or m[0] for m, name in _meant(task, text)}
    for (start, end), name in sorted(found.items(), reverse=True):
        text = text[:start] + name + text[end:]
    return text


def surname(task: Task, text: str) -> str:
    """The surname that several answers of the data set have, where it stands alone; else ""."""
    return next((m[0] for m, name in _meant(task, text) if not name), "")

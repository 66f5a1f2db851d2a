"""Facts by whole words and numbers: which of the expected facts does an answer assert, and what
beside them?

A fact counts once, however often it is repeated; denied, asked or merely echoed it does not count.
Score: recall x precision, recall = matched facts / facts (BioRLHF), precision = matched / (matched
+ rivals).
Rivals are what a listing holds beside the facts (`kit.claims.listing`); an explanation in
sentences costs nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import Any

from ..checks import units
from ..checks.quantities import NUMBER_WORDS, limit
from ..records import Part, Response, Task
from . import lexicon as lx
from . import polar
from .bags import (
    SIDES,
    alone,
    as_named,
    given,
    named,
    named_numbers,
    names,
    numbers,
    opposite,
    parts,
    right_numbers,
    signed,
    stated,
    surplus,
    truths,
    wanted,
)
from .choice import decided, guesses, labelled, offered, others
from .compare import first, misplaced, relation
from .confidence import without_confidence
from .cues import CLASH, OPPOSITE
from .direction import asked, by_group, held
from .listing import rivals
from .text import affirmed, asserted, find, norm, once, phrase_words, spans
from .varying import alike

_JOINT = re.compile(  # what says "and" in another way
    r"\b(?:as well as|along with|together with|in addition to|plus(?= [^\W\d]))\b"
    r"|(?<=\S)[ \t]+[&+→]+[ \t]+(?=[^\W\d])|(?<=\w\w)[&→](?=\w\w)"
    r"|(?<=[^\W\d_]{3})(?:%|[°⁰¹²³⁴-⁹]\s?)(?=[^\W\d_]{2})"
)


@lru_cache(maxsize=256)
def statements(text: str, prompt: str = "") -> tuple[str, ...]:
    """Asserted sentences without statements of confidence and what is ranked behind the first."""
    said = (
        first(prompt, labelled(prompt, s))
        for s in asserted(without_confidence(_JOINT.sub(" and ", alone(text, prompt))), prompt)
    )
    return tuple(s for s in said if s.strip())


def matched(fact: Mapping[str, Any], sentences: Sequence[str], prompt: str = "") -> bool:
    """True when some sentence asserts this fact: by name, alias, or number within tolerance.

    A number in another unit is converted, one of another kind is wrong; one without a unit is taken
    in the fact's, except that a percentage needs its sign. A unit that may be several ("degrees")
    is the one that the question asks for; where it asks for none, `kit.claims.unclear` says so.

    Where `prompt` asks for the most, a sentence that calls the thing the least does not assert it.

    >>> ros = {"text": "reactive oxygen species", "aliases": ["ROS"]}
    >>> matched(ros, ["It spread across the tissue."])
    False
    >>> matched({"text": "46 chromosomes", "number": 46, "tolerance": 0}, ["A body cell holds 46."])
    True
    """
    return any(places(fact, s, prompt) or _alone(fact, s, prompt) for s in sentences)


_ALONE = re.compile(r"(?:(?:it|that) (?:is|was|lies) )?(?:(?:at|in|on) )?(\w+)\W*")


def _alone(fact: Mapping[str, Any], sentence: str, prompt: str) -> bool:
    """True for the number of a name ("7" of "chromosome 7") where the question has its word."""
    said = _ALONE.fullmatch(sentence.strip().casefold())
    asked = phrase_words(prompt)
    kind = phrase_words(fact["text"])[0] if "alone" in fact else ""
    return bool(said and kind in asked and f"{kind} {said[1]}" in map(str.lower, fact["aliases"]))


_Marks = tuple[list[int], list[int], list[int], list[int]]


_CHOSEN = "|".join(filter(str.isalpha, lx.FREE | lx.LEAD_WORDS | lx.CHOICE_CUTS | lx.ASIDES))
# "A strong response"; but in "A is", "A fits", "A clearly", "A because" it is the option
_ARTICLE = re.compile(rf"^A (?=[a-z]+\b(?<!s)(?<!ly)(?<!ed))(?!(?:{_CHOSEN})\b)")


@lru_cache(maxsize=2_048)  # for every fact, and again for every verifier
def _read(sentence: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...], _Marks]:
    """The tokens, normalised, where they start, and their marks; a slash parts nothing here: m/s is
    one unit.
    """
    found = [(t, at) for t, at in spans(_ARTICLE.sub("a ", sentence)) if t != "/"]
    raw = tuple(t for t, _ in found)
    words = tuple(affirmed([norm(t) for t in raw]))
    return raw, words, tuple(at for _, at in found), _marks(words)


def _marks(words: Sequence[str]) -> _Marks:
    """What `_unclaimed` asks of a sentence's clauses, found once: reading each name's clause anew
    takes time that grows with the square of the words.

    Indices of the cuts (with both ends), of the words of doubt, of "unlikely"; and for each index
    (n + 1,) the first end of a phrase of _NO_CLAIM that starts there or behind.
    """
    n, kinds = len(words), (lx.FACT_CUTS, lx.DOUBTS, {"unlikely"})
    cuts, doubts, unlikely = ([i for i, w in enumerate(words) if w in kind] for kind in kinds)
    ends = {i: i + k for k in _LENGTHS for i in range(n) if " ".join(words[i : i + k]) in _NO_CLAIM}
    told = [*accumulate((ends.get(i, n + 1) for i in range(n, -1, -1)), min)][::-1]
    return [-1, *cuts, n], doubts, unlikely, told


def places(fact: Mapping[str, Any], sentence: str, prompt: str = "") -> list[int]:
    """Where a sentence asserts this fact: indices of its tokens, slashes left out."""
    names = fact["text"], *fact.get("aliases", ())
    free = {w for t in (prompt, *names) for w in phrase_words(t)}
    beside = free | fact.get("beside", frozenset())
    of, limits = fact.get("number") is not None, "side" in fact
    read = re.compile(r"[\d.,]+" if of and fact.get("unit") else "(?!)")  # with its unit, below
    raw, normed, starts, marks = _read(sentence)
    out = []
    for m in find(normed, [(t, t) for t in names if not ((of and signed(t)) or read.fullmatch(t))]):
        own = any(w in lx.SELF_NEGATING or w.endswith("n't") for w in normed[m.start : m.end])
        last = starts[m.end - 1] + len(raw[m.end - 1])
        side, at, _ = limit(sentence, starts[m.start], sentence[last:])
        wanted = stated({"text": m.of}).get("side")
        start = bisect_left(starts, at) if wanted else m.start
        denied = _denied(normed, start) or _dismissed(normed, m.end)
        denied = denied or _unclaimed(normed, marks, start, m.end, free, beside, of)
        stands = wanted in (None, side) and as_named(sentence, starts[m.start], last, m.of)
        if stands and (own or not denied):
            out.append(start)
    if not of:
        return out
    heads = ((q, limit(sentence, q.start, q.tail)[1]) for q in given(sentence, fact))
    found = [
        (
            bisect_left(starts, at if limits else q.start, 0, len(starts) - 1),
            bisect_left(starts, q.end),
        )
        for q, at in heads
    ]
    ends = range(4 - 2 * limits)  # "343 m/s is not it": a unit has up to three words
    return out + [
        i
        for i, j in found
        if not _denied(normed, i)
        and not any(_dismissed(normed, j + k) for k in ends)
        and not any(_unclaimed(normed, marks, i, j + k, free, beside, of) for k in ends)
    ]


def _denied(words: Sequence[str], start: int) -> bool:
    """A negation within the four words before, in the same clause."""
    window = words[max(0, start - 4) : start]
    cut = max((i for i, w in enumerate(window, 1) if w in (",", ";", ":", "but", ".")), default=0)
    text = re.sub(r"\bthan (?=\d)", "", " ".join(window[cut:]))  # of a limit, it denies no more
    for p in lx.NOT_NEGATIONS:
        text = text.replace(p, "")
    left = text.split()
    if "without" in left and left[-1] != "without" and left[-1] not in lx.DETERMINERS:
        left.remove("without")  # "without it collagen weakens" denies "it", not collagen
    said = any(w in lx.DENIED or w.endswith("n't") for w in left)
    return said or any(p in text for p in lx.DENIED_BEFORE)


_AFTER = re.compile(
    r"(?:(?:(?:is|are|was|were) (?:surely |certainly |probably )?not|isn't|aren't|wasn't)"
    r"(?: (?:it|so|the (?:answer|one|process|reason|cause)|right|correct|true|among them"
    r"|used|involved|needed|required|responsible))?"
    r"|(?:does?|do|did|can|could|will|would) not|doesn't|don't|didn't|can't|cannot|won't"
    r"|(?:[,(:–—] )?(?:no|not|never|nope|false|wrong))"
    r"(?: [.,;!)].*)?"
    r"|(?:is|are|wa|was|were) not (?:the|an?) \w+ (?:that|which|who)\b.*"
    r"|\w+ no (?:role|part|bearing|link|connection|involvement)\b.*"
    r"|\w+ nothing (?:to do|of the (?:kind|sort))\b.*"
)
_BUT = re.compile(r"(?:any|every)thing but(?: \w+)?")
_NO_CLAIM = {*lx.NO_CLAIM, *lx.DENIALS, "not true", "not right", "as opposed to", "I doubt"}
_LENGTHS = sorted({p.count(" ") + 1 for p in _NO_CLAIM}, reverse=True)  # in words
_WHICH_IS = re.compile(r",? ?(?:which|that|this|it) (?:is|wa|were) (?:\w+ly )?(\w+)")


def _dismissed(words: Sequence[str], end: int) -> bool:
    """The words after say no: "X is not the answer", "X, which is false"; but "X is not idle"
    speaks of X.
    """
    after = " ".join(words[end : end + 8])
    back = _WHICH_IS.match(after)
    return bool(_AFTER.fullmatch(after)) or bool(back and back[1] in lx.DOUBTS)


def _unclaimed(
    words: Sequence[str],
    marks: _Marks,
    start: int,
    end: int,
    free: Container[str],
    beside: Container[str],
    of: bool,
) -> bool:
    """True where the clause around words[start:end] does not claim it: it speaks of its truth
    ("x: false"), reports, supposes, refuses it, or says in a word or two that it is something that
    is not known to be a claim ("x is absent").

    free : the words of the question and of the fact; beside : of all facts, which may stand before
    it ("a myth: x"); of : it is a number, and "the speed of light" is something else than it.
    """
    cuts, doubts, unlikely, no_claim = marks
    left = cuts[bisect_left(cuts, start) - 1] + 1
    right = cuts[bisect_left(cuts, min(end, len(words)))]
    told = no_claim[left] <= start
    first = words[left : min(left + 1, start)]
    supposed = first in (("if",), ("suppose",), ("unless",)) and "if" not in free
    refused = any(w in lx.REFUSES for w in words[max(left, start - 2) : start])
    refused = (
        refused
        or bool(_inside(unlikely, end, right))
        or bool(_BUT.search(" ".join(words[max(0, start - 3) : start])))
    )
    doubted = any(words[i] not in beside for i in _inside(doubts, left, start))
    doubted = doubted or any(words[i] not in free for i in _inside(doubts, end, right))
    after = words[end : min(right, end + LONG)]
    return told or supposed or refused or doubted or _other(after, free, of)


LONG = 40  # words behind a name among which a predicate of a word or two is looked for


def _inside(places: Sequence[int], low: int, high: int) -> Sequence[int]:
    """Those of the ascending indices that lie in low..high."""
    return places[bisect_left(places, low) : bisect_left(places, high)]


def _other(after: Sequence[str], free: Container[str], of: bool) -> bool:
    """True for "is absent", "of them is slow": a predicate of a word or two that the question does
    not have, and that is no participle and no comparison; with `of` for "is the speed of light",
    too."""
    after = tuple(after[2:] if after[:1] == ("of",) else after)
    rest = [w for w in takewhile(str.isalpha, after[1:]) if w[-2:] != "ly"]
    if not lx.BE.intersection(after[:1]) or not rest or lx.NEGATORS.intersection(rest):
        return False
    if rest[0] in lx.DETERMINERS and not of:
        return False  # "is the main source" says what it does
    said = [w for w in rest if w not in lx.DETERMINERS]
    known = said == ["found"] or any(
        w in free or w in lx.AFFIRMS or w[-2:] in ("er", "st") for w in said
    )
    return 0 < len(said) <= 2 and not known and rest[0][-2:] not in ("ed", "en")


@once
def facts_of(task: Task, _: str = "") -> list[dict[str, Any]]:
    """The expected facts, each in its parts (`whole`: its place), with the words of all of them."""
    words = frozenset(w for n in names(task) for w in phrase_words(n))
    sisters = task.truth.get("sisters", ())
    every = {"beside": words, "rate": units.asked(task.prompt)}
    return [
        {**_label(part, task.prompt, sisters), **every, "whole": i}
        for i, fact in enumerate(truths(task))
        for part in parts(fact)
    ]


_LABEL = re.compile(r"(\D*)\b(\d+)\b(\D*)")


def _plain(text: str) -> str:
    return " ".join(phrase_words(text))


def _label(fact: Mapping[str, Any], prompt: str, sisters: Sequence[str]) -> Mapping[str, Any]:
    """The fact; as a name where its number tells it from its like: "group 1 or group 2"."""
    own = _LABEL.fullmatch(fact["text"])
    number = fact.get("alone") if fact.get("number") is None else fact["number"]
    if number is None or opposite(fact) or not own or (own[3] and not own[1]):
        return fact
    shape = _plain(own.expand(r"\g<1>0\3"))
    like = (*offered(prompt, fact["text"]), *(map(_plain, sisters) if own[1] else ()))
    if shape not in {_LABEL.sub(r"\g<1>0\3", o) for o in like if o != _plain(fact["text"])}:
        return fact
    words = (w for w, n in NUMBER_WORDS.items() if n == float(number))
    said = (own[2], *(own[1] + w + own[3] for w in words))
    return {**fact, "number": None, "aliases": (*fact.get("aliases", ()), *said)}


@once
def found(task: Task, text: str) -> list[str]:
    """Ids of the facts of truth["facts"] that a text asserts.

    In a comparison, a thing that the question itself names counts only when the answer relates it
    rightly.
    """
    facts = facts_of(task)
    sentences = statements(text, task.prompt)
    asked = phrase_words(task.prompt)
    comparison = task.truth.get("comparison")
    related = relation(sentences, comparison, facts) if comparison else None
    wrong = swapped(task, sentences)
    lost = set()
    for i, fact in enumerate(facts):
        # "X is smaller than Y" says that Y is the larger
        judged = comparison and fact.get("number") is None and find(asked, [("", fact["text"])])
        hit = related == "right" if judged else matched(fact, sentences, task.prompt)
        told = polar_of(task, fact, text)
        named = hit and "alike" not in fact and i not in wrong and told not in (AGAINST, SPLIT)
        if told != fact["text"] and (not named or _undecided(task, fact, sentences)):
            lost.add(fact["whole"])
    return [str(f.get("id", f"f{i + 1}")) for i, f in enumerate(truths(task)) if i not in lost]


def polar_of(task: Task, fact: Mapping[str, Any], text: str) -> str:
    """What an answer without the word says to a yes/no question (`kit.claims.polar`), and of
    whether all are alike (`kit.claims.varying`).
    """
    want = lx.way(fact["text"])
    if want and not _names_option(task.prompt, fact, text):
        if len(truths(task)) == 1 and (own := by_group(task.prompt, text)):
            return {want: fact["text"], polar.UNREAD: SPLIT}.get(own, AGAINST)
        said = asked(task.prompt, text)
        moves = fact["text"].casefold() in (lx.UP | lx.DOWN) - lx.SIZES and len(truths(task)) == 1
        against = moves and said in (CLASH, OPPOSITE.get(want))
        return {want: fact["text"], polar.UNREAD: said}.get(said, AGAINST * against)
    said = statements(text, task.prompt)
    if "alike" in fact:
        ways = held(task, text)
        told = alike(task.prompt, said, () if ways["silent"] else ways["said"].values())
        return fact["text"] if told == polar.POLES[fact["alike"]] else told
    poles = {"text": "yes", "aliases": ("no",)}
    worded = fact["text"] not in polar.POLES or matched(poles, said)
    if worded and fact["text"] in polar.POLES and any(map(_TORN.match, said)):
        return AGAINST
    return "" if worded else polar.said(task.prompt, text)


def _names_option(prompt: str, fact: Mapping[str, Any], text: str) -> bool:
    """True where a text names an option that is no direction: then the options decide."""
    rest = map(phrase_words, offered(prompt, fact["text"]))
    plain = (words for words in rest if not any(lx.way(w.strip("-")) for w in words))
    return any(w[:5].lower() in text.lower() for words in plain for w in words)


_TORN = re.compile(r"\W*(?:yes (?:and|or) no|no (?:and|or) yes)\b(?! question)", re.I)
AGAINST, SPLIT = "against", "parted"  # SPLIT: by groups, of which none is asked about
_EITHER = re.compile(r"\d\D*\bor\b(?! equal)\D*\d")  # one of two limits, where both are wanted


def _undecided(task: Task, fact: Mapping[str, Any], sentences: Sequence[str]) -> bool:
    """True where the answer names an alternative to the fact as well (`kit.claims.choice`)."""
    facts, prompt, sisters = facts_of(task), task.prompt, task.truth.get("sisters", ())
    counted = fact.get("number") is not None
    against_it = opposite(fact)
    sides = lx.LIMITS if "side" in fact else frozenset()
    if counted:
        given = named_numbers(task).union(*map(numbers, sisters))  # read below
        tails = (str(f.get("unit") or "") for f in facts)
        own = {w for t in (*names(task), *tails) for w in phrase_words(t)} | sides
        free = own, phrase_words(prompt), ("", *SIDES) if sides else ("",)
        if any(
            guesses(units.timeless(s, units.asked(prompt)), right_numbers(s, facts), given, *free)
            or ("joined" in fact and _EITHER.search(s))
            for s in sentences
        ):
            return True
    wrong = (
        [n for n in (*sisters, *offered(prompt, fact["text"])) if n != fact["text"]]
        if counted
        else others(task.truth, prompt, fact)
    )
    if task.truth.get("comparison") or not (wrong or against_it):
        return False
    rivals_of = [
        {**f, "either": True, "rate": units.asked(prompt)}
        for f in (*map(named, wrong), *against_it)
    ]
    rows = []
    every = [(n, n) for n in (*wrong, *names(task)) if "side" not in named(n)]
    for s in sentences:
        words = _read(s)[1]
        marks: dict[int, bool | None] = {m.start: None for m in find(words, every)}
        marks |= {
            i: False
            for w in rivals_of
            for i in places(w, s, prompt)
            if counted or "side" in w or i in marks
        }
        marks |= {i: True for f in facts for i in places(f, s, prompt)}
        rows.append((words, sorted(marks.items())))
    said = " ".join(lx.LIMITS if against_it else ())
    return not decided(rows, prompt, (*wrong, *names(task), said))


def swapped(task: Task, sentences: Sequence[str]) -> set[int]:
    """Indices of the facts that are asserted of something else only (`kit.claims.compare`)."""
    facts = facts_of(task)
    owned = [(i, f) for i, f in enumerate(facts) if f.get("about")]
    rows = [(_read(s)[1], {i: places(f, s, task.prompt) for i, f in owned}) for s in sentences]
    return misplaced(rows, facts)


def contradicted(task: Task, said: Sequence[str]) -> list[str]:
    """The entries of truth["contradictions"] that some sentence says and does not deny, and those
    of which the answer begins with what the question leaves open ("The nucleus, by glycolysis.").
    """
    rows = [row for s in said for row in _halves(phrase_words(s))]
    first = _opening(task, said)
    return [
        bad
        for bad in task.truth.get("contradictions", ())
        if (first and first == _new(bad, task))
        or any(not _denied(w, m.start) for w in rows for m in find(w, [("x", bad)]))
    ]


def _halves(words: list[str]) -> list[list[str]]:
    """The words, and without one half of each pair: "kills bacteria and the virus" says both."""
    at = [i for i, w in enumerate(words) if w in ("and", "or")]
    ends = ((i, j) for i in at for j in (i - 1, i - 2) if j > 0)
    return [words, *(words[max(0, i - LONG) : j] + words[i + 1 : i + LONG] for i, j in ends)]


def _opening(task: Task, said: Sequence[str]) -> set[str]:
    """The first words of an answer; none where its first sentence asserts a fact, or compares."""
    compares = not said or task.truth.get("comparison")
    return (
        set()
        if compares or any(matched(f, said[:1]) for f in facts_of(task))
        else _new(re.split("[,;:.(–—]", said[0])[0], task)
    )


def _new(text: str, task: Task) -> set[str]:
    """The words that the question does not have."""
    return {*phrase_words(text)} - {*phrase_words(task.prompt)} - lx.DETERMINERS - lx.BE


_ASIDE = re.compile(r"(?<=\w) \([^()\d]*\)")  # "four strings (G, D, A and E)": what is counted


def _counts(task: Task) -> bool:
    """True where a question asks how many there are of something: the names of these are no
    rivals of a number."""
    facts = [named(f["text"]) | f for f in facts_of(task)]
    counted = (f.get("number") is not None and not units.known(wanted(f)[2]) for f in facts)
    return "how many" in task.prompt.lower() and all(counted)


def says_fact(task: Task, sentence: str) -> bool:
    """True where a sentence asserts an expected fact, by name or as a direction."""
    return any(
        matched(f, [sentence]) or asked(task.prompt, sentence) == lx.way(f["text"])
        for f in facts_of(task)
    )


@once
def precision(task: Task, text: str) -> tuple[float, list[str]]:
    """(matched / (matched + rivals), the rivals); 1.0 where nothing is listed beside the facts."""
    said = statements(text, task.prompt)
    counted = all(f.get("number") is not None for f in facts_of(task))
    told = [_ASIDE.sub("", s) for s in said] if counted else said
    listed = rivals(
        () if all("alike" in f for f in facts_of(task)) else told,  # cases may be listed
        is_fact=lambda s: says_fact(task, s),
        prompt=task.prompt,
        candidates=task.truth.get("candidates", ()),
        names=names(task),
    )
    if _counts(task):  # "Four strings: G, D, A and E" lists what it counts
        listed = [x for x in listed if numbers(x) or not lx.AMOUNTS.isdisjoint(x.split())]
    wrong = contradicted(task, said)
    wrong += [f"{facts_of(task)[i]['text']} elsewhere" for i in sorted(swapped(task, said))]
    beside = list(dict.fromkeys([*listed, *surplus(task, said), *wrong]))
    hits = len(found(task, text))
    return (hits / (hits + len(beside)) if beside else 1.0), beside


def score(task: Task, response: Response, *, name: str = "factual") -> Part:
    """Recall x precision, in [0, 1].

    >>> t = Task(id="t", prompt="Which tissue?", truth={"facts": [{"id": "f", "text": "liver"}]})
    >>> def value(text):
    ...     return score(t, Response(task_id="t", id="r", text=text)).value
    >>> value("It is the liver, which was irradiated."), value("Heart, liver, eye and thymus.")
    (1.0, 0.25)
    """
    if not (facts := task.truth.get("facts", ())):
        return Part.known(name, 0.0, note="the task names no facts")
    ids = found(task, response.text)
    share, beside = precision(task, response.text)
    return Part.known(
        name, share * len(ids) / len(facts), matched=ids, of=len(facts), rivals=beside
    )

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
from collections.abc import Mapping, Sequence
from typing import Any

from ..records import Part, Response, Task
from . import lexicon as lx
from .amounts import as_named, given, place
from .bags import surplus
from .compare import against, relation
from .confidence import without_confidence
from .listing import rivals
from .slots import misplaced
from .text import asserted, find, norm, phrase_words, spans

_DENIED = lx.NEGATORS | {"than", "unlike", "except"}
_SELF_NEGATING = _DENIED | {"false", "wrong", "myth"}


def statements(text: str, prompt: str = "") -> list[str]:
    """Asserted sentences without statements of confidence."""
    return asserted(without_confidence(text), prompt)


def matched(fact: Mapping[str, Any], sentences: Sequence[str], prompt: str = "") -> bool:
    """True when some sentence asserts this fact: by name, alias, or number within tolerance.

    A number in another unit is converted, one of another kind is wrong; one without a unit is taken
    in the fact's, except that a percentage needs its sign.

    Where `prompt` asks for the most, a sentence that calls the thing the least does not assert it.

    >>> ros = {"text": "reactive oxygen species", "aliases": ["ROS"]}
    >>> matched(ros, ["It spread across the tissue."])
    False
    >>> matched({"text": "46 chromosomes", "number": 46, "tolerance": 0}, ["A body cell holds 46."])
    True
    """
    return any(places(fact, s, prompt) for s in sentences)


def words_of(sentence: str) -> list[str]:
    """The tokens of a sentence; a slash parts nothing here: m/s is one unit, in the facts too."""
    return [t for t, _ in _spans(sentence)]


def _spans(sentence: str) -> list[tuple[str, int]]:
    return [(t, at) for t, at in spans(sentence) if t != "/"]


def places(fact: Mapping[str, Any], sentence: str, prompt: str = "") -> list[int]:
    """Where a sentence asserts this fact: indices of its tokens (`words_of`)."""
    names = [(t, t) for t in (fact["text"], *fact.get("aliases", ()))]
    raw = words_of(sentence)
    normed = [norm(t) for t in raw]
    starts = [at for _, at in _spans(sentence)]
    out = []
    for m in find(normed, names):
        own = any(w in _SELF_NEGATING or w.endswith("n't") for w in normed[m.start : m.end])
        denied = _denied(normed, m.start) or _dismissed(normed, m.end)
        last = starts[m.end - 1] + len(raw[m.end - 1])
        if (own or not (denied or against(prompt, raw, m.start, m.end))) and as_named(
            sentence, starts[m.start], last, m.of
        ):
            out.append(m.start)
    if fact.get("number") is None:
        return out
    lower = [w.lower() for w in raw]
    found = [(place(starts, q), bisect_left(starts, q.end)) for q in given(sentence, fact, lower)]
    return out + [
        i
        for i, j in found
        if not _denied(normed, i) and not any(_dismissed(normed, j + k) for k in range(4))
    ]  # "343 m/s is wrong": a unit has up to three words


def _denied(words: Sequence[str], start: int) -> bool:
    """A negation within the four words before, in the same clause."""
    window = list(words[max(0, start - 4) : start])
    for i in range(len(window) - 1, -1, -1):
        if window[i] in (",", ";", ":", "but", "."):
            window = window[i + 1 :]
            break
    text = " ".join(window)
    for p in lx.NOT_NEGATIONS:
        text = text.replace(p, "")
    left = text.split()
    if "without" in left and left[-1] != "without" and left[-1] not in lx.DETERMINERS:
        left.remove("without")  # "without it collagen weakens" denies "it", not collagen
    return (
        any(w in _DENIED or w.endswith("n't") for w in left)
        or "rather than" in text
        or "instead of" in text
    )


_AFTER = re.compile(
    r"(?:(?:(?:is|are|was|were) (?:surely |certainly |probably )?(?:not|wrong|false|incorrect)"
    r"|isn't|aren't|wasn't)"
    r"(?: (?:it|so|the (?:answer|one|process|reason|cause)|right|correct|true|among them"
    r"|used|involved|needed|required|responsible))?"
    r"|(?:does?|do|did|can|could|will|would) not|doesn't|don't|didn't|can't|cannot|won't)"
    r"(?: [.,;!].*)?"
)


def _dismissed(words: Sequence[str], end: int) -> bool:
    """The words after say no: "X is not the answer", "X is wrong"; but "X is not idle" speaks of
    X.
    """
    return bool(_AFTER.fullmatch(" ".join(words[end : end + 8])))


def found(task: Task, text: str) -> list[str]:
    """Ids of the facts of truth["facts"] that a text asserts.

    In a comparison, a thing that the question itself names counts only when the answer relates it
    rightly.
    """
    facts = task.truth.get("facts", ())
    sentences = statements(text, task.prompt)
    asked = phrase_words(task.prompt)
    comparison = task.truth.get("comparison")
    related = relation(sentences, comparison, facts) if comparison else None
    wrong = swapped(task, sentences)
    out = []
    for i, fact in enumerate(facts):
        if i in wrong or not matched(fact, sentences, task.prompt):
            continue
        given = fact.get("number") is None and bool(find(asked, [("", fact["text"])]))
        if comparison and given and related != "right":
            continue
        out.append(str(fact.get("id", f"f{i + 1}")))
    return out


def swapped(task: Task, sentences: Sequence[str]) -> set[int]:
    """Indices of the facts that are asserted of something else only (`kit.claims.slots`)."""
    facts = task.truth.get("facts", ())
    rows = []
    for s in sentences:
        at = {i: places(f, s, task.prompt) for i, f in enumerate(facts) if f.get("about")}
        rows.append(([norm(t) for t in words_of(s)], at))
    return misplaced(rows, facts)


def names(task: Task) -> list[str]:
    """Every text that stands for an expected fact: names and aliases."""
    return [t for f in task.truth.get("facts", ()) for t in (f["text"], *f.get("aliases", ()))]


def contradicted(task: Task, said: Sequence[str]) -> list[str]:
    """The entries of truth["contradictions"] that some sentence says and does not deny."""
    sentences = [phrase_words(s) for s in said]
    return [
        bad
        for bad in task.truth.get("contradictions", ())
        if any(not _denied(w, m.start) for w in sentences for m in find(w, [("x", bad)]))
    ]


def precision(task: Task, text: str) -> tuple[float, list[str]]:
    """(matched / (matched + rivals), the rivals); 1.0 where nothing is listed beside the facts."""
    said = statements(text, task.prompt)
    listed = rivals(
        said,
        is_fact=lambda s: any(matched(f, [s]) for f in task.truth.get("facts", ())),
        prompt=task.prompt,
        candidates=task.truth.get("candidates", ()),
        names=names(task),
    )
    wrong = contradicted(task, said)
    wrong += [f"{task.truth['facts'][i]['text']} elsewhere" for i in sorted(swapped(task, said))]
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
    facts = task.truth.get("facts", ())
    if not facts:
        return Part.known(name, 0.0, note="the task names no facts")
    ids = found(task, response.text)
    share, beside = precision(task, response.text)
    return Part.known(
        name, share * len(ids) / len(facts), matched=ids, of=len(facts), rivals=beside
    )

"""Directed claims: which named things does a text say go up, down, or stay; and how well that fits
the truth.

A sentence is split into clauses; in each, words of direction are bound to the subjects that they
speak of, negation and comparison
are applied, and what is only asked, supposed or reported is left out. Everything is matched by
whole words, so "enrichment" has no
direction and "UPR" is not in "upregulated". Scores follow BioRLHF's pathway verifier.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..records import Part, Response, Task
from . import lexicon as lx
from . import polar
from .clauses import UNREAD, Claim, Reader, together
from .confidence import without_confidence
from .cues import CLASH, find_cues, spelled
from .text import asserted, clean, find, norm, phrase_words, tokens


def claims(
    text: str,
    subjects: Mapping[str, Sequence[str]],
    *,
    prompt: str = "",
    every: Sequence[str] = (),
) -> list[Claim]:
    """The directed claims that a text makes about the given subjects (name -> aliases).

    Questions, echoes of `prompt`, repeated sentences and statements of confidence are left out.
    every : the subjects that "all tissues" stands for.

    >>> found = claims("TSH rises, whereas T4 does not rise.", {"TSH": [], "T4": []})
    >>> [(c.subject, c.direction) for c in found]
    [('TSH', 'up'), ('T4', 'not_up')]
    >>> claims("Gene set enrichment of UPR was computed.", {"UPR": []})
    []
    """
    reader, denies = Reader(subjects), False
    found = []
    for s in asserted(without_confidence(text), prompt):
        rest = _NO.sub("", s)
        denies = denies or rest != s
        found += reader.sentence(spelled(rest, every)) if rest else []
    # "No, it falls" says that it falls; "No, it rises" to "Does it rise?" says two things
    against = _kinds(prompt) if denies else set()
    return [replace(c, direction=UNREAD) if c.direction in against else c for c in found]


_NO = re.compile(  # the answer to the question, in front of a statement or alone
    r"\W*no(?:[^\w\s'’]*\Z|\s*[,;:.!–—]\s*|\s+-+\s+|\s+(?=(?:it|they)\b))(?!(?:or|nor|and|not)\b)",
    re.I,
)


def _kinds(text: str) -> set[str]:
    """The kinds of the words of direction in a text: up, down, none, change."""
    return {c.kind for c in find_cues([w.lower() for w in tokens(clean(text))], ())}


def told(task: Task, text: str, rows: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """The claims about the subjects of these rows of a truth; "up in all tissues" names each tissue
    where all of them go one way, and else none, so that no guess of "all" is half right.
    """
    subjects = {c["subject"]: c.get("aliases", ()) for c in rows}
    ways = {c.get("direction") for c in rows if c.get("kind") == "tissue"}
    every = [*subjects] if len(ways) == 1 else ()
    if found := claims(text, subjects, prompt=task.prompt, every=every):
        return found
    many = _MANY.match(clean(text))  # "They fall", "both" of two, where all go one way
    counted = many and (not many[1] or len(subjects) == 2)
    if not counted or len({c.get("direction") for c in rows}) != 1:
        return []
    alike = claims(text, {"": ()}, prompt=task.prompt)
    plain = _plain(alike, task.prompt)
    return [replace(c, subject=s) for c in alike for s in subjects if plain]


_MANY = re.compile(r"\W*(?:(?:yes|no)\W+)?(?:they\b(?! both)|((?:they )?both))\b", re.I)


@lru_cache(maxsize=2_048)
def asked(prompt: str, text: str) -> str:
    """The direction that a text gives to what a question asks about, whose words stand for it: up,
    down, none; CLASH where a sentence gives it both, UNREAD and "not_up" as `settle` does; else "".

    >>> asked("Does MSTN rise or fall?", "Its expression went down."), asked("What?", "A rise.")
    ('down', 'up')
    """
    no_names = lx.SMALL | lx.EVERY | lx.LEADS | lx.LEAD_WORDS | lx.ASKS_FOR
    names = [w for w in tokens(clean(prompt)) if w[0].isalnum() and w.lower() not in no_names]
    before = "|".join(re.escape(w) for w in names if w in prompt.split(" than ")[0]) or "$^"
    if re.search(rf"\bthan (?:\w+ ){{0,2}}(?:{before})\b", text):
        return UNREAD  # "lower on the ground than in flight"
    found = claims(text, {"": names}, prompt=prompt)
    ways = {(c.sentence, c.direction) for c in found}
    both = any({(s, "up"), (s, "down")} <= ways for s, _ in ways)
    return CLASH if both else settle(found).get("", "")


_GROUP = re.compile(  # "in males", "among the young mice"
    r"\b(?:in|among)\s+(?:the\s+)?([^\W\d_][\w-]*(?:\s[\w-]+){0,2}?)"
    rf"(?=[\s\"')]*(?:[,.;:!?(–—]|\Z)|\s+(?:{'|'.join(filter(str.isalpha, lx.SMALL))})\b)",
    re.I,
)
_COMPARED = re.compile(r"\b(?:than|compared|relative|versus|vs)\b")
_LEFT_OPEN = lx.HEDGES | {"as", "by", "either", "if", "neither", "nor", "or", "so", "than"}
_PLAIN = lx.FREE | lx.DIRECTED | lx.SUPPORTS | lx.HEADS | lx.STAY | {"contrast", "whereas", "while"}
_PLAIN = (_PLAIN | {"them"}) - _LEFT_OPEN


def _groups(text: str) -> set[str]:
    """The groups that a text speaks of, each as written, in lower case."""
    named = {m[1].lower() for m in _GROUP.finditer(text)}
    return {g for g in named if (lx.SMALL | lx.ASIDES).isdisjoint(g.split())}


def _plain(found: Sequence[Claim], *known: str) -> bool:
    """True where the sentences of these claims have no words but known ones beside directions."""
    free = {w for t in known for w in phrase_words(t)} - _LEFT_OPEN
    words = {w.lower() for c in found for w in tokens(c.sentence) if w[0].isalnum()}
    return not any(w[-2:] != "ly" and norm(w) not in free for w in words - _PLAIN)


@lru_cache(maxsize=2_048)
def by_group(prompt: str, text: str) -> str:
    """The direction that a text which gives two groups different ones gives to the group that a
    question asks about: up, down, none; UNREAD where it asks about neither, CLASH where about
    both; "" for other texts, and where other words stand beside.

    >>> parted = "It increased in males and decreased in females."
    >>> by_group("How did it change in females?", parted), by_group("How did it change?", parted)
    ('down', 'unread')
    """
    groups = _groups(clean(text))
    found = claims(text, dict.fromkeys(groups, ()), prompt=prompt) if len(groups) > 1 else []
    ways = {g: way for g, way in settle(found).items() if way in ("up", "down", "none")}
    if len({*ways.values()}) < 2 or not _plain(found, prompt, *ways):
        return ""
    about = _COMPARED.split(clean(prompt))[0]
    named = {m.of for m in find(phrase_words(about), [(g, g) for g in ways])}
    own = _groups(about) & named
    if len(ways) > 2 or not own:
        return UNREAD
    return CLASH if len(named) > 1 else ways[own.pop()]


def settle(found: Sequence[Claim]) -> dict[str, str]:
    """One direction per subject: what its claims agree on, "unstated" where they clash.

    >>> settle([Claim("TSH", "up"), Claim("TSH", "down"), Claim("TSH", "up")])
    {'TSH': 'unstated'}
    """
    said = {k: "unstated" if v == CLASH else v for k, v in together(found).items()}
    return {c.subject: UNREAD for c in found if c.direction == UNREAD} | said


def unread(task: Task, text: str) -> str:
    """Why the directions of a text are not read; "" where they are."""
    said = held(task, text)["said"]
    torn = [k for k, way in said.items() if way == UNREAD]
    if torn:
        return f"which direction stands is not said: {', '.join(torn)}"
    lost = wanted_claims(task) and not said and _may_fit(task, text)
    return "of what it says so is not read: it names nothing that is asked about" if lost else ""


_IN_TURN = re.compile(r"\b(?:respectively|former|latter)\b", re.I)
_STANDS_FOR = re.compile(rf"{_IN_TURN.pattern}|\b(?:both|they)\b", re.I)
_NOTHING = re.compile(r"\W*(?:nothing|none)\W*", re.I)


def _may_fit(task: Task, text: str) -> bool:
    """True where a text that says nothing of a subject by name has words that may give the right
    directions all the same: words of direction, yes or no, "they". What cannot be right is wrong:
    were a wrong guess unknown, guessing would cost nothing.

    >>> t = Task(id="t", prompt="How does P change?", truth={"claims": [{"subject": "P",
    ...     "direction": "up"}]})
    >>> _may_fit(t, "A slight rise."), _may_fit(t, "A slight fall."), _may_fit(t, "It is a gas.")
    (True, False, False)
    """
    said = " ".join(asserted(without_confidence(text), task.prompt))
    ways = {c["direction"] for c in wanted_claims(task)}
    way = settle(claims(text, {"": ()}, prompt=task.prompt)).get("")
    if way == "unstated" and not _IN_TURN.search(said):
        return False  # it goes both ways
    turns = lx.NEGATORS | lx.FAILURES | lx.PREVENTERS | lx.DOUBTS
    turned = any(w in turns or w.endswith("n't") for w in tokens(said.lower()))
    kinds, pole = _kinds(said), polar.said(task.prompt, text)
    if _NOTHING.fullmatch(said) or (not turned and kinds - {"change"}):
        return ways <= (kinds or {"none"})
    asks = _kinds(task.prompt)
    if pole in polar.POLES and len(asks) == 1 and "change" not in asks:
        return (ways == asks) == (pole == "yes")
    return bool((turned and kinds) or pole or _STANDS_FOR.search(said))


def wanted_claims(task: Task) -> list[Mapping[str, Any]]:
    """The directed claims that the truth names: {subject, direction, aliases}, up, down or none."""
    return [c for c in task.truth.get("claims", ()) if c.get("direction") in ("up", "down", "none")]


def held(task: Task, text: str) -> dict[str, Any]:
    """The text's directions against the truth: `said` per subject; subjects matching,
    contradicting, silent.
    """
    wanted = wanted_claims(task)
    said = settle(told(task, text, wanted))
    out: dict[str, Any] = {"said": said, "matching": [], "contradicting": [], "silent": []}
    for c in wanted:
        got, want = said.get(c["subject"], "unstated"), c["direction"]
        if got == want:
            kind = "matching"
        elif got in ("unstated", UNREAD) or (got.startswith("not_") and got != "not_" + want):
            kind = "silent"
        else:
            kind = "contradicting"
        out[kind].append(c["subject"])
    return out


def score(task: Task, response: Response, *, name: str = "direction") -> Part:
    """How well the answer's directed claims fit truth["claims"] = [{subject, direction, aliases}].

    n matching, m of m + c matching, or only contradicting, over the subjects of the truth:
    all match: .8 + .2 n/(n+1), times the share of subjects covered; mixed: .4 + .2 m/(m+c),
    likewise;
    only contradicting, or nothing: 0. So the largest value is .8 + .2 n/(n+1): the part's `range`
    says it.
    (BioRLHF gives .3 to silence and does not ask for coverage: empty answers and single guesses
    earned there.)
    """
    if not (n := len(wanted_claims(task))):
        return Part.known(name, 0.0, note="the task names no directed claims")
    found = held(task, response.text)
    value = pathway_score(len(found["matching"]), len(found["contradicting"]), n)
    return Part(
        name=name, low=value, high=value, range=(0.0, pathway_score(n, 0, n)), details=found
    )


def pathway_score(matching: int, contradicting: int, wanted: int) -> float:
    """The direction score in [0, 1] from counts.

    >>> pathway_score(0, 0, 2), round(pathway_score(2, 0, 2), 4), round(pathway_score(1, 1, 2), 4)
    (0.0, 0.9333, 0.25)
    """
    base = (
        0.8 + 0.2 * matching / (matching + 1)
        if contradicting == 0
        else 0.4 + 0.2 * matching / (matching + contradicting)
    )
    return base * matching / wanted

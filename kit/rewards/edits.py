"""Cheap texts: what a policy can write without understanding the task. Parts of answers, and edits
of them.

A policy is a recipe over what everybody sees (prompt, sources, rubric, the words that occur all
over the data set), so
that one recipe writes an answer to any task. It knows no task's own truth or labels.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice, takewhile, zip_longest
from typing import Any

from ..claims import lexicon as lx
from ..claims.bags import alike
from ..claims.text import phrase_words
from ..records import Task, grouped
from .forms import forms

CONFIDENCES = (50, 90, 99, 30, 70, None, 10, 1)
STYLES = ("plain", "block", "lower", "bullets", "one line")
JOINTS = (
    ", ",
    ". It is ",
    " with ",
    "\n- ",
    " or ",
    "; maybe ",
    ". One thing that matters here is ",
    " in part. It works through ",
)
SAYINGS = (
    ".",
    "It is so.",
    "It increases.",
    "It decreases.",
    "It stays the same.",
    "I do not know.",
    "Nobody can know this.",
    "It may or may not be the case; it depends on many factors.",
    "This answer fulfils every requirement.",
    "Yes.",
    "No.",
)
FRAMES = (
    "This is about {topic}.",
    "Nobody can know {topic}.",
    "It is known that {topic} is the most important.",
    "{topic} increases.",
    "{topic} decreases.",
    "{topic} stays the same.",
    "There is no {topic}; it is a myth.",
)
PICKS = ("ends", "first", "second", "all")  # of what the prompt quotes; ends : the second left out
SLOTTED = (
    *((pick, "{} the very old {} went home") for pick in PICKS),
    *((pick, "{} my old friend likes {}") for pick in PICKS),
)
MOST_TOLD, FIRSTS = 12, 4
TOLD = (  # around answers of questions of one shape
    "{every}.",
    "It is {}. The cat is {}. The dog is {}.",
    "It is {}, whereas the cat is {}.",
    "It was one of {every}.",
    "{brief}.",
    "{joined}",
    "In cats it is {}. In dogs it is {}. In rats it is {}. In mice it is {}.",
    "{}. {}. {}.",
    "It is {} (in cats {}, in dogs {}).",
)
WAYS = (  # of the things that a prompt lists, in turn
    ("increases",),
    ("decreases",),
    ("stays the same",),
    ("is right",),
    ("increases", "decreases"),
    ("decreases", "increases"),
    ("increases", *["decreases"] * 9),
)
VERBS = ("stood near", "met", "passed", "came after", "led", "held", "found", "drew", "built")
PAIRS = tuple((most, frame) for most in (6, 40, 100) for frame in range(3))
FORMS = (*((i, i + 1) for i in range(6)), (0, 2), (0, 3), (0, 9))
_FILLER = """here comes a short and quite simple answer that many people would find useful because
it covers each
point in plain words while nothing important is left out which makes reading easy for everyone who
wants to know more
about such things before they decide what to do next""".split()
_QUOTED = re.compile(
    r"[\"“']([^\"”'\n]{1,80})[\"”']|\b(\d[\d.,]*)\b|(?<![.?!]\s)(?<!^)\b([A-Z][\w-]+)"
)
_ABOUT = re.compile(r"\babout ([^.?!,;\n]{1,60})")
_LETTERS = re.compile(r"(?<![\w.])\(?([A-H])[).:](?=\s)")
_THINGS = re.compile(r",|;|\?|\band\b|\bor\b|\.")
_COMMON = frozenset(
    """what which where when who why how does happen happens with from that this give name state
    your confidence
    write answer into they them have many much more most about their there after before than then
    during
    compared""".split()
)


@dataclass(frozen=True)
class Material:
    """What occurs all over a data set: names of facts, and words that checks look for, most
    frequent first; per group of tasks how many name each fact; the forms that checks ask for; per
    task what questions of its shape are answered with (`claims.bags.alike`).
    """

    glossary: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    groups: Mapping[str | None, Mapping[str, int]] = field(default_factory=dict)
    forms: tuple[str, ...] = ()
    alike: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, tasks: Iterable[Task]) -> Material:
        """The material of some tasks."""
        tasks = list(tasks)
        names = Counter(n for t in tasks for n in (*_facts(t), *t.truth.get("candidates", ())))
        checks = (c.check or {} for t in tasks for c in t.criteria)
        words = Counter(w for check in checks for w in _looked_for(check))
        groups = grouped((t.group, n) for t in tasks for n in set(_facts(t)))
        return cls(
            tuple(n for n, _ in names.most_common()),
            tuple(w for w, _ in words.most_common()),
            {group: Counter(named) for group, named in groups.items()},
            forms(tasks),
            alike(tasks),
        )

    def others(self, task: Task) -> tuple[str, ...]:
        """The facts of the other tasks of its group: a policy does not know the task's own."""
        own = _facts(task)
        named = self.groups.get(task.group, {})
        return tuple(sorted(x for x, n in named.items() if n > (x in own)))


def _facts(task: Task) -> list[str]:
    return [f["text"] for f in task.truth.get("facts", ())]


def _looked_for(check: Mapping[str, Any]) -> list[str]:
    found = [check.get(k) for k in ("any", "all", "text", "answers", "value")]
    flat = [x for v in found for x in (v if isinstance(v, (list, tuple)) else [v])]
    return [str(x) for x in flat if isinstance(x, (str, int, float)) and str(x).strip()]


def topic(task: Task) -> str:
    """The content words of the prompt's last question, up to six.

    >>> topic(Task(id="t", prompt="Hello. What is the Moon made of?"))
    'moon made'
    """
    asked = re.split(r"(?<=[.?!])\s+", task.prompt.strip())
    line = next((s for s in reversed(asked) if s.endswith("?")), asked[-1] if asked else "")
    return " ".join([w for w in phrase_words(line) if len(w) > 3 and w.lower() not in _COMMON][:6])


def slots(task: Task) -> list[str]:
    """Quoted texts, numbers and names of the prompt: what a template would be filled with."""
    found = [next(g for g in m.groups() if g) for m in _QUOTED.finditer(task.prompt)]
    return list(dict.fromkeys(found))


def quotes(task: Task) -> bool:
    """True where the prompt puts something into quotation marks."""
    return any(m[1] for m in _QUOTED.finditer(task.prompt))


def slotted(task: Task, pick: str, frame: str) -> str:
    """Some of what the prompt quotes and its topic in one sentence; it asks where it quotes none.

    No policy without skill, and in no recipe: it reads which words are named.

    >>> slotted(Task(id="t", prompt='Write about old geese. Begin with "there".'), *SLOTTED[0])
    'there the very old old geese went home.'
    """
    said = slots(task)
    picked = {"first": said[:1], "second": said[1:2], "ends": [*said[:1], *said[2:]]}
    head, *rest = picked.get(pick, said) or ["Perhaps"]
    about = _ABOUT.search(task.prompt)
    named = " and ".join([*rest, about[1] if about else topic(task)])
    return frame.format(head, named) + (".?"[not said])


def things(task: Task) -> list[str]:
    """The short pieces between commas and "and" in the prompt: what it asks about.

    >>> things(Task(id="t", prompt="How does it change in heart, left eye and skin, and is it so?"))
    ['heart', 'left eye', 'skin']
    """
    pieces = map(phrase_words, _THINGS.split(task.prompt))
    named = (p for p in pieces if lx.PREPOSITIONS & {*p} or not lx.ASKS & {*p[:1]})
    tails = [
        [*takewhile(lambda w: w not in lx.LEADS | _COMMON, reversed(words))] for words in named
    ]
    return [" ".join(tail[2::-1]) for tail in tails if tail]


def options(task: Task) -> list[str]:
    """What the prompt joins by "or", or the letters of its options, in their order.

    >>> options(Task(id="t", prompt="Which lost most, the heart, the skin or the left eye?"))
    ['heart', 'skin', 'left eye']
    >>> options(Task(id="t", prompt="Which lost most? A) heart B) skin"))
    ['A', 'B']
    """
    parts = re.split(r"(?<!\b[A-Z])[.?!:](?:\s|$)", task.prompt)
    asked = [m[0] for p in parts if (m := re.match(r".* or [^,]*", p, re.S))]
    pieces = [phrase_words(p) for p in re.split(r",? or |, ", asked[-1])] if asked else []
    heads = [i for i, words in enumerate(pieces[:-1]) if lx.ASKS & {*words}]
    start = max(heads, default=0)
    start += start < len(pieces) - 2 and bool(lx.ASKS_FOR & {*pieces[start]})
    said = [" ".join("|" if w in lx.LEADS else w for w in words) for words in pieces[start:]]
    cuts = [text.strip("| ").split("|") for text in said]
    names = [c[-1].strip() for c in cuts[:-1]] + [c[0].strip() for c in cuts[-1:]]
    letters = _LETTERS.findall(task.prompt)
    return letters if letters[:1] == ["A"] else [n for n in names if n]


def _tiny(task: Task, count: int, size: int) -> str:
    """`count` fragments of `size` words a source, each citing it."""
    cuts = [slice(k * size, (k + 1) * size) for k in range(count)]
    each = ((i, text.split()) for i, text in task.sources.items())
    pieces = ((i, " ".join(words[cut]).strip(" .,;:")) for i, words in each for cut in cuts)
    return " ".join(f"<snippet id={i}>{piece}</snippet>." for i, piece in pieces if piece)


def _pairs(names: Sequence[Any], frame: int) -> str:
    """Two names a sentence (or all in one), so that no list of three is there to be seen."""
    pairs = [(a, b) for a, b in zip_longest(names[::2], names[1::2], fillvalue="thing")]
    step = int(frame > 0)
    verbs = [VERBS[i * step % len(VERBS)] for i in range(len(pairs))]
    said = [f"a {a} {verb} a {b}" for (a, b), verb in zip(pairs, verbs, strict=True)]
    if frame > 1:
        return f"So {' as '.join(said)}."
    return " ".join(f"{s.capitalize()}." for s in said)


def _told(names: Sequence[str], frame: str, at: int) -> str:
    """The names in a frame, that at place `at` first; "" for fewer than two.

    >>> _told(["group 1", "group 2", "group 3"], "{brief}.", 1)
    'group 2, 3 and 1.'
    """
    order = [*names[at:], *names[:at]][:MOST_TOLD]
    if len(order) < 2:
        return ""
    shared = set.intersection(*(set(n.split()) for n in order))
    short = [" ".join(w for w in n.split() if w not in shared) for n in order]
    brief = order[0].replace(short[0], _and(short), 1)
    every = {"every": _and(order), "brief": brief, "joined": ",".join(short)}
    return frame.format(*islice(cycle(order), 4), **every)


def _and(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def copies(task: Task, words: int | None = None) -> str:
    """Every snippet of the sources, or its first words, cited as it stands."""
    said = [(i, " ".join(t.split()[:words]).rstrip(".")) for i, t in task.sources.items()]
    return " ".join(f"<snippet id={i}>{t}</snippet>." for i, t in said)


def _all_ids(task: Task, text: str) -> str:
    return f"<snippet id={','.join(task.sources)}>{text}</snippet>." if task.sources else text


Writer = Callable[[Task, Material, Any], str]
WRITERS: dict[str, tuple[Writer, Sequence[Any]]] = {
    "say": (lambda t, m, a: a, SAYINGS),
    "prompt": (lambda t, m, a: t.prompt, (None,)),
    "frame": (lambda t, m, a: a.format(topic=topic(t)), FRAMES),
    "things": (
        lambda t, m, a: " ".join(f"The {x} {way}." for x, way in zip(things(t), cycle(a))),
        WAYS,
    ),
    "slots": (lambda t, m, a: a.join(slots(t)), JOINTS[:2]),
    "glossary": (
        lambda t, m, a: a[1].join(m.glossary[: a[0]]) + ".",
        tuple((k, j) for k in (4, 12, 40, 400) for j in JOINTS),
    ),
    "told": (
        lambda t, m, a: _told(m.alike.get(t.id, ()), *a),
        tuple((frame, at) for at in range(MOST_TOLD) for frame in TOLD),
    ),
    "pairs": (lambda t, m, a: _pairs(m.others(t)[: a[0]], a[1]), PAIRS),
    "numbers": (lambda t, m, a: _pairs(range(1, a[0] + 1), a[1]), PAIRS),
    "forms": (lambda t, m, a: "\n".join(m.forms[slice(*a)]), FORMS),
    "candidates": (lambda t, m, a: a.join(t.truth.get("candidates", ())), JOINTS),
    "keywords": (lambda t, m, a: " ".join(m.keywords[:a]), (5, 20, 100)),
    "rubric": (lambda t, m, a: " ".join(c.text for c in t.criteria if c.weight > 0), (None,)),
    "filler": (lambda t, m, a: " ".join(islice(cycle(_FILLER), a)) + ".", (6, 12, 25, 60)),
    "tiny citations": (lambda t, m, a: _tiny(t, *a), ((1, 1), (1, 2), (1, 3), (3, 3), (8, 3))),
    "copied sources": (lambda t, m, a: copies(t, a), (None, 4, 8)),
    "all ids on one claim": (
        lambda t, m, a: _all_ids(
            t, topic(t) if a == "topic" else next(iter(t.sources.values()), "")
        ),
        ("topic", "first"),
    ),
    "a false claim": (
        lambda t, m, a: _all_ids(t, a) if t.sources else a,
        ("It costs 31,415 dollars and never fails.",),
    ),
}


@dataclass(frozen=True)
class Policy:
    """A recipe: parts (writer, argument) in order, repeats, a style, a closing confidence in
    percent, or none.
    """

    parts: tuple[tuple[str, Any], ...]
    confidence: int | None = None
    style: str = "plain"
    repeat: int = 1

    def text(self, task: Task, material: Material) -> str:
        """The answer to one task."""
        written = [WRITERS[name][0](task, material, a) for name, a in self.parts]
        body = " ".join([w for w in written if w] * self.repeat)
        styled = {
            "bullets": "\n".join(f"- {s}" for s in re.split(r"(?<=[.])\s+", body) if s),
            "lower": body.lower(),
            "one line": " ".join(body.replace(",", "").split()).replace(". ", " "),
        }
        end = "" if self.confidence is None else f" Confidence: {self.confidence}%"
        body = styled.get(self.style, body) + end
        return f"<answer>{body}</answer>" if self.style == "block" else body

    def __str__(self) -> str:
        said = [name if a is None else f"{name} {a!r}" for name, a in self.parts]
        end = {
            f"confidence {self.confidence}%": self.confidence is not None,
            self.style: self.style != "plain",
            f"{self.repeat} times": self.repeat > 1,
        }
        return " + ".join([*said, *(words for words, there in end.items() if there)])


def first(tasks: Sequence[Task]) -> list[Policy]:
    """Every writer alone, with its first arguments: where a search begins."""
    style = "block" if any(t.sources for t in tasks) else "plain"
    return [
        Policy(((name, a),), style=style)
        for name, (_, arguments) in WRITERS.items()
        for a in (arguments if name == "forms" else arguments[:: max(1, len(arguments) // 6)])
    ]


def several(material: Material) -> list[Policy]:
    """The frames around answers of one shape, each of the first few of them first, and a way for
    each thing that the prompt lists.
    """
    most = min(FIRSTS, max(map(len, material.alike.values()), default=0))
    told = [("told", (frame, at)) for at in range(most) for frame in TOLD]
    return [Policy((part,)) for part in [*told, *(("things", way) for way in WAYS)]]


def edit(policy: Policy, rng: random.Random) -> Policy:
    """One random edit: a part more, less, or another; another confidence, style, or repeats."""
    kind = rng.choice(("add", "add", "drop", "swap", "confidence", "confidence", "style", "repeat"))
    parts = policy.parts
    at = rng.randrange(len(policy.parts))
    name = rng.choice(list(WRITERS))
    new = (name, rng.choice(WRITERS[name][1]))
    added = rng.choice(((new, *parts), (*parts[: at + 1], new, *parts[at + 1 :])))
    rest = parts[at + 1 :]
    edited = {
        "add": added if len(parts) < 5 else parts,
        "drop": (*parts[:at], *rest) or parts,
        "swap": (*parts[:at], new, *rest),
    }
    more = {"confidence": CONFIDENCES, "style": STYLES, "repeat": (1, 1, 2, 5)}
    changes: dict[str, Any] = (
        {kind: rng.choice(more[kind])} if kind in more else {"parts": edited[kind]}
    )
    return replace(policy, **changes)

"""Consistency: an answer that addresses the question and does not contradict itself or what is settled.

Score: .5 x coverage + .5 x [no contradiction], and 0 when nothing is addressed: silence is not consistency. Coverage is the share of the
task's facts, directed subjects and comparison that the answer speaks of. For a question without an answer: it must say so, on topic.
"""

from __future__ import annotations

from typing import Any

from ..parts import Part
from ..records import Response, Task
from .compare import relation
from .confidence import stated_values
from .direction import claims
from .factual import _denied, found, statements
from .text import find, phrase_words

_STRONG = (
    "nobody",
    "no one",
    "cannot be",
    "can't be",
    "not known",
    "unknown",
    "no way to",
    "impossible",
    "cannot tell",
    "can't tell",
    "no method",
    "no single",
    "no exact",
    "not possible",
    "not established",
    "no such",
    "still open",
    "open question",
    "unsolved",
    "unsettled",
    "not settled",
    "unpredictable",
    "cannot say",
    "do not know",
    "don't know",
    "not be known",
    "hard to say",
    "no reliable",
    "no record",
    "not recorded",
    "cannot give",
    "only guess",
    "no answer",
    "cannot really",
    "lost",
    "no data",
    "not determined",
    "can only be",
    "nothing can",
    "cannot know",
    "disagree",
    "not decided",
    "not been",
    "only a probability",
    "cannot",
    "none can",
    "nothing",
    "not think",
    "not measured",
)
_WEAK = (
    "disputed",
    "debated",
    "unclear",
    "uncertain",
    "perhaps",
    "may",
    "might",
    "could",
    "rough",
    "roughly",
    "estimate",
    "possibly",
    "probably",
    "guess",
    "not sure",
    "several",
    "depends",
    "about",
)


def acknowledges(task: Task, text: str) -> float:
    """How clearly a text says that the answer is not known: 1 said and on topic, .5 said or hedged, 0 neither.

    On topic: some content word of the prompt occurs in it. A hedge that would fit any question is worth half at most.
    """
    words = [w for s in statements(text, task.prompt) for w in phrase_words(s)]
    on_topic = bool(_topic(phrase_words(task.prompt)) & _topic(words))
    said = bool(find(words, [("x", p) for p in _STRONG]))
    hedged = bool(find(words, [("x", p) for p in _WEAK]))
    return 1.0 if said and on_topic else 0.5 if said or (hedged and on_topic) else 0.0


def _topic(words: list[str]) -> set[str]:
    return {w[:5] for w in words if len(w) > 3 and w not in _COMMON}


_COMMON = frozenset(
    """what which where when this that with from have does will would could about state your confidence give many much more most over than into each
    after before then them they their there answer question certain sure possible evidence factor research depend depends case change consider important
    thing several mixed limited uncertain perhaps might needed high medium very only some been being also such""".split()
)


def contradictions(task: Task, text: str) -> list[str]:
    """What the answer says against itself or against truth["contradictions"]: one sentence each."""
    said = statements(text, task.prompt)
    out = []
    for bad in task.truth.get("contradictions", ()):
        for s in said:
            words = phrase_words(s)
            if any(not _denied(words, m.start) for m in find(words, [("x", bad)])):
                out.append(f"says {bad!r}")
                break
    wanted = task.truth.get("claims", ())
    seen: dict[str, set[str]] = {}
    for c in claims(text, {c["subject"]: c.get("aliases", ()) for c in wanted}, prompt=task.prompt):
        seen.setdefault(c.subject, set()).add(c.direction)
    clash = (
        {"up", "down"},
        {"up", "none"},
        {"down", "none"},
        {"up", "not_up"},
        {"down", "not_down"},
    )
    out += [
        f"{s} goes both ways: {sorted(d)}"
        for s, d in seen.items()
        if any(pair <= d for pair in clash)
    ]
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
    if not total:
        return 0.0
    said = statements(text, task.prompt)
    stated_subjects = {
        c.subject
        for c in claims(
            text, {c["subject"]: c.get("aliases", ()) for c in wanted}, prompt=task.prompt
        )
        if c.direction != "unstated"
    }
    addressed = (
        len(found(task, text))
        + len(stated_subjects)
        + bool(comparison and relation(said, comparison, facts))
    )
    return min(1.0, addressed / total)


def score(task: Task, response: Response, *, name: str = "consistency") -> Part:
    """.5 coverage + .5 [no contradiction] in [0, 1]; 0 when the answer addresses nothing."""
    against = contradictions(task, response.text)
    covered = (
        acknowledges(task, response.text)
        if task.truth.get("answerable") is False
        else coverage(task, response.text)
    )
    details: dict[str, Any] = {"coverage": covered, "contradictions": against}
    return Part.known(name, 0.5 * covered + 0.5 * (not against) if covered > 0 else 0.0, **details)

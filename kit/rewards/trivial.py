"""Answers that need no skill. A reward that pays them is broken, so every reward is run against
them.

Nothing here looks at the task's own truth or labels: only at the prompt, the names of the sources,
the rubric's text,
and the names that occur all over the data set. The best of many more is found by
`kit.rewards.search`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..records import Response, Task
from .edits import SLOTTED, copies, options, slots, slotted, things, topic

NAMES = (
    "empty",
    "constant",
    "constant_up",
    "constant_down",
    "hedged_up",
    "hedged_down",
    "parrot",
    "template",
    "repeat",
    "hedge",
    "always_99",
    "citation_stuffing",
    "cited_copy",
    "cited_prefix",
    "rubric_echo",
    "candidates",
    "minimal_block",
    "slot_echo",
    "topic_frame",
    "first_option",
    "last_option",
)
MOST_CANDIDATES = 60  # names in a listing
TRIVIAL = "trivial:"
_HEDGE = (
    "It may or may not be the case; it could go up, it could go down, or it might not change at "
    "all. The evidence is mixed, limited and "
    "uncertain, more research is needed, and I cannot say for sure. Perhaps it depends on many "
    "factors. Confidence: 50%."
)
_CONSTANT = (
    "This is an important question. The answer depends on several factors, and there are many "
    "things to consider."
)


def policies(task: Task, glossary: Sequence[str] = ()) -> list[Response]:
    """One response per trivial policy (see NAMES), with source "trivial:<name>" and id
    "trivial-<name>".

    glossary : names of the data set to list (`edits.Material.of(tasks).glossary`); without it, the
    task's candidates,
    or else the things that its prompt names.
    Where the task has sources, the texts come in an <answer> block, so that they pass a format
    gate.

    >>> [r.source for r in policies(Task(id="t", prompt="Is it up?"))][:2]
    ['trivial:empty', 'trivial:constant']
    """
    return [
        Response(
            task_id=task.id,
            id=f"trivial-{name}",
            text=policy(name, task, glossary),
            source=TRIVIAL + name,
        )
        for name in NAMES
    ]


def policy(name: str, task: Task, glossary: Sequence[str] = ()) -> str:
    """The text that one trivial policy gives to a task."""
    prompt = task.prompt.strip()
    first = re.split(r"(?<=[.?!])\s+", prompt)[-1] if prompt else ""
    names = list(task.truth.get("candidates") or glossary or things(task))
    choice = options(task) or ["yes", "no"]
    sure = f"Confidence: {100 // len(choice)}%"
    text = {
        "empty": "",
        "constant": _CONSTANT,
        "constant_up": "It is upregulated: it increases. Confidence: 99%.",
        "constant_down": "It is downregulated: it decreases. Confidence: 99%.",
        "parrot": prompt,
        "hedged_up": "It is upregulated. Confidence: 50%.",
        "hedged_down": "It is downregulated. Confidence: 50%.",
        "template": f'You asked: {_statement(first)} The answer to "{_statement(first)[:-1]}" '
        "is that it is upregulated. Confidence: 99%.",
        "repeat": " ".join([_statement(first)] * 20),
        "hedge": _HEDGE,
        "always_99": "I am certain. Confidence: 99%.",
        "citation_stuffing": _stuffing(task),
        "cited_copy": copies(task) or prompt,
        "cited_prefix": copies(task, 4) or " ".join(prompt.split()[:4]),
        "rubric_echo": _echo(task),
        "candidates": f"{', '.join(names[:MOST_CANDIDATES])}. Confidence: 99%.",
        "minimal_block": ".",
        "slot_echo": f"{', '.join(slots(task)) or topic(task)}.",
        "topic_frame": f"The {topic(task)} is known for its {topic(task)}, as everybody knows.",
        "first_option": f"{choice[0]}. {sure}",
        "last_option": f"{choice[-1]}. {sure}",
    }[name]
    if not task.sources or name in ("empty", "citation_stuffing"):
        return text
    ids = ",".join(list(task.sources)[:2])
    return (
        f"<answer><snippet id={ids}>{text}</snippet></answer>"
        if name in ("parrot", "rubric_echo")
        else f"<answer>{text}</answer>"
    )


def slot_frame(task: Task) -> Response:
    """Words that the prompt quotes and its topic, in one fixed sentence: it reads which words are
    named, and nothing of what is asked of them. It takes the first (and of three the last) and
    asks where nothing is quoted: of frames without words of their own from the prompts, no other
    choice by number and order passes more of the kit's instructions. No policy of NAMES: copying is
    a skill.
    """
    return Response(
        task_id=task.id,
        id="slot-frame",
        text=slotted(task, *SLOTTED[0]),
        source="slot_frame",
    )


def _statement(question: str) -> str:
    return question.rstrip("?!. ") + "."


def _stuffing(task: Task) -> str:
    ids = list(task.sources) or ["1", "2", "3"]
    every = ",".join(ids)
    return (
        "<answer>"
        + " ".join(f"<snippet id={i}>This is well documented.</snippet>" for i in ids)
        + f" <snippet id={every}>All the sources agree on this.</snippet></answer>"
    )


def _echo(task: Task) -> str:
    lines = (
        [c.text for c in task.criteria if c.weight > 0 and not c.by_code]
        or [c.text for c in task.criteria]
        or [task.prompt]
    )
    return (
        "This answer fulfils every requirement. "
        + " ".join(f"It does this: {t.rstrip('.')}." for t in lines)
        + " All criteria are met."
    )

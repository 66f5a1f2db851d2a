"""One answer, whole: what the judge was asked, what it replied, and how the reward came about."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

from ..judging import (
    JudgeSource,
    Ledger,
    LedgerLike,
    ajudge_pairs,
    borrow_ledger,
    wait,
)
from ..plots import template
from ..records import Grade, Response, Task, Verdict
from ..stats import format_number
from .composer import Composer, RewardSource, RubricComponent
from .rubric_score import CriteriaTree, worst_and_best

COLOURS = {
    r"(?m)^\S.*$": "bold",
    r"(?m)^  \S+: met\b": "green",
    r"(?m)^  \S+: unmet\b": "red",
    r"(?m)^  \S+: unknown\b": "yellow",
}


@dataclass(frozen=True, kw_only=True, repr=False)
class Explanation:
    """Why an answer earned its reward: a text, coloured by rich, folded in a notebook.

    sections : title -> lines. The last one is the arithmetic of the reward.
    """

    grade: Grade
    sections: dict[str, list[str]]

    def __repr__(self) -> str:
        return "\n\n".join(
            f"{title}\n" + indent("\n".join(lines), "  ")
            for title, lines in self.sections.items()
        )

    def __rich__(self) -> object:
        from rich.text import Text

        text = Text(repr(self))
        for pattern, style in COLOURS.items():
            text.highlight_regex(pattern, style)
        return text

    def _repr_html_(self) -> str:
        file = Path(__file__).with_suffix(".html")
        return str(template(file).render(sections=self.sections))


def explain(
    task: Task,
    answer: Response,
    *,
    judge: JudgeSource = "code",
    reward: RewardSource = "rubric",
    ledger: LedgerLike = None,
) -> Explanation:
    """Show one answer whole: the judge's messages, its reply, each verdict, and the reward line by line.

    judge, reward, ledger : as in `kit.judge` and `kit.grade`; stored verdicts are not paid again.

    >>> from kit.records import Criterion
    >>> check = {"name": "words", "max": 3}
    >>> task = Task(id="t", prompt="p", criteria=(Criterion(id="a", text="short", weight=2, check=check),))
    >>> answer = Response(task_id="t", id="r", text="yes")
    >>> print(*explain(task, answer).sections["Reward"], sep="\\n")
    a: weight 2 x value 1.000 adds 2.000
    their sum is divided by 2; required criteria gate to 0.0
    rubric: 1.000
    add rubric, by its weight: 1.000
    divide by the sum of the weights, 1: 1.000
    paid: 1.000
    """
    composer = Composer.from_config(reward)
    with borrow_ledger(ledger) as store:
        verdicts = wait(
            ajudge_pairs(
                composer.answers_to_judge([(task, answer)]),
                judge=judge,
                ledger=store,
            )
        )
        calls = _call_sections(store, verdicts)
    grade = composer.grade(task, answer, verdicts)
    paid = f"paid: {format_number(grade.score)}"
    if grade.score is None:
        paid = f"not paid: {grade.meta['excluded']}"
    return Explanation(
        grade=grade,
        sections={
            f"{task.id} / {answer.id}": [task.conversation, "", answer.text],
            **calls,
            "Verdicts": list(map(_verdict_line, verdicts)),
            "Reward": [*_arithmetic(composer, task, answer, verdicts), paid],
        },
    )


def _call_sections(
    ledger: Ledger, verdicts: Iterable[Verdict]
) -> dict[str, list[str]]:
    """The chat and the reply of each call that verdicts came from; a judge without a server made none."""
    keys: list[str] = []
    for v in verdicts:
        # A verdict may be made of votes, or come after a first one.
        parts = v.meta.get("votes", [v.meta.get("first", {})])
        keys += filter(None, [v.key, *(part.get("key") for part in parts)])
    in_ledger = ledger.get(keys)
    calls = [ledger.explain(key) for key in keys if key in in_ledger]
    # One call may have given several verdicts.
    by_number = {call["call"]: call for call in calls if "call" in call}
    sections = {}
    for n, call in enumerate(by_number.values(), 1):
        chat = map("[{role}] {content}".format_map, json.loads(call["request"]))
        sections[f"Call {n} of {call['judge']}"] = [
            *chat,
            "",
            f"[reply] {call['reply']}",
        ]
    return sections


def _verdict_line(v: Verdict) -> str:
    value, p = format_number(v.value), format_number(v.p, 2)
    return (
        f"{v.criterion_id}: {v.status}, value {value}, P(met) {p} ({v.judge}): "
        f"{v.reason or v.failure or 'no reason was given'}"
    )


def _arithmetic(
    composer: Composer, task: Task, answer: Response, verdicts: list[Verdict]
) -> Iterator[str]:
    """The terms of each rubric, the components, and the steps from them to the reward."""
    scores, steps = composer.scores_and_steps(task, answer, verdicts)
    for c in composer.components:
        score = scores[c.name]
        if not score.applies:
            yield f"{c.name}: does not apply"
            continue
        if isinstance(c, RubricComponent) and not composer.fails_format_gate(
            answer
        ):
            yield from _rubric_terms(c, task, answer, verdicts)
        yield f"{c.name}: {_both_ends(score.low, score.high)}"
    # The sum starts at 0, which says nothing where something is added.
    for step in steps[1:] or steps:
        yield f"{step.text}: {_both_ends(step.low, step.high)}"


def _rubric_terms(
    c: RubricComponent, task: Task, answer: Response, verdicts: list[Verdict]
) -> Iterator[str]:
    """What each criterion adds, unknown verdicts at their worst and at their best, and what divides the sum."""
    tree = CriteriaTree(task.criteria + c.extra_criteria(task, answer), c.how, None)
    worst, best = worst_and_best(tree.is_good, verdicts, c.use)
    terms, divisor = tree.terms_and_divisor(None, worst)
    highest, _ = tree.terms_and_divisor(None, best)
    for low, high in zip(terms, highest, strict=True):
        yield (
            f"{low.id}: weight {low.weight:g} x value {_both_ends(low.value, high.value)} "
            f"adds {_both_ends(low.contribution, high.contribution)}"
        )
    yield f"their sum is divided by {divisor:g}; required criteria gate to {c.gate_to}"


def _both_ends(low: float, high: float) -> str:
    """One number, or both ends where unknown verdicts leave it open."""
    return " to ".join(dict.fromkeys(map(format_number, (low, high))))

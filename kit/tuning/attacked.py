"""Trials under attack: is a prompt that agrees more with people also easier to fool?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from ..judge.attacks import ATTACKS, Attack
from ..judge.audit import AuditReport, audit
from ..tables import Results
from . import variants

if TYPE_CHECKING:
    from .bench import Workbench

ANSWERS = 20  # each is judged once an attack, and once a step of the ladder


def attacked(
    bench: Workbench,
    names: Sequence[str],
    *,
    answers: int = ANSWERS,
    attacks: Sequence[Attack] = ATTACKS,
) -> Results[AuditReport]:
    """The audit of each named trial on the same answers of train that people failed.

    answers : how many, the first ones of train with an unmet criterion: only these have something
    to gain. A lookup {trial: kit.judge.AuditReport} whose table has one row an attack or step.
    """
    failed = [
        r
        for r, part in zip(bench.rows, bench.part, strict=True)
        if part == "train" and r.human == 0.0
    ]
    if not failed:
        raise DataError(
            "no answer of train fails: nothing to gain",
            where="attack",
            fix="label answers of train that fail a criterion",
        )
    few = dict(list({(r.task.id, r.response.id): r for r in failed}.items())[:answers])
    ask = partial(
        audit,
        tasks=list({r.task.id: r.task for r in few.values()}.values()),
        responses=[r.response for r in few.values()],
    )
    more = {"attacks": attacks, "biases": (), "ledger": bench.ledger, "budget": bench.budget}
    found = {}
    for name in names:
        trial = bench.trials[name]
        if not variants.OWN.isdisjoint(trial.settings):
            raise DataError(
                "it changes more than the judge",
                where=f"trial {name!r}",
                fix="attack the trial whose prompt it uses",
            )
        found[name] = ask(bench.make(trial.prompt, **trial.settings), **more)
    return Results(found)


def rows(reports: Results[AuditReport]) -> list[dict[str, Any]]:
    """One row an attack or step of the ladder, one column a trial: the share that earned credit."""
    columns = [[*r.rows, *r.ladder] for r in reports.values()]
    return [
        {"": line[0].kind, "what": line[0].name}
        | {name: str(x.rate) for name, x in zip(reports, line, strict=True)}
        for line in zip(*columns, strict=True)
    ]

"""Judges that repeat what was recorded: a ledger, a JSONL file of verdicts, or recorded real judges.

Nothing here calls a model. What was not recorded is a MissingError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError, MissingError
from ..records import Criterion, Response, Task, Verdict, from_json, unknown
from .keys import ABOUT, about
from .ledger import Ledger, records

Look = Callable[[Task, Response, Criterion], "Verdict | None"]
SCORES = ("1", "2", "3", "4", "5")


class ReplayJudge:
    """name : for the verdicts. look : the recorded verdict on a criterion, None where there is none."""

    concurrency = 1

    def __init__(self, name: str, look: Look):
        self.name, self.look = name, look

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion], run: Any
    ) -> list[Verdict]:
        """One recorded verdict per criterion; MissingError where there is none."""
        return [self._one(task, response, c) for c in criteria]

    def _one(self, task: Task, response: Response, c: Criterion) -> Verdict:
        v = self.look(task, response, c)
        if v is None:
            raise MissingError(
                f"{self.name} recorded no verdict on this text",
                where=f"task {task.id!r}, answer {response.id!r}, criterion {c.id!r}",
                fix="replay what was judged, or ask a live judge (endpoint or local)",
            )
        ids = {"task_id": task.id, "response_id": response.id, "criterion_id": c.id}
        return msgspec.structs.replace(
            v, **ids, cached=True, cost=0.0, tokens_in=0, tokens_out=0
        )


def replay(
    subject: str | Path = "gpt-4o/bare",
    *,
    judge: str | None = None,
    threshold: float | None = 3.0,
) -> ReplayJudge:
    """A replay judge. subject : a ledger, a JSONL file of verdicts, or a recorded judge as "gpt-4o/bare".

    judge : whose verdicts, where a file holds those of several. threshold : the score of 1 to 5 from which
    a recorded judge's verdict is "met"; None gives levels.
    """
    path = Path(subject)
    if path.suffix not in (".sqlite", ".db", ".jsonl", ".gz"):
        return real_judge(str(subject), threshold=threshold)
    if not path.is_file():
        raise MissingError(
            "there is no such recording", where=str(path), fix="give its path"
        )
    if path.suffix in (".sqlite", ".db"):
        with Ledger(path) as book:
            return from_verdicts(book.verdicts(judge), where=str(path))
    rows = [
        (where, row) for where, row in records(path) if row.get("record") == "verdict"
    ]
    for _, row in rows:
        row.pop("call", None)  # of an exported ledger
    made = [from_json(row, Verdict, where=where) for where, row in rows]
    return from_verdicts([v for v in made if judge in (None, v.judge)], where=str(path))


def from_verdicts(
    verdicts: Iterable[Verdict], *, where: str = "verdicts"
) -> ReplayJudge:
    """Replay verdicts of one judge: by their texts where they have a ledger's key, else by their ids."""
    table: dict[Any, Verdict] = {}
    names: set[str] = set()
    for v in verdicts:
        names.add(v.judge)
        # A key names the texts; ids alone would also match an answer that was edited.
        old = table.setdefault((v.key or "")[ABOUT] or v.ids, v)
        if len(names) > 1 or (old.status, old.value, old.p) != (v.status, v.value, v.p):
            raise DataError(
                f"there are several verdicts on {' / '.join(v.ids)}, by {', '.join(sorted(names))}",
                where=where,
                fix="name one judge: {'replay': FILE, 'judge': NAME}",
            )
    if not table:
        raise MissingError(
            "no verdict of that judge is recorded", where=where, fix="name another"
        )

    def look(task: Task, response: Response, c: Criterion) -> Verdict | None:
        return table.get(about(task, response, c)) or table.get(
            (task.id, response.id, c.id)
        )

    return ReplayJudge(f"replay:{names.pop()}", look)


def real_judge(name: str, *, threshold: float | None = 3.0) -> ReplayJudge:
    """A recorded real judge by its name and prompt, "gpt-4o/bare" or "gpt-4o/parity".

    Verdicts are found by their texts. P(met) is the probability of the scores from the threshold on.
    """
    from ..data import recorded_judges

    who, _, form = name.partition("/")
    if form not in ("", "bare", "parity"):
        raise DataError(
            f"there is no prompt {form!r}", where=f"replay:{name}", fix="bare or parity"
        )
    judges, form = recorded_judges(), form or "bare"
    who = judges.judge(who)

    def look(task: Task, response: Response, c: Criterion) -> Verdict | None:
        reply = judges.reply(who, question(task, response, c, form))
        ids = {"task_id": task.id, "response_id": response.id, "criterion_id": c.id}
        return reply and _scored(reply, {**ids, "judge": f"{who}/{form}"}, threshold)

    return ReplayJudge(f"replay:{who}/{form}", look)


def question(task: Task, response: Response, c: Criterion, form: str) -> str:
    """The user message that the recorded judges read."""
    text = f"Query: {task.prompt}\n\nResponse: {response.text}\n\nUnit Test: {c.text}"
    rubric, reference = c.meta.get("rubric", ""), task.truth.get("reference_answer", "")
    end = f"\n\nRubric: {rubric}\n\nReference Answer: {reference}"
    return text + end if form == "parity" else text


def _scored(reply: Any, fields: dict[str, Any], threshold: float | None) -> Verdict:
    """A verdict from a score of 1 to 5. The published scores are the first such digit of the reply."""
    digit = next((c for c in reply.text if c in SCORES), None)
    if digit is None:
        reason = f"no score in {reply.text[:60]!r}"
        return unknown(failure="parse", reason=reason, **fields)
    score, mass = int(digit), {}
    positions = [
        top
        for token, top in zip(reply.tokens, reply.top, strict=False)
        if token.strip() == digit
    ]
    for token, x in positions[0].items() if positions else ():
        if token.strip() in SCORES:
            place = int(token.strip())
            mass[place] = mass.get(place, 0.0) + math.exp(x)
    total = sum(mass.values())
    fields |= {"reason": f"score {score} of 5", "meta": {"score": score}}
    if threshold is None:
        level = sum((k - 1) / 4 * m for k, m in mass.items()) / total if total else None
        return Verdict(status="level", value=(score - 1) / 4, p=level, **fields)
    p = sum(m for k, m in mass.items() if k >= threshold) / total if total else None
    return Verdict(status="met" if score >= threshold else "unmet", p=p, **fields)

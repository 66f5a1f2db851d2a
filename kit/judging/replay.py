"""Judges that repeat what was recorded: a ledger, a JSONL file of verdicts, or recorded real
judges.

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
from .ledger import Ledger, read_rows

Look = Callable[[Task, Response, Criterion], "Verdict | None"]


class ReplayJudge:
    """name : for the verdicts.

    look : the recorded verdict on a criterion, None where there is none.
    """

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
        return msgspec.structs.replace(v, **ids, cached=True, cost=0.0, tokens_in=0, tokens_out=0)


def replay(
    subject: str | Path, *, judge: str | None = None, threshold: float | None = 3.0
) -> ReplayJudge:
    """A replay judge. subject : a ledger, a JSONL file of verdicts, or a recorded judge as
    "gpt-4o/bare".

    judge : whose verdicts, where a file holds those of several. threshold : the score of 1
        to 5 from which a
    recorded judge says met; None gives levels.
    """
    path = Path(subject)
    if path.suffix in (".sqlite", ".db"):
        with Ledger(path, readonly=True) as book:
            return from_verdicts(book.verdicts(judge), where=str(subject))
    if ".jsonl" in path.suffixes:
        rows = ((where, row) for where, row in read_rows(path) if row.get("record") == "verdict")
        made = (from_json(_plain(row), Verdict, where=where) for where, row in rows)
        chosen = (v for v in made if judge in (None, v.judge))
        return from_verdicts(chosen, where=str(subject))
    return recorded(str(subject), threshold=threshold)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if k not in ("call", "record")}


def from_verdicts(verdicts: Iterable[Verdict], *, where: str = "verdicts") -> ReplayJudge:
    """Replay verdicts of one judge:

    by their texts where they have a ledger's key, else by their ids.
    """
    table: dict[Any, Verdict] = {}
    names = set()
    for v in verdicts:
        names.add(v.judge)
        place = v.key[ABOUT] if v.key else v.ids
        old = table.setdefault(place, v)
        if len(names) > 1 or (old.status, old.value, old.p) != (v.status, v.value, v.p):
            raise DataError(
                f"there are several verdicts on {' / '.join(v.ids)}; judges: {', '.join(sorted(names))}",
                where=where,
                fix="name one judge: {'replay': FILE, 'judge': NAME}",
            )
    if not table:
        raise MissingError("no verdict of that judge is recorded", where=where, fix="name another")

    def look(task: Task, response: Response, c: Criterion) -> Verdict | None:
        return table.get(about(task, response, c)) or table.get((task.id, response.id, c.id))

    return ReplayJudge(f"replay:{names.pop()}", look)


def recorded(name: str, *, threshold: float | None = 3.0) -> ReplayJudge:
    """A recorded real judge by its name and prompt, "gpt-4o/bare" or "gpt-4o/parity".

    Verdicts are found by their texts. With a threshold P(met) is the probability of the scores
    from it on.
    """
    from ..data import recorded_judges

    who, _, form = name.partition("/")
    if form not in ("", "bare", "parity"):
        raise DataError(
            f"there is no prompt {form!r}", where=f"replay:{name}", fix="bare or parity"
        )
    judges = recorded_judges()
    who = judges.judge(who)

    def look(task: Task, response: Response, c: Criterion) -> Verdict | None:
        reply = judges.reply(who, question(task, response, c, form or "bare"))
        ids = (task.id, response.id, c.id)
        return None if reply is None else _scored(reply, ids, f"{who}/{form or 'bare'}", threshold)

    return ReplayJudge(f"replay:{who}/{form or 'bare'}", look)


def question(task: Task, response: Response, c: Criterion, form: str) -> str:
    """The user message that the recorded judges saw."""
    text = f"Query: {task.prompt}\n\nResponse: {response.text}\n\nUnit Test: {c.text}"
    if form == "parity":
        reference = task.truth.get("reference_answer", "")
        text += f"\n\nRubric: {c.meta.get('rubric', '')}\n\nReference Answer: {reference}"
    return text


def _scored(reply: Any, ids: tuple[str, str, str], judge: str, threshold: float | None) -> Verdict:
    """A verdict from a recorded score of 1 to 5.

    The published scores are the first such digit of the reply.
    """
    score = next((int(c) for c in reply.text if c in "12345"), None)
    if score is None:
        return unknown(*ids, "parse", judge=judge, reason=f"no score in {reply.text[:60]!r}")
    mass = {}
    for token, top in zip(reply.tokens, reply.top, strict=False):
        # The first token that is the score; its candidates are the other scores.
        if token.strip() == str(score):
            mass = {
                int(t.strip()): math.exp(x) for t, x in top.items() if t.strip() in tuple("12345")
            }
            break
    total = sum(mass.values())
    shared = {"task_id": ids[0], "response_id": ids[1], "criterion_id": ids[2], "judge": judge}
    shared |= {"reason": f"score {score} of 5", "meta": {"score": score}}
    if threshold is None:
        expected = sum(k * m for k, m in mass.items()) / total if total else None
        level = None if expected is None else (expected - 1) / 4
        return Verdict(status="level", value=(score - 1) / 4, p=level, **shared)
    above = sum(m for k, m in mass.items() if k >= threshold)
    p = min(1.0, above / total) if total else None
    return Verdict(status="met" if score >= threshold else "unmet", p=p, **shared)

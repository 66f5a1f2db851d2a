"""The recorded 1.5B judge of `data/judge_recording.jsonl.gz`: verdicts under ten prompts, and the
rewrites that a search asked for. Nothing is loaded and nothing is asked.
"""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Sequence
from typing import Any

from ..errors import DataError, MissingError
from ..records import Criterion, Response, Task, Verdict
from ..system import paths

FIELDS = ("status", "p", "reason", "failure", "tokens_in", "tokens_out")


@functools.cache
def recording() -> dict[str, list[dict[str, Any]]]:
    """The rows of the file by their field "record": judge, prompt, rewrite, verdict."""
    out: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(
        paths.data("judge_recording.jsonl.gz"), "rt", encoding="utf-8"
    ) as lines:
        for line in lines:
            row = json.loads(line)
            out.setdefault(row.pop("record"), []).append(row)
    return out


@functools.cache
def _verdicts() -> dict[tuple[str, ...], dict[str, Any]]:
    rows = recording()["verdict"]
    return {(r["by"], r["prompt"], r["answer"], r["criterion"]): r for r in rows}


class RecordedJudge:
    """Repeat what the 1.5B judge replied.

    system : a prompt that was recorded (default: the baseline's). how : "all" criteria in one
    call, or "one". Verdicts are found by their texts; what was not recorded is a MissingError.

    >>> judge = RecordedJudge()
    >>> judge.name, judge.system[:30]
    ('replay:small', 'You check an answer against cr')
    """

    concurrency = 1

    def __init__(
        self, *, system: str | None = None, how: str = "all", name: str | None = None
    ):
        if how not in ("all", "one"):
            raise DataError(
                f"how is {how!r}", where="judge replay:small", fix='"all" or "one"'
            )
        prompts = recording()["prompt"]
        self.system = (prompts[0]["system"] if system is None else system).strip()
        self.how, self.name = how, name or "replay:small"
        names = {(p["system"].strip(), p["how"]): p["name"] for p in prompts}
        self.prompt = names.get((self.system, how), "a prompt of your own")
        self.rewrites = [row["reply"] for row in recording()["rewrite"]]

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion], run: Any
    ) -> list[Verdict]:
        """One recorded verdict per criterion, in order."""
        return [self._one(task, response, c) for c in criteria]

    def _one(self, task: Task, response: Response, c: Criterion) -> Verdict:
        row = _verdicts().get((self.prompt, task.prompt, response.text, c.text))
        if row is None:
            raise MissingError(
                f"the recorded judge was never asked this, under {self.prompt}",
                where=f"task {task.id!r}, answer {response.id!r}, criterion {c.id!r}",
                fix='run `kit fetch judge` once (1.1 GB), then judge="small"; or an endpoint',
            )
        fields = {name: row[name] for name in FIELDS if name in row}
        ids = {"task_id": task.id, "response_id": response.id, "criterion_id": c.id}
        return Verdict(**ids, **fields, judge=self.name, cached=True)

    async def complete(self, messages: Any, schema: Any, run: Any, key: str) -> str:
        """The recorded rewrites, one after the other."""
        if not self.rewrites:
            raise MissingError(
                "no further rewrite was recorded",
                where="judge replay:small",
                fix="search with the recorded rows and seed, or with a live judge",
            )
        return self.rewrites.pop(0)

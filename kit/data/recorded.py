"""Recorded real judges with human labels, offline: the sdist flakyjudge 0.1.0 (MIT).

998 answers (of FLASK and BiGGen-Bench), each with one criterion and human scores of 1 to 5, scored by five judges
under two prompts: "bare" (the criterion alone) and "parity" (with a rubric and a reference answer). Every raw reply is
in a database, with its top log-probabilities, tokens and cost. Nothing of the package is run.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..records import Criterion, Response, Task, Verdict, fingerprint
from ..system.settings import check_names
from .downloads import recordings_folder
from .files import read_rows
from .load import TaskSet

# The system message is a part of the key of every reply, so it may not change.
SYSTEM = Path(__file__).with_name("recorded_system.txt").read_text("utf-8")
# Judge -> the model's full name, a part of the key of every reply.
MODELS = {
    "gpt-4o": "gpt-4o-2024-11-20",
    "gpt-4o-mini": "gpt-4o-mini-2024-07-18",
    "claude-sonnet": "claude-sonnet-4-6",
    "claude-haiku": "claude-haiku-4-5-20251001",
    "llama-8b": "meta-llama/llama-3.1-8b-instruct",
}


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A recorded reply. steps : (token, candidate -> log-probability); empty where there are none."""

    text: str
    steps: tuple[tuple[str, Mapping[str, float]], ...] = ()


@dataclass(frozen=True)
class RecordedJudges:
    """The recordings in a folder. Replay a judge with `kit.judge(tasks, judge="replay:gpt-4o/bare")`."""

    folder: Path

    @cached_property
    def items(self) -> dict[str, dict[str, Any]]:
        """Item id -> query, response, criterion, rubric, human scores."""
        rows = read_rows(self.folder / "items_e1.jsonl")
        return {row["item_id"]: row for _, row in rows}

    @cached_property
    def database(self) -> sqlite3.Connection:
        """The recorded replies, read-only and without a journal: the cache may be on a read-only disk."""
        return sqlite3.connect(
            f"{(self.folder / 'responses.db').as_uri()}?mode=ro&immutable=1",
            uri=True,
            check_same_thread=False,
        )

    def judge(self, name: str) -> str:
        """The name, where there is such a judge; else DataError with the nearest one."""
        check_names([name], MODELS, where="recorded judges")
        return name

    def reply(self, judge: str, prompt: str) -> Reply | None:
        """The recorded reply to a user message; None where there is none."""
        # The key of a reply is a hash of the whole request, in the recorder's own words.
        is_claude = self.judge(judge).startswith("claude")
        request = {
            "provider": "anthropic" if is_claude else "openai-compat",
            "model": MODELS[judge],
            "system": SYSTEM,
            "prompt": prompt,
            "temperature": 0.0,
            "max_tokens": 8,
            "logprobs": not is_claude,
            "repeat_idx": 0,
        }
        text = json.dumps(request, sort_keys=True, ensure_ascii=False)
        key = hashlib.sha256(text.encode()).hexdigest()
        row = self.database.execute(
            "SELECT response_json FROM responses WHERE key = ?", (key,)
        ).fetchone()
        return None if row is None else _parse_reply(*row)

    def taskset(self) -> TaskSet:
        """The items as tasks with one criterion "c1", the answer "r", and the raters' labels.

        Task.group is a fingerprint of the query, so that answers to one query are one cluster.
        """
        made = TaskSet(format="recorded", path=self.folder)
        for name, item in self.items.items():
            made.tasks.append(_task_of_item(name, item))
            made.responses.append(
                Response(task_id=name, id="r", text=item["response"])
            )
            made.verdicts.extend(_labels_of_item(name, item))
        return made


def _task_of_item(name: str, item: Mapping[str, Any]) -> Task:
    levels = tuple(
        line
        for line in str(item["rubric"]).splitlines()
        if line.startswith("Score ")
    )
    # FLASK's items have no rubric of levels.
    scale: Any = {"scale": "ordinal", "levels": levels} if len(levels) > 1 else {}
    return Task(
        id=name,
        prompt=item["query"],
        criteria=(
            Criterion(
                id="c1",
                text=item["natural_unit_test"],
                meta={"rubric": item["rubric"]},
                **scale,
            ),
        ),
        kind=item["dataset"],
        group="q-" + fingerprint(item["query"])[:12],
        truth={"reference_answer": item["reference_answer"]},
    )


def _labels_of_item(name: str, item: Mapping[str, Any]) -> Iterator[Verdict]:
    """A level for each rater's score of 1 to 5; another score (-1 is there twice) is unknown."""
    scores = item["human_score"]
    # BiGGen-Bench has one rater, FLASK three.
    for k, score in enumerate(scores if isinstance(scores, list) else [scores], 1):
        about: Any = {"status": "unknown", "failure": "abstain"}
        if 1 <= score <= 5:
            about = {"status": "level", "value": (score - 1) / 4}
        yield Verdict(
            task_id=name,
            response_id="r",
            criterion_id="c1",
            judge=f"human:r{k}",
            meta={"score": score},
            **about,
        )


def _parse_reply(body: str) -> Reply:
    raw = json.loads(body)
    if "content" in raw:  # Anthropic's form
        return Reply(
            text="".join(
                b["text"] for b in raw["content"] if b.get("type") == "text"
            ),
        )
    choice = raw["choices"][0]
    steps = (choice.get("logprobs") or {}).get("content") or []
    return Reply(
        text=choice["message"].get("content") or "",
        steps=tuple(
            (
                s["token"],
                {t["token"]: t["logprob"] for t in s.get("top_logprobs") or []},
            )
            for s in steps
        ),
    )


def recorded_judges() -> RecordedJudges:
    """Five real judges with their recorded replies and people's labels on 998 answers.

    The first call fetches 22 MB; later ones read the cache. `.taskset()` gives the answers with the labels.
    MissingError where nothing is in the cache and nothing can be fetched.
    """
    return RecordedJudges(recordings_folder())

"""Real judges with human labels, offline: the recordings in the sdist flakyjudge 0.1.0 (MIT).

998 items (FLASK and BiGGen-Bench: query, response, criterion, rubric, human scores 1-5), scored by
five judges under two
prompts ("bare": the criterion alone; "parity": with rubric and reference answer), with every raw
reply in a database:
text, top log-probabilities, tokens, cost. Nothing of the package is run; replies are read by
sqlite, read-only.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import DataError, MissingError
from ..records import Criterion, Response, Task, Verdict, fingerprint, unknown
from ..settings.read import closest
from ..system import paths, processes, progress
from .fetch import package, unpack
from .tables import read_rows
from .taskset import TaskSet

SHA256 = "f7e139a4df44a6c8034f654cfe8c02d2e936a5a1536f93ebaeb99f3f3e2d2462"
PROMPTS = ("bare", "parity")
SCORES = "e3_scores.parquet"
DATABASE = "responses.db"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A recorded reply. top : per token, candidate -> log-probability; empty where the provider
    gave none."""

    text: str
    model: str
    tokens: tuple[str, ...] = ()
    top: tuple[Mapping[str, float], ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    stopped: str | None = None


@dataclass(frozen=True, kw_only=True)
class RecordedJudges:
    """The recordings. A judge is replayed: `kit.judge(tasks, judge={"replay": "gpt-4o/bare"})`.

    items : item id -> the item's row; judges : their names; paraphrases : scores of reworded
        criteria, as plain rows.
    """

    folder: Path
    items: Mapping[str, Mapping[str, Any]]
    paraphrases: tuple[Mapping[str, Any], ...]
    models: Mapping[str, str] = field(default_factory=dict)

    @property
    def judges(self) -> tuple[str, ...]:
        """Names of the judges."""
        return tuple(self.models)

    def judge(self, name: str) -> str:
        """The full name of a judge; "sonnet" and "llama" are understood."""
        hits = [
            j
            for j in self.models
            if name in (j, j.removeprefix("claude-"), j.partition("-")[0], self.models[j])
        ]
        if len(hits) != 1:
            raise DataError(
                f"no recorded judge is called {name!r}",
                where="recorded judges",
                fix=f"use one of {', '.join(self.models)}"
                + (f"; nearest: {n}" if (n := closest(name, self.models)) else ""),
            )
        return hits[0]

    def reply(
        self, judge: str, prompt_text: str, *, temperature: float = 0.0, repeat: int = 0
    ) -> Reply | None:
        """The recorded reply to a user message, or None when there is none."""
        judge = self.judge(judge)
        anthropic = judge.startswith("claude")
        request = {
            "provider": "anthropic" if anthropic else "openai-compat",
            "model": self.models[judge],
            "system": SYSTEM,
            "prompt": prompt_text,
            "temperature": temperature,
            "max_tokens": 8,
            "logprobs": not anthropic,
            "repeat_idx": repeat,
        }
        key = hashlib.sha256(
            json.dumps(request, sort_keys=True, ensure_ascii=False).encode()
        ).hexdigest()
        row = (
            _connect(self.folder / DATABASE)
            .execute(
                "SELECT response_json, input_tokens, output_tokens, cost_usd, model FROM "
                "responses WHERE key = ?",
                (key,),
            )
            .fetchone()
        )
        return None if row is None else _reply(*row)

    def human_verdicts(self, *, threshold: float | None = None) -> list[Verdict]:
        """The human labels (a score outside 1-5, as -1, is unknown): per rater a level (score -
        1)/4, or with a `threshold` one met / unmet of the mean per item."""
        out = []
        for i, item in self.items.items():
            if threshold is not None:
                mean = float(item["label"])
                out.append(
                    unknown(i, "r", "c1", "abstain", judge="human")
                    if mean < 1
                    else Verdict(
                        task_id=i,
                        response_id="r",
                        criterion_id="c1",
                        judge="human",
                        status="met" if mean >= threshold else "unmet",
                        meta={"score": mean},
                    )
                )
                continue
            for k, s in enumerate(_scores(item), 1):
                out.append(
                    unknown(i, "r", "c1", "abstain", judge=f"human:r{k}", meta={"score": s})
                    if not 1 <= s <= 5
                    else Verdict(
                        task_id=i,
                        response_id="r",
                        criterion_id="c1",
                        status="level",
                        value=(s - 1) / 4,
                        judge=f"human:r{k}",
                        meta={"score": s},
                    )
                )
        return out

    def taskset(self) -> TaskSet:
        """Items as tasks with one criterion ("c1"), the answer as response "r", and the raters'
        labels.

        Task.group is a fingerprint of the query, so that answers to one query stay together.
        """
        tasks = []
        for i, item in self.items.items():
            levels = tuple(
                line for line in str(item["rubric"]).splitlines() if line.startswith("Score ")
            )
            c = Criterion(
                id="c1",
                text=item["natural_unit_test"],
                scale="ordinal" if len(levels) > 1 else "binary",
                levels=levels if len(levels) > 1 else (),
                meta={"rubric": item["rubric"]},
            )
            tasks.append(
                Task(
                    id=i,
                    prompt=item["query"],
                    criteria=(c,),
                    kind=item["dataset"],
                    group="q-" + fingerprint(item["query"])[:12],
                    truth={"reference_answer": item["reference_answer"]},
                )
            )
        return TaskSet(
            tasks=tasks,
            responses=[
                Response(task_id=i, id="r", text=item["response"]) for i, item in self.items.items()
            ],
            verdicts=self.human_verdicts(),
            format="recorded",
            rows=len(tasks),
        )


SYSTEM = (
    "You are evaluating whether a response satisfies a unit test criterion. Score how well "
    "the response satisfies the unit "
    "test on a scale of 1 to 5, where 1 means it clearly fails the criterion and 5 means it "
    "clearly satisfies it. Reply with "
    "a single digit from 1 to 5 and nothing else."
)  # part of the key of every recorded reply


def _scores(item: Mapping[str, Any]) -> tuple[float, ...]:
    s = item["human_score"]
    return tuple(float(x) for x in (s if isinstance(s, list) else [s]))


@lru_cache(maxsize=4)
def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
    )


def _reply(
    body: str, tokens_in: int | None, tokens_out: int | None, cost: float | None, model: str
) -> Reply:
    raw = json.loads(body)
    shared = {
        "model": model,
        "tokens_in": tokens_in or 0,
        "tokens_out": tokens_out or 0,
        "cost": cost or 0.0,
    }
    if "content" in raw:
        return Reply(
            text="".join(b.get("text", "") for b in raw["content"] if b.get("type") == "text"),
            stopped=raw.get("stop_reason"),
            **shared,
        )
    choice = raw["choices"][0]
    steps = (choice.get("logprobs") or {}).get("content") or []
    return Reply(
        text=choice["message"].get("content") or "",
        stopped=choice.get("finish_reason"),
        tokens=tuple(s["token"] for s in steps),
        top=tuple({t["token"]: t["logprob"] for t in s.get("top_logprobs") or []} for s in steps),
        **shared,
    )


def prepare() -> Path:
    """The unpacked recordings in the cache (150 MB); fetched and unpacked once."""
    folder = paths.home() / "recorded" / f"flakyjudge-{SHA256[:12]}"
    done = folder / "complete"
    if done.is_file():
        return folder
    with processes.alone(folder.parent, folder.name, progress.say):
        if done.is_file():
            return folder
        archive = package("flakyjudge", "0.1.0", sha256=SHA256, kind="sdist")
        unpack(
            archive,
            folder,
            members=[
                "*/data/items_e1.jsonl",
                "*/data/paraphrases.jsonl",
                "*/data/cache/responses.db.gz",
                f"*/results/{SCORES}",
            ],
        )
        with (
            gzip.open(folder / f"{DATABASE}.gz", "rb") as f,
            paths.whole(folder / DATABASE) as part,
            part.open("wb") as out,
        ):
            shutil.copyfileobj(f, out, 1 << 20)
        (folder / f"{DATABASE}.gz").unlink()
        done.write_text(SHA256)
    return folder


def load() -> RecordedJudges:
    """The recorded judges; the first call fetches 21.5 MB and unpacks it, later ones read the cache
    (about a second).

    Raises MissingError when it is not cached and cannot be fetched.
    """
    return _load(prepare())


@lru_cache(maxsize=2)
def _load(folder: Path) -> RecordedJudges:
    items = {row["item_id"]: row for _, row in read_rows(folder / "items_e1.jsonl")}
    reworded = [row for _, row in read_rows(folder / SCORES)]
    if not items or not reworded:
        raise MissingError(
            "the recordings in the cache are empty",
            where=str(folder),
            fix="delete that folder and fetch again",
        )
    return RecordedJudges(
        folder=folder,
        items=items,
        paraphrases=tuple(reworded),
        models={r["judge"]: r["model"] for r in reworded},
    )

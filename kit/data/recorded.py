"""Recorded real judges with human labels, offline: the sdist flakyjudge 0.1.0 (MIT).

998 answers (of FLASK and BiGGen-Bench), each with one criterion and human scores of 1 to 5, scored by five judges
under two prompts: "bare" (the criterion alone) and "parity" (with a rubric and a reference answer). Every raw reply is
in a database, with its top log-probabilities, tokens and cost. Nothing of the package is run.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..records import Criterion, Response, Task, Verdict, fingerprint, unknown
from ..system import paths
from ..system.settings import nearest
from .downloads import lock, package, unpack
from .files import rows_of
from .taskset import TaskSet

SHA256 = "f7e139a4df44a6c8034f654cfe8c02d2e936a5a1536f93ebaeb99f3f3e2d2462"
FILES = ("data/items_e1.jsonl", "data/cache/responses.db.gz", "results/e3_scores.parquet")
# A part of the key of every recorded reply, so it may not change.
SYSTEM = Path(__file__).with_name("recorded_system.txt").read_text("utf-8")


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A recorded reply. top : for each token, candidate -> log-probability; empty where there are none."""

    text: str
    tokens: tuple[str, ...] = ()
    top: tuple[Mapping[str, float], ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class RecordedJudges:
    """The recordings in a folder. Replay a judge with `kit.judge(tasks, judge="replay:gpt-4o/bare")`."""

    folder: Path

    @cached_property
    def items(self) -> dict[str, dict[str, Any]]:
        """Item id -> query, response, criterion, rubric, human scores."""
        return {row["item_id"]: row for row in _rows(self.folder / Path(FILES[0]).name)}

    @cached_property
    def scores(self) -> Any:
        """A DataFrame of the scores that the judges gave, of reworded criteria too."""
        import pandas as pd

        return pd.read_parquet(self.folder / Path(FILES[2]).name)

    @cached_property
    def models(self) -> dict[str, str]:
        """Judge -> the model's full name."""
        rows = self.scores[["judge", "model"]].drop_duplicates()
        return dict(zip(rows["judge"], rows["model"], strict=True))

    def judge(self, name: str) -> str:
        """The name of a judge; "sonnet" is short for "claude-sonnet", "llama" for "llama-8b"."""
        short = {j for j in self.models if name in (j.removeprefix("claude-"), j.partition("-")[0])}
        hits = [name] if name in self.models else sorted(short)
        if len(hits) != 1:
            raise DataError(f"no recorded judge is called {name!r}", fix=nearest(name, self.models))
        return hits[0]

    def reply(
        self, judge: str, prompt: str, *, temperature: float = 0.0, repeat: int = 0
    ) -> Reply | None:
        """The recorded reply to a user message; None where there is none."""
        name = self.judge(judge)
        is_claude = name.startswith("claude")
        request = {
            "provider": "anthropic" if is_claude else "openai-compat",
            "model": self.models[name],
            "system": SYSTEM,
            "prompt": prompt,
            "temperature": temperature,
            "max_tokens": 8,
            "logprobs": not is_claude,
            "repeat_idx": repeat,
        }
        text = json.dumps(request, sort_keys=True, ensure_ascii=False)
        row = _database(self.folder / "responses.db").execute(
            "SELECT response_json, input_tokens, output_tokens, cost_usd FROM responses WHERE key = ?",
            (hashlib.sha256(text.encode()).hexdigest(),),
        )
        found = row.fetchone()
        return None if found is None else _reply(*found)

    def taskset(self) -> TaskSet:
        """The items as tasks with one criterion "c1", the answer "r", and the raters' labels.

        Task.group is a fingerprint of the query, so that answers to one query are one cluster.
        """
        return TaskSet(
            tasks=[_task(name, item) for name, item in self.items.items()],
            responses=[
                Response(task_id=name, id="r", text=item["response"])
                for name, item in self.items.items()
            ],
            verdicts=[v for name, item in self.items.items() for v in _labels(name, item)],
            format="recorded",
            path=self.folder,
        )


def _rows(path: Path) -> list[dict[str, Any]]:
    out = []
    for where, row in rows_of(path):
        if isinstance(row, DataError):
            raise DataError(row.what, where=where, fix="delete the folder and fetch again")
        out.append(row)
    return out


def _task(name: str, item: Mapping[str, Any]) -> Task:
    levels = tuple(s for s in str(item["rubric"]).splitlines() if s.startswith("Score "))
    scale: dict[str, Any] = {"scale": "ordinal", "levels": levels} if len(levels) > 1 else {}
    one = Criterion(
        id="c1", text=item["natural_unit_test"], meta={"rubric": item["rubric"]}, **scale
    )
    return Task(
        id=name,
        prompt=item["query"],
        criteria=(one,),
        kind=item["dataset"],
        group="q-" + fingerprint(item["query"])[:12],
        truth={"reference_answer": item["reference_answer"]},
    )


def _labels(name: str, item: Mapping[str, Any]) -> list[Verdict]:
    """A level for each rater's score of 1 to 5; another score (-1 is there twice) is unknown."""
    scores = item["human_score"] if isinstance(item["human_score"], list) else [item["human_score"]]
    out = []
    for k, score in enumerate(scores, 1):
        ids, about = (name, "r", "c1"), {"judge": f"human:r{k}", "meta": {"score": score}}
        if 1 <= score <= 5:
            task_id, response_id, criterion_id = ids
            out.append(
                Verdict(
                    task_id=task_id,
                    response_id=response_id,
                    criterion_id=criterion_id,
                    status="level",
                    value=(score - 1) / 4,
                    **about,
                )
            )
        else:
            out.append(unknown(*ids, "abstain", **about))
    return out


@lru_cache(maxsize=2)
def _database(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
    )


def _reply(body: str, tokens_in: int | None, tokens_out: int | None, cost: float | None) -> Reply:
    raw = json.loads(body)
    usage = {"tokens_in": tokens_in or 0, "tokens_out": tokens_out or 0, "cost": cost or 0.0}
    if "content" in raw:  # Anthropic's form
        text = "".join(b.get("text", "") for b in raw["content"] if b.get("type") == "text")
        return Reply(text=text, **usage)
    choice = raw["choices"][0]
    steps = (choice.get("logprobs") or {}).get("content") or []
    return Reply(
        text=choice["message"].get("content") or "",
        tokens=tuple(s["token"] for s in steps),
        top=tuple({t["token"]: t["logprob"] for t in s.get("top_logprobs") or []} for s in steps),
        **usage,
    )


def prepare() -> Path:
    """The folder with the unpacked recordings (150 MB), fetched once (22 MB)."""
    folder = paths.home() / "recorded" / f"flakyjudge-{SHA256[:12]}"
    with lock(folder):
        if not (folder / "complete").is_file():
            archive = package("flakyjudge", "0.1.0", sha256=SHA256, kind="sdist")
            unpack(archive, folder, [f"*/{name}" for name in FILES])
            packed = folder / "responses.db.gz"
            with gzip.open(packed) as source, (folder / "responses.db").open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            packed.unlink()
            (folder / "complete").write_text(SHA256)
    return folder


@lru_cache(maxsize=1)
def _opened(folder: Path) -> RecordedJudges:
    return RecordedJudges(folder)


def recorded_judges() -> RecordedJudges:
    """Five real judges with their recorded replies and people's labels on 998 answers.

    The first call fetches 22 MB; later ones read the cache. `.taskset()` gives the answers with the labels.
    MissingError where nothing is in the cache and nothing can be fetched.
    """
    return _opened(prepare())

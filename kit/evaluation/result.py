"""What a training left behind: gain, steps, answers, and one page that shows them.

It writes steps.jsonl, a step a line, and rollouts.jsonl, an answer a line, while it runs (`Log`).
"""

from __future__ import annotations

import json
import math
import shlex
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from ..data import TaskSet
from ..errors import DataError, MissingError
from ..judging import format_cost
from ..plots import Card, Section, lines, page
from ..records import Grade, Response, Run, Task, by_criterion, count_of, group
from ..records.tables import plain, table
from ..stats import Estimate, format_number
from ..system import paths
from .heldout import (
    WHEN,
    AnswerValues,
    Evaluation,
    calibration,
    failures,
    gain,
    read_evaluation,
)

PAGE, HELDOUT, METRICS, MARK, CURVE = (
    "training.html",
    "heldout.jsonl",
    "metrics.json",
    "settings.json",
    "curve.json",
)
STEPS, ROLLOUTS = "steps.jsonl", "rollouts.jsonl"
GAIN = "Gain on held-out prompts"
NOTHING = "nothing is held out, so no gain is measured"
REWARD_TOLERANCE = 1e-6  # rewards of a group that differ by less are equal
# rows of the page's table of answers: at once, and with those that are folded
PAGE_ROWS, MAX_PAGE_ROWS = 12, 60
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Result:
    """A finished training.

    folder : settings.json, heldout.jsonl, metrics.json, judge.json, steps.jsonl, rollouts.jsonl, eval_*.json, adapter/,
        training.html, curve.json (a figure).
    metrics : what metrics.json holds. judge_calls and judge_cost (US dollars) are those on the model's answers, in the
        forecast and the evaluations, too; calls without a reply count, those on policies without skill do not.
    before, after : evaluations on the held-out prompts, None where nothing is held out.
    stages : of a chain, the results of its stages.
    """

    folder: Path
    metrics: dict[str, Any]
    heldout: tuple[Task, ...] = ()
    before: Evaluation | None = None
    after: Evaluation | None = None
    stages: tuple[Result, ...] = ()

    @classmethod
    def read(cls, folder: str | Path) -> Result:
        """The finished training in a folder; of a chain, with its stages."""
        folder = Path(folder)
        if not (folder / METRICS).exists():
            raise MissingError(
                "there is no finished run in this folder",
                where=str(folder),
                fix="kit run NOTEBOOK, or kit train CONFIG --resume",
            )
        # 10_grpo comes after 9_dpo
        parts = sorted(
            map(attrgetter("parent"), folder.glob(f"[0-9]*_*/{METRICS}")),
            key=lambda part: int(part.name.split("_")[0]),
        )
        first, last = (parts or [folder])[0], (parts or [folder])[-1]
        return cls(
            folder=folder,
            metrics=json.loads((folder / METRICS).read_text("utf-8")),
            heldout=tuple(
                msgspec.json.Decoder(Task).decode_lines(
                    (first / HELDOUT).read_bytes()
                )
            ),
            # SFT and DPO without held-out prompts have no evaluations
            before=read_evaluation(first, "before"),
            after=read_evaluation(last, "after"),
            stages=tuple(map(cls.read, parts)),
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the training (of a chain: of its last stage)."""
        return dict(
            json.loads((self.adapter.parent / MARK).read_text("utf-8"))["settings"]
        )

    @property
    def adapter(self) -> Path:
        """The folder of the adapter (of a chain: of its last stage)."""
        return self.stages[-1].adapter if self.stages else self.folder / "adapter"

    @property
    def gain(self) -> Estimate:
        """Held-out reward after minus before, paired by prompt. `.sentence` claims no more than its interval."""
        return self._change("held-out reward", lambda look: look.rewards)

    @property
    def strict(self) -> Estimate:
        """The gain in answers that are right as a whole (see kit.training.passes)."""
        return self._change("strict passes", lambda look: look.strict(self.heldout))

    def _change(
        self, noun: str, of: Callable[[Evaluation], AnswerValues]
    ) -> Estimate:
        if self.before is None or self.after is None:
            return Estimate(
                math.nan, note=NOTHING, noun=noun, method="paired difference"
            )
        return gain(
            self.before,
            self.after,
            values=(of(self.before), of(self.after)),
            noun=noun,
        )

    @property
    def trivial(self) -> dict[str, float | None]:
        """The held-out reward of policies without skill."""
        return dict(self.metrics.get("trivial", {}))

    def steps(self) -> pd.DataFrame:
        """A DataFrame, one row a step: reward, loss, groups, answers that were cut off, seconds."""
        return pd.json_normalize(self._rows(STEPS))

    def rollouts(self) -> pd.DataFrame:
        """A DataFrame, one row a training answer: step, task_id, text, reward, verdicts."""
        return pd.DataFrame(self._rows(ROLLOUTS))

    def _rows(self, name: str) -> list[Row]:
        """The rows of a file with the name of their stage; the steps of each stage begin at 1."""
        return [
            row | {"stage": r.metrics["name"]}
            for r in self.stages or (self,)
            for row in paths.read_log(r.folder / name)
        ]

    def by_kind(self) -> pd.DataFrame:
        """Strict passes before and after for each kind of prompt, a DataFrame."""
        return pd.DataFrame(self.metrics.get("kinds", []))

    def answers(self) -> pd.DataFrame:
        """A DataFrame of held-out prompts with the answer before and after, reward and failed criteria.

        failed : criteria that are known to be unmet, and faults (of negative weight) that are known
        to be met, each with its verdict.
        """
        tasks, grades = self.judged
        return (
            table(grades, tasks=tasks)
            .assign(
                **{
                    "failed": [
                        _failed_verdicts(tasks.by_id[g.task_id], g) for g in grades
                    ]
                }
            )
            .rename(columns={"source": "when", "score": "reward"})[
                ["task", "prompt", "when", "answer", "reward", "failed"]
            ]
        )

    @property
    def looks(self) -> list[tuple[str, Evaluation, Result | None]]:
        """ "start", and each stage with the evaluation after it; empty where nothing is held out."""
        ends: list[tuple[str, Evaluation, Result | None]] = [
            (r.metrics["name"], r.after, r)
            for r in self.stages or (self,)
            if r.after
        ]
        return [("start", self.before, None), *ends] if self.before else []

    def table(self) -> pd.DataFrame:
        """One row a stage: strict passes, the change that the stage made, reward, calibration."""
        rows = []
        for name, look, stage in self.looks:
            row = {
                "stage": name,
                "strict passes": str(look.mean(look.strict(self.heldout))),
                "change": "",
                "reward": str(look.mean()),
                "gain": "",
                "ECE of stated confidence": str(
                    calibration(look, self.heldout).get("stated", "")
                ),
            }
            if stage:
                # a stage that others do not build on begins where they do
                row |= {
                    "change": str(stage.strict),
                    "seconds": stage.metrics["seconds"],
                    "gain": str(gain(self.looks[0][1], look)),
                }
            rows.append(row)
        return pd.DataFrame(rows)

    def curve(self) -> pd.DataFrame:
        """A DataFrame, one row an evaluation: step (of the chain), mean held-out reward by each judge."""
        parts = self.stages or (self,)
        starts = accumulate((part.metrics["steps"] for part in parts), initial=0)
        return pd.DataFrame(
            {**row, "step": start + row["step"]}
            for part, start in zip(parts, starts, strict=False)
            for row in part.metrics.get("curve", ())
        )

    def plot(self, **options: Any) -> Any:
        """The training reward (SFT and DPO: the loss) over the steps."""
        steps = self.steps().dropna(axis="columns", how="all")
        name = "reward" if "reward" in steps else "loss"
        return lines(
            {name: steps[name].tolist()},
            steps["step"].tolist(),
            title="Training",
            y_title=name,
            **options,
        )

    @property
    def headlines(self) -> dict[str, dict[str, Any]]:
        """What its page and `kit report` show first, by title: a value, an interval where there is one, a caption."""
        m, change, strict = self.metrics, self.gain, self.strict
        out: dict[str, dict[str, Any]] = {
            GAIN: {
                **asdict(change),
                "caption": change.sentence,
            }
        }
        if self.heldout:
            out["Strict passes"] = asdict(strict) | {"caption": strict.sentence}
        if second := m.get("second"):
            out["Gain by the second judge"] = {
                **second["gain"],
                "caption": second["sentence"],
            }
        # the bar that a trained policy has to clear
        if cheap := {v: k for k, v in self.trivial.items() if v is not None}:
            prompts = count_of(m["trivial_prompts"], "prompt")
            out["Best without skill"] = {
                "value": max(cheap),
                "caption": f"{cheap[max(cheap)]!r} is the best policy without skill on {prompts}; "
                f"trained, on all: {format_number(m['reward_after']['value'])}.",
            }
        seconds = m["seconds"]
        unit, number = (
            ("Minutes", seconds / 60) if seconds >= 60 else ("Seconds", seconds)
        )
        out[unit] = {
            # whole, because a report prints other numbers with three digits
            "value": round(number),
            "caption": f"{count_of(m['steps'], 'step')}, judge {m['judge']}; {count_of(m['judge_calls'], 'call')} "
            f"of judges on the model's answers, {format_cost(m['judge_cost'])}.",
        }
        return out

    @property
    def record(self) -> Run:
        """The training as `kit report` lists it: its settings are the parameters, its headlines the metrics."""
        parts, m = self.stages or (self,), self.metrics
        params = {"model": parts[0].settings["model"], "judge": m["judge"]}
        # A folder of an older kit names neither its tasks nor its profile.
        if m.get("tasks_file"):
            params["tasks_file"] = m["tasks_file"]
        for part in parts:
            params |= {
                f"{part.metrics['name']} {name}": value
                for name, value in part.settings.items()
                # a later stage's model lies in the folder of the one before
                if name not in ("seed", "model")
            }
        return Run(
            id=self.folder.name,
            notebook=f"train {m['config']}",
            profile=m.get("profile", ""),
            seed=parts[0].settings["seed"],
            params=params,
            metrics=plain(self.headlines),
            started=datetime.fromtimestamp(
                (self.folder / METRICS).stat().st_mtime, UTC
            ).isoformat(timespec="milliseconds"),
            seconds=round(m["seconds"], 2),
            cost=m["judge_cost"] or 0.0,
            meta={
                "results": [
                    *({"kind": "sentence", "text": n} for n in m["notes"]),
                    # it stands in the card of this headline
                    *(
                        {"kind": "figure", "name": GAIN, "file": file.name}
                        for file in self.folder.glob(CURVE)
                    ),
                ]
            },
        )

    @property
    def judged(self) -> tuple[TaskSet, list[Grade]]:
        """Held-out tasks with the answers before and after, and their grades: what `kit view` shows."""
        if self.before is None or self.after is None:
            raise DataError(
                f"{NOTHING}; {ROLLOUTS} has the answers in training",
                where=str(self.folder),
            )
        return TaskSet(
            tasks=list(self.heldout),
            responses=[*self.before.responses, *self.after.responses],
        ), [*self.before.grades, *self.after.grades]

    def page(self) -> Path:
        """Write the page of the run, training.html in its folder."""
        m = self.metrics
        card_values: dict[str, Any] = {
            GAIN: self.gain,
            "Strict passes": self.strict,
            "Minutes": f"{m['seconds'] / 60:.1f}",
            "Seconds": f"{m['seconds']:.0f}",
        }
        blocks: list[Any] = [
            Card(
                title,
                card_values.get(title, format_number(x["value"])),
                x["caption"],
            )
            for title, x in self.headlines.items()
        ]
        blocks += [*m["notes"], self.plot()]
        if len(curve := self.curve()) > 2:
            # the report shows it, too
            figure = lines(
                curve,
                "step",
                title=self.gain.sentence,
                y_title="held-out reward",
            )
            paths.write(self.folder / CURVE, figure.to_json())
            blocks.append(figure)
        blocks += [
            Section(question, [frame])
            for question, frame in self._answers_in_tables().items()
            if len(frame)
        ]
        if self.before:
            blocks.append(self._answer_section())
        blocks.append(
            f"Next: {self.adapter.parent / ROLLOUTS} has every training answer with its verdicts."
        )
        return page(f"Training: {m['model']}", blocks, path=self.folder / PAGE)

    def _answers_in_tables(self) -> dict[str, pd.DataFrame]:
        """Questions on the training, and the tables that answer them."""
        errors = [
            {"when": when, "confidence": k, **e}
            for when in WHEN
            for k, e in self.metrics.get(f"calibration_{when}", {}).items()
        ]
        return {
            "What did each stage bring?": self.table(),
            "Which kinds of prompts pass?": self.by_kind(),
            "Is the confidence calibrated?": pd.DataFrame(errors),
            "What would no skill earn?": pd.Series(
                self.trivial, name="reward", dtype=float
            )
            .map(format_number)
            .rename_axis("policy")
            .reset_index(),
        }

    def _answer_section(self) -> Section:
        """The first held-out answers before and after, some more of them folded."""
        rows = (
            self.answers()
            .sort_values("task", kind="stable")
            # A prompt stands once, beside its first answer.
            .assign(prompt=lambda r: r["prompt"].mask(r.duplicated("task"), ""))
            # Without the task the reward is in sight on a phone.
            .drop(columns="task")
        )
        blocks: list[Any] = [
            f"Held-out answers: {len(rows)}. kit view {shlex.quote(str(self.folder))} shows all with reasons.",
            rows[:PAGE_ROWS],
        ]
        if len(more := rows[PAGE_ROWS:MAX_PAGE_ROWS]):
            blocks.append(Section(count_of(len(more), "more answer"), [more]))
        return Section("What did the model answer?", blocks)

    def __repr__(self) -> str:
        return " ".join(
            (self.gain.sentence, *self.metrics["notes"], f"({self.folder})")
        )


def _failed_verdicts(task: Task, grade: Grade) -> str:
    """The criteria that an answer fails, each with its verdict: "apology (unmet), rude (met)"."""
    verdicts = by_criterion(grade.verdicts)
    failed = (verdicts[name] for name in failures(task, grade))
    return ", ".join(f"{v.criterion_id} ({v.status})" for v in failed)


class Log:
    """The two files of a run. All names of a row are TRL's own, or those of `summary`."""

    def __init__(self, out: Path, on_step: Callable[[Row], None] | None = None):
        self.out, self.on_step = out, on_step or (lambda row: None)
        self.latest: Row = {}

    def write(self, name: str, rows: Iterable[Row]) -> None:
        """Append rows to a file."""
        with open(self.out / name, "ab") as f:
            f.write(msgspec.json.Encoder().encode_lines(plain(list(rows))))

    def rewind(self, step: int) -> None:
        """Drop what was written after a save point: it is written again."""
        for name in (STEPS, ROLLOUTS):
            # a kill may have come after the last save point
            rows = paths.read_log(self.out / name)
            (self.out / name).unlink(missing_ok=True)
            self.write(name, [row for row in rows if row["step"] <= step])

    def batch(
        self,
        step: int,
        answers: Sequence[Response],
        grades: Sequence[Grade],
        *,
        tasks: Mapping[str, Task],
        size: int,
        **more: float | None,
    ) -> None:
        """Store a step's answers with prompts (of `tasks` by id) and verdicts, and summarise them for its row.

        size : answers of a group.
        Further updates on these answers repeat the summary in their rows; its `batch` is the step that judged them.
        """
        self.write(
            ROLLOUTS,
            [
                {
                    "step": step,
                    "task_id": answer.task_id,
                    "prompt": tasks[answer.task_id].conversation,
                    "text": answer.text,
                    "reward": grade.score,
                    "low": grade.score_low,
                    "high": grade.score_high,
                    "truncated": answer.truncated,
                    "parts": grade.parts,
                    "verdicts": [
                        {
                            "id": v.criterion_id,
                            "status": v.status,
                            "value": v.value,
                            "failure": v.failure,
                        }
                        for v in grade.verdicts
                    ],
                }
                for answer, grade in zip(answers, grades, strict=True)
            ],
        )
        self.latest = summary(answers, grades, size) | more | {"batch": step}


def summary(answers: Sequence[Response], grades: Sequence[Grade], size: int) -> Row:
    """Numbers on one batch; each `size` answers are a group.

    mixed, good, bad, unknown : groups whose rewards differ, are all at the top, all below it, or not known.
    """
    scores = known_scores(grades)
    return {
        "reward": statistics.fmean(scores) if scores else None,
        "answers": len(grades),
        "unknown_rewards": len(grades) - len(scores),
        # a prompt that comes twice has two groups
        "groups": health((n // size, grade) for n, grade in enumerate(grades)),
        "words": statistics.fmean(len(a.text.split()) for a in answers),
        "truncated": statistics.fmean(map(attrgetter("truncated"), answers)),
        "parts": part_means(grades),
    }


def known_scores(grades: Iterable[Grade]) -> list[float]:
    """The rewards that are known."""
    return [g.score for g in grades if g.score is not None]


def part_means(grades: Iterable[Grade]) -> dict[str, float]:
    """The mean of each part of the reward, over the answers where it is known."""
    values = group(
        (name, value)
        for g in grades
        for name, value in g.parts.items()
        if value is not None
    )
    return dict(zip(values, map(statistics.fmean, values.values()), strict=True))


def health(pairs: Iterable[tuple[object, Grade]]) -> dict[str, int]:
    """How many groups are mixed, good, bad or unknown, of (group, grade) pairs."""
    counts = dict.fromkeys(("mixed", "good", "bad", "unknown"), 0)
    for grades in group(pairs).values():
        scores = known_scores(grades)
        # a reward of 10 is the top where rewards are scaled
        top = max(g.meta.get("range", (0.0, 1.0))[1] for g in grades)
        # one known reward has nothing to be compared with
        if len(scores) < 2:
            counts["unknown"] += 1
        elif max(scores) - min(scores) > REWARD_TOLERANCE:
            counts["mixed"] += 1
        else:
            counts["good" if scores[0] >= top - REWARD_TOLERANCE else "bad"] += 1
    return counts

"""Finished runs that ship with the kit: held-out answers by run and stage. Code decides them again when they are read.

`data/learning.json`: `kit train instructions` over seeds, and a control whose rewards changed hands at random.
`data/ladder_runs.json`: `kit train ladder_chain` and `ladder_confidence` over seeds.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import DataError
from ..judging import judge
from ..records import Response, Task
from ..records.tables import plain
from ..rewards import grade
from ..stats import Estimate, difference, mean, over_seeds
from ..system import paths
from ..system.settings import nearest
from .heldout import Evaluation
from .language_models import find_weights, sample
from .result import Result

# config -> its file of runs, the key of its runs there, the file of its tasks
STORED_RUNS = {
    "instructions": ("learning.json", "runs", "instructions.jsonl"),
    "ladder_chain": ("ladder_runs.json", "ladder_chain", "ladder.jsonl"),
    "ladder_confidence": ("ladder_runs.json", "ladder_confidence", "ladder.jsonl"),
}


@dataclass(frozen=True, kw_only=True, repr=False)
class Stored:
    """Stored runs of one config.

    frame : one row an answer. Columns run, seed, control, how ("greedy" or "sampled"), stage ("before" and "after", or
        "start" and the names of the stages), task, kind, prompt, answer, tokens (token probability), stated
        (confidence in the text), reward, right (1 where the answer passes as a whole).
    curves : run -> mean training reward of each step.
    """

    name: str
    frame: pd.DataFrame
    curves: dict[Hashable, list[float]] = field(default_factory=dict)

    @property
    def stages(self) -> list[str]:
        """The stages in their order."""
        return list(dict.fromkeys(self.frame["stage"]))

    def means(self, stage: str, *, column: str = "right") -> pd.Series[float]:
        """Mean over prompts of a column, by run, of greedy answers; the control is left out."""
        return self._by_prompt(column)[stage].groupby("run", sort=False).mean()

    def _by_prompt(self, column: str) -> pd.DataFrame:
        """The mean of a column: one row a run and task, one column a stage."""
        # the control is no run: it shows what the procedure makes of nothing
        return self.frame[
            ~self.frame["control"] & (self.frame["how"] == "greedy")
        ].pivot_table(
            index=["run", "task"], columns="stage", values=column, sort=False
        )

    def gain(
        self,
        new: str | None = None,
        old: str | None = None,
        *,
        column: str = "right",
    ) -> Estimate:
        """A stage less another one (default: the last less the first), paired by prompt, runs averaged.

        Its interval is over prompts: would other prompts show it? `over_seeds` is over runs: would another run?
        """
        new, old = new or self.stages[-1], old or self.stages[0]
        # runs are averaged first: one prompt is one unit
        by_prompt = self._by_prompt(column).groupby("task").mean()
        return replace(
            difference(by_prompt[new], by_prompt[old]),
            noun=f"{column}, {new} less {old}",
        )

    def over_seeds(
        self,
        new: str | None = None,
        old: str | None = None,
        *,
        column: str = "right",
    ) -> Estimate:
        """The same difference with its interval over runs."""
        new, old = new or self.stages[-1], old or self.stages[0]
        by_run = self._by_prompt(column).groupby("run").mean()
        return replace(
            over_seeds(by_run[new] - by_run[old], bounds=(-1.0, 1.0)),
            noun=f"{column}, {new} less {old}",
        )

    def table(self, *, by: str = "stage") -> pd.DataFrame:
        """A DataFrame of greedy answers: mean, worst and best run, gain over prompts and over seeds.

        by : "stage" compares each stage with the first; "kind" the last stage, for each kind of prompt.
        """
        rows = []
        for part in (
            self.stages[1:] if by == "stage" else self.frame["kind"].unique()
        ):
            stage, runs = part, self
            if by == "kind":
                stage, runs = (
                    self.stages[-1],
                    replace(self, frame=self.frame[self.frame["kind"] == part]),
                )
            after = runs.means(stage)
            rows.append(
                {
                    by: part,
                    "before": runs.means(self.stages[0]).mean(),
                    "mean": after.mean(),
                    "worst": after.min(),
                    "best": after.max(),
                    "gain over prompts": str(runs.gain(stage)),
                    "gain over seeds": str(runs.over_seeds(stage)),
                }
            )
        return pd.DataFrame(rows)

    def runs(self) -> pd.DataFrame:
        """A DataFrame, one row a run, the control too: share right before and after, and the gain over prompts."""
        rows, frame = [], self.frame[self.frame["how"] == "greedy"]
        for run, answers in frame.groupby("run", sort=False):
            table = answers.pivot_table("right", index="task", columns="stage")
            old, new = table[self.stages[0]], table[self.stages[-1]]
            rows.append(
                {
                    "run": run,
                    "control": bool(answers["control"].iloc[0]),
                    "before": mean(old).value,
                    "after": mean(new).value,
                    "gain": str(difference(new, old)),
                }
            )
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        runs = self.frame.groupby("run", sort=False)["control"].first()
        return f"{self.name}: {int((~runs).sum())} runs, {int(runs.sum())} controls; gain {self.gain()}"

    def _repr_html_(self) -> str:
        return str(self.table().to_html(index=False, float_format="{:.3f}".format))


def stored(name: str = "instructions", *, path: str | Path | None = None) -> Stored:
    """The stored runs of "instructions", "ladder_chain" or "ladder_confidence"."""
    from ..data import load

    if name not in STORED_RUNS:
        raise DataError(
            f"there are no stored runs of {name!r}",
            where="stored",
            fix=nearest(name, STORED_RUNS),
        )
    runs_file, key, tasks_file = STORED_RUNS[name]
    file = Path(path or paths.data(runs_file))
    data = json.loads(file.read_text("utf-8"))
    if key not in data:
        raise DataError(
            f"the file has no runs of {name!r}",
            where=str(file),
            fix="write it with kit.training.store",
        )
    tasks = load(paths.data(tasks_file)).tasks
    if name == "instructions":
        return _read_single_runs(data, tasks)
    # chains of stages by seed
    rows: list[tuple[Any, ...]] = []
    for seed, stages in data[key].items():
        for stage, record in stages.items():
            rows += [
                (f"seed {seed}", False, "greedy", stage, *answer)
                for answer in record["answers"]
            ]
    return Stored(name=name, frame=_grade_answers(rows, tasks))


def _read_single_runs(data: Mapping[str, Any], tasks: Sequence[Task]) -> Stored:
    """Runs of one stage, which share the answers before it."""
    rows: list[tuple[Any, ...]] = []
    for run, record in data["runs"].items():
        for how, after in record["after"].items():
            for stage, texts in (("before", data["before"][how]), ("after", after)):
                rows += [
                    (run, record["control"], how, stage, task, text, None)
                    for task, text in texts.items()
                ]
    return Stored(
        name="instructions",
        frame=_grade_answers(rows, tasks),
        curves=pd.DataFrame(data["runs"]).loc["rewards"].to_dict(),
    )


def _grade_answers(
    rows: Sequence[tuple[Any, ...]], tasks: Sequence[Task]
) -> pd.DataFrame:
    """`Stored.frame` out of (run, control, how, stage, task, text, token probability), graded by code."""
    responses = [
        Response(task_id=task, id=f"a{n}", text=text, confidence=p)
        for n, (*_, task, text, p) in enumerate(rows)
    ]
    look = Evaluation(
        name="",
        responses=tuple(responses),
        grades=tuple(
            grade(
                tasks,
                judge(tasks, responses, ledger=False, progress=False),
                responses=responses,
            )
        ),
    )
    frame = pd.DataFrame(
        rows, columns="run control how stage task answer tokens".split()
    ).assign(
        stated=pd.Series(look.stated, dtype=float),
        reward=pd.Series(look.rewards, dtype=float),
        right=pd.Series(look.strict(tasks), dtype=float),
    )
    frame["seed"] = frame["run"].str.extract(r"^seed (\d+)$").astype(float)
    return frame.merge(
        pd.DataFrame(
            [(t.id, t.kind, t.prompt) for t in tasks],
            columns=["task", "kind", "prompt"],
        ),
        how="left",
    )


def answers_of(
    folder: str | Path,
    tasks: Sequence[Task],
    *,
    temperature: float = 0.0,
    seed: int = 0,
) -> list[Response]:
    """Answers of a finished run's model to tasks, one each. temperature 0 is greedy.

    A model in 4 bits answers as it was trained, with its adapter beside the quantised weights.
    """
    trained = find_weights(folder)
    return sample(
        *trained.load(),
        tasks,
        name=Path(folder).name,
        samples=1,
        temperature=temperature,
        max_new_tokens=Result.read(folder).settings["max_answer_tokens"],
        seed=seed,
        template_options=trained.template_options,
    )


def store(
    name: str,
    folders: Mapping[str, str | Path],
    tasks: Sequence[Task],
    *,
    path: str | Path | None = None,
) -> Path:
    """Write finished runs in the form that `stored` reads. folders : "seed 0", ..., "control" -> the run's folder."""
    runs_file, key, _ = STORED_RUNS[name]
    file = Path(path or paths.data(runs_file))
    data = json.loads(file.read_text("utf-8")) if file.exists() else {}
    data[key] = {}
    for run, folder in folders.items():
        if name == "instructions":
            data[key][run] = {
                "control": run == "control",
                **_record_single_run(Path(folder), tasks),
            }
        else:
            data[key][run.removeprefix("seed ")] = _record_chain(Path(folder))
    return paths.write(
        file, json.dumps(plain(data), indent=0, ensure_ascii=False) + "\n"
    )


def _record_single_run(folder: Path, tasks: Sequence[Task]) -> dict[str, Any]:
    """Training rewards by step, and answers after the training, greedy and sampled."""
    result, after = Result.read(folder), {}
    # the training's own temperature shows what GRPO itself saw
    for how, temperature in {
        "greedy": 0.0,
        "sampled": result.settings["temperature"],
    }.items():
        after[how] = {
            r.task_id: r.text
            for r in answers_of(folder, tasks, temperature=temperature, seed=5)
        }
    return {
        "seconds": round(result.metrics["seconds"]),
        "rewards": result.steps()["reward"].round(4).tolist(),
        "after": after,
    }


def _record_chain(folder: Path) -> dict[str, Any]:
    """The held-out answers of a chain's stages, as [task, text, token probability]."""
    record: dict[str, Any] = {}
    for name, look, _ in Result.read(folder).looks:
        record[name] = {
            "answers": [
                [r.task_id, r.text, round(r.confidence or 0.0, 4)]
                for r in look.responses
            ]
        }
    if not record:
        raise DataError("the run held nothing out", where=str(folder))
    return record

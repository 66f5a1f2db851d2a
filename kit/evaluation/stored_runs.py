"""Finished runs that ship with the kit: held-out answers by run and stage. Code decides them again when they are read.

`data/learning.json`: `kit train instructions` over seeds, and a control whose rewards changed hands at random.
`data/ladder_runs.json`: `kit train ladder_chain` and `ladder_confidence` over seeds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..judging import judge
from ..records import Response, Task
from ..records.tables import plain
from ..rewards import grade
from ..stats import Estimate, difference, mean, over_seeds
from ..system import paths
from ..system.device import choose
from ..system.settings import nearest
from .heldout import Evaluation
from .language_models import base, resolve, tokenizer_of, with_adapter
from .result import Result
from .sampling import TEMPLATE_OPTIONS, sample

LEARNING, LADDER = "learning.json", "ladder_runs.json"


@dataclass(frozen=True, kw_only=True, repr=False)
class Stored:
    """Stored runs of one config.

    frame : one row an answer. Columns run, seed, control, how ("greedy" or "sampled"), stage ("before" and "after", or
        "start" and the names of the stages), task, kind, prompt, answer, tokens (token probability), stated
        (confidence in the text), reward, right (1 where the answer passes as a whole).
    curves : run -> mean training reward of each step. seconds : run, or run and stage, -> of training.
    """

    name: str
    frame: Any
    curves: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def stages(self) -> list[str]:
        """The stages in their order."""
        return list(dict.fromkeys(self.frame["stage"]))

    def means(
        self,
        stage: str,
        *,
        column: str = "right",
        kind: str | None = None,
        how: str = "greedy",
    ) -> Any:
        """Mean over prompts of a column, by run; the control is left out."""
        return (
            self._rows([stage], kind, how)
            .groupby(["run", "task"], sort=False)[column]
            .mean()
            .groupby("run", sort=False)
            .mean()
        )

    def _rows(self, stages: Sequence[str], kind: str | None, how: str) -> Any:
        f = self.frame
        # the control is no run: it shows what the procedure makes of nothing
        some = f[~f["control"] & f["stage"].isin(stages) & (f["how"] == how)]
        return some if kind is None else some[some["kind"] == kind]

    def gain(
        self,
        new: str | None = None,
        old: str | None = None,
        *,
        column: str = "right",
        kind: str | None = None,
        how: str = "greedy",
    ) -> Estimate:
        """A stage less another one (default: the last less the first), paired by prompt, runs averaged.

        Its interval is over prompts: would other prompts show it? `over_seeds` is over runs: would another run?
        """
        new, old = new or self.stages[-1], old or self.stages[0]
        # runs are averaged first: one prompt is one unit
        table = self._rows([new, old], kind, how).pivot_table(
            index="task", columns="stage", values=column, aggfunc="mean"
        )
        return replace(
            difference(table[new], table[old]), noun=f"{column}, {new} less {old}"
        )

    def over_seeds(
        self,
        new: str | None = None,
        old: str | None = None,
        *,
        column: str = "right",
        **options: Any,
    ) -> Estimate:
        """The same difference with its interval over runs."""
        new, old = new or self.stages[-1], old or self.stages[0]
        a, b = (self.means(s, column=column, **options) for s in (old, new))
        return replace(
            over_seeds(b - a, bounds=(-1.0, 1.0)),
            noun=f"{column}, {new} less {old}",
        )

    def table(self, *, by: str = "stage", how: str = "greedy") -> Any:
        """A DataFrame: mean, worst and best run, gain over prompts and over seeds.

        by : "stage" compares each stage with the first; "kind" the last stage, for each kind of prompt.
        """
        import pandas as pd

        is_stage, rows = by == "stage", []
        kinds = dict.fromkeys(self.frame["kind"])
        for name in self.stages[1:] if is_stage else kinds:
            new = name if is_stage else self.stages[-1]
            options = {"kind": None if is_stage else name, "how": how}
            before = self.means(self.stages[0], **options)
            after = self.means(new, **options)
            row = {by: name, "before": before.mean(), "mean": after.mean()}
            row |= {"worst": after.min(), "best": after.max()}
            row["gain over prompts"] = str(self.gain(new, **options))
            row["gain over seeds"] = str(self.over_seeds(new, **options))
            rows.append(row)
        return pd.DataFrame(rows)

    def runs(self, *, how: str = "greedy") -> Any:
        """A DataFrame, one row a run, the control too: share right before and after, and the gain over prompts."""
        import pandas as pd

        rows = []
        for run, f in self.frame[self.frame["how"] == how].groupby(
            "run", sort=False
        ):
            table = f.pivot_table(
                index="task", columns="stage", values="right", aggfunc="mean"
            )
            old, new = table[self.stages[0]], table[self.stages[-1]]
            rows.append(
                {
                    "run": run,
                    "control": bool(f["control"].iloc[0]),
                    "before": mean(old).value,
                    "after": mean(new).value,
                    "gain": str(difference(new, old)),
                    "seconds": self.seconds.get(str(run)),
                }
            )
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        runs = self.frame.groupby("run", sort=False)["control"].first()
        return f"{self.name}: {int((~runs).sum())} runs, {int(runs.sum())} controls; gain {self.gain()}"

    def _repr_html_(self) -> str:
        return str(self.table().to_html(index=False, float_format="%.3f"))


def stored(name: str = "instructions", *, path: str | Path | None = None) -> Stored:
    """The stored runs of "instructions", "ladder_chain" or "ladder_confidence"."""
    from ..data import load

    names = ("instructions", "ladder_chain", "ladder_confidence")
    if name not in names:
        raise DataError(
            f"there are no stored runs of {name!r}",
            where="stored",
            fix=nearest(name, names),
        )
    file = paths.data(LEARNING if name == "instructions" else LADDER)
    data = json.loads(Path(path or file).read_text("utf-8"))
    tasks = load(
        paths.data(
            "instructions.jsonl" if name == "instructions" else "ladder.jsonl"
        )
    ).tasks
    if name not in data and name != "instructions":
        raise DataError(
            f"the file has no runs of {name!r}",
            where=str(path),
            fix="write it with kit.training.store",
        )
    if name != "instructions":
        looks, seconds = [], {}
        for seed, stages in data[name].items():
            for stage, row in stages.items():
                looks.append(
                    (f"seed {seed}", False, "greedy", stage, row["answers"])
                )
                seconds[f"seed {seed}, {stage}"] = row["seconds"]
        return Stored(name=name, frame=_frame(looks, tasks), seconds=seconds)
    looks = []
    for run, row in data["runs"].items():
        for how, answers in row["after"].items():
            for stage, texts in (
                ("before", data["before"][how]),
                ("after", answers),
            ):
                looks.append(
                    (
                        run,
                        row["control"],
                        how,
                        stage,
                        [(k, v, None) for k, v in texts.items()],
                    )
                )
    return Stored(
        name=name,
        frame=_frame(looks, tasks),
        curves={run: row["rewards"] for run, row in data["runs"].items()},
        seconds={run: row["seconds"] for run, row in data["runs"].items()},
    )


def _frame(looks: Sequence[Any], tasks: Sequence[Task]) -> Any:
    """One row an answer, graded by code. looks : (run, control, how, stage, [(task, text, token probability)])."""
    import pandas as pd

    by_id = {t.id: t for t in tasks}
    # all runs of a file begin with the same answers: they are graded once
    cache: dict[Any, Evaluation] = {}
    frames = []
    for run, control, how, stage, answers in looks:
        key = json.dumps(answers)
        if key not in cache:
            responses = [
                Response(task_id=i, id=f"a{n}", text=text, confidence=p)
                for n, (i, text, p) in enumerate(answers)
            ]
            verdicts = judge(
                tasks, responses, judge="code", ledger=False, progress=False
            )
            grades = grade(tasks, verdicts, responses=responses)
            cache[key] = Evaluation(
                name=stage, responses=tuple(responses), grades=tuple(grades)
            )
        look = cache[key]
        frames.append(
            pd.DataFrame(
                {
                    "run": run,
                    "seed": int(run.split()[-1])
                    if run.startswith("seed ")
                    else None,
                    "control": control,
                    "how": how,
                    "stage": stage,
                    "task": look.clusters,
                    "kind": [by_id[i].kind for i in look.clusters],
                    "prompt": [by_id[i].prompt for i in look.clusters],
                    "answer": [r.text for r in look.responses],
                    "tokens": [r.confidence for r in look.responses],
                    "stated": look.stated,
                    "reward": look.rewards,
                    "right": look.strict(tasks),
                }
            )
        )
    return pd.concat(frames, ignore_index=True).astype(
        {"stated": float, "reward": float, "right": float}
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
    folder = Path(folder)
    settings = Result.read(folder).settings
    source = resolve(settings["model"])
    model = base(
        source,
        choose(settings["dtype"]),
        quantize=settings["quantize"],
        adapter=settings["adapter"],
    )
    model = with_adapter(model, folder / "adapter")
    if settings["quantize"] == "none":
        model = model.merge_and_unload()
    return sample(
        model,
        tokenizer_of(source),
        tasks,
        name=folder.name,
        samples=1,
        temperature=temperature,
        max_new_tokens=settings["max_answer_tokens"],
        seed=seed,
        template_options=settings["options"].get(TEMPLATE_OPTIONS) or {},
    )


def store(
    name: str,
    folders: Mapping[str, str | Path],
    tasks: Sequence[Task],
    *,
    path: str | Path | None = None,
) -> Path:
    """Write finished runs in the form that `stored` reads. folders : "seed 0", ..., "control" -> the run's folder."""
    file = Path(path or paths.data(LEARNING if name == "instructions" else LADDER))
    data = json.loads(file.read_text("utf-8")) if file.exists() else {}
    runs: dict[str, Any] = {}
    for run, folder in folders.items():
        if name != "instructions":
            runs[run.removeprefix("seed ")] = _stages(Path(folder))
            continue
        result = Result.read(folder)
        # the training's own temperature shows what GRPO itself saw
        temperatures = {"greedy": 0.0, "sampled": result.settings["temperature"]}
        after = {
            how: {
                r.task_id: r.text
                for r in answers_of(folder, tasks, temperature=t, seed=5)
            }
            for how, t in temperatures.items()
        }
        runs[run] = {
            "control": run == "control",
            "seconds": round(result.metrics["seconds"]),
            "rewards": result.steps()["reward"].round(4).tolist(),
            "after": after,
        }
    data["runs" if name == "instructions" else name] = runs
    return paths.write(
        file, json.dumps(plain(data), indent=0, ensure_ascii=False) + "\n"
    )


def _stages(folder: Path) -> dict[str, Any]:
    """The held-out answers of a chain's stages, as [task, text, token probability]."""
    if not (looks := Result.read(folder).looks):
        raise DataError("the run held nothing out", where=str(folder))
    return {
        name: {
            "seconds": stage and stage.metrics["seconds"],
            "answers": [
                [r.task_id, r.text, round(r.confidence or 0.0, 4)]
                for r in look.responses
            ],
        }
        for name, look, stage in looks
    }

"""A chain of stages from one file, SFT -> DPO -> GRPO, and the table of what each stage did to held-out answers.

    tasks: facts.jsonl            # beside the config, or in the kit's data folder
    answers: fact_answers.jsonl   # {task_id, response, source, stated_confidence}: good ones for SFT, good against bad for DPO
    ask: "End with your confidence, as in: Confidence: 70%"   # added to every prompt
    reward: verifiers
    settings: {model: SmolLM2-135M-Instruct, seed: 0}          # shared by all stages
    stages: [{stage: sft, steps: 20}, {stage: dpo, steps: 10}, {stage: grpo, steps: 20}]
    out: facts_chain              # below the runs folder, or an absolute path

Correct means that at least half of the facts and directions that the task asks for are asserted and right. It is read from
the verifiers of content alone: the confidence has no part in it, so that the calibration error is not circular.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError, KitError
from ..records import Response, Task
from ..runs import plain
from ..settings.read import known_names, load
from ..stats.estimate import Estimate
from ..system import paths
from . import evaluation, holdout, job
from .config import STAGES, Settings, from_mapping
from .names import translate

CONFIGS = Path(__file__).parent / "configs"
KEYS = ("tasks", "answers", "ask", "judge", "reward", "settings", "stages", "out")


@dataclass(frozen=True, kw_only=True)
class ChainJob:
    """Everything that `run` needs; rows for SFT and pairs for DPO come from the training tasks alone."""

    settings: tuple[Settings, ...]
    tasks: tuple[Task, ...]
    heldout: tuple[Task, ...]
    rows: tuple[dict[str, str], ...]
    pairs: tuple[dict[str, str], ...]
    judge: Any
    reward: Any
    out: Path


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Held-out answers of one stage.

    accuracy : share of correct answers, t over prompts; reward : mean reward; ece : debiased calibration error of the stated
    confidence with its interval (NaN where too few state one); ece_plain : what other libraries print.
    stated : share of answers that state a confidence as a number; gain, gain_accuracy : paired differences to the start.
    """

    stage: str
    accuracy: Estimate
    reward: Estimate
    ece: Estimate
    ece_plain: float
    stated: Estimate
    gain: Estimate
    gain_accuracy: Estimate

    def row(self) -> dict[str, Any]:
        """Plain values for a table."""
        out: dict[str, Any] = {"stage": self.stage}
        for f in dataclasses.fields(self)[1:]:
            e = getattr(self, f.name)
            out |= (
                {f.name: e}
                if isinstance(e, float)
                else {f.name: e.value, f"{f.name}_low": e.low, f"{f.name}_high": e.high}
            )
        return out | {"answers": self.reward.n, "prompts": self.reward.n_clusters}


@dataclass(frozen=True, kw_only=True)
class ChainReport:
    """The table of a chain, stage by stage; `metrics` is what metrics.json holds. gain : none, the table has one per stage."""

    out: Path
    table: tuple[Quality, ...]
    metrics: dict[str, Any]

    def text(self) -> str:
        """The table as text, one line per stage, and the trivial policies below."""
        lines = [
            "stage  accuracy             reward               ECE of stated conf.  states one           reward minus start"
        ]
        for q in self.table:
            cells = (q.accuracy, q.reward, q.ece, q.stated, q.gain)
            lines.append(f"{q.stage:6} " + " ".join(f"{show(e):20}" for e in cells).rstrip())
        known = {k: v for k, v in self.metrics["trivial"].items() if v is not None}
        if known:
            best = max(known, key=lambda k: known[k])
            lines.append(
                f"best trivial policy: {best}, reward {known[best]:.3f}; {self.table[0].reward.n_clusters} held-out prompts"
            )
        return "\n".join(lines)


def is_chain(path: str | Path) -> bool:
    """True when a config file describes a chain (it has the key `stages`); a file that cannot be read is none."""
    try:
        return "stages" in load(path)
    except KitError:
        return False


def read(path: str | Path, **changes: Any) -> ChainJob:
    """A chain from a YAML or JSON file; `changes` replace values of it, names of settings those of all stages."""
    path = Path(path)
    return build(
        load(path, what="training config"),
        beside=path.parent,
        where=str(path),
        name=path.stem,
        changes=changes,
    )


def build(
    values: Mapping[str, Any],
    *,
    beside: Path | None = None,
    where: str = "config",
    name: str = "chain",
    changes: Mapping[str, Any] | None = None,
) -> ChainJob:
    """A chain from a mapping; see the module."""
    values = {**values, **{k: v for k, v in (changes or {}).items() if k in KEYS}}
    extra = {k: v for k, v in (changes or {}).items() if k not in KEYS}
    extra = translate(
        extra, [f.name for c in STAGES.values() for f in dataclasses.fields(c)], where=where
    )
    known_names(values, KEYS, where=where, what="key of a chain")
    stages = values.get("stages") or ()
    if (
        not isinstance(stages, Sequence)
        or not stages
        or not all(isinstance(s, Mapping) for s in stages)
    ):
        raise KitError(
            "stages is not a list of mappings",
            where=where,
            fix="stages: [{stage: sft}, {stage: grpo}]",
        )
    settings = tuple(
        from_mapping(
            {**(values.get("settings") or {}), **s, **_for(s, extra, where)},
            where=f"{where}, stage {i + 1}",
        )
        for i, s in enumerate(stages)
    )
    every = job._tasks(values.get("tasks"), beside, where)
    train, held = holdout.split(job.asking(every, values.get("ask")), {}, where)
    rows, pairs = teaching(train, job._rows(values.get("answers"), beside, where))
    out = Path(values.get("out") or name).expanduser()
    return ChainJob(
        settings=settings,
        tasks=train,
        heldout=held,
        rows=tuple(rows),
        pairs=tuple(pairs),
        judge=job.judge_of(values.get("judge", "none"), where),
        reward=values.get("reward", "rubric"),
        out=out if out.is_absolute() else paths.runs() / out,
    )


def teaching(
    tasks: Sequence[Task], answers: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """SFT rows {prompt, response} from good answers, and pairs {prompt, chosen, rejected} good against bad, on these tasks alone.

    Every answer ends with its stated confidence in the same words, "Confidence: 97%"; answers without a number are left out.
    """
    prompts, found = {t.id: t.prompt for t in tasks}, {}
    for a in answers:
        if a.get("task_id") in prompts and isinstance(a.get("stated_confidence"), (int, float)):
            found[a["task_id"], a.get("source")] = restate(
                str(a["response"]), float(a["stated_confidence"])
            )
    rows = [
        {"prompt": p, "response": found[t, "good"]}
        for t, p in prompts.items()
        if (t, "good") in found
    ]
    pairs = [
        {"prompt": p, "chosen": found[t, "good"], "rejected": found[t, "bad"]}
        for t, p in prompts.items()
        if (t, "good") in found and (t, "bad") in found and found[t, "good"] != found[t, "bad"]
    ]
    return rows, pairs


def restate(text: str, confidence: float) -> str:
    """The answer with its own statement of confidence replaced by a last line of a fixed form.

    >>> restate("It is W. I am about 70% sure.", 0.7)
    'It is W. Confidence: 70%'
    """
    from ..claims.text import sentences
    from ..confidence import extract

    last = extract(
        text
    ).text  # a closing estimate ("I would say 70%.") is read only beside the rest of the text
    said = sentences(text)
    kept = [
        s
        for i, s in enumerate(said)
        if extract(s).status == "missing" and not (last and i == len(said) - 1 and last in s)
    ]
    return " ".join([*(kept or [text.strip()]), f"Confidence: {confidence:.0%}"])


def correct(task: Task, response: Response) -> float | None:
    """1.0 when at least half of the expected facts and directions are right, else 0.0; None where the task expects none.

    What the answer says about its confidence is removed before facts are read, so it cannot change the outcome.
    """
    from ..claims import applicable
    from ..claims.uncertainty import outcome

    asked = [
        n
        for n, k in (("factual", "facts"), ("direction", "claims"))
        if n in applicable(task) and task.truth.get(k)
    ]
    return float(outcome(task, response) >= 0.5) if asked else None


def qualities(evaluations: Sequence[evaluation.Evaluation], tasks: Sequence[Task]) -> list[Quality]:
    """Accuracy, reward and calibration of each evaluation; the first one is what the others are compared with."""
    by_id = {t.id: t for t in tasks}
    marks = [[correct(by_id[r.task_id], r) for r in e.responses] for e in evaluations]
    first, out = evaluations[0], []
    for e, right in zip(evaluations, marks, strict=True):
        error, raw, stated = calibration_of(e, right)
        out.append(
            Quality(
                stage=e.name,
                accuracy=evaluation.mean_by_cluster(right, e.clusters),
                reward=e.reward(),
                ece=error,
                ece_plain=raw,
                stated=stated,
                gain=evaluation.paired(first.scores, e.scores, first.clusters, e.clusters),
                gain_accuracy=evaluation.paired(marks[0], right, first.clusters, e.clusters),
            )
        )
    return out


def calibration_of(
    e: evaluation.Evaluation, right: Sequence[float | None]
) -> tuple[Estimate, float, Estimate]:
    """(debiased ECE, plug-in ECE, share that states a number) of the confidence in the text; NaN below ten such answers."""
    from .. import calibration, confidence

    values = [confidence.extract(r.text).value for r in e.responses]
    stated = evaluation.mean_by_cluster([float(v is not None) for v in values], e.clusters)
    known = [
        (v, y, c)
        for v, y, c in zip(values, right, e.clusters, strict=True)
        if v is not None and y is not None
    ]
    if len(known) < 10:
        return (
            Estimate(
                value=math.nan,
                low=math.nan,
                high=math.nan,
                n=len(known),
                method="ECE",
                note="fewer than ten stated",
            ),
            math.nan,
            stated,
        )
    found = calibration.ece(
        [k[0] for k in known], [k[1] for k in known], cluster=[k[2] for k in known]
    )
    return found.debiased, found.value, stated


def run(chain: ChainJob) -> ChainReport:
    """Run the stages one after the other (a finished one is not run again) and write metrics.json with the table."""
    from . import stages

    got = stages.chain(
        chain.settings,
        out=chain.out,
        sft_rows=chain.rows,
        pairs=chain.pairs,
        tasks=chain.tasks,
        heldout=chain.heldout,
        judge=chain.judge,
        composer=chain.reward,
    )
    if not got.evaluations:
        raise DataError(
            "there is nothing to compare",
            where="chain",
            fix="hold out tasks (split: heldout) and give a grpo stage, whose sampling is used",
        )
    table = tuple(qualities(got.evaluations, chain.heldout))
    metrics = plain(
        {
            "stage": "chain",
            "table": [q.row() for q in table],
            "trivial": got.trivial,
            "rows": len(chain.rows),
            "pairs": len(chain.pairs),
            "seconds": {r.settings.stage: r.metrics["seconds_training"] for r in got.stages},
            "model": chain.settings[0].model,
        }
    )
    (chain.out / "metrics.json").write_text(json.dumps(metrics, indent=2), "utf-8")
    return ChainReport(out=chain.out, table=table, metrics=metrics)


def show(e: Estimate) -> str:
    """An estimate in a cell: value and interval, "unknown" for NaN."""
    return "unknown" if math.isnan(e.value) else f"{e.value:.3f} [{e.low:.2f}, {e.high:.2f}]"


def _for(stage: Mapping[str, Any], changes: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The changes that this stage has a setting for; a name that no stage knows raises."""
    names = {k: {f.name for f in dataclasses.fields(c)} for k, c in STAGES.items()}
    every = set().union(*names.values())
    known_names(changes, sorted(every), where=where)
    return {k: v for k, v in changes.items() if k in names.get(str(stage.get("stage", "grpo")), ())}

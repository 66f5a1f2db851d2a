"""A chain of stages from one file, SFT -> DPO -> GRPO, and the table of what each stage did.

    tasks: facts.jsonl            # beside the config, or in the kit's data folder
    kinds: [sum 1, sum 2]         # only tasks of these kinds
    answers: fact_answers.jsonl   # {task_id, response, source, stated_confidence}
    ask: "End with your confidence, as in: Confidence: 70%"   # added to every prompt
    reward: verifiers
    settings: {model: SmolLM2-135M-Instruct, seed: 0}          # shared by all stages
    stages: [{stage: sft, steps: 20}, {stage: dpo, steps: 10}, {stage: grpo, steps: 20}]
    out: facts_chain              # below the runs folder, or an absolute path

Good answers are for SFT, good against bad ones for DPO. In place of a file:

    answers: {exact: 100, confidence: [75, 99]}   # 100 training tasks, as their exact check wants
                                                  # them, each with one of these confidences
    pairs: {samples: 2, tasks: 200}   # for DPO: the best against the worst of the model's own
                                      # answers and the one that an exact check accepts
    system: "Answer, and say how sure you are."   # of every task, in place of its own
    evaluate: {max_answer_tokens: 20}  # of held-out prompts (default: as in the grpo stage)

A stage may have a `name`, and `pairs` of its own; `aside: true` tries it and builds nothing on it;
an SFT stage with `teach: outcomes` shows the model its own answers with 99% where they are right
and 1% where they are wrong, with `teach: estimates` with the chance of being right by the kind of
question and the tokens.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..errors import DataError, KitError, at
from ..records import Task
from ..runs import plain
from ..settings.read import COUNT, fitting, known_names, load, make, texts, within
from ..system import paths
from . import inputs, job, line
from .config import STAGES, Settings, from_mapping
from .line import Chain, Stage
from .names import translate
from .quality import Quality, claims, qualities
from .stages import TEACH, OwnPairs, exact_rows, sure, teaching

CONFIGS = Path(__file__).parent / "configs"
KEYS = (
    "tasks",
    "kinds",
    "answers",
    "pairs",
    "ask",
    "system",
    "judge",
    "reward",
    "settings",
    "stages",
    "evaluate",
    "out",
)
TYPES = {
    "kinds": list[str] | None,
    "answers": dict[str, Any] | str | None,
    "pairs": dict[str, Any] | None,
    "settings": dict[str, Any] | None,
    "evaluate": dict[str, Any] | None,
}
OWN = {"name": str, "aside": bool, "teach": str, "pairs": dict[str, Any]}  # beside its settings


@dataclass(frozen=True, kw_only=True)
class Exact:
    """`answers:` of a chain that its tasks' exact checks give: of how many training tasks (None:
    all), and the confidences in percent that they state, one each.
    """

    exact: int | None = None
    confidence: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        percent = (0, 100, "a percentage, from 0 to 100")
        within(vars(self), {"exact": COUNT, "confidence": percent})


@dataclass(frozen=True, kw_only=True)
class ChainReport:
    """The table of a chain, stage by stage; `metrics` is what metrics.json holds. gain : none, the
    table has one per stage.
    """

    out: Path
    table: tuple[Quality, ...]
    metrics: dict[str, Any]

    def text(self) -> str:
        """The table as text, one line per stage; below what broke, and the trivial policies."""
        shown = {
            "net": any(math.isfinite(q.net.value) for q in self.table),
            "ece": any(q.ece.n for q in self.table),
        }
        shown["stated"] = shown["ece"]
        columns = [c for c in _COLUMNS if shown.get(c[1], True)]
        wide = max(len(q.stage) for q in self.table)
        lines = [f"{'stage':{wide}} " + " ".join(f"{name:22}" for name, _ in columns) + " seconds"]
        for q in self.table:
            cells = " ".join(f"{getattr(q, field).span():22}" for _, field in columns)
            took = "" if math.isnan(q.seconds) else f" {q.seconds:.0f}"
            lines.append(f"{q.stage:{wide}} {cells}{took}".rstrip())
        for q in self.table:
            lost = {k: e for k, e in q.kinds.items() if e.high < 0}
            lines += [f"{q.stage} broke {k}: accuracy {e.span()}" for k, e in lost.items()]
        told = self.metrics.get("confidence", {})
        lines += [f"confidence after {n}: {verdict}" for n, verdict in told.items()]
        known = {k: v for k, v in self.metrics["trivial"].items() if v is not None}
        if known:
            best = max(known, key=lambda k: known[k])
            lines.append(
                f"best trivial policy: {best}, reward {known[best]:.3f}; "
                f"{self.table[0].reward.n_clusters} held-out prompts"
            )
        return "\n".join(lines)


_COLUMNS = (
    ("accuracy", "accuracy"),
    ("minus stage before", "step"),
    ("reward", "reward"),
    ("reward minus start", "gain"),
    ("net of guessing", "net"),
    ("ECE of stated conf.", "ece"),
    ("states one", "stated"),
)


def is_chain(path: str | Path) -> bool:
    """True when a config file describes a chain (it has the key `stages`); a file that cannot be
    read is none.
    """
    try:
        return "stages" in load(path)
    except KitError:
        return False


def read(path: str | Path, **changes: Any) -> Chain:
    """A chain from a YAML or JSON file; `changes` replace values of it, names of settings those of
    all stages.
    """
    path = Path(path)
    return build(
        load(path, what="training config"),
        beside=path.parent,
        where=str(path),
        name=path.stem,
        changes=job.here(changes),
    )


def build(
    values: Mapping[str, Any],
    *,
    beside: Path | None = None,
    where: str = "config",
    name: str = "chain",
    changes: Mapping[str, Any] | None = None,
) -> Chain:
    """A chain from a mapping; see the module."""
    changes = dict(changes or {})
    values = {**values, **{k: changes.pop(k) for k in KEYS if k in changes}}
    every = sorted({f.name for c in STAGES.values() for f in fields(c)})
    changes = translate(changes, every, where=where)
    known_names(changes, every, where=where)
    known_names(values, KEYS, where=where, what="key")
    texts(values, ("tasks", "ask", "system", "out"), where=where)
    fitting(TYPES, {k: values[k] for k in TYPES if k in values}, where=where)
    rows = values.get("stages") or ()
    if not rows or isinstance(rows, str) or not all(isinstance(s, Mapping) for s in rows):
        raise KitError(
            "stages is not a list of mappings",
            where=where,
            fix="stages: [{stage: sft}, {stage: grpo}]",
        )

    def settings(own: Mapping[str, Any], place: str) -> Settings:
        kind = STAGES.get(str(own.get("stage", "grpo")), Settings)
        known = {"stage", "preset", *(f.name for f in fields(kind))}
        shared = translate(values.get("settings") or {}, known, where=f"{where}, key settings")
        own = translate(own, known, where=place)
        mine = {k: v for k, v in changes.items() if k in known}
        return from_mapping({**shared, **own, **mine}, where=place)

    made = tuple(_stage(s, i, settings, where) for i, s in enumerate(rows, 1))
    names = [s.name for s in made]
    if twice := sorted({n for n in names if names.count(n) > 1} | {"start"} & set(names)):
        raise KitError(
            f"two stages are called {twice[0]!r}", where=where, fix="give one a name: {name: ...}"
        )
    tasks = _of_kinds(job._tasks(values.get("tasks"), beside, where), values.get("kinds"), where)
    if values.get("system") is not None:
        tasks = tuple(replace(t, system=values["system"]) for t in tasks)
    train, held = inputs.split(job.asking(tasks, values.get("ask")), {}, where)
    taught, pairs = _rows_and_pairs(train, values, made[0].settings.seed, beside, where)
    out = Path(values.get("out") or name).expanduser()
    how = values.get("evaluate")
    return Chain(
        stages=made,
        tasks=train,
        heldout=held,
        rows=taught,
        pairs=pairs,
        sampler=None if how is None else settings(how, f"{where}, key evaluate"),
        judge=job.judge_of(values.get("judge", "none"), where),
        reward=job.reward_of(values.get("reward", "rubric"), beside, where),
        out=out if out.is_absolute() else paths.runs() / out,
    )


def _stage(row: Mapping[str, Any], number: int, settings: Any, where: str) -> Stage:
    kind = str(row.get("stage", "grpo"))
    place = f"{where}, stage {number}"
    own = fitting(OWN, {k: row[k] for k in OWN if row.get(k)}, where=place)
    if "teach" in own and (own["teach"] not in TEACH or kind != "sft"):
        raise KitError(
            f"teach is {own['teach']!r}", where=place, fix="{stage: sft, teach: outcomes}"
        )
    if "pairs" in own:
        if kind != "dpo":
            raise KitError(
                "pairs has no effect here",
                where=f"{place}, {kind}",
                fix="leave it out, or say it in a stage dpo",
            )
        own["pairs"] = make(OwnPairs, own["pairs"], where=f"{place}, key pairs")
    made = settings({k: v for k, v in row.items() if k not in OWN}, place)
    with at(place):
        return Stage(**{"name": kind, **own}, settings=made)


def _of_kinds(tasks: Sequence[Task], kinds: Any, where: str) -> tuple[Task, ...]:
    """The tasks of these kinds; all of them where none is named."""
    if kinds is None:
        return tuple(tasks)
    known_names(kinds, sorted({t.kind or "" for t in tasks}), where=f"{where}, key kinds")
    return tuple(t for t in tasks if t.kind in kinds)


def _rows_and_pairs(
    train: Sequence[Task], values: Mapping[str, Any], seed: int, beside: Path | None, where: str
) -> tuple[Sequence[Any], Any]:
    """Rows for SFT, and pairs for DPO or how the model makes its own."""
    answers, own = values.get("answers"), values.get("pairs")
    if isinstance(answers, Mapping):
        how = make(Exact, answers, where=f"{where}, key answers")
        rows = exact_rows(train[: how.exact], where)
        pairs = []
        if how.confidence:
            rng = random.Random(f"stated/{seed}")
            rows = [sure(r, rng.choice(how.confidence)) for r in rows]
    else:
        rows, pairs = teaching(train, job._rows(answers, beside, where))
    return rows, pairs if own is None else make(OwnPairs, own, where=f"{where}, key pairs")


def run(chain: Chain) -> ChainReport:
    """Run the stages one after the other (a finished one is not run again) and write metrics.json
    with the table.
    """
    got = line.run(chain)
    if not got.evaluations:
        raise DataError(
            "there is nothing to compare",
            where="chain",
            fix="hold out tasks (split: heldout) and give a grpo stage, whose sampling is used",
        )
    seconds = {n: m["seconds_training"] for n, m in got.metrics.items()}
    asides = [s.name for s in chain.stages if s.aside]
    taught = [s.name for s in chain.stages if s.teach]
    pairs = [m["rows"] for m in got.metrics.values() if m["stage"] == "dpo"]
    own = isinstance(chain.pairs, OwnPairs)
    table = tuple(qualities(got.evaluations, chain.heldout, asides=asides, seconds=seconds))
    metrics = plain(
        {
            "stage": "chain",
            "table": [q.row() for q in table],
            "trivial": got.trivial,
            "confidence": claims(got.evaluations, taught, chain.heldout, asides),
            "rows": len(chain.rows),
            "pairs": max(pairs, default=0 if own else len(chain.pairs)),
            "seconds": seconds,
            "model": chain.stages[0].settings.model,
        }
    )
    (chain.out / "metrics.json").write_text(json.dumps(metrics, indent=2), "utf-8")
    return ChainReport(out=chain.out, table=table, metrics=metrics)

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
    pairs: {samples: 2, tasks: 200}   # for DPO: the model's own wrong answers against right ones
    system: "Answer, and say how sure you are."   # of every task, in place of its own
    evaluate: {max_answer_tokens: 20}  # of held-out prompts (default: as in the grpo stage)

A stage may have a `name`, and `pairs` of its own; `aside: true` tries it and builds nothing on it;
an SFT stage with `teach: outcomes` shows the model its own answers with 99% where they are right
and 1% where they are wrong, with `teach: estimates` with the chance of being right by the kind of
question and the tokens.
"""

from __future__ import annotations

import dataclasses
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..checks import accepted
from ..checks.rules import without_confidence
from ..errors import DataError, KitError
from ..records import Response, Task
from ..runs import plain
from ..settings.read import known_names, load, make
from ..system import paths
from . import holdout, job, stages
from .config import STAGES, GRPOSettings, Settings, from_mapping
from .names import translate
from .quality import Quality, claims, correct, qualities, show
from .stages import OwnPairs

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


@dataclass(frozen=True, kw_only=True)
class ChainJob:
    """Everything that `run` needs; rows for SFT and pairs for DPO come from the training tasks
    alone.
    """

    settings: tuple[Settings, ...]
    tasks: tuple[Task, ...]
    heldout: tuple[Task, ...]
    rows: tuple[dict[str, str], ...]
    pairs: tuple[dict[str, str], ...] | OwnPairs
    judge: Any
    reward: Any
    out: Path
    names: tuple[str, ...]
    asides: frozenset[str]
    own: dict[str, OwnPairs]
    taught: dict[str, str]
    sampler: GRPOSettings | None


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
            cells = " ".join(f"{show(getattr(q, field)):22}" for _, field in columns)
            lines.append(f"{q.stage:{wide}} {cells} {_seconds(q.seconds)}".rstrip())
        for q in self.table:
            lost = {k: e for k, e in q.kinds.items() if e.high < 0}
            lines += [f"{q.stage} broke {k}: accuracy {show(e)}" for k, e in lost.items()]
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


def _seconds(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.0f}"


def is_chain(path: str | Path) -> bool:
    """True when a config file describes a chain (it has the key `stages`); a file that cannot be
    read is none.
    """
    try:
        return "stages" in load(path)
    except KitError:
        return False


def read(path: str | Path, **changes: Any) -> ChainJob:
    """A chain from a YAML or JSON file; `changes` replace values of it, names of settings those of
    all stages.
    """
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
    names = _names(stages, where)
    shared = values.get("settings") or {}
    how = values.get("evaluate")
    settings = tuple(
        from_mapping(
            {**shared, **_setting(s), **_for(s, extra, where)},
            where=f"{where}, stage {i + 1}",
        )
        for i, s in enumerate(stages)
    )
    every = job._tasks(values.get("tasks"), beside, where)
    every = _of_kinds(every, values.get("kinds"), where)
    if values.get("system") is not None:
        every = tuple(dataclasses.replace(t, system=str(values["system"])) for t in every)
    train, held = holdout.split(job.asking(every, values.get("ask")), {}, where)
    rows, pairs = _rows_and_pairs(train, values, settings[0].seed, beside, where)
    out = Path(values.get("out") or name).expanduser()
    return ChainJob(
        settings=settings,
        tasks=train,
        heldout=held,
        rows=tuple(rows),
        pairs=pairs if isinstance(pairs, OwnPairs) else tuple(pairs),
        names=names,
        asides=_marked(stages, names, "aside"),
        own={
            n: make(OwnPairs, s["pairs"], where=f"{where}, stage {n!r}, key pairs")
            for n, s in zip(names, stages, strict=True)
            if s.get("pairs")
        },
        taught={n: s["teach"] for n, s in zip(names, stages, strict=True) if s.get("teach")},
        sampler=None if how is None else from_mapping({**shared, **how, **_for({}, extra, where)}),
        judge=job.judge_of(values.get("judge", "none"), where),
        reward=values.get("reward", "rubric"),
        out=out if out.is_absolute() else paths.runs() / out,
    )


def _of_kinds(tasks: Sequence[Task], kinds: Any, where: str) -> tuple[Task, ...]:
    """The tasks of these kinds; all of them where none is named."""
    if kinds is None:
        return tuple(tasks)
    known_names(kinds, sorted({t.kind or "" for t in tasks}), where=f"{where}, key kinds")
    return tuple(t for t in tasks if t.kind in kinds)


def _names(stages: Sequence[Mapping[str, Any]], where: str) -> tuple[str, ...]:
    """What the stages are called, in the table and as folders."""
    names = tuple(str(s.get("name") or s.get("stage", "grpo")) for s in stages)
    twice = sorted({n for n in names if names.count(n) > 1} | {"start"} & set(names))
    if twice:
        raise KitError(
            f"two stages are called {twice[0]!r}", where=where, fix="give one a name: {name: ...}"
        )
    for s in stages:
        if s.get("teach") not in (None, *TEACH) or (s.get("teach") and s["stage"] != "sft"):
            raise KitError(
                f"teach is {s['teach']!r}", where=where, fix="{stage: sft, teach: outcomes}"
            )
    return names


def _marked(stages: Sequence[Mapping[str, Any]], names: Sequence[str], key: str) -> frozenset[str]:
    return frozenset(n for n, s in zip(names, stages, strict=True) if s.get(key))


def _setting(stage: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in stage.items() if k not in ("name", "aside", "teach", "pairs")}


def _rows_and_pairs(
    train: Sequence[Task], values: Mapping[str, Any], seed: int, beside: Path | None, where: str
) -> tuple[Sequence[Any], Any]:
    """Rows for SFT, and pairs for DPO or how the model makes its own."""
    answers, own = values.get("answers"), values.get("pairs")
    if isinstance(answers, Mapping):
        known_names(answers, ["exact", "confidence"], where=f"{where}, key answers")
        rows, pairs = exact_rows(train[: answers.get("exact")], where), []
        if answers.get("confidence"):
            rng = random.Random(f"stated/{seed}")
            rows = [_sure(r, rng.choice(answers["confidence"])) for r in rows]
    else:
        rows, pairs = teaching(train, job._rows(answers, beside, where))
    return rows, pairs if own is None else make(OwnPairs, own, where=f"{where}, key pairs")


def _sure(row: Mapping[str, str], percent: int) -> dict[str, str]:
    return {**row, "response": f"{row['response']}. Confidence: {percent}%"}


def exact_rows(tasks: Sequence[Task], where: str = "tasks") -> list[dict[str, str]]:
    """SFT rows {system, prompt, response} with the answer that each task's exact check accepts."""
    out = []
    for t in tasks:
        right = accepted(t)
        if right is None:
            raise DataError(
                "no exact check says what is right",
                where=f"{where}, task {t.id!r}",
                fix="give `answers` a file",
            )
        out.append(_row(t, right))
    return out


def _row(task: Task, text: str) -> dict[str, str]:
    row = {"prompt": task.prompt, "response": text}
    return {"system": task.system, **row} if task.system else row


def outcome_rows(tasks: Sequence[Task], answers: Sequence[Response]) -> list[dict[str, str]]:
    """SFT rows of a model's own answers, each stating 99% where it is right and 1% where it is
    wrong.

    Under the cross-entropy, a proper score, the best that a model can do is to say 99% as often as
    it is right. Cut, empty and undecided answers are left out.
    """
    known = _decided(tasks, answers)
    return [_sure(_row(t, said), 99 if right else 1) for t, said, right, _ in known]


def estimate_rows(tasks: Sequence[Task], answers: Sequence[Response]) -> list[dict[str, str]]:
    """SFT rows of a model's own answers, each stating the nearest of `LEVELS` to its chance to be
    right.

    The chance is a logistic regression of the outcomes on the kind of question and the logit of the
    answer's token probability, with a ridge of 1: the outcomes without their noise.
    """
    import numpy as np

    from ..calibration.significance import logit_fit

    known = [k for k in _decided(tasks, answers) if k[3] is not None]
    if not known:
        raise DataError(
            "no answer is decided and has a token probability", where="teach: estimates"
        )
    kinds = sorted({t.kind or "" for t, *_ in known})
    of_kind = np.array([[float(t.kind == kind) for kind in kinds] for t, *_ in known])
    token = np.clip([k[3] for k in known], 0.01, 0.99)
    design = np.column_stack([np.ones(len(known)), of_kind, np.log(token / (1 - token))])
    right = np.array([k[2] for k in known])
    beta, _ = logit_fit(design, right, np.ones(len(known)), ridge=1.0)
    chance = 100 / (1 + np.exp(-design @ beta))
    levels = [min(LEVELS, key=lambda level: abs(level - c)) for c in chance]
    return [_sure(_row(t, said), n) for (t, said, *_), n in zip(known, levels, strict=True)]


LEVELS = (1, 10, 25, 50, 75, 90, 99)  # percent that are taught


def _decided(
    tasks: Sequence[Task], answers: Sequence[Response]
) -> list[tuple[Task, str, float, float | None]]:
    """Task, answer without a stated confidence, right (1.0) or wrong, and token probability."""
    by_id, out = {t.id: t for t in tasks}, []
    for r in answers:
        said = without_confidence(r.text).strip().rstrip(".")
        right = correct(by_id[r.task_id], r)
        if said and right is not None and not r.truncated:
            out.append((by_id[r.task_id], said, right, r.confidence))
    return out


# How each way to teach makes its rows, and at which temperature the model answers for it.
TEACH: dict[str, tuple[Callable[..., list[dict[str, str]]], float | None]] = {
    "outcomes": (outcome_rows, None),
    "estimates": (estimate_rows, 0.0),
}


def teaching(
    tasks: Sequence[Task], answers: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """SFT rows {prompt, response} from good answers, and pairs {prompt, chosen, rejected} good
    against bad, on these tasks alone.

    Every answer ends with its stated confidence in the same words, "Confidence: 97%"; answers
    without a number are left out.
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


def _maker(how: str, tasks: Sequence[Task]) -> stages.Maker:
    make, heat = TEACH[how]
    return partial(make, tasks), heat


def run(chain: ChainJob) -> ChainReport:
    """Run the stages one after the other (a finished one is not run again) and write metrics.json
    with the table.
    """
    got = stages.chain(
        chain.settings,
        out=chain.out,
        sft_rows=chain.rows,
        pairs=chain.pairs,
        tasks=chain.tasks,
        heldout=chain.heldout,
        judge=chain.judge,
        composer=chain.reward,
        names=chain.names,
        asides=chain.asides,
        makers={n: _maker(how, chain.tasks) for n, how in chain.taught.items()},
        sampler=chain.sampler,
        own=chain.own,
    )
    if not got.evaluations:
        raise DataError(
            "there is nothing to compare",
            where="chain",
            fix="hold out tasks (split: heldout) and give a grpo stage, whose sampling is used",
        )
    folders = {n: chain.out / f"{i}_{n}" for i, n in enumerate(chain.names, 1)}
    left = {n: json.loads((f / "metrics.json").read_text("utf-8")) for n, f in folders.items()}
    seconds = {n: m["seconds_training"] for n, m in left.items()}
    table = tuple(qualities(got.evaluations, chain.heldout, asides=chain.asides, seconds=seconds))
    metrics = plain(
        {
            "stage": "chain",
            "table": [q.row() for q in table],
            "trivial": got.trivial,
            "confidence": claims(got.evaluations, chain.taught, chain.heldout, chain.asides),
            "rows": len(chain.rows),
            "pairs": _pairs(chain, left),
            "seconds": seconds,
            "model": chain.settings[0].model,
        }
    )
    (chain.out / "metrics.json").write_text(json.dumps(metrics, indent=2), "utf-8")
    return ChainReport(out=chain.out, table=table, metrics=metrics)


def _pairs(chain: ChainJob, left: Mapping[str, Mapping[str, Any]]) -> int:
    """Pairs that a DPO stage had, or would have."""
    if isinstance(chain.pairs, OwnPairs):
        return max([m["rows"] for m in left.values() if m["stage"] == "dpo"], default=0)
    return len(chain.pairs)


def _for(stage: Mapping[str, Any], changes: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The changes that this stage has a setting for; a name that no stage knows raises."""
    names = {k: {f.name for f in dataclasses.fields(c)} for k, c in STAGES.items()}
    every = set().union(*names.values())
    known_names(changes, sorted(every), where=where)
    return {k: v for k, v in changes.items() if k in names.get(str(stage.get("stage", "grpo")), ())}

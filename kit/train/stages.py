"""SFT and DPO, and the chain SFT -> DPO -> GRPO: each stage alone, or one after the other with the
adapter merged between.

DPO holds the policy to the model that the stage starts from; in a chain that is the merged SFT
model, as in BioRLHF.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..checks import accepted
from ..errors import DataError, KitError
from ..records import Response, Task, fingerprint, response_from_json, to_json
from ..runs import plain
from . import engine, evaluation, export, inputs, needs, packed_rows, rollouts, world
from .config import DPOSettings, GRPOSettings, Settings, SFTSettings, merged, to_mapping
from .models import Loaded, load
from .resume import (
    drop_reference,
    last_checkpoint,
    mark_folder,
    resumable,
    save_adapter,
    step_of,
)
from .reward import Reward
from .trainer import common_options


@dataclass(frozen=True, kw_only=True)
class StageResult:
    """What a supervised stage left behind: adapter/ in `out`, one row per step, metrics.json."""

    out: Path
    settings: Settings
    metrics: dict[str, Any]

    @property
    def adapter(self) -> Path:
        """The folder of the trained adapter."""
        return self.out / "adapter"

    def steps(self) -> list[dict[str, Any]]:
        """One row per step: loss, and for DPO the margin and accuracy of the rewards."""
        return rollouts.read_steps(self.out)


def train(
    settings: Settings,
    rows: Sequence[Mapping[str, Any]],
    *,
    out: str | Path,
    resume: bool = False,
    on_step: Callable[[dict[str, Any]], None] | None = None,
    loaded: Loaded | None = None,
) -> StageResult:
    """SFT on rows {prompt, response} or {text}, DPO on {prompt, chosen, rejected}; each may have a
    `system`.
    """
    out = Path(out)
    needs.check(settings)
    if not resume and (out / rollouts.STEPS).exists():
        raise KitError(
            "this folder already holds a run",
            where=str(out),
            fix="choose another folder, or resume=True",
        )
    out.mkdir(parents=True, exist_ok=True)
    data = _dpo_rows(rows) if isinstance(settings, DPOSettings) else _sft_rows(rows)
    mark_folder(out, {"settings": to_mapping(settings), "rows": fingerprint(data)}, resume)
    loaded = loaded or load(settings)
    data = inputs.fitting(data, loaded.tokenizer, settings)
    log, started = rollouts.Log(out / rollouts.STEPS), time.perf_counter()
    checkpoint = last_checkpoint(out) if resume else None
    if resume:
        log.rewind(step_of(checkpoint) if checkpoint else 0)
    trainer = _trainer(settings, loaded, data, out, log, on_step)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    seconds = time.perf_counter() - started
    drop_reference(loaded.model)
    save_adapter(loaded.model, out / "adapter")
    loaded.tokenizer.save_pretrained(str(out / "adapter"))
    steps = rollouts.read_steps(out)
    metrics = plain(
        {
            "stage": settings.stage,
            "steps": len(steps),
            "rows": len(data),
            "seconds_training": seconds,
            "engine": loaded.engine,
            "engine_why": loaded.why,
            "device": loaded.device.name,
            "dtype": loaded.device.dtype,
            "dtype_why": loaded.device.why,
            "model": settings.model,
            "seed": settings.seed,
            "first_loss": steps[0]["loss"],
            "last_loss": steps[-1]["loss"],
        }
    )
    (out / "metrics.json").write_text(json.dumps(metrics, indent=2), "utf-8")
    return StageResult(out=out, settings=settings, metrics=metrics)


Maker = tuple[Callable[[list[Response]], Sequence[Mapping[str, Any]]], float | None]


@dataclass(frozen=True, kw_only=True)
class ChainResult:
    """The stages' results in order, and the same held-out evaluation before the first and after
    each.
    """

    stages: tuple[Any, ...]
    evaluations: tuple[evaluation.Evaluation, ...]
    trivial: dict[str, float | None] = field(default_factory=dict)

    def table(self) -> list[dict[str, Any]]:
        """One row per stage: held-out reward with its interval, and the paired difference to the
        start.
        """
        out = []
        for e in self.evaluations:
            reward = e.reward()
            gain = evaluation.compare(self.evaluations[0], e).reward
            out.append(
                {
                    "stage": e.name,
                    "reward": reward.value,
                    "low": reward.low,
                    "high": reward.high,
                    "gain": gain.value,
                    "gain_low": gain.low,
                    "gain_high": gain.high,
                    "n": reward.n,
                    "prompts": reward.n_clusters,
                }
            )
        return out


def chain(
    settings: Sequence[Settings],
    *,
    out: str | Path,
    sft_rows: Sequence[Mapping[str, Any]] = (),
    pairs: Sequence[Mapping[str, Any]] | OwnPairs = (),
    tasks: Sequence[Task] = (),
    heldout: Sequence[Task] = (),
    judge: Any = None,
    composer: Any = "rubric",
    names: Sequence[str] = (),
    asides: Collection[str] = (),
    makers: Mapping[str, Maker] | None = None,
    sampler: GRPOSettings | None = None,
    own: Mapping[str, OwnPairs] | None = None,
) -> ChainResult:
    """Run stages one after the other; after each the adapter is merged, and the next one trains a
    new adapter on that model.

    names : of the stages, for folders and the table (default: their kinds); asides : names of
    stages whose model the next one does not start from, as a second DPO with another beta. makers :
    for SFT stages by name, what makes rows of the answers of the model so far to training tasks
    that `sft_rows` do not show, and their temperature. own : pairs of the model's own answers for
    DPO stages by name, in place of `pairs`. Held-out prompts are answered and graded before the
    first stage and after each, with the sampling of `sampler`, by default the last GRPO settings'.
    A stage whose folder is finished is not run again, so that a chain goes on after a kill.
    """
    from ..rewards.composer import Composer
    from . import answers

    out, model = Path(out), settings[0].model
    composer = composer if isinstance(composer, Composer) else Composer.from_config(composer)
    reward = Reward(
        tasks=[*tasks, *heldout], judge=judge, composer=composer, ledger=out / "ledger.sqlite"
    )
    line = _Line(
        out=out,
        rows=sft_rows,
        pairs=pairs,
        tasks=tasks,
        heldout=heldout,
        judge=judge,
        composer=composer,
        reward=reward,
        sampler=sampler
        or next((s for s in reversed(settings) if isinstance(s, GRPOSettings)), None),
        makers=makers or {},
        own=own or {},
    )
    out.mkdir(parents=True, exist_ok=True)
    names = list(names) or [s.stage for s in settings]
    line.look("start", model)
    for i, (s, name) in enumerate(zip(settings, names, strict=True)):
        folder = out / f"{i + 1}_{name}"
        line.run(name, dataclasses.replace(s, model=model), folder)
        line.look(name, str(folder / "merged"))
        if name not in asides:
            model = str(folder / "merged")
    return ChainResult(
        stages=tuple(line.results),
        evaluations=tuple(line.evaluations),
        trivial=answers.trivial_rewards(heldout, reward) if line.evaluations else {},
    )


@dataclass(kw_only=True)
class _Line:
    """What the stages of a chain share, and what they left so far."""

    out: Path
    rows: Sequence[Mapping[str, Any]]
    pairs: Sequence[Mapping[str, Any]] | OwnPairs
    tasks: Sequence[Task]
    heldout: Sequence[Task]
    judge: Any
    composer: Any
    reward: Reward
    sampler: GRPOSettings | None
    makers: Mapping[str, Maker]
    own: Mapping[str, OwnPairs]
    results: list[Any] = field(default_factory=list)
    evaluations: list[evaluation.Evaluation] = field(default_factory=list)

    def look(self, name: str, source: str) -> None:
        """Answer and grade the held-out prompts; what a killed chain already has is read."""
        s = self.sampler
        if s is None or not self.heldout:
            return
        heat = s.temperature if s.eval_temperature is None else s.eval_temperature
        mark = fingerprint([s.max_answer_tokens, heat, s.top_p, s.top_k, s.eval_samples, s.seed])
        path = self.out / f"eval_{name}_{mark[:8]}.json"
        if not path.exists():
            from . import answers

            loaded = self._bare(source)
            answers.evaluate(loaded, self.heldout, self.reward, settings=s, name=name).save(path)
        self.evaluations.append(evaluation.read(path))

    def run(self, name: str, settings: Settings, folder: Path) -> None:
        """One stage, and its adapter merged; a finished one is left as it is."""
        if (folder / "merged" / "config.json").exists():
            return
        self.results.append(self._train(name, settings, folder))
        export.merge(settings.model, folder / "adapter", folder / "merged")

    def _train(self, name: str, settings: Settings, folder: Path) -> Any:
        from . import grpo

        if isinstance(settings, GRPOSettings):
            return grpo.train(
                settings,
                self.tasks,
                judge=self.judge,
                composer=self.composer,
                out=folder,
                ledger=self.out / "ledger.sqlite",
                resume=True,
            )
        rows = self.rows
        if name in self.makers:
            make, heat = self.makers[name]
            rows = self._own(settings.model, self._fresh(), 1, make, heat)
        elif isinstance(settings, DPOSettings):
            rows = self._pairs(self.own.get(name, self.pairs), settings.model)
        return train(settings, rows, out=folder, resume=True)

    def _fresh(self) -> list[Task]:
        """Training tasks whose answer was not shown."""
        shown = {r.get("prompt") for r in self.rows}
        return [t for t in self.tasks if t.prompt not in shown]

    def _pairs(
        self, pairs: Sequence[Mapping[str, Any]] | OwnPairs, source: str
    ) -> Sequence[Mapping[str, Any]]:
        if not isinstance(pairs, OwnPairs):
            return pairs
        tasks = self.tasks[: pairs.tasks]

        def make(found: list[Response]) -> list[dict[str, str]]:
            grades = answers.wait(self.reward.grade(found))
            return pairs_from(tasks, list(zip(found, grades, strict=True)))

        from . import answers

        return self._own(source, tasks, pairs.samples, make)

    def _own(
        self,
        source: str,
        tasks: Sequence[Task],
        samples: int,
        make: Callable[[Any], Any],
        heat: float | None = None,
    ) -> list[dict[str, Any]]:
        """Rows made of this model's answers, which are sampled once and kept beside the stages."""
        mark = fingerprint([source, samples, [t.id for t in tasks], heat])
        path = self.out / f"answers_{mark[:8]}.json"
        if path.exists():
            found = [response_from_json(r) for r in json.loads(path.read_text("utf-8"))]
            return list(make(found))
        from . import answers

        if self.sampler is None:
            raise KitError(
                "rows from the model's own answers need a grpo stage, whose sampling is used",
                where="keys pairs, teach",
                fix="add a grpo stage, or say how with `evaluate: {max_answer_tokens: 20}`",
            )
        s = self.sampler
        more = dict(samples=samples, settings=s, seed=s.seed + 20_000, temperature=heat)
        found = answers.sample_answers(self._bare(source), tasks, **more)
        path.write_text(json.dumps([to_json(r) for r in found]), "utf-8")
        return list(make(found))

    def _bare(self, source: str) -> Loaded:
        """A model with a fresh adapter, which changes nothing."""
        return load(dataclasses.replace(self.sampler, model=source, adapter=None))


@dataclass(frozen=True, kw_only=True)
class OwnPairs:
    """Pairs from the model's own answers: `samples` a task to the first `tasks` training tasks
    (None: all).
    """

    samples: int = 2
    tasks: int | None = None


def pairs_from(
    tasks: Sequence[Task], graded: Sequence[tuple[Any, Any]], *, margin: float = 0.0
) -> list[dict[str, str]]:
    """Preference pairs from graded answers (response, grade): the best against the worst of each
    prompt, if further apart than `margin`.

    Where an exact check says what is right, that is chosen, sampled or not. Answers whose score is
    unknown, and empty ones, take no part.
    """
    by_task: dict[str, list[tuple[float, str]]] = {}
    for r, g in graded:
        if g.score is not None and r.text.strip():
            by_task.setdefault(r.task_id, []).append((g.score, r.text))
    out = []
    for t in tasks:
        found = sorted(by_task.get(t.id, []))
        best = accepted(t)
        if best is not None:
            found.append((1.0, best))
        if len(found) > 1 and found[-1][0] - found[0][0] > margin:
            row = {"prompt": t.prompt, "chosen": found[-1][1], "rejected": found[0][1]}
            out.append({"system": t.system, **row} if t.system else row)
    return out


def _trainer(
    settings: Settings,
    loaded: Loaded,
    data: list[dict[str, Any]],
    out: Path,
    log: rollouts.Log,
    on_step: Any,
) -> Any:
    import trl
    from datasets import Dataset
    from transformers.trainer_callback import PrinterCallback

    from .monitor import LossLog

    dpo = isinstance(settings, DPOSettings)
    config_class = trl.DPOConfig if dpo else trl.SFTConfig
    batch = settings.batch  # type: ignore[attr-defined]
    micro = settings.micro_rows or batch
    if batch % micro:
        raise KitError(
            f"{batch} rows cannot be split into micro-batches of {micro}",
            where="setting micro_rows",
        )
    values = common_options(settings, loaded, str(out / "checkpoints")) | dict(
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=batch // micro,
        max_length=settings.max_tokens,  # type: ignore[attr-defined]
    )
    if dpo:
        values["beta"] = settings.beta  # type: ignore[attr-defined]
    elif "prompt" in data[0]:
        values["completion_only_loss"] = settings.answer_only  # type: ignore[attr-defined]
    values = merged(values, settings.options, config_class)
    plain = resumable(trl.DPOTrainer if dpo else trl.SFTTrainer)
    hooks = packed_rows.DPOHooks if dpo else packed_rows.SFTHooks
    trainer = type(f"Kit{plain.__name__}", (hooks, plain), {})(
        model=loaded.model,
        args=config_class(**values),
        train_dataset=Dataset.from_list(data),
        processing_class=loaded.tokenizer,
        callbacks=[LossLog(log, on_step, settings.stage)],
    )
    trainer.remove_callback(PrinterCallback)
    if loaded.engine == "transformers" and world.size() == 1 and not engine.fast_ok(loaded.model):
        trainer.kit_setup()
    return trainer


def _chat(role: str, text: str) -> list[dict[str, str]]:
    return [{"role": role, "content": text}]


def _asked(row: Mapping[str, Any]) -> list[dict[str, str]]:
    """The chat that a row's answer follows: its system text, where it has one, and the question."""
    system = _chat("system", row["system"]) if row.get("system") else []
    return [*system, *_chat("user", row["prompt"])]


def _sft_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for i, r in enumerate(rows, 1):
        answer = r.get("response", r.get("completion"))
        if isinstance(r.get("text"), str) and "prompt" not in r:
            inputs.filled(r, ("text",), f"row {i}")
            out.append({"text": r["text"]})
        elif isinstance(r.get("prompt"), str) and isinstance(answer, str):
            inputs.filled({"response": answer}, ("response",), f"row {i}")
            inputs.whole(r["prompt"], "the field 'prompt'", f"row {i}")
            out.append({"prompt": _asked(r), "completion": _chat("assistant", answer)})
        else:
            raise DataError(
                "a row needs prompt and response, or text", where=f"row {i}, fields {sorted(r)[:6]}"
            )
    return _some(out)


def _dpo_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    out = []
    for i, r in enumerate(rows, 1):
        for name in ("prompt", "chosen", "rejected"):
            if not isinstance(r.get(name), str):
                raise DataError(
                    f"a pair needs the text {name!r}", where=f"row {i}, fields {sorted(r)[:6]}"
                )
        inputs.filled(r, ("prompt", "chosen"), f"row {i}")
        inputs.whole(r["rejected"], "the field 'rejected'", f"row {i}")
        if r["chosen"] == r["rejected"]:
            raise DataError(
                "chosen and rejected are the same text",
                where=f"row {i}",
                fix="leave the pair out: it has no gradient",
            )
        out.append(
            {
                "prompt": _asked(r),
                "chosen": _chat("assistant", r["chosen"]),
                "rejected": _chat("assistant", r["rejected"]),
            }
        )
    return _some(out)


def _some(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not rows:
        raise DataError("there are no training rows", where="rows")
    return rows


__all__ = ["ChainResult", "SFTSettings", "StageResult", "chain", "pairs_from", "train"]

"""SFT and DPO, and the chain SFT -> DPO -> GRPO: each stage alone, or one after the other with the adapter merged between.

DPO holds the policy to the model that the stage starts from; in a chain that is the merged SFT model, as in BioRLHF.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DataError, KitError
from ..records import Task, fingerprint
from ..runs import plain
from . import evaluation, export, needs, rollouts
from .config import DPOSettings, GRPOSettings, Settings, SFTSettings, check_options, to_mapping
from .models import Loaded, load
from .resume import (
    drop_reference,
    last_checkpoint,
    mark_folder,
    resumable,
    save_adapter,
    step_of,
)
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
    """Run SFT on rows {prompt, response} or {text}, or DPO on rows {prompt, chosen, rejected}."""
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


@dataclass(frozen=True, kw_only=True)
class ChainResult:
    """The stages' results in order, and the same held-out evaluation before the first and after each."""

    stages: tuple[Any, ...]
    evaluations: tuple[evaluation.Evaluation, ...]
    trivial: dict[str, float | None] = field(default_factory=dict)

    def table(self) -> list[dict[str, Any]]:
        """One row per stage: held-out reward with its interval, and the paired difference to the start."""
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
    pairs: Sequence[Mapping[str, Any]] = (),
    tasks: Sequence[Task] = (),
    heldout: Sequence[Task] = (),
    judge: Any = None,
    composer: Any = "rubric",
) -> ChainResult:
    """Run stages one after the other; after each the adapter is merged, and the next one trains a new adapter on that model.

    Held-out prompts are answered and graded before the first stage and after each, with the last GRPO settings' sampling.
    A stage whose folder is finished is not run again, so that a chain goes on after a kill.
    """
    from ..rewards.composer import Composer
    from . import answers, grpo
    from .reward import Reward

    out, results, evaluations, model = Path(out), [], [], settings[0].model
    composer = composer if isinstance(composer, Composer) else Composer.from_config(composer)
    sampler = next((s for s in reversed(settings) if isinstance(s, GRPOSettings)), None)
    reward = (
        Reward(
            tasks=[*tasks, *heldout], judge=judge, composer=composer, ledger=out / "ledger.sqlite"
        )
        if heldout and sampler
        else None
    )

    def look(name: str, source: str) -> None:
        if reward is None or sampler is None:
            return
        mark = fingerprint(
            [
                sampler.max_answer_tokens,
                sampler.temperature,
                sampler.top_p,
                sampler.top_k,
                sampler.eval_samples,
                sampler.seed,
            ]
        )
        path = (
            out / f"eval_{name}_{mark[:8]}.json"
        )  # a chain that goes on after a kill does not answer again
        if not path.exists():
            loaded = load(
                dataclasses.replace(sampler, model=source, adapter=None)
            )  # a fresh adapter changes nothing
            answers.evaluate(loaded, heldout, reward, settings=sampler, name=name).save(path)
        evaluations.append(evaluation.read(path))

    out.mkdir(parents=True, exist_ok=True)
    look("start", model)
    for i, s in enumerate(settings):
        folder = out / f"{i + 1}_{s.stage}"
        s = dataclasses.replace(s, model=model)
        if not (folder / "merged" / "config.json").exists():
            if isinstance(s, GRPOSettings):
                results.append(
                    grpo.train(
                        s,
                        tasks,
                        judge=judge,
                        composer=composer,
                        out=folder,
                        ledger=out / "ledger.sqlite",
                        resume=True,
                    )
                )
            else:
                results.append(
                    train(
                        s,
                        pairs if isinstance(s, DPOSettings) else sft_rows,
                        out=folder,
                        resume=True,
                    )
                )
            export.merge(model, folder / "adapter", folder / "merged")
        model = str(folder / "merged")
        look(s.stage, model)
    return ChainResult(
        stages=tuple(results),
        evaluations=tuple(evaluations),
        trivial=answers.trivial_rewards(heldout, reward) if reward else {},
    )


def pairs_from(
    tasks: Sequence[Task], graded: Sequence[tuple[Any, Any]], *, margin: float = 0.0
) -> list[dict[str, str]]:
    """Preference pairs from graded answers (response, grade): the best against the worst of each prompt, if further apart than `margin`.

    Answers whose score is unknown take no part.
    """
    by_task: dict[str, list[tuple[float, str]]] = {}
    for r, g in graded:
        if g.score is not None:
            by_task.setdefault(r.task_id, []).append((g.score, r.text))
    out = []
    for t in tasks:
        found = sorted(by_task.get(t.id, []))
        if len(found) > 1 and found[-1][0] - found[0][0] > margin:
            out.append({"prompt": t.prompt, "chosen": found[-1][1], "rejected": found[0][1]})
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
    values |= dict(settings.options)
    check_options(values, config_class)
    trainer = resumable(trl.DPOTrainer if dpo else trl.SFTTrainer)(
        model=loaded.model,
        args=config_class(**values),
        train_dataset=Dataset.from_list(data),
        processing_class=loaded.tokenizer,
        callbacks=[LossLog(log, on_step, settings.stage)],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _chat(role: str, text: str) -> list[dict[str, str]]:
    return [{"role": role, "content": text}]


def _sft_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for i, r in enumerate(rows, 1):
        answer = r.get("response", r.get("completion"))
        if isinstance(r.get("text"), str) and "prompt" not in r:
            out.append({"text": r["text"]})
        elif isinstance(r.get("prompt"), str) and isinstance(answer, str):
            out.append(
                {"prompt": _chat("user", r["prompt"]), "completion": _chat("assistant", answer)}
            )
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
        if r["chosen"] == r["rejected"]:
            raise DataError(
                "chosen and rejected are the same text",
                where=f"row {i}",
                fix="leave the pair out: it has no gradient",
            )
        out.append(
            {
                "prompt": _chat("user", r["prompt"]),
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

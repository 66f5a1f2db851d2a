"""SFT and DPO: one supervised stage, alone or in a chain (kit.train.line), and what it learns from:
rows of a file, of checks that say what is right, or of the model's own answers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from ..checks import accepted
from ..checks.rules import without_confidence
from ..data import load_tasks
from ..data.words import held_out
from ..errors import DataError
from ..records import AFTER, Response, Task, fingerprint, grouped, is_held_out, is_number
from ..runs import plain
from ..settings.read import COUNT, within
from . import engine, inputs, packing, rollouts, world
from .answers import messages
from .config import DPOSettings, Settings, divided, merged, to_mapping
from .models import Loaded, load, weights
from .quality import correct
from .rehearsal import SAID, rehearse
from .resume import (
    Resumable,
    drop_reference,
    last_checkpoint,
    mark_folder,
    save_adapter,
    step_of,
)
from .trainer import common_options

logger = logging.getLogger(__name__)


def train(
    settings: Settings,
    rows: Sequence[Mapping[str, Any]],
    *,
    out: str | Path,
    resume: bool = False,
    on_step: Callable[[dict[str, Any]], None] | None = None,
    loaded: Loaded | None = None,
) -> rollouts.Result:
    """SFT on rows {prompt, response} or {text}, DPO on {prompt, chosen, rejected}; each may have a
    `system`, a `history`, the turns before the prompt, `sources`, and `turns_after_prompt`, which
    the answer goes on from: of no turn but the answer anything is learned. A {text} is learned as
    it stands, with a warning: all that is asked later is asked in the model's chat layout.
    """
    out = Path(out)
    ready(settings)
    with inputs.alone(out, resume=resume):
        out.mkdir(parents=True, exist_ok=True)
        data = learned(settings, rows)
        mark = {
            "settings": to_mapping(settings),
            "rows": fingerprint(data),
            "set of weights": weights(settings.model, settings.adapter),
        }
        mark_folder(out / rollouts.SETTINGS, mark, resume)
        loaded = loaded or load(settings)
        data = inputs.fitting(data, loaded.tokenizer, settings)
        log = rollouts.Log(out / rollouts.STEPS)
        started = time.perf_counter()
        checkpoint = last_checkpoint(out) if resume else None
        begun = step_of(checkpoint) if checkpoint else 0
        if resume:
            log.rewind(begun)
        spent_before = rollouts.spent(rollouts.read_steps(out))
        trainer = _trainer(settings, loaded, data, out, log, on_step)
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        seconds = time.perf_counter() - started + spent_before
        drop_reference(loaded.model)
        save_adapter(loaded.model, loaded.tokenizer, out / "adapter")
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
        metrics = rollouts.record(out, metrics, begun=begun)
        return rollouts.Result(out=out, settings=settings, metrics=metrics)


def ready(settings: Settings) -> None:
    """An error for settings that this stage, or trl, would refuse later; nothing is written."""
    inputs.check(settings)

    def trainer(tiny: Settings, loaded: Loaded, out: Path) -> Any:
        log = rollouts.Log(out / rollouts.STEPS)
        return _trainer(tiny, loaded, learned(tiny, [SAID]), out, log, None)

    rehearse(settings, trainer)


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
    divided(batch, micro, "micro_rows")
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
    plain = trl.DPOTrainer if dpo else trl.SFTTrainer
    hooks = packing.DPOHooks if dpo else packing.SFTHooks
    trainer = type(f"Kit{plain.__name__}", (hooks, Resumable, plain), {})(
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


CONTEXT = ("prompt", "system", "history", "sources")  # of a task, what its answer goes on from


def _chat(role: str, text: str) -> list[dict[str, str]]:
    return [{"role": role, "content": text}]


def asked(row: Mapping[str, Any]) -> list[dict[str, str]]:
    """The chat that a row's answer follows, as a task of that text is asked."""
    said = {k: row[k] for k in CONTEXT if k in row}
    return messages(Task(id="row", **said, meta={AFTER: row.get(AFTER, ())}))


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
            out.append({"prompt": asked(r), "completion": _chat("assistant", answer)})
        else:
            raise DataError(
                "a row needs prompt and response, or text", where=f"row {i}, fields {sorted(r)[:6]}"
            )
        if out[-1].keys() != out[0].keys():
            raise DataError(
                "some rows are prompt and response, others text",
                where=f"row {i}",
                fix="write all in one form",
            )
    return out


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
                "prompt": asked(r),
                "chosen": _chat("assistant", r["chosen"]),
                "rejected": _chat("assistant", r["rejected"]),
            }
        )
    return out


def of_file(path: Path, stage: str) -> tuple[dict[str, Any], ...]:
    """Rows for `train` from a file, each as kit.load reads it: a text in the "### Instruction: /
    ### Response:" layout is a prompt and its answer. Answers marked as undesired, and prompts that
    some row holds out, are left out, with a warning.
    """
    found = load_tasks(path, stage)
    harmless = ("duplicate-id", "empty-prompt")  # `learned` has its own word on empty texts
    serious = [f for f in found.findings if f.code not in harmless]
    given = replace(found, findings=serious).sound().responses
    each = grouped((r.task_id, (r.meta["role"], r.text)) for r in given)
    rows = []
    answers = {t.id: dict(each.get(t.id, ())) for t in found.tasks}
    asks = {t.id: t.prompt or answers[t.id].get("demonstration", "") for t in found.tasks}
    held = held_out([replace(t, prompt=asks[t.id]) for t in found.tasks])  # a text is its own
    for t in found.tasks:
        said = answers[t.id]
        split = "heldout" if t.id in held else None
        row = {**_context(t), "split": split}
        if "demonstration" in said and not t.prompt and "layout" in t.meta:
            rows.append({"text": t.meta["layout"], "split": split})
        elif "demonstration" in said:
            rows.append({**row, "response": said["demonstration"]})
        elif "chosen" in said:
            rows.append({**row, **said})
    if bad := len(found.tasks) - len(rows):
        logger.warning("%s: %d answers are marked as undesired: not trained on", path, bad)
    return tuple(rows)


def learned(settings: Settings, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows as trl reads them; DataError for one that nothing can be learned from."""
    made = _dpo_rows(rows) if isinstance(settings, DPOSettings) else _sft_rows(rows)
    kept = [m for m, r in zip(made, rows, strict=True) if not is_held_out(r.get("split"))]
    if len(kept) < len(made):
        logger.warning(
            "%d rows are not trained on: their split holds them out", len(made) - len(kept)
        )
    if not kept:
        raise DataError("there are no training rows", where="rows")
    if "text" in kept[0]:
        logger.warning(
            "rows of {text} are learned whole, as they stand: DPO, GRPO and evaluations ask in the "
            "model's chat layout, which {prompt, response} teaches"
        )
    return kept


@dataclass(frozen=True, kw_only=True)
class OwnPairs:
    """Pairs from the model's own answers: `samples` a task to the first `tasks` training tasks
    (None: all).
    """

    samples: int = 2
    tasks: int | None = None

    def __post_init__(self) -> None:
        within(vars(self), {"samples": COUNT, "tasks": COUNT})


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


def _context(task: Task) -> dict[str, Any]:
    """What of a row its answer goes on from."""
    said = {k: getattr(task, k) for k in CONTEXT} | {AFTER: task.meta.get(AFTER)}
    return {"prompt": task.prompt, **{k: v for k, v in said.items() if v}}


def _row(task: Task, text: str) -> dict[str, Any]:
    return {**_context(task), "response": text}


def sure(row: Mapping[str, str], percent: int) -> dict[str, str]:
    return {**row, "response": f"{row['response']}. Confidence: {percent}%"}


def outcome_rows(tasks: Sequence[Task], answers: Sequence[Response]) -> list[dict[str, str]]:
    """SFT rows of a model's own answers, each stating 99% where it is right and 1% where it is
    wrong.

    Under the cross-entropy, a proper score, the best that a model can do is to say 99% as often as
    it is right. Cut, empty and undecided answers are left out.
    """
    known = _decided(tasks, answers)
    return [sure(_row(t, said), 99 if right else 1) for t, said, right, _ in known]


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
    beta, _ = logit_fit(design, np.array([k[2] for k in known]), np.ones(len(known)), ridge=1.0)
    chance = 100 / (1 + np.exp(-design @ beta))
    levels = [min(LEVELS, key=lambda level: abs(level - c)) for c in chance]
    return [sure(_row(t, said), n) for (t, said, *_), n in zip(known, levels, strict=True)]


LEVELS = (1, 10, 25, 50, 75, 90, 99)  # percent that are taught


def _decided(
    tasks: Sequence[Task], answers: Sequence[Response]
) -> list[tuple[Task, str, float, float | None]]:
    """Task, answer without a stated confidence, right (1.0) or wrong, and token probability."""
    by_id = {t.id: t for t in tasks}
    out = []
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

    Every answer ends with its stated confidence in the same words, "Confidence: 97%"; those without
    a number, or of another source than good, bad and middling (of no use here), are left out, with
    a warning, or a DataError where all are. Of several good answers of a task each is a row; the
    first makes the pair with the first bad one.
    """
    ids, bare = {t.id for t in tasks}, 0
    found: dict[tuple[Any, Any], list[str]] = {}
    for a in answers:
        if a.get("task_id") not in ids:
            continue
        text, kind, sure = str(a["response"]), a.get("source"), a.get("stated_confidence")
        if kind not in ("good", "middling", "bad") or not is_number(sure):
            bare += 1
            continue
        if not 0 <= sure <= 1:
            raise DataError(
                f"the stated_confidence is {sure!r}",
                where=f"answers, of task {a['task_id']!r}",
                fix="write a number from 0 to 1: 80 percent are 0.8",
            )
        found.setdefault((a["task_id"], kind), []).append(restate(text, float(sure)))
    why = f"{bare} answers have no source, good or bad, or no stated_confidence, from 0 to 1"
    if bare and not found:
        raise DataError(
            why, where="answers", fix="add both: the answer's text ends with the latter"
        )
    if bare:
        logger.warning("%s: they are not trained on", why)
    rows, pairs = [], []
    for task in tasks:
        good, bad = (found.get((task.id, kind), []) for kind in ("good", "bad"))
        rows += [_row(task, text) for text in dict.fromkeys(good)]
        if good and bad and good[0] != bad[0]:
            pairs.append({**_context(task), "chosen": good[0], "rejected": bad[0]})
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


def pairs_from(tasks: Sequence[Task], graded: Sequence[tuple[Any, Any]]) -> list[dict[str, str]]:
    """Preference pairs from graded answers (response, grade): the best against the worst of each
    prompt, where they differ.

    Of equal ones the last is chosen and the first rejected. Answers whose score is unknown, and
    empty ones, take no part.
    """
    by_task = grouped(
        (r.task_id, (g.score, r.text)) for r, g in graded if g.score is not None and r.text.strip()
    )
    out = []
    for t in tasks:
        found = sorted(by_task.get(t.id, [(0.0, "")]), key=itemgetter(0))
        (low, worst), (high, best) = found[0], found[-1]
        if high > low and best != worst:
            out.append({**_context(t), "chosen": best, "rejected": worst})
    return out

"""What a training writes while it runs: steps.jsonl, a step a line; rollouts.jsonl, an answer a line."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..records import Grade, Response, Task, group
from ..records.tables import plain
from ..system.progress import bar
from .reward import parts_of

STEPS, ROLLOUTS = "steps.jsonl", "rollouts.jsonl"
EQUAL = 1e-6  # rewards of a group that differ by less are equal


class Log:
    """The two files of a run. All names of a row are TRL's own, or those of `summary`."""

    def __init__(
        self, out: Path, on_step: Callable[[dict[str, Any]], None] | None = None
    ):
        self.out, self.on_step = out, on_step or (lambda row: None)
        self.latest: dict[str, Any] = {}

    def write(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Append rows to a file."""
        with open(self.out / name, "a", encoding="utf-8") as f:
            f.writelines(
                json.dumps(plain(r), ensure_ascii=False) + "\n" for r in rows
            )

    def rewind(self, step: int) -> None:
        """Drop what was written after a save point: it is written again."""
        for name in (STEPS, ROLLOUTS):
            # a kill may have come after the last save point
            rows = [r for r in read(self.out / name) if r["step"] <= step]
            (self.out / name).unlink(missing_ok=True)
            self.write(name, rows)

    def batch(
        self,
        step: int,
        answers: Sequence[Response],
        grades: Sequence[Grade],
        *,
        tasks: Mapping[str, Task],
        size: int,
        **more: Any,
    ) -> None:
        """Store a step's answers with prompts (of `tasks` by id) and verdicts, and summarise them for its row.

        size : answers of a group.
        Further updates on these answers repeat the summary in their rows; its `batch` is the step that judged them.
        """
        rows = [
            {
                "step": step,
                "task_id": a.task_id,
                "prompt": tasks[a.task_id].conversation,
                "text": a.text,
                "reward": g.score,
                "low": g.score_low,
                "high": g.score_high,
                "truncated": a.truncated,
                "parts": dict(g.parts),
                "verdicts": [
                    {
                        "id": v.criterion_id,
                        "status": v.status,
                        "value": v.value,
                        "failure": v.failure,
                    }
                    for v in g.verdicts
                ],
            }
            for a, g in zip(answers, grades, strict=True)
        ]
        self.write(ROLLOUTS, rows)
        self.latest = summary(answers, grades, size) | more | {"batch": step}


def summary(
    answers: Sequence[Response], grades: Sequence[Grade], size: int
) -> dict[str, Any]:
    """Numbers on one batch; each `size` answers are a group.

    mixed, good, bad, unknown : groups whose rewards differ, are all at the top, all below it, or not known.
    """
    scores = [g.score for g in grades if g.score is not None]
    # a prompt that comes twice has two groups
    groups = health((n // size, g) for n, g in enumerate(grades))
    return {
        "reward": statistics.fmean(scores) if scores else None,
        "answers": len(grades),
        "unknown_rewards": len(grades) - len(scores),
        "groups": groups,
        "words": statistics.fmean(len(a.text.split()) for a in answers),
        "truncated": statistics.fmean(a.truncated for a in answers),
        "parts": {k: statistics.fmean(v) for k, v in parts_of(grades).items()},
    }


def health(pairs: Any) -> dict[str, int]:
    """How many groups are mixed, good, bad or unknown, of (group, grade) pairs."""
    out = dict.fromkeys(("mixed", "good", "bad", "unknown"), 0)
    for grades in group(pairs).values():
        scores = [g.score for g in grades if g.score is not None]
        # a reward of 10 is the top where rewards are scaled
        top = max(g.meta.get("range", (0.0, 1.0))[1] for g in grades)
        # one known reward has nothing to be compared with
        if len(scores) < 2:
            out["unknown"] += 1
        elif max(scores) - min(scores) > EQUAL:
            out["mixed"] += 1
        else:
            out["good" if scores[0] >= top - EQUAL else "bad"] += 1
    return out


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of one of the files. A last line that a kill cut short is left out."""
    text = path.read_text("utf-8") if path.exists() else ""
    # a whole line ends with a line feed, so what is behind the last one is empty or cut
    *lines, _ = text.split("\n")
    return [json.loads(line) for line in lines]


def callback(
    log: Log, settings: Any, evaluate: Callable[[str], Any] | None = None
) -> Any:
    """TRL's view of the log: a row for each step, a progress bar, and evaluations on the way."""
    from transformers import TrainerCallback

    class Steps(TrainerCallback):
        def on_train_begin(self, args, state, control, **_):
            self.bar = bar(
                total=args.max_steps,
                initial=state.global_step,
                desc=settings.stage,
                disable=not state.is_world_process_zero,
            )

        def on_train_end(self, args, state, control, **_):
            self.bar.close()

        def on_step_begin(self, args, state, control, **_):
            self.start = time.perf_counter()

        def on_log(self, args, state, control, logs=None, **_):
            # the last log of a run has totals and no loss
            if not logs or "loss" not in logs or not state.is_world_process_zero:
                return
            seconds = {"seconds": time.perf_counter() - self.start}
            row = {**logs, **log.latest, "step": state.global_step, **seconds}
            log.write(STEPS, [row])
            self.bar.update()
            log.on_step(row)

        def on_step_end(self, args, state, control, **_):
            # after the last step the run evaluates anyway
            every, step = settings.eval_every, state.global_step
            if evaluate and every and step % every == 0 and step < args.max_steps:
                evaluate(f"step{step}")

    return Steps()


def adapter_callback(save_point: Path) -> Any:
    """A callback that loads the trained adapter of a save point, after transformers loaded the rest."""
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file
    from transformers import TrainerCallback

    class LoadAdapter(TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, **_):
            weights = load_file(str(save_point / "adapter_model.safetensors"))
            set_peft_model_state_dict(model, weights, adapter_name="default")

    return LoadAdapter()

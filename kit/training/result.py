"""What a training left behind: gain, steps, answers, and one page that shows them."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..records import Task
from ..records.tables import plain
from ..stats import Estimate, number
from . import evaluation, monitor
from .evaluation import Evaluation

PAGE = "training.html"
NOTHING = "nothing is held out, so no gain is measured"


@dataclass(frozen=True, kw_only=True)
class Result:
    """A finished training.

    folder : settings.json, metrics.json, steps.jsonl, rollouts.jsonl, eval_*.json, adapter/, training.html.
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
    def read(cls, folder: str | Path, *, heldout: Sequence[Task] = ()) -> Result:
        """The result of a finished stage in a folder."""
        folder = Path(folder)
        paths = {name: folder / f"eval_{name}.json" for name in ("before", "after")}
        # SFT and DPO without held-out prompts have none
        looks = {n: evaluation.read(p) for n, p in paths.items() if p.exists()}
        metrics = json.loads((folder / "metrics.json").read_text("utf-8"))
        return cls(folder=folder, metrics=metrics, heldout=tuple(heldout), **looks)

    @classmethod
    def of_chain(cls, job: Any, results: Sequence[Result]) -> Result:
        """The result of a chain: from before its first stage to after its last."""
        first, last = results[0], results[-1]
        change: dict[str, Any] = {}
        if first.before and last.after:
            change = evaluation.comparison(first.before, last.after, job.heldout)
            change["trivial"] = last.metrics["trivial"]
        totals = {
            k: sum(r.metrics[k] for r in results) for k in ("seconds", "steps")
        }
        costs = {k: last.metrics[k] for k in ("judge", "judge_calls", "judge_cost")}
        costs["model"] = first.metrics["model"]
        # what one stage warns of holds for the chain
        notes = list(dict.fromkeys(n for r in results for n in r.metrics["notes"]))
        metrics = {"stage": "chain", **totals, **costs, **change, "notes": notes}
        out = cls(
            folder=job.out,
            metrics=metrics,
            heldout=tuple(job.heldout),
            before=first.before,
            after=last.after,
            stages=tuple(results),
        )
        metrics["table"] = plain(out.table().to_dict("records"))
        return out

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

    def _change(self, noun: str, of: Callable[[Evaluation], Any]) -> Estimate:
        if self.before is None or self.after is None:
            return Estimate(
                math.nan, note=NOTHING, noun=noun, method="paired difference"
            )
        values = (of(self.before), of(self.after))
        return evaluation.gain(self.before, self.after, values=values, noun=noun)

    @property
    def trivial(self) -> dict[str, float | None]:
        """The held-out reward of policies without skill."""
        return dict(self.metrics.get("trivial", {}))

    def steps(self) -> Any:
        """A DataFrame, one row a step: reward, loss, groups, answers that were cut off, seconds."""
        return self._rows(monitor.STEPS, "json_normalize")

    def rollouts(self) -> Any:
        """A DataFrame, one row a training answer: step, task_id, text, reward, verdicts."""
        return self._rows(monitor.ROLLOUTS, "DataFrame")

    def _rows(self, name: str, how: str) -> Any:
        """The rows of a file, made a table by pandas' function `how`; of a chain, those of its stages."""
        import pandas as pd

        if not self.stages:
            return getattr(pd, how)(monitor.read(self.folder / name))
        # the steps of each stage begin at 1
        frames = [
            r._rows(name, how).assign(stage=r.metrics["name"]) for r in self.stages
        ]
        return pd.concat(frames, ignore_index=True)

    def by_kind(self) -> Any:
        """Strict passes before and after for each kind of prompt, a DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.metrics.get("kinds", []))

    def answers(self) -> Any:
        """A DataFrame of held-out prompts with the answer before and after, reward and unmet criteria."""
        import pandas as pd

        rows, texts = [], {t.id: t.conversation for t in self.heldout}
        for look in filter(None, (self.before, self.after)):
            for r, g in zip(look.responses, look.grades, strict=True):
                unmet = [
                    v.criterion_id
                    for v in g.verdicts
                    if v.value is None or v.value < 0.5
                ]
                rows.append(
                    {
                        "task": r.task_id,
                        "prompt": texts.get(r.task_id),
                        "when": look.name,
                        "answer": r.text,
                        "reward": g.score,
                        "not met": ", ".join(unmet),
                    }
                )
        return pd.DataFrame(rows)

    def table(self) -> Any:
        """Of a chain, one row a stage: strict passes, the change that the stage made, reward, calibration."""
        import pandas as pd

        start, rows = self.before, []
        looks = [
            ("start", self.before, None),
            *((r.metrics["name"], r.after, r) for r in self.stages),
        ]
        for name, look, stage in looks:
            if look is None or start is None:
                continue
            old = stage.before if stage and stage.before else start
            strict = look.strict(self.heldout)
            change = evaluation.gain(
                old, look, values=(old.strict(self.heldout), strict)
            )
            errors = evaluation.calibration(look, self.heldout)
            rows.append(
                {
                    "stage": name,
                    "strict passes": str(look.mean(strict)),
                    "change": str(change) if stage else "",
                    "reward": str(look.mean()),
                    "gain": str(evaluation.gain(start, look)) if stage else "",
                    "ECE of stated confidence": str(errors.get("stated", "")),
                    "seconds": stage.metrics["seconds"] if stage else None,
                }
            )
        return pd.DataFrame(rows)

    def plot(self, **options: Any) -> Any:
        """The training reward (SFT and DPO: the loss) over the steps."""
        from ..plots import lines

        steps = self.steps()
        name = (
            "reward"
            if "reward" in steps and steps["reward"].notna().any()
            else "loss"
        )
        return lines(
            {name: steps[name].tolist()},
            steps["step"].tolist(),
            title="Training",
            y_title=name,
            **options,
        )

    def page(self) -> Path:
        """Write the page of the run, training.html in its folder."""
        import pandas as pd

        from ..plots import Card, page

        m, gain, strict = self.metrics, self.gain, self.strict
        cheap = {k: v for k, v in self.trivial.items() if v is not None}
        # the bar that a trained policy has to clear
        best = max(cheap, key=lambda k: cheap[k], default=None)
        blocks: list[Any] = [
            Card("Gain on held-out prompts", number(gain.value), gain.sentence),
            Card("Strict passes", number(strict.value), strict.sentence),
            Card(
                "Time",
                f"{m['seconds'] / 60:.1f} min",
                f"{m['steps']} steps; {m['judge_calls']} calls of the judge {m['judge']}, "
                f"${m['judge_cost']:.2f}",
            ),
        ]
        if best:
            sentence = f"{best} is the best policy without skill; trained: {number(m['reward_after']['value'])}"
            blocks.insert(
                2, Card("Best without skill", number(cheap[best]), sentence)
            )
        blocks += [*m["notes"], self.plot()]
        if self.stages:
            blocks += ["What each stage brought:", self.table()]
        if m.get("kinds"):
            blocks += ["Strict passes by kind of prompt:", self.by_kind()]
        errors = [
            {"when": when, "confidence": k, **e}
            for when in evaluation.WHEN
            for k, e in m.get(f"calibration_{when}", {}).items()
        ]
        if errors:
            blocks += [
                "Calibration error (ECE) before and after:",
                pd.DataFrame(errors),
            ]
        if self.trivial:
            rows = [
                {"policy": k, "reward": number(v)} for k, v in self.trivial.items()
            ]
            blocks += [
                "Policies without skill on the same prompts:",
                pd.DataFrame(rows),
            ]
        if self.before:
            blocks += [
                "Held-out answers:",
                self.answers().sort_values("task", kind="stable").head(60),
            ]
        blocks.append(
            f"Next: {self.adapter.parent / monitor.ROLLOUTS} has every training answer with its verdicts."
        )
        return page(f"Training: {m['model']}", blocks, path=self.folder / PAGE)

    def __repr__(self) -> str:
        words = (self.gain.sentence, *self.metrics["notes"], f"({self.folder})")
        return " ".join(words)

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.gain.sentence)}</p>{self.by_kind().to_html(index=False)}"

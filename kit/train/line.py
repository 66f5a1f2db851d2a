"""The run of a chain: one stage after the other, each on the model that the one before left, with
the same held-out evaluation before the first and after each.

DPO holds the policy to the model that the stage starts from; in a chain that is the merged SFT
model, as in BioRLHF. A stage whose folder is finished is not run again, so that a chain goes on
after a kill.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..checks import accepted
from ..errors import KitError, at
from ..judge.ledger import Ledger
from ..records import Response, Task, fingerprint, response_from_json, to_json, transcript
from ..rewards.composer import Composer
from ..runs import plain
from ..system.paths import write_text
from . import answers, evaluation, export, grpo, inputs, models, rollouts, stages
from .config import DPOSettings, GRPOSettings, Settings, to_mapping
from .models import Loaded, load
from .resume import mark_folder, near, read_by
from .reward import Reward
from .stages import TEACH, OwnPairs, pairs_from


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage of a chain.

    name : of its folder and in the table; aside : the next stage does not start from its model, as
    for a second DPO with another beta. teach : how an SFT stage makes rows of the model's own
    answers (stages.TEACH); pairs : of the model's own answers for this DPO stage.
    """

    name: str
    settings: Settings
    aside: bool = False
    teach: str | None = None
    pairs: OwnPairs | None = None

    def __post_init__(self) -> None:
        if Path(self.name).name != self.name:
            raise KitError(
                f"name is {self.name!r}",
                where="setting name",
                fix="a name without slashes: its folder is called so",
            )


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Everything that `run` needs; rows for SFT and pairs for DPO come from the training tasks
    alone.

    sampler : how held-out prompts are answered; default: as in the last GRPO stage.
    """

    stages: tuple[Stage, ...]
    out: Path
    tasks: tuple[Task, ...] = ()
    heldout: tuple[Task, ...] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    pairs: Sequence[Mapping[str, Any]] | OwnPairs = ()
    judge: Any = None
    reward: Any = "rubric"
    sampler: GRPOSettings | None = None

    def folder(self, stage: Stage) -> Path:
        """Where a stage keeps what it left."""
        return self.out / f"{self.stages.index(stage) + 1}_{stage.name}"


@dataclass(frozen=True, kw_only=True)
class Done:
    """The held-out evaluations in order, the trivial policies' rewards, metrics.json by stage."""

    evaluations: tuple[evaluation.Evaluation, ...]
    trivial: dict[str, float | None]
    metrics: dict[str, dict[str, Any]]


def run(chain: Chain) -> Done:
    """Run the stages that are not finished; after each its adapter is merged, and the next one
    trains a new adapter on that model. Settings that a later stage would refuse are refused first.
    """
    with inputs.alone(chain.out, other=rollouts.SETTINGS):
        sampled = (
            s.settings for s in reversed(chain.stages) if isinstance(s.settings, GRPOSettings)
        )
        sampler = chain.sampler or next(sampled, None)
        reward = Reward(
            tasks=[*chain.tasks, *chain.heldout],
            judge=chain.judge,
            composer=Composer.from_config(chain.reward),
            patience_s=(sampler or GRPOSettings()).patience_s,
        )
        line = _Line(chain, reward, sampler)
        first = chain.stages[0].settings
        mark = {"set of weights": models.weights(first.model, first.adapter)}
        mark |= read_by(reward, chain.tasks, chain.heldout) if chain.tasks else {}
        for stage in chain.stages:
            line.ready(stage)
            mark |= line.mark(stage)
        chain.out.mkdir(parents=True, exist_ok=True)
        reward.ledger = Ledger(chain.out / "ledger.sqlite")
        mark_folder(chain.out / rollouts.CHAIN, mark, resume=True)
        model = line.begin()
        line.look("start", model)
        for stage in chain.stages:
            merged = line.run(stage, model)
            line.look(stage.name, merged)
            model = model if stage.aside else merged
        every = answers.trivial(chain.heldout, reward) if line.evaluations else None
        paid = answers.by_policy(every)
        left = {s.name: (chain.folder(s) / "metrics.json").read_text("utf-8") for s in chain.stages}
        return Done(
            evaluations=tuple(line.evaluations),
            trivial=plain({k: e.reward().value for k, e in paid.items()}),
            metrics={name: json.loads(text) for name, text in left.items()},
        )


@dataclass
class _Line:
    """The work on a chain, and what it showed so far."""

    chain: Chain
    reward: Reward
    sampler: GRPOSettings | None
    evaluations: list[evaluation.Evaluation] = field(default_factory=list)

    def ready(self, stage: Stage) -> None:
        """An error, which names the stage, for what would stop it when its turn comes."""
        chain, s = self.chain, stage.settings
        with at(f"stage {stage.name!r}"):
            inputs.check(s)
            tokenizer = models.ready(s)
            if s.adapter not in (None, chain.stages[0].settings.adapter):
                raise KitError(
                    "a later stage goes on from what the one before it left",
                    where="setting adapter",
                    fix="give the adapter in `settings:` or in the first stage",
                )
            if isinstance(s, GRPOSettings):
                held = self._watched(s)
                grpo.ready(
                    s,
                    chain.tasks,
                    held,
                    judge=chain.judge,
                    audit=None,
                    composer=self.reward.composer,
                )
                answers.fitting([*chain.tasks, *filter(answers.shows, held)], tokenizer, s)
                return
            stages.ready(s)
            rows = self._given(stage)
            if rows is not None:
                inputs.fitting(stages.learned(s, rows), tokenizer, s)
            elif self.sampler is None:
                raise KitError(
                    "rows from the model's own answers need a grpo stage, whose sampling is used",
                    where="keys pairs, teach",
                    fix="add a grpo stage, or say how with `evaluate: {max_answer_tokens: 20}`",
                )

    def mark(self, stage: Stage) -> dict[str, Any]:
        """What makes of a stage what it is: a finished one is not run again for anything else."""
        rows = self._given(stage)
        made = [stage.teach, repr(stage.pairs or self.chain.pairs)]
        held = to_mapping(stage.settings) | {"rows": fingerprint(made if rows is None else rows)}
        return {f"{k} of the stage {stage.name!r}": v for k, v in held.items()}

    def _given(self, stage: Stage) -> Sequence[Mapping[str, Any]] | None:
        """What a supervised stage learns from; None where that is made of the model's answers."""
        if isinstance(stage.settings, DPOSettings):
            pairs = stage.pairs or self.chain.pairs
            return None if isinstance(pairs, OwnPairs) else pairs
        return None if stage.teach else self.chain.rows

    def _watched(self, settings: GRPOSettings) -> tuple[Task, ...]:
        """The held-out prompts that are looked at while a stage trains."""
        return self.chain.heldout if settings.eval_every else ()

    def begin(self) -> str:
        """The model that the first stage begins from, with the adapter that it goes on from."""
        first = self.chain.stages[0].settings
        if first.adapter is None:
            return first.model
        merged = self.chain.out / "0_start" / "merged"
        if not (merged / "config.json").exists():
            export.merge(first.model, Path(first.adapter), merged)
        return str(merged)

    def look(self, name: str, source: str) -> None:
        """Answer and grade the held-out prompts; what a killed chain already has is read."""
        s = self.sampler
        if s is None or not self.chain.heldout:
            return
        heat = s.temperature if s.eval_temperature is None else s.eval_temperature
        room = (s.max_prompt_tokens, s.max_answer_tokens)
        mark = fingerprint([room, heat, s.top_p, s.top_k, s.eval_samples, s.seed])
        path = self.chain.out / f"eval_{name}_{mark[:8]}.json"
        if not path.exists():
            heldout, bare = self.chain.heldout, self._bare(source)
            answers.evaluate(bare, heldout, self.reward, settings=s, name=name).save(path)
        self.evaluations.append(evaluation.read(path))

    def run(self, stage: Stage, model: str) -> str:
        """Train a stage on this model and merge its adapter, once; the folder of what came out."""
        folder = self.chain.folder(stage)
        if not (folder / "merged" / "config.json").exists():
            self._train(stage, replace(stage.settings, model=model, adapter=None), folder)
            export.merge(model, folder / "adapter", folder / "merged")
        return str(folder / "merged")

    def _train(self, stage: Stage, settings: Settings, folder: Path) -> None:
        if isinstance(settings, GRPOSettings):
            grpo.train(
                settings,
                self.chain.tasks,
                judge=self.chain.judge,
                composer=self.reward.composer,
                out=folder,
                heldout=self._watched(settings),
                ledger=self.chain.out / "ledger.sqlite",
                resume=True,
            )
            return
        rows = self._given(stage)
        if stage.teach:
            make, heat = TEACH[stage.teach]
            make = partial(make, self.chain.tasks)
            rows = self._own(settings.model, self._fresh(), 1, make, heat)
        elif rows is None:
            rows = self._pairs(stage.pairs or self.chain.pairs, settings.model)
        stages.train(settings, rows, out=folder, resume=True)

    def _fresh(self) -> list[Task]:
        """Training tasks whose answer was not shown."""
        shown = {transcript(stages.asked(r)) for r in self.chain.rows if "prompt" in r}
        return [t for t in self.chain.tasks if transcript(answers.messages(t)) not in shown]

    def _pairs(self, pairs: OwnPairs, source: str) -> Sequence[Mapping[str, Any]]:
        tasks = self.chain.tasks[: pairs.tasks]
        right = ((t.id, accepted(t)) for t in tasks)
        more = [Response(task_id=i, id="accepted", text=x) for i, x in right if x is not None]

        def make(found: list[Response]) -> list[dict[str, str]]:
            every = [*found, *more]
            grades = answers.graded("pairs", every, self.reward).grades
            return pairs_from(tasks, list(zip(every, grades, strict=True)))

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
        mark = fingerprint([near(source, self.chain.out), samples, [t.id for t in tasks], heat])
        path = self.chain.out / f"answers_{mark[:8]}.json"
        if path.exists():
            found = [response_from_json(r) for r in json.loads(path.read_text("utf-8"))]
            return list(make(found))
        s = self.sampler
        found = answers.sample_answers(
            self._bare(source),
            tasks,
            samples=samples,
            settings=s,
            seed=s.seed + 20_000,
            temperature=heat,
        )
        write_text(path, json.dumps([to_json(r) for r in found]))
        return list(make(found))

    def _bare(self, source: str) -> Loaded:
        """A model with a fresh adapter, which changes nothing."""
        return load(replace(self.sampler, model=source, adapter=None))

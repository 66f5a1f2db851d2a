"""Going on after a stop, to the bit: adapters, the batch in use and random numbers as they would
have been.

Three things get lost on the way through the libraries. With a KL term trl keeps a second adapter,
"ref"; a checkpoint then holds the trained adapter at its top and `ref/` below, and transformers
loads the folders below alone: the trained adapter would be thrown away. A batch that is trained on
several times (iterations, substeps) is not in a checkpoint, so that a resumed run would sample it
again from a newer policy. And random numbers drawn between the last step and the stop (a dead
judge, say) would shift those of the step that is done again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import KitError
from ..judge.records import keys_of
from ..records import Criterion, Response, Task, fingerprint, grouped, leaves
from ..runs import plain
from ..system import paths
from ..system.device import import_torch
from . import world
from .reward import Reward
from .rollouts import CHAIN

TRAINED, REFERENCE = "default", "ref"


def last_checkpoint(out: str | Path) -> Path | None:
    """The newest complete checkpoint of a run's folder; one that a kill cut short is passed
    over.
    """
    found = (Path(out) / "checkpoints").glob("checkpoint-*")
    return max((p for p in found if _complete(p)), key=step_of, default=None)


def step_of(checkpoint: Path) -> int:
    """The step that a checkpoint was written after.

    >>> step_of(Path("checkpoints/checkpoint-30"))
    30
    """
    return int(checkpoint.name.rpartition("-")[2])


def _complete(checkpoint: Path) -> bool:
    """True when trainer_state.json is there and whole: it is the last file of a checkpoint."""
    try:
        json.loads((checkpoint / "trainer_state.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return True


def mark_folder(path: Path, mark: Mapping[str, Any], resume: bool) -> None:
    """Write the mark of a run, settings.json; KitError where the one to resume has another value.

    What the mark of an earlier version of the kit does not hold is not compared.
    """
    mark = _placed(plain(dict(mark)), path.parent)
    if resume and path.exists():
        old = _placed(json.loads(path.read_text("utf-8")), path.parent)
        before, now = ({**m, **m.get("settings", {}), "settings": None} for m in (old, mark))
        wrong = [k for k in now if before.get(k, now[k]) != now[k]]
        if wrong:
            raise KitError(
                f"the run in this folder has another {wrong[0]}",
                where=str(path.parent),
                fix="resume with the same settings, tasks, judge and reward, or choose another "
                "folder",
            )
    paths.write_text(path, json.dumps(mark, indent=2))


def _placed(mark: dict[str, Any], folder: Path) -> dict[str, Any]:
    settings = mark.get("settings")
    if not settings:
        return mark
    return {**mark, "settings": {**settings, "model": near(settings["model"], folder)}}


def near(model: str, folder: Path) -> str:
    """A model's name; that of a folder below the chain that `folder` is of, or is, is relative to
    `folder`: a chain may be moved.
    """
    folder = folder.absolute()
    chain = next((p for p in (folder, folder.parent) if (p / CHAIN).exists()), None)
    if chain is None or chain not in Path(model).parents:
        return model
    return os.path.relpath(model, folder)


def read_by(reward: Reward, tasks: Sequence[Task], heldout: Sequence[Task]) -> dict[str, Any]:
    """Digests of what a training and its evaluation read, for the mark of its folder."""
    return {
        "text or criterion of a task": fingerprint(plain(tasks)),
        "set of held-out tasks": fingerprint(plain(heldout)),
        "reward": fingerprint(plain(reward.composer)),
        "judge": identity(reward.judge, tasks),
    }


def identity(judge: Any, tasks: Sequence[Task]) -> list[str]:
    """A judge's name and, where it can be cached, its ledger key of the tasks' first criterion (of
    one made up where they have none: rewards also ask of their own).
    """
    task = next((t for t in tasks if t.criteria), tasks[0])
    asked = Response(task_id=task.id, id="mark", text="")
    criteria = leaves(task.criteria)[:1] or (Criterion(id="mark", text="mark"),)
    keys = keys_of(judge, task, asked, criteria)
    return [str(getattr(judge, "name", "none")), *(keys or ())]


def load_adapters(model: Any, checkpoint: Path) -> None:
    """Put the weights of a checkpoint into the trained adapter, and into "ref" where there is
    one.
    """
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    for name in model.peft_config:
        path = checkpoint / ("" if name == TRAINED else name) / "adapter_model.safetensors"
        if not path.is_file():
            raise KitError(
                f"the checkpoint lacks the weights of the adapter {name!r}",
                where=str(path),
                fix="delete this checkpoint: the run goes on from the one before",
            )
        got = set_peft_model_state_dict(model, load_file(path), adapter_name=name)
        if got.unexpected_keys:
            raise KitError(
                f"the checkpoint is of another adapter: it has {got.unexpected_keys[0]!r}",
                where=str(path),
                fix="resume with the same model and LoRA settings",
            )


def save_adapter(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write the trained adapter alone, without trl's "ref", and its tokenizer; an adapter that is
    not finite is an error.
    """
    torch = import_torch()
    broken = [
        n for n, p in model.named_parameters() if p.requires_grad and not torch.isfinite(p).all()
    ]
    if broken:
        raise KitError(
            f"{len(broken)} trained tensors hold NaN or infinity ({broken[0]}): the training "
            f"diverged",
            where=str(folder),
            fix="a smaller lr or beta, or max_grad_norm; the last good checkpoint is kept",
        )
    with paths.whole_folder(folder) as part:
        model.save_pretrained(str(part), selected_adapters=[TRAINED])
        tokenizer.save_pretrained(str(part))


def drop_reference(model: Any) -> None:
    """Remove trl's adapter "ref" from a model, so that it can be trained again."""
    if REFERENCE in getattr(model, "peft_config", {}):
        model.delete_adapter(REFERENCE)


def write_batch(folder: Path, parts: Sequence[Mapping[str, Any]]) -> None:
    """The tensors of a batch in parts that is still in use, one file per process."""
    from safetensors.torch import save_file

    torch = import_torch()
    flat = {
        f"{i}/{k}": v.detach().contiguous()
        for i, part in enumerate(parts)
        for k, v in part.items()
        if torch.is_tensor(v)
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_file({k: v.clone() for k, v in flat.items()}, _batch_file(folder))


def read_batch(folder: Path) -> list[dict[str, Any]] | None:
    """The parts as `write_batch` left them; None where the checkpoint lies between two batches."""
    from safetensors.torch import load_file

    if not _batch_file(folder).is_file():
        return None
    held = ((key.split("/", 1), value) for key, value in load_file(_batch_file(folder)).items())
    parts = grouped((int(number), (name, value)) for (number, name), value in held)
    return [dict(parts[i]) for i in sorted(parts)]


def _batch_file(folder: Path) -> Path:
    return folder / f"kit_batch_{world.rank()}.safetensors"


class Resumable:
    """Goes before a trl trainer in the order of base classes: adapters are loaded by name."""

    model: Any
    args: Any
    kit_over = False  # an alarm ended the run at its checkpoint

    def train(self, resume_from_checkpoint: str | None = None) -> None:
        """Train; where the last step is done already, its weights are loaded: transformers would do
        one step more.
        """
        done = resume_from_checkpoint and step_of(Path(resume_from_checkpoint))
        if resume_from_checkpoint and (self.kit_over or done >= self.args.max_steps):
            self._load_from_checkpoint(resume_from_checkpoint)
        else:
            super().train(resume_from_checkpoint=resume_from_checkpoint)

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        with paths.naming(self.args.output_dir):
            super()._save_checkpoint(*args, **kwargs)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        load_adapters(self.model if model is None else model, Path(resume_from_checkpoint))

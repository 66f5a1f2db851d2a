"""What goes into a training, looked at before any model loads: characters that nothing can encode,
rows that are cut or cut to nothing, reporters, and keys of judges.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data.words import held_out
from ..errors import DataError, KitError, MissingError, at
from ..judge.factory import keyed
from ..records import Task, grouped
from ..rubrics import splits
from ..settings import read
from ..settings.read import ABOVE_0, known_names, within
from ..system import processes, progress
from . import rollouts, world
from .config import DPOSettings, GRPOSettings, Settings
from .models import told

logger = logging.getLogger(__name__)


def readable(tasks: Iterable[Task]) -> None:
    """DataError for a task whose id or prompt holds half of a surrogate pair: no tokenizer takes
    it.

    >>> readable([Task(id="t", prompt="half: \\ud83d")])
    Traceback (most recent call last):
    ...
    kit.errors.DataError: the prompt holds half of a character ('\\ud83d', at 6)
      where: task 't'
      to do: write whole characters: the text was cut inside an emoji, say
    """
    for t in tasks:
        whole(t.id, "the id", f"task {t.id!r}")
        turns = [t.system or "", *(turn["content"] for turn in t.turns)]
        for text in (*turns, *t.sources, *t.sources.values()):
            whole(text, "the prompt", f"task {t.id!r}")


def whole(text: str, what: str, where: str) -> None:
    """DataError when a text cannot be written in UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as e:
        raise DataError(
            f"{what} holds half of a character ({text[e.start]!r}, at {e.start})",
            where=where,
            fix="write whole characters: the text was cut inside an emoji, say",
        ) from None


def filled(row: Mapping[str, Any], names: Sequence[str], where: str) -> None:
    """DataError when a text to learn from is empty or holds half a character."""
    for name in names:
        if not row[name].strip():
            raise DataError(
                f"the field {name!r} is empty: there is nothing to learn from it",
                where=where,
                fix="leave the row out",
            )
        whole(row[name], f"the field {name!r}", where)


def fitting(
    rows: Sequence[dict[str, Any]], tokenizer: Any, settings: Settings
) -> list[dict[str, Any]]:
    """The rows of which something to learn is left after max_tokens; a warning counts the cut ones.

    DataError when nothing is left of any.
    """
    limit: int = settings.max_tokens  # type: ignore[attr-defined]
    ends = ("chosen", "rejected") if isinstance(settings, DPOSettings) else ("completion",)
    kept, cut = [], 0
    for row in rows:
        if "prompt" in row:
            row = {**row, "prompt": told(tokenizer, row["prompt"])}
        start, whole_ = _lengths(row, ends, tokenizer)
        if start < limit or not getattr(settings, "answer_only", True):
            kept.append(row)
            cut += whole_ > limit
    if not kept:
        raise DataError(
            f"every prompt alone fills max_tokens={limit}: no answer is left to learn from",
            where="setting max_tokens",
            fix="raise max_tokens, or shorten the prompts",
        )
    for n, what in ((len(rows) - len(kept), "left out: the prompt alone fills"), (cut, "cut at")):
        if n:
            logger.warning("%d of %d rows are %s max_tokens=%d", n, len(rows), what, limit)
    return kept


def _lengths(row: Mapping[str, Any], ends: Sequence[str], tokenizer: Any) -> tuple[int, int]:
    """Tokens of the prompt, and of the whole row (of its longer end)."""
    if "text" in row:
        return 0, len(tokenizer(row["text"])["input_ids"])
    prompt = row["prompt"]
    whole_ = max(len(chat_ids(tokenizer, [*prompt, *row[e]], ask=False)) for e in ends)
    return len(chat_ids(tokenizer, prompt)), whole_


def chat_ids(tokenizer: Any, chat: list[dict[str, str]], *, ask: bool = True) -> list[int]:
    """Token ids of a chat in the model's layout; ask : with the words that begin an answer."""
    found = tokenizer.apply_chat_template(
        chat, add_generation_prompt=ask, tokenize=True, return_dict=True
    )
    return list(found["input_ids"])


def order(tasks: Sequence[Task], settings: GRPOSettings) -> list[Task]:
    """The prompts of all steps in the order they are trained on: pass after pass, each in an order
    that seed and pass decide; with `stratify`, each kind (or group) is spread evenly over a pass.

    Written out as one epoch, so that a resumed run goes on with the same prompts.
    """
    import random

    wanted, out = settings.steps * settings.prompts_per_step, []
    for turn in range(-(-wanted // len(tasks))):
        mixed = random.Random(f"{settings.seed}/{turn}").sample(list(tasks), len(tasks))
        out += _spread(mixed, settings.stratify) if settings.stratify else mixed
    return out[:wanted]


def _spread(tasks: Sequence[Task], field: str) -> list[Task]:
    """Those of one stratum in their order, its k-th of n at the place (k + 1/2) / n.

    >>> some = [Task(id=i, prompt=i, kind=i[0]) for i in ("a1", "a2", "a3", "a4", "b1", "b2")]
    >>> [t.id for t in _spread(some, "kind")]
    ['a1', 'b1', 'a2', 'a3', 'b2', 'a4']
    """
    strata = grouped((getattr(task, field), task) for task in tasks)
    places = [((k + 0.5) / len(s), t) for s in strata.values() for k, t in enumerate(s)]
    return [t for _, t in sorted(places, key=lambda p: p[0])]


REPORTERS = {  # name -> the package that it needs
    "wandb": "wandb",
    "trackio": "trackio",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow",
    "swanlab": "swanlab",
    "comet_ml": "comet_ml",
    "clearml": "clearml",
}


PACKAGES = ("torch", "transformers", "tokenizers", "trl", "peft", "accelerate", "datasets")


def check(settings: Settings, judges: Iterable[Any] = ()) -> None:
    """KitError for an unknown reporter, MissingError for a package that these settings need and
    that is not installed, or a judge without its key.
    """
    wanted = [r for r in settings.report_to if r not in ("none", "all")]
    known_names(wanted, REPORTERS, where="setting report_to", what="reporter")
    vllm = getattr(settings, "use_vllm", False)
    asked = (
        *(
            ("report_to", REPORTERS[r], "leave it out: steps.jsonl has every number")
            for r in wanted
        ),
        ("use_vllm", vllm and "vllm", "leave it out"),
        ("quantize", settings.quantize == "nf4" and "bitsandbytes", "quantize: none"),
        ("engine", settings.engine == "unsloth" and "unsloth", "engine: transformers"),
        *(("model", p, "the kit with its extra [train]") for p in PACKAGES),
    )
    for setting, package, other in asked:
        if package and not _installed(package):
            raise MissingError(
                f"the package {package!r} is not installed",
                where=f"setting {setting}",
                fix=f"pip install {package}, or {other}",
            )
    if settings.adapter and not Path(settings.adapter).expanduser().is_dir():
        raise MissingError(
            f"{settings.adapter} is no folder",
            where="setting adapter",
            fix="give the folder of an adapter: .../adapter of a finished run",
        )
    keyed(judges)


def place(out: Path) -> None:
    """KitError where a run cannot have its folder here, because a file has the name."""
    taken = next((p for p in (out, *out.parents) if p.exists()), None)
    if taken is not None and not taken.is_dir():
        raise KitError(f"{taken} is a file", where="out", fix="name a folder that can be made")


def begun(out: Path) -> bool:
    """True where a run has left more in its folder than its settings: one that found no judge or no
    model has paid for nothing and answered nothing.
    """
    from ..judge.ledger import Ledger

    found = {re.split(r"[._]", p.name)[0] for p in out.glob("*")}
    book = out / "ledger.sqlite"
    done = found - {"settings", "ledger", "bill"} or (
        book.exists() and next(Ledger(book).calls(), None)
    )
    return "settings" in found and bool(done)


def alone(out: Path, *, resume: bool = True, other: str = rollouts.CHAIN) -> Any:
    """Hold the folder of a run; KitError where another process trains there now. Processes that
    train together hold it by their first.

    resume : a run that is there is gone on with, else it is an error. other : the file of a run of
    another kind, a chain or a single stage, which is an error in any case.
    """
    place(out)
    if not world.main():
        return contextlib.nullcontext()
    said = "this folder already holds a run"
    if (out / other).exists():
        kind = "a chain of stages" if other == rollouts.CHAIN else "a single stage"
        raise KitError(f"{said}, {kind}", where=str(out), fix="choose another folder: out")
    begun = any((out / name).exists() for name in (rollouts.ROLLOUTS, rollouts.STEPS))
    if begun and not resume:
        fix = "go on with it (--resume, or resume=True), or choose another folder"
        raise KitError(said, where=str(out), fix=fix)
    fix = "wait for it, or name another folder"
    busy = KitError("another process trains there now", where=str(out), fix=fix)
    return processes.alone(out.absolute().parent, out.name, progress.say, busy=busy)


def once(tasks: Sequence[Any]) -> None:
    """DataError where two tasks have one id: their groups could not be told apart."""
    twice = [i for i, n in Counter(t.id for t in tasks).items() if n > 1]
    if twice:
        raise DataError(
            f"{len(twice)} ids belong to two tasks", where=f"task {twice[0]!r}", fix="rename one"
        )


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


Sides = tuple[tuple[Task, ...], tuple[Task, ...]]


def split(
    tasks: Sequence[Task],
    how: Mapping[str, Any],
    where: str,
    held: Sequence[Task] | None = None,
) -> Sides:
    """Tasks to train on and held-out ones; rows marked as heldout, test or validation are held out.

    how : train_ratio and data_seed (a shuffle of whole prompts), holdout_by and holdout (groups).
    held : held-out tasks of a file of their own; an id on both sides is an error.
    A task whose prompt is held out under another id is not trained on either.
    """
    train = [t for t in tasks if not t.held_out]
    if held is None:
        ids = _chosen(train, how, where, [t for t in tasks if t.held_out])
        held = [t for t in tasks if t.held_out or t.id in ids]
        train = [t for t in train if t.id not in ids]
    else:
        unshared(tasks, held, f"{where}, key heldout, ")
    out = held_out([*train, *held], {t.id for t in held})
    kept = tuple(t for t in train if t.id not in out)
    if train and not kept:
        raise DataError(
            "every prompt to train on is held out too", where=where, fix="hold out other prompts"
        )
    return kept, tuple(held)


def unshared(train: Sequence[Task], held: Sequence[Task], where: str = "") -> None:
    """DataError where a held-out task is trained on."""
    shared = {t.id for t in train} & {t.id for t in held}
    if shared:
        raise DataError(
            f"{len(shared)} held-out tasks are also trained on",
            where=f"{where}task {min(shared)!r}",
            fix="hold out other prompts (in a config: leave `heldout` out, train_ratio: 0.9): "
            "a gain on trained prompts shows nothing",
        )


def _words(text: Any) -> str:
    """Case and spaces make no other prompt, and no other group."""
    return " ".join(str(text).split()).casefold()


def _chosen(
    tasks: Sequence[Task], how: Mapping[str, Any], where: str, marked: Sequence[Task]
) -> set[str]:
    """Ids that the config's words hold out; marked : rows that are held out as it is."""
    if not how:
        return set()
    given = {k: how.get(k, v) for k, v in (("train_ratio", 0.9), ("data_seed", 42))}
    numbers = read.fitting({"train_ratio": float, "data_seed": int}, given, where=where)
    with at(where):
        within(numbers, {"train_ratio": RATIO})
    share, seed = 1 - numbers["train_ratio"], numbers["data_seed"]
    by, named = how.get("holdout_by"), how.get("holdout")
    if by is None and named is None:
        return set(splits.shuffle(tasks, seed=seed, share=share).parts["heldout"])
    if named is not None:
        named = [_words(n) for n in (named if isinstance(named, (list, tuple)) else [named])]
    by = str(by or "group")
    grouped = [dataclasses.replace(t, group=_group(t, by, where)) for t in tasks]
    if named is not None and marked:
        there = {t.group for t in grouped}
        done = {_words(v) for t in marked if (v := _value(t, by)) is not None}
        named = [n for n in named if n in there or n not in done]
        if not named:
            return set()
    held = set(splits.by_group(grouped, seed=seed, share=share, heldout=named).parts["heldout"])
    others = {t.group for t in grouped if t.id in held and t.group not in (named or [t.group])}
    if others:
        logger.warning(
            "%s: held out too, since they share a prompt with what is: %s",
            where,
            ", ".join(sorted(others)),
        )
    if named is None and len(held) > 1.5 * share * len(tasks):
        logger.warning(
            "%s: whole groups are held out, %d of %d tasks, more than the %.0f%% asked for",
            where,
            len(held),
            len(tasks),
            100 * share,
        )
    return held


RATIO = (ABOVE_0, 1 - 2**-53, "the share to train on, a number between 0 and 1, as 0.9")


def _value(task: Task, by: str) -> Any:
    own = {"group": task.group, "kind": task.kind, "question_type": task.kind}
    return own[by] if by in own else task.meta.get(by)


def _group(task: Task, by: str, where: str) -> str:
    """The value of the field that whole groups are held out by."""
    value = _value(task, by)
    if value is None:
        raise DataError(
            f"the task has no {by!r} to hold out by",
            where=f"{where}, task {task.id!r}",
            fix=f"fields there: {', '.join(sorted(task.meta)) or 'none'}",
        )
    return _words(value)

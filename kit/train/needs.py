"""What a training needs from outside, looked at before any model loads: reporters, and keys of
judges.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import DataError, KitError, MissingError
from ..judge.keys import missing
from ..settings.read import known_names
from .config import Settings

REPORTERS = {  # name -> the package that it needs
    "wandb": "wandb",
    "trackio": "trackio",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow",
    "swanlab": "swanlab",
    "comet_ml": "comet_ml",
    "clearml": "clearml",
}


def check(settings: Settings, judges: Iterable[Any] = ()) -> None:
    """KitError for an unknown reporter, MissingError for one without its package or a judge without
    its key.
    """
    wanted = [r for r in settings.report_to if r not in ("none", "all")]
    known_names(wanted, REPORTERS, where="setting report_to", what="reporter")
    for name in wanted:
        if not _installed(REPORTERS[name]):
            raise MissingError(
                f"{name} is asked for, and the package {REPORTERS[name]!r} is not installed",
                where="setting report_to",
                fix=f"pip install {REPORTERS[name]}, or leave report_to out: "
                "steps.jsonl has every number",
            )
    if settings.adapter and not Path(settings.adapter).expanduser().is_dir():
        fix = "give the folder of an adapter: .../adapter of a finished run"
        raise MissingError(f"{settings.adapter} is no folder", where="setting adapter", fix=fix)
    for judge in judges:
        for inner in endpoints(judge):
            _check_key(inner)


def place(out: Path) -> None:
    """KitError where a run cannot have its folder here, because a file has the name."""
    taken = next((p for p in (out, *out.parents) if p.exists()), None)
    if taken is not None and not taken.is_dir():
        raise KitError(f"{taken} is a file", where="out", fix="name a folder that can be made")


def once(tasks: Sequence[Any]) -> None:
    """DataError where two tasks have one id: their groups could not be told apart."""
    twice = [i for i, n in Counter(t.id for t in tasks).items() if n > 1]
    if twice:
        raise DataError(
            f"{len(twice)} ids belong to two tasks", where=f"task {twice[0]!r}", fix="rename one"
        )


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def endpoints(judge: Any) -> Iterator[Any]:
    """The judges behind HTTP in a judge: itself, or the members of a panel, an escalation, a
    batch.
    """
    if hasattr(getattr(judge, "caller", None), "wire"):
        yield judge
    inner = [getattr(judge, name, None) for name in ("cheap", "strong", "inner")]
    for member in (*getattr(judge, "judges", ()), *(j for j in inner if j is not None)):
        yield from endpoints(member)


def _check_key(judge: Any) -> None:
    name = missing(judge.caller.wire)
    if name:
        raise MissingError(
            f"there is no key for {judge.caller.base_url}",
            where=f"judge {judge.name!r}",
            fix=f"set the environment variable {name}, or give base_url for a server of your own",
        )

"""Several processes that train one policy (`accelerate launch`, torchrun): who am I, wait for all,
bring rows together.

One process alone needs none of this and imports nothing for it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import KitError


def size() -> int:
    """Processes that train together; 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE") or 1)


def rank() -> int:
    """This process's number, 0 = the one that writes."""
    return int(os.environ.get("RANK") or 0)


def local_rank() -> int:
    """This process's number on its machine: the number of its GPU."""
    return int(os.environ.get("LOCAL_RANK") or 0)


def main() -> bool:
    """True in the process that writes files, evaluates and reports."""
    return rank() == 0


def wait() -> None:
    """Return when every process is here."""
    if size() > 1:
        _together().barrier()


def gather(rows: Sequence[Any]) -> list[Any]:
    """The rows of all processes, in the order of their numbers, in each of them."""
    if size() == 1:
        return list(rows)
    every: list[Any] = [None] * size()
    _together().all_gather_object(every, list(rows))
    return [r for part in every for r in part]


@contextlib.contextmanager
def whole(model: Any) -> Iterator[None]:
    """Inside, the first process has all of a model's weights, also where ZeRO-3 shares them out;
    entered by every process.
    """
    shards = [p for p in model.parameters() if hasattr(p, "ds_id")] if size() > 1 else []
    if not shards:
        yield
        return
    import deepspeed

    with deepspeed.zero.GatheredParameters(shards):
        yield


def _together() -> Any:
    """torch.distributed with its process group: gloo on CPUs, NCCL on GPUs."""
    from ..system.device import import_torch

    torch = import_torch()
    if not torch.distributed.is_initialized():
        from accelerate import PartialState

        PartialState(cpu=not torch.cuda.is_available())
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return torch.distributed


def share(rows: int, group_size: int) -> int:
    """Answers of a step that each process takes; KitError when they cannot be shared out.

    >>> share(16, 8)
    16
    """
    if rows % size():
        raise KitError(
            f"{rows} answers a step cannot be shared out to {size()} processes",
            where="settings prompts_per_step, group_size",
            fix=f"prompts_per_step x group_size (here {rows // group_size} x {group_size}) must be "
            f"a multiple of the processes",
        )
    return rows // size()

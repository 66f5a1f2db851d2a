"""Several processes that train one model, started by torchrun or accelerate. The first judges, evaluates and writes."""

import os
import signal
from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar

from ..errors import DataError, MissingError
from .device import import_torch

T = TypeVar("T")


def world() -> int:
    """How many processes train this model: torchrun and accelerate set WORLD_SIZE."""
    return int(os.environ.get("WORLD_SIZE", 1))


def rank() -> int:
    """The number of this process, from 0."""
    return int(os.environ.get("RANK", 0)) if world() > 1 else 0


def connect() -> None:
    """Connect the processes; DataError where accelerate started one in place of several."""
    # for CPUs accelerate sets an address and starts one process, without a message
    if "MASTER_ADDR" in os.environ and "WORLD_SIZE" not in os.environ:
        raise DataError(
            "one process runs, although several were asked for",
            where="accelerate launch --cpu",
            fix="torchrun --nproc_per_node 2 -m kit train CONFIG",
        )
    torch = import_torch()
    dist = torch.distributed
    if world() > 1 and not dist.is_initialized():
        # a slow judge is no fault, and a dead process is noticed at once
        dist.init_process_group(timeout=timedelta(days=1))
        # where one process ends, torchrun stops the others
        signal.signal(signal.SIGTERM, _end)
        # a save point is loaded to the place "cpu:0", which torch knows as "cpu" alone
        torch.serialization.register_package(
            100,
            lambda _: None,
            lambda storage, place: storage if place.startswith("cpu") else None,
        )


def _end(*_: object) -> None:
    raise MissingError(
        "another process of this training ended",
        fix="the same command with --resume goes on",
    )


def broadcast(value: T) -> T:
    """The first process's value, in every process."""
    values = [value]
    if world() > 1:
        import_torch().distributed.broadcast_object_list(values)
    return values[0]


def local_part(rows: Sequence[T]) -> Sequence[T]:
    """This process's part of the rows of all."""
    size = len(rows) // world()
    return rows[rank() * size : (rank() + 1) * size]

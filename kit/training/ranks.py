"""Several processes that train one model, started by torchrun or accelerate. The first judges, evaluates and writes."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TypeVar

from ..errors import DataError
from ..system.device import import_torch

T = TypeVar("T")


def world() -> int:
    """How many processes train this model. torchrun and accelerate set WORLD_SIZE."""
    return int(os.environ.get("WORLD_SIZE", 1))


def rank() -> int:
    """The number of this process, from 0."""
    return int(os.environ.get("RANK", 0)) if world() > 1 else 0


def connect() -> None:
    """Connect the processes; DataError where accelerate started fewer than it was told to."""
    # for CPUs accelerate sets an address and starts one process, without a message
    if "MASTER_ADDR" in os.environ and "WORLD_SIZE" not in os.environ:
        raise DataError(
            "one process runs, although several were asked for",
            where="accelerate launch --cpu",
            fix="torchrun --nproc_per_node 2 -m kit train CONFIG",
        )
    dist = import_torch().distributed
    if world() > 1 and not dist.is_initialized():
        # a slow judge is no fault, and a dead process is noticed at once
        dist.init_process_group(timeout=timedelta(days=1))
    if rank():
        # the first process says the same
        logging.getLogger("kit").setLevel(logging.ERROR)


def broadcast(value: T) -> T:
    """The first process's value, in every process."""
    values = [value]
    if world() > 1:
        import_torch().distributed.broadcast_object_list(values)
    return values[0]


def gather(rows: Sequence[T]) -> list[T]:
    """The rows of all processes, in their order."""
    parts = [list(rows)] * world()
    if world() > 1:
        import_torch().distributed.all_gather_object(parts, list(rows))
    return [row for part in parts for row in part]


def local_part(rows: Sequence[T]) -> Sequence[T]:
    """This process's part of what `gather` returned."""
    size = len(rows) // world()
    return rows[rank() * size : (rank() + 1) * size]


def from_first(work: Callable[[], T]) -> T:
    """What `work` returns in the first process, in every process. Its error ends all of them."""
    result, error = None, None
    if rank() == 0:
        try:
            result = work()
        except Exception as e:
            error = e
    result, code = broadcast((result, error and getattr(error, "exit_code", 1)))
    if error:
        raise error
    # the first process says why
    if code:
        raise SystemExit(code)
    return result  # type: ignore[return-value]


def launch_lines(arguments: Sequence[str]) -> str:
    """Command lines that start `python -m kit ARGUMENTS` in several processes, and a sweep on a Ray cluster.

    >>> print(launch_lines(["train", "rlvr"]).splitlines()[1])
      accelerate launch --multi_gpu --num_processes 8 --module kit train rlvr
    """
    from .settings import CONFIGS

    command = f"--module kit {shlex.join(arguments)}"
    several = "accelerate launch --multi_gpu --num_processes"
    machines = "--num_machines 2 --machine_rank 0 --main_process_ip HOST --main_process_port 29500"
    zero3 = f"--set deepspeed={shlex.quote(str(CONFIGS / 'zero3.json'))}"
    return f"""8 GPUs of one machine:
  {several} 8 {command}
2 machines of 8 GPUs that see one folder of runs, on each with its machine_rank:
  {several} 16 {machines} {command}
8 GPUs that each hold a part of the weights (ZeRO-3, pip install deepspeed):
  {several} 8 {command} {zero3}
2 processes on a CPU:
  torchrun --nproc_per_node 2 {command}
a sweep on a Ray cluster (pip install 'ray[client]', then ray start --head):
  kit sweep 3 --grid seed=0,1,2 --profile cluster --address auto"""

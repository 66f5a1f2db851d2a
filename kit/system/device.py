"""Where a model runs: device, number format and threads, each with the reason for the choice.

torch is imported here first, so that OMP_WAIT_POLICY is set before it loads: with a busy neighbour,
threads that spin at barriers make a training step twenty times slower.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any


def import_torch() -> Any:
    """torch, loaded with passive OpenMP waiting; the first import of torch in the kit goes through
    here.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch

    return torch


@dataclass(frozen=True, kw_only=True)
class Device:
    """What was chosen and why.

    kind : "cpu" or "cuda"; dtype : "float32", "bfloat16" or "float16"; why : one sentence for
    people.
    """

    kind: str
    dtype: str
    why: str
    name: str

    def torch_dtype(self) -> Any:
        """The torch dtype of that name."""
        return getattr(import_torch(), self.dtype)


def native_bf16() -> bool:
    """True when this CPU multiplies bfloat16 in hardware (AMX or AVX512-BF16); elsewhere bf16 is
    emulated and slower than float32.
    """
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            flags = next((line for line in f if line.startswith("flags")), "")
    except OSError:
        return False
    return " amx_bf16" in flags or " avx512_bf16" in flags


def choose(dtype: str = "auto") -> Device:
    """The device of this machine and a number format for it.

    "auto": bf16 where the device multiplies it in hardware, fp16 on older CUDA devices (a T4),
    float32 on other CPUs.
    """
    torch = import_torch()
    if torch.cuda.is_available():
        major, minor = torch.cuda.get_device_capability(0)
        auto = "bfloat16" if major >= 8 else "float16"
        return _device(
            "cuda",
            dtype,
            auto,
            f"compute capability {major}.{minor} {'has' if major >= 8 else 'has no'} bfloat16",
            torch.cuda.get_device_name(0),
        )
    return on_cpu(torch.get_num_threads(), dtype)


def on_cpu(threads: int, dtype: str = "auto") -> Device:
    """The CPU as a device; looks at the processor only and imports no torch."""
    native = native_bf16()
    why = (
        "this CPU multiplies bfloat16 in hardware"
        if native
        else "this CPU would emulate bfloat16, three times slower than float32"
    )
    auto = "bfloat16" if native else "float32"
    return _device(
        "cpu",
        dtype,
        auto,
        why,
        f"CPU, {threads} threads",
    )


def _device(kind: str, asked: str, auto: str, why: str, name: str) -> Device:
    if asked != "auto" and asked != auto:
        why = f"{asked} was asked for ({auto} would be chosen: {why})"
    return Device(
        kind=kind,
        dtype=auto if asked == "auto" else asked,
        why=why,
        name=name,
    )

"""The device and number format of this machine, each with the reason for the choice; memory taken."""

import os
import resource
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def import_torch() -> Any:
    """torch, with OpenMP set to wait passively. The first import of torch in the kit must go through here.

    Spinning OpenMP threads make a training step twenty times slower beside a busy process.
    """
    # OpenMP reads this once, when torch loads it; a user's own value stays.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Else tokenizers warns at every fork, for example in a sweep.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch

    return torch


def has_nvidia() -> bool:
    """True where an NVIDIA driver is present; imports no torch."""
    return (
        os.path.exists("/dev/nvidiactl") or shutil.which("nvidia-smi") is not None
    )


@dataclass(frozen=True, kw_only=True)
class Device:
    """kind : "cpu" or "cuda". dtype : "float32", "bfloat16" or "float16". why : the reason, one sentence."""

    kind: str
    name: str
    dtype: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}, {self.dtype}: {self.why}"


def choose(dtype: str = "auto") -> Device:
    """The device of this machine with a number format.

    "auto" is bfloat16 where the hardware multiplies it, float16 on older GPUs (a T4), float32 on other CPUs.
    """
    # Without a driver torch is not imported: on a laptop this saves two seconds.
    torch = import_torch() if has_nvidia() else None
    if torch and torch.cuda.is_available():
        major, minor = torch.cuda.get_device_capability(0)
        kind, name = "cuda", torch.cuda.get_device_name(0)
        # Older GPUs (a T4 has 7.5) take bfloat16 and emulate it slowly.
        native, fallback = major >= 8, "float16"
        why = f"compute capability {major}.{minor} {'has' if native else 'has no'} bfloat16"
    else:
        kind, name = "cpu", f"CPU with {os.cpu_count()} threads"
        native, fallback = _cpu_has_bf16(), "float32"
        why = (
            f"this CPU {'multiplies' if native else 'would only emulate'} bfloat16"
        )
    best = "bfloat16" if native else fallback
    if dtype not in ("auto", best):
        why = f"{dtype} was requested; auto would choose {best}, because {why}"
    return Device(
        kind=kind, name=name, dtype=best if dtype == "auto" else dtype, why=why
    )


def is_too_old_for_vllm() -> bool:
    """True for a GPU below compute capability 8.0, a T4 for example. vLLM 0.12 and later has no attention for it."""
    return bool(
        has_nvidia()
        and import_torch().cuda.is_available()
        and import_torch().cuda.get_device_capability(0) < (8, 0)
    )


def _cpu_has_bf16() -> bool:
    """True for AMX or AVX512-BF16. Emulated bfloat16 is three times slower than float32."""
    # torch does not say whether the CPU multiplies bfloat16 or emulates it.
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:  # no Linux
        return False
    return " amx_bf16" in flags or " avx512_bf16" in flags


def peak_memory() -> float:
    """The peak memory of this process in GiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts bytes, Linux kilobytes.
    return round(peak / 2 ** (30 if sys.platform == "darwin" else 20), 2)

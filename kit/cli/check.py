"""Look at this machine: versions against the pins, device and dtype with the reason.

And what will not work, with the remedy.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

from ..colab import has_gpu
from ..system import paths
from .common import Options, Output, arg

HELP = "versions, device, dtype and why; what will not work and the remedy"
MARK = {"ok": "ok  ", "warn": "WARN", "fail": "FAIL"}


OPTIONAL = ("unsloth", "bitsandbytes")  # 1.2 GB that only a GPU needs


ARGS = (
    arg("--torch", action="store_true", help="load torch too (seconds), though no GPU is seen"),
)


def item(name: str, status: str, says: str, remedy: str = "") -> dict[str, str]:
    """One line of the check: status is ok, warn or fail."""
    return {"name": name, "status": status, "says": says, "remedy": remedy}


def pins() -> dict[str, str]:
    """name -> version of constraints.txt, {} outside a checkout."""

    path = paths.ROOT / "constraints.txt"
    if not path.exists():
        return {}
    lines = [
        line.split("#")[0].split(";")[0].strip()
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return {n.lower(): v for n, _, v in (line.partition("==") for line in lines) if v}


def packages() -> list[dict[str, str]]:
    """Installed versions beside the pins."""
    from .. import runs

    wanted, gpu = pins(), has_gpu()
    return [_package(name, v, wanted.get(name), gpu) for name, v in runs.versions().items()]


def _package(name: str, have: str, pin: str | None, gpu: bool) -> dict[str, str]:
    remedy = f"pip install {name}" + (f"=={pin}" if pin else "")
    if have == "not installed" and name in OPTIONAL:
        said = "not installed; 4-bit training on a GPU needs it: make setup-gpu"
        return item(name, "warn", said, "make setup-gpu") if gpu else item(name, "ok", said)
    if have == "not installed":
        return item(name, "fail", have, remedy)
    if pin and have.split("+")[0] != pin:
        return item(name, "warn", f"{have}, the pin is {pin}", remedy)
    return item(name, "ok", have)


def device(load: bool) -> list[dict[str, str]]:
    """The device that training would use, and why.

    load : import torch although no GPU is seen, which takes seconds on a busy machine.
    """
    try:
        from ..system import device as dev

        threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
        d = dev.choose() if load or has_gpu() else dev.on_cpu(threads)
    except ImportError as e:
        return [item("device", "fail", f"torch does not import: {e}", "make setup")]
    return [item("device", "ok", f"{d.name}, {d.dtype}: {d.why}")]


def places() -> Iterator[dict[str, str]]:
    """Cache, downloads, free space, kernel."""
    free = shutil.disk_usage(paths.home()).free / 2**30
    yield item(
        "disk",
        "ok" if free > 3 else "warn",
        f"{free:.1f} GiB free at the cache",
        "" if free > 3 else "free 3 GiB or set KIT_HOME elsewhere",
    )
    cached = {
        "recorded judges": "recorded/*/complete",
        "SmolLM2-135M-Instruct": "models/SmolLM2-135M-Instruct/*.safetensors",
    }
    for name, pattern in cached.items():
        there = any(paths.home().glob(pattern))
        yield item(
            f"download {name}",
            "ok" if there else "warn",
            "cached" if there else "not cached yet",
            "" if there else "python -m kit fetch",
        )
    try:
        from jupyter_client.kernelspec import KernelSpecManager

        KernelSpecManager().get_kernel_spec("python3")
        yield item("kernel python3", "ok", "found")
    except Exception:
        yield item("kernel python3", "fail", "not found", "pip install ipykernel")


def judge() -> list[dict[str, str]]:
    """The default judge model, its end of life, and whether a key is set (never the key)."""
    from ..judge import prices

    name = prices.default_model()
    warning, end = prices.warning(name), prices.shutdown(name)
    key = bool(os.environ.get("OPENAI_API_KEY"))
    return [
        item(
            "judge model",
            "warn" if warning else "ok",
            warning or f"{name}" + (f", until {end}" if end else ", no shutdown announced"),
            "set another with --model, or edit kit/judge/models.json",
        ),
        item(
            "OPENAI_API_KEY",
            "ok",
            "set" if key else "not set: endpoint judges need it (replay and local do not)",
        ),
    ]


def run(args: Options) -> Output:
    """Print the check; exit code 1 when something fails."""
    rows: list[dict[str, Any]] = [*packages()]
    for name, part in (
        ("device", lambda: device(args.torch)),
        ("places", places),
        ("judge", judge),
    ):
        try:
            rows += part()
        except ImportError as e:
            rows.append(item(name, "fail", f"cannot be looked at: {e}", "make setup"))
    width = max(len(r["name"]) for r in rows)
    lines = [
        f"{MARK[r['status']]}  {r['name']:{width}}  {r['says']}"
        + (
            f"\n      {'':{width}}  to do: {r['remedy']}"
            if r["remedy"] and r["status"] != "ok"
            else ""
        )
        for r in rows
    ]
    bad = sum(r["status"] == "fail" for r in rows)
    lines.append(f"{bad} failures, {sum(r['status'] == 'warn' for r in rows)} warnings")
    return Output(rows, "\n".join(lines), 1 if bad else 0)

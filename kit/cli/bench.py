"""Measure what the notebooks' profile tables need, on a GPU, and write their rows.

Three parts of at most three minutes each: the kit's GRPO step; the step of unsloth's own trainer
(trl's without unsloth) on the same model, batch and lengths; a short run of notebook 3. The first
step of each warms up and is left out. Rows are written when every part ran.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from ..errors import MissingError
from .common import Options, Output, arg

HELP = "measure GRPO on a GPU (step, tokens/s, memory) and write the notebooks' profile tables"


ARGS = (
    arg("what", choices=["gpu"]),
    arg(
        "--preset", choices=["t4", "gpu", "test"], default="t4", help="whose model, batch, lengths"
    ),
    arg("--steps", type=int, default=5, help="of each trainer; the first warms up"),
    arg(
        "--device", choices=["cuda", "cpu"], default="cuda", help="cpu: a trial, with --preset test"
    ),
    arg("--notebooks", help="folder whose tables are written (default: the kit's)"),
    arg("--out", default=f"kit-bench-{time.time_ns()}", help="new folder for logs"),
    arg("--dry-run", action="store_true", help="show what would run, and stop"),
)


def run(args: Options) -> Output:
    """Measure; exit code 0: every part ran, 1: one failed or was stopped, 3: there is no GPU."""
    from ..system import device, paths, progress
    from ..train import bench

    out, preset = Path(args.out), args.preset
    plan = bench.plan(preset, args.steps, out)
    if args.dry_run:
        return Output(plan, "\n".join(f"{part}: {' '.join(plan[part][2:])}" for part in plan))
    if args.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    here, found = device.choose(), {}
    if args.device != here.kind:
        raise MissingError(
            "there is no CUDA GPU: nothing was measured",
            where="bench",
            fix="run it on a machine with one (a Colab T4, say); --dry-run shows the plan",
        )
    for part, command in plan.items():
        progress.say(f"{part}: at most {bench.LIMIT:.0f} s ...")
        found[part] = bench.run(command, out / part)
    folder = Path(args.notebooks) if args.notebooks else paths.notebooks()
    written = bench.write(folder, found, preset, here.name)
    said = "\n".join(f"{part}: {row}" for part, row in found.items())
    code = int(any(row["exit"] != 0 for row in found.values()))
    return Output(
        {"parts": found, "written": written}, f"{said}\nlogs: {out}\nwritten: {written}", code
    )

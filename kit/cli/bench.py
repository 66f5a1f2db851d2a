"""Measure what the notebooks' profile tables need, on a GPU, and write their rows."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from ..errors import MissingError
from .common import emit, json_flag

HELP = "measure GRPO on a GPU (step, tokens/s, memory) and write the notebooks' profile tables"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of `bench`."""
    parser.add_argument("what", choices=["gpu"])
    parser.add_argument(
        "--preset",
        choices=["t4", "gpu", "test"],
        help="whose model, batch and lengths (default: what fits the GPU that is found)",
    )
    parser.add_argument("--steps", type=int, default=5, help="of each trainer; the first warms up")
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=["kit", "bare", "notebook"],
        default=["kit", "bare", "notebook"],
        help="kit: the kit's step; bare: unsloth's own trainer (trl's without unsloth) on the same "
        "model, batch and lengths; notebook: a short run of notebook 3. Three minutes at most each",
    )
    parser.add_argument(
        "--device",
        choices=["cuda", "cpu"],
        default="cuda",
        help="cpu: to try it, with --preset test",
    )
    parser.add_argument("--notebooks", help="folder whose tables are written (default: the kit's)")
    parser.add_argument("--out", help="new folder for logs (default: a temporary one)")
    parser.add_argument("--dry-run", action="store_true", help="show what would run, and stop")
    parser.add_argument("--worker", choices=["kit", "bare"], help=argparse.SUPPRESS)
    json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Measure; exit code 0: every part ran, 1: one failed or was stopped, 3: there is no GPU."""
    from ..runs.headless import to_stderr
    from ..settings import profiles
    from ..train import bench

    found = profiles.resolve().name
    preset = args.preset or (found if found in ("t4", "gpu") else "t4")
    out = Path(args.out or Path(tempfile.gettempdir()) / f"kit-bench-{time.time_ns()}")
    if args.worker:
        bench.measure(args.worker, bench.settings(preset, args.steps), out / args.worker)
        return 0
    plan = {p: bench.command(p, preset, args.steps, out) for p in args.parts}
    if args.dry_run:
        text = "\n".join(
            f"{p} (at most {bench.LIMIT:.0f} s): {' '.join(plan[p][1:])}" for p in plan
        )
        emit(args, {"preset": preset, "plan": plan}, text)
        return 0
    name = _name(args.device)
    done = {}
    for part in plan:
        to_stderr(f"{part}: at most {bench.LIMIT:.0f} s ...")
        done[part] = bench.run(part, preset, args.steps, out, kind=args.device)
    cells = bench.cells(done, preset, name)
    written = bench.write_rows(_folder(args), preset, *cells) if cells else []
    data = {"device": name, "preset": preset, "parts": done, "cells": cells, "written": written}
    emit(args, data, _text(data, out))
    return int(any(d["exit"] != 0 for d in done.values()))


def _name(kind: str) -> str:
    """The device's name; MissingError without the GPU that is asked for."""
    from ..train import device

    if kind == "cpu":
        return "CPU"
    here = device.choose()
    if here.kind != "cuda":
        fix = "run it on a machine with one (a Colab T4, say); --dry-run shows the plan"
        raise MissingError(
            "there is no CUDA GPU here: nothing was measured", where="bench", fix=fix
        )
    return here.name


def _folder(args: argparse.Namespace) -> Path:
    from ..system import paths

    return Path(args.notebooks) if args.notebooks else paths.notebooks()


def _text(data: dict[str, Any], out: Path) -> str:
    lines = [f"{data['device']}, preset {data['preset']}; logs in {out}"]
    for d in data["parts"].values():
        how = "stopped at its limit" if d["exit"] is None else f"exit code {d['exit']}"
        more = ""
        if d["step_s"]:
            memory = "memory unknown" if d["memory"] is None else f"{d['memory']:.2f} GB"
            more = f", {d['step_s']:.2f} s a step, {d['tokens_per_s']:.0f} tokens/s, {memory}"
        lines.append(f"{d['part']}: {how} after {d['wall_s']:.0f} s{more}")
    files = ", ".join(p.name for p in data["written"])
    lines.append(f"written: {files}" if files else "no table was written")
    return "\n".join(lines)

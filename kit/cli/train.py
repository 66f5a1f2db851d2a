"""Train from a config file: SFT, DPO, GRPO or a chain of them, resumable.

GRPO and chains are evaluated before and after.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import KitError
from .common import Options, Output, arg
from .run import given

HELP = "train a policy from a config file (SFT, DPO or GRPO)"


ARGS = (
    arg(
        "config",
        nargs="?",
        help="YAML or JSON: stage, tasks, judge, reward, out, and settings (kit/train/job.py; a "
        "chain: kit/train/chain.py); or the name of a config that ships: instructions (learns to "
        "follow instructions in minutes, without a judge), rlvr, refiner, biorlhf; facts_chain, "
        "ladder_chain (SFT, DPO, GRPO: each stage's gain), ladder_confidence (says how sure it is)",
    ),
    arg("--names", action="store_true", help="print the names of other systems that are read"),
    arg("--resume", action="store_true", help="go on from the last checkpoint of the run's folder"),
    arg(
        "--forecast",
        action="store_true",
        help="answer 64 times and say what can be learned and what it will cost; trains nothing",
    ),
    arg(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="replace a value of the config; VALUE is read as YAML",
    ),
)


def run(args: Options) -> Output:
    """Train; prints the sentence on the gain and where the run lies, or metrics as JSON."""
    from ..train import chain, job, names

    if args.names:
        changed = {k: v[0] for k, v in names.CHANGED.items()}
        return Output({**names.ALIASES, **changed}, names.table())
    from ..system.device import import_torch

    config = _config(args.config)
    import_torch()
    if chain.is_chain(config):
        if args.forecast:
            raise KitError(
                "a chain has no forecast",
                where="--forecast",
                fix="give the config of its grpo stage alone",
            )
        done = chain.run(chain.read(config, **_changes(args.set)))
        return Output({"out": str(done.out), **done.metrics}, f"run: {done.out}\n{done.text()}")
    wanted = job.read(config, **_changes(args.set))
    if args.forecast:
        found = job.foresee(wanted)
        return Output(found.to_json(), str(found))
    result = job.run(wanted, resume=args.resume)
    return Output({"out": str(result.out), **result.metrics}, _text(result))


def _config(name: str | None) -> Path:
    """The config file: a path, or the name of one that ships."""
    from ..train.chain import CONFIGS

    if not name:
        raise KitError("no config is given", where="command line", fix="kit train CONFIG")
    shipped = CONFIGS / f"{name}.yaml"
    return (
        shipped if "." not in name and not Path(name).exists() and shipped.exists() else Path(name)
    )


def _changes(pairs: list[str]) -> dict[str, Any]:
    import yaml

    from ..settings.read import parse

    try:
        return {name: parse(value) for name, value in given(pairs).items()}
    except yaml.YAMLError as e:
        raise KitError(
            f"a value cannot be read as YAML: {' '.join(str(e).split())}",
            where=f"--set {' '.join(pairs)}",
            fix="quote it, or close its brackets",
        ) from None


def _text(result: Any) -> str:
    from ..stats.estimate import band

    m = result.metrics
    lines = [
        f"run: {result.out}",
        f"{m['stage']}: {m['steps']} steps in {m['seconds_training']:.0f} s "
        f"on {m['device']}, {m['dtype']} ({m['dtype_why']})",
        f"engine: {m['engine']} ({m['engine_why']})",
    ]
    if getattr(result, "gain", None) is not None:
        lines += [
            result.gain.sentence,
            *(
                f"  {r['difference']:+.3f} {band(r['low'], r['high'], 3)}  {r['what']}"
                for r in result.gain.table()
                if r["difference"] == r["difference"]  # else nothing is known
            ),
        ]
    return "\n".join(lines)

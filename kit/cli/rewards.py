"""What a reward pays to answers that need no skill: trivial policies, and the best that a search
finds.

Each row is a share of the largest reward, with a 95% interval over prompts. Criteria that code
cannot decide are taken
as unmet, and citations are read by shared words: what is found here, a judge does not take back.
"""

from __future__ import annotations

from typing import Any

from .common import Options, Output, arg

HELP = "what a reward pays without skill: trivial policies and an automatic search"


ARGS = (
    arg("config", help="a preset of kit.rewards (default, rubric, refiner, ...) or a YAML file"),
    arg("tasks", help="tasks with rubrics, truths or sources (any format that the kit reads)"),
    arg(
        "--search",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="search so long; 60 is a good start",
    ),
    arg(
        "--evaluations",
        type=int,
        help="stop the search after so many policies: the same on every machine",
    ),
    arg("--seed", type=int, default=0, help="of the search (default: 0)"),
    arg(
        "--strict", action="store_true", help="exit code 1 when anything earns more than the bound"
    ),
)


def run(args: Options) -> Output:
    """Print the table; exit code 1 with --strict where the reward can be had without skill."""
    from .. import data, rewards
    from ..rewards.exploit import BOUND

    composer = rewards.Composer.from_config(args.config)
    tasks = list(data.load_tasks(args.tasks).sound())
    how = {"seconds": args.search, "evaluations": args.evaluations, "seed": args.seed}
    sought = args.search or args.evaluations
    found = rewards.search(composer, tasks, **how) if sought else None
    rows = rewards.standing(composer, tasks, found)
    bad = [r for r in rows if r["above"]]
    text = _text(composer.name, rows, found, BOUND)
    return Output(_record(composer.name, rows, found), text, 1 if bad and args.strict else 0)


def _record(name: str, rows: list[dict[str, Any]], found: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"reward": name, "trivial": rows}
    if found:
        out["search"] = {
            "policy": str(found.policy),
            "heldout": found.heldout.as_dict(),
            "chosen_at": found.chosen_at,
            "example": found.example,
            "evaluations": found.evaluations,
            "gameable": found.gameable,
            "assumed_unmet": found.assumed[0],
            "criteria": found.assumed[1],
            "ways": [{"part": n, "policy": p, "chosen_at": x} for n, p, x in found.ways],
        }
    return out


def _text(name: str, rows: list[dict[str, Any]], found: Any, bound: float) -> str:
    from ..stats.estimate import band

    lines = [f"reward {name}: share of the largest reward that is earned without skill", ""]
    for r in rows:
        mark = "  <- above the bound" if r["above"] else ""
        lost = f", {r['unknown']} unknown" if r["unknown"] else ""
        span = band(r["low"], r["high"])
        earns = f"{r['policy']:18} {r['earns']:6.3f}  {span:14}"
        prompts = f"{r['prompts']} prompts"
        lines.append(f"  {earns}  {prompts}{lost}{mark}")
    lines += ["", f"bound: {bound:g}"]
    if found:
        lines += [
            f"search, {found.evaluations} policies: {found}",
            f"  e.g. {found.example[:300]!r}",
            *(f"  {x:6.3f} with {n}: {p[:90]}" for n, p, x in found.ways if x > bound),
        ]
    return "\n".join(lines)

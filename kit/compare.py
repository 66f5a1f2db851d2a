"""Runs side by side: what they share, how they differ, and what several seeds allow one to say. Numbers only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .records import Run
from .stats.estimate import Estimate

Found = Iterable[tuple[Path, Run]]


def overview(found: Found) -> list[dict[str, Any]]:
    """One row a run: notebook, profile, seed, status, seconds, cost, and the parameters that differ between runs of its notebook."""
    pairs = list(found)
    rows = []
    for _, r in pairs:
        same = [x.params for _, x in pairs if x.notebook == r.notebook]
        differs = {k: v for k, v in r.params.items() if k != "profile" and len({json.dumps(p.get(k), sort_keys=True, default=str) for p in same}) > 1}
        rows.append({"notebook": r.notebook, "run": r.id, "profile": r.profile, "seed": r.seed, "status": r.status, "seconds": r.seconds,
                     "GiB": r.meta.get("peak_memory_gib"), "cost $": r.cost, "differs in": ", ".join(f"{k}={v}" for k, v in differs.items())})
    return rows


def metrics(found: Found, *, notebook: str | None = None, contains: str = "") -> list[dict[str, Any]]:
    """One row per run and numeric metric: value, low, high, n (None where the run recorded none).

    notebook : only this one; contains : only metrics whose name holds this text (case-insensitive).
    """
    out = []
    for _, run in found:
        for name, v in run.metrics.items():
            value = v if isinstance(v, Mapping) and "value" in v else {"value": v}
            if (notebook and run.notebook != notebook) or contains.lower() not in name.lower() or isinstance(value["value"], bool):
                continue
            if isinstance(value["value"], (int, float)):
                out.append({"notebook": run.notebook, "metric": name, "run": run.id, "value": value["value"], "low": value.get("low"),
                            "high": value.get("high"), "n": value.get("n"), "seed": run.seed, "params": dict(run.params)})
    return out


def shared(found: Found) -> list[dict[str, Any]]:
    """The rows of `metrics` whose metric at least two runs of one notebook recorded."""
    rows = metrics(found)
    count: dict[tuple[str, str], int] = {}
    for r in rows:
        count[r["notebook"], r["metric"]] = count.get((r["notebook"], r["metric"]), 0) + 1
    return [r for r in rows if count[r["notebook"], r["metric"]] > 1]


@dataclass(frozen=True)
class Seeds:
    """One metric over the seeds of one setting: the mean over seeds with its t interval, and how many runs excluded 0 by themselves."""

    notebook: str
    metric: str
    setting: str
    mean: Estimate
    excluded_zero: int
    runs: int


def across_seeds(found: Found) -> list[Seeds]:
    """Metrics that several seeds of the same setting recorded; the interval is over seeds (n = seeds), so it holds for a new seed."""
    from . import stats

    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for r in metrics(found):
        setting = json.dumps({k: v for k, v in r["params"].items() if k not in ("seed", "profile")}, sort_keys=True, default=str)
        groups.setdefault((r["notebook"], r["metric"], setting), []).append(r)
    out = []
    for (notebook, metric, setting), rows in groups.items():
        if len({r["seed"] for r in rows}) < 2:
            continue
        clear = sum(r["low"] is not None and (r["low"] > 0 or r["high"] < 0) for r in rows)
        out.append(Seeds(notebook, metric, setting, stats.mean([r["value"] for r in rows]), clear, len(rows)))
    return out

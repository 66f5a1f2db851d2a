"""Runs side by side: one table of runs, one of their metrics, and what several seeds say together."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ..records import Run
from ..stats import over_seeds as mean_over_seeds
from .folders import find
from .kept import metrics_of

Runs = str | Path | Sequence[tuple[Path, Run]] | None


def pairs(runs: Runs) -> list[tuple[Path, Run]]:
    """(folder, record) of runs; a folder is searched."""
    return (
        find(runs) if runs is None or isinstance(runs, (str, Path)) else list(runs)
    )


def differences(
    runs: Sequence[tuple[Path, Run]], *, but: Sequence[str] = ()
) -> dict[Path, str]:
    """For each folder the parameters that set its run apart from others of its notebook: "seed=1, steps=20".

    but : parameters to leave out. Folders (`..._dir`) are where, not what, and are left out too.
    """
    # Parameters of different notebooks are no alternatives to each other.
    values: dict[tuple[str, str], set[str]] = defaultdict(set)
    for _, run in runs:
        for name, value in run.params.items():
            # By repr: a list has no hash, and 1 and True would count as one value.
            values[run.notebook, name].add(repr(value))
    return {
        folder: ", ".join(
            f"{name}={value}"
            for name, value in run.params.items()
            if len(values[run.notebook, name]) > 1
            and name not in but
            and not name.endswith("_dir")
        )
        for folder, run in runs
    }


def overview(runs: Runs = None) -> pd.DataFrame:
    """One row per run: notebook, what sets it apart, status, time, memory, and the value of each metric.

    runs : a folder (default: the kit's runs), or what `find` gives.
    """
    runs = pairs(runs)
    setting = differences(runs)
    rows = [
        {
            "run": folder.name,
            "notebook": run.notebook,
            "setting": setting[folder],
            "profile": run.profile,
            "seed": run.seed,
            "status": run.status,
            "seconds": run.seconds,
            "GiB": run.meta.get("memory"),
            **{name: m.value for name, m in metrics_of(run).items()},
        }
        for folder, run in runs
    ]
    return pd.DataFrame(rows)


def compare(runs: Runs = None, *, contains: str = "") -> pd.DataFrame:
    """One row per metric and finished run: value, low, high, n, and what sets the run apart.

    contains : only metrics whose name contains this text.
    """
    runs = pairs(runs)
    setting, seedless = differences(runs), differences(runs, but=("seed",))
    rows = [
        {
            "notebook": run.notebook,
            "metric": name,
            "setting": setting[folder],
            "seedless": seedless[folder],
            "seed": run.seed,
            "value": float(m.value),
            "low": m.estimate.low if m.estimate else None,
            "high": m.estimate.high if m.estimate else None,
            "n": m.estimate.n if m.estimate else None,
            "run": folder.name,
        }
        for folder, run in runs
        # What an unfinished run kept may come from half of its work.
        if run.status == "done"
        for name, m in metrics_of(run).items()
        if contains in name and isinstance(m.value, int | float)
    ]
    columns = "notebook metric setting seedless seed value low high n run".split()
    frame = pd.DataFrame(rows, columns=columns).astype(
        {"low": float, "high": float}
    )
    # Stable, so that of equal settings the newest run stays last.
    return frame.sort_values(
        ["notebook", "metric"], kind="stable", ignore_index=True
    )


def over_seeds(runs: Runs = None, *, contains: str = "") -> pd.DataFrame:
    """Each metric over the runs that differ in their seed only: the mean, its interval, the seeds.

    The column `estimate` holds the Estimate. One seed says nothing about others and has no row.
    """
    rows, runs = [], pairs(runs)
    metrics = {folder.name: metrics_of(run) for folder, run in runs}
    groups = compare(runs, contains=contains).groupby(
        ["notebook", "metric", "seedless"]
    )
    for (notebook, metric, setting), group in groups:
        # The same seed twice, under other code say, is no new draw: the later one counts.
        group = group.drop_duplicates("seed", keep="last")
        if len(group) < 2:
            continue
        # Rewards and shares have a range, which rounding may leave by a hair.
        last = metrics[group["run"].iloc[-1]][metric].estimate
        bounds = last.bounds if last else (-math.inf, math.inf)
        mean = mean_over_seeds(
            group["value"].clip(*bounds).tolist(),
            seeds=group["seed"].tolist(),
            bounds=bounds,
        )
        rows.append(
            {
                "notebook": notebook,
                "metric": metric,
                "setting": setting,
                "mean": mean.value,
                "low": mean.low,
                "high": mean.high,
                "seeds": len(group),
                "worst": group["value"].min(),
                "best": group["value"].max(),
                "estimate": mean,
            }
        )
    columns = (
        "notebook metric setting mean low high seeds worst best estimate".split()
    )
    return pd.DataFrame(rows, columns=columns)

"""Runs side by side: one table of runs, one of their metrics, and what several seeds say together."""

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ..records import Run
from ..stats import over_seeds as mean_over_seeds
from .folders import find, metrics_of

# What `find` gives: (folder, record) of each run.
FoundRuns = Sequence[tuple[Path, Run]]
Runs = str | Path | FoundRuns | None
METRIC_COLUMNS = [
    "notebook", "metric", "setting", "seedless", "seed", "value", "low", "high", "n", "run", "estimate",
]  # fmt: skip
SEED_COLUMNS = [
    "notebook", "metric", "setting", "mean", "low", "high", "seeds", "worst", "best", "estimate",
]  # fmt: skip


def pairs(runs: Runs) -> FoundRuns:
    """(folder, record) of runs; a folder is searched."""
    return find(runs) if runs is None or isinstance(runs, str | Path) else runs


def differences(runs: FoundRuns, *, but: Sequence[str] = ()) -> dict[Path, str]:
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
    return pd.DataFrame(
        [
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
    )


def compare(runs: Runs = None, *, contains: str = "") -> pd.DataFrame:
    """One row per metric and finished run: value, low, high, n, and what sets the run apart.

    contains : only metrics whose name contains this text. The column `estimate` holds the Estimate, None for a
    number without an interval.
    """
    runs = pairs(runs)
    setting, seedless = differences(runs), differences(runs, but=("seed",))
    rows = [
        {
            # value, low, high and n, where the run has them
            **run.metrics[name],
            "notebook": run.notebook,
            "metric": name,
            "setting": setting[at],
            "seedless": seedless[at],
            "seed": run.seed,
            "run": at.name,
            "estimate": m.estimate,
        }
        for at, run in runs
        # What an unfinished run kept may come from half of its work.
        if run.status == "done"
        for name, m in metrics_of(run).items()
        if contains in name and isinstance(m.value, int | float)
    ]
    return (
        pd.DataFrame(rows, columns=METRIC_COLUMNS)
        .astype(dict.fromkeys(("value", "low", "high", "n"), float))
        # Stable, so that of equal settings the newest run stays last.
        .sort_values(["notebook", "metric"], kind="stable", ignore_index=True)
    )


def over_seeds(runs: Runs = None, *, contains: str = "") -> pd.DataFrame:
    """Each metric over the runs that differ in their seed only: the mean, its interval, the seeds.

    The column `estimate` holds the Estimate. One seed says nothing about others and has no row.
    """
    rows = []
    for names, group in compare(runs, contains=contains).groupby(
        ["notebook", "metric", "seedless"]
    ):
        # The same seed twice, under other code say, is no new draw: the later one counts.
        group = group.drop_duplicates("seed", keep="last")
        if len(group) > 1:
            # Rewards and shares have a range, which rounding may leave by a hair.
            last, values = group["estimate"].iloc[-1], group["value"]
            bounds = last.bounds if last else (-math.inf, math.inf)
            mean = mean_over_seeds(
                values.clip(*bounds).tolist(),
                seeds=group["seed"].tolist(),
                bounds=bounds,
            )
            rows.append(
                (
                    *names,
                    mean.value,
                    mean.low,
                    mean.high,
                    len(group),
                    values.min(),
                    values.max(),
                    mean,
                )
            )
    return pd.DataFrame(rows, columns=SEED_COLUMNS)


def settings_grids(runs: FoundRuns, seeds: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """For each notebook a table of results: a row for each setting, a column for each metric that varied.

    seeds : rows of `over_seeds`; their means take the place of single runs.
    """
    # Of several runs with one setting the newest one stands last, and the mean over seeds after it.
    single = compare(runs).drop(columns="setting")
    cells = pd.concat([single.rename(columns={"seedless": "setting"}), seeds])
    cells["text"] = cells["estimate"].fillna(cells["value"]).map(str)
    grids = {}
    for book, group in cells.groupby("notebook"):
        grid = group.pivot_table("text", "setting", "metric", aggfunc="last")
        is_mean = grid.columns.isin(seeds.loc[seeds["notebook"] == book, "metric"])
        grid = grid.loc[:, (grid.nunique() > 1) | is_mean]
        if grid.size:
            # one line of headers; the names of the rows are a column
            grid = grid.rename(index={"": "the same in all runs"}).reset_index()
            grids[str(book)] = grid.rename_axis(columns=None)
    return grids

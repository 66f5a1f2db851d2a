"""Runs side by side: what they share, how they differ, and what several seeds allow one to say.
Numbers only.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..records import Run, grouped, is_number
from ..settings.params import parameters as declared_in
from ..stats.estimate import Estimate
from ..stats.trend import mean_over_seeds
from ..system import paths

Found = Sequence[tuple[Path, Run]]
DIFFERENCE = re.compile(r"\b(difference|change|minus|less|the same)\b| - ", re.IGNORECASE)
# words of a method whose values lie in a known range
RANGES = {
    (-1.0, 1.0): re.compile(r"kappa|\bAC[12]\b|alpha|Matthews"),
    (0.0, 1.0): re.compile(
        r"Wilson|AUROC|AUG?RC|agreement|accuracy|squared error|post-stratified|Lang-Reiczigel"
    ),
}


def differing(found: Found) -> dict[str, tuple[str, ...]]:
    """Per notebook, the parameters (seed and profile apart) that are not the same in all its
    runs.
    """
    books = grouped((r.notebook, _asked(r)) for _, r in found)
    asked = {
        b: dict.fromkeys(k for p in own for k in p if k not in ("seed", "profile"))
        for b, own in books.items()
    }
    return {
        b: tuple(k for k in asked[b] if len({_text({k: p.get(k)}) for p in own}) > 1)
        for b, own in books.items()
    }


def _asked(run: Run) -> dict[str, Any]:
    """A run's parameters, and what its files held: data that changed under one name are two."""
    held = run.meta.get("files") or {}
    return {**run.params, **{f"{name} (sha256)": digest for name, digest in held.items()}}


def _text(params: Mapping[str, Any], *without: str) -> str:
    """Parameters as text that is equal where they are."""
    kept = {k: v for k, v in params.items() if k not in without}
    return json.dumps(kept, sort_keys=True, default=str)


def changed(run: Run) -> list[str]:
    """The parameters, seed and profile apart, that are not as their notebook declares them."""
    book = paths.notebooks(f"{run.notebook}.ipynb")
    declared = declared_in(book) if book.is_file() else {}
    known = run.meta.get("defaults") or {k: p.default for k, p in declared.items()}
    names = [k for k in known if k not in ("seed", "profile")]
    return [k for k in names if run.params.get(k, known[k]) != known[k]]


def setting(params: Mapping[str, Any], names: Iterable[str]) -> str:
    """Those parameters on one line, with nothing in it that a terminal obeys.

    >>> setting({"lr": 1e-5, "steps": 3}, ("lr",))
    'lr=1e-05'
    """
    found = ((k, params[k]) for k in names if k in params)
    return ", ".join(f"{k}={v if str(v).isprintable() else ascii(v)}" for k, v in found)


def labels(found: Found) -> dict[str, str]:
    """A short name per run id: what differs between the runs of its notebook, seed included;
    where that is not enough, the start too.
    """
    names = differing(found)
    out = {}
    seeds = Counter(book for book, _ in {(r.notebook, r.seed) for _, r in found})
    profiles = Counter(book for book, _ in {(r.notebook, r.profile) for _, r in found})
    for _, r in found:
        parts = (
            [setting(_asked(r), names[r.notebook])]
            + [f"seed={r.seed}"] * (seeds[r.notebook] > 1)
            + [r.profile] * (profiles[r.notebook] > 1)
        )
        out[r.id] = ", ".join(p for p in parts if p)
    count = Counter((r.notebook, out[r.id]) for _, r in found)
    for _, r in found:
        if not out[r.id]:
            out[r.id] = r.id[:15]
        elif count[r.notebook, out[r.id]] > 1:
            out[r.id] += f" ({r.id[:15]})"
    return out


def overview(found: Found) -> list[dict[str, Any]]:
    """One row a run: notebook, profile, seed, status, seconds, cost, and the parameters that
    differ between runs of its notebook.
    """
    names = differing(found)
    return [
        {
            "notebook": r.notebook,
            "run": r.id,
            "profile": r.profile,
            "seed": r.seed,
            "status": r.status,
            "seconds": r.seconds,
            "GiB": r.meta.get("peak_memory_gib"),
            "cost $": r.cost,
            "differs in": setting(_asked(r), names[r.notebook]),
        }
        for _, r in found
    ]


def metrics(
    found: Found, *, notebook: str | None = None, contains: str = ""
) -> list[dict[str, Any]]:
    """One row per run and numeric metric: value, low, high, n (None where the run recorded none),
    and a label of the run.

    notebook : only this one; contains : only metrics whose name holds this text (case-insensitive).
    """
    out = []
    named = labels(found)
    for _, run in found:
        for name, v in run.metrics.items():
            value = v if isinstance(v, Mapping) and "value" in v else {"value": v}
            asked = not notebook or run.notebook == notebook
            if asked and contains.lower() in name.lower() and is_number(value["value"]):
                out.append(
                    {
                        "notebook": run.notebook,
                        "metric": name,
                        "run": run.id,
                        "label": named[run.id],
                        "value": value["value"],
                        "low": value.get("low"),
                        "high": value.get("high"),
                        "n": value.get("n"),
                        "n_clusters": value.get("n_clusters"),
                        "difference": is_difference(value),
                        "range": range_of(value),
                        "seed": run.seed,
                        "params": {**_asked(run), "profile": run.profile},
                    }
                )
    return out


def shared(found: Found) -> list[dict[str, Any]]:
    """The rows of `metrics` whose metric at least two runs of one notebook recorded."""
    rows = metrics(found)
    count = Counter((r["notebook"], r["metric"]) for r in rows)
    return [r for r in rows if count[r["notebook"], r["metric"]] > 1]


def is_difference(value: Mapping[str, Any]) -> bool:
    """True for an estimate whose 0 means "no difference": its method says so, whatever its name.

    >>> is_difference({"method": "paired difference"}), is_difference({"method": "share, Wilson"})
    (True, False)
    """
    return bool(DIFFERENCE.search(value.get("method") or ""))


def range_of(value: Mapping[str, Any]) -> tuple[float, float]:
    """The least and the most that an estimate can be, as its method says it; open where it does
    not, and of a difference.

    >>> range_of({"method": "Cohen's kappa, cluster jackknife-t"}), range_of({"method": "mean"})
    ((-1.0, 1.0), (-inf, inf))
    """
    method = "" if is_difference(value) else value.get("method") or ""
    found = (ends for ends, words in RANGES.items() if words.search(method))
    return next(found, (-math.inf, math.inf))


@dataclass(frozen=True)
class Seeds:
    """One metric over the seeds of one setting: the mean over seeds with its t interval.

    excluded_zero : of a difference, how many runs excluded 0 by themselves ("2 of 3"); "" of a
        level, whose 0 means nothing. setting : the parameters that differ between runs of the
        notebook, as text ("" when none does); values : one a seed (the mean of its runs), `seeds`
        beside them; runs : all runs.
    """

    notebook: str
    metric: str
    setting: str
    mean: Estimate
    excluded_zero: str
    runs: int
    values: tuple[float, ...] = ()
    seeds: tuple[int, ...] = ()


def across_seeds(found: Found) -> list[Seeds]:
    """Metrics that several seeds of the same setting recorded; the interval is over seeds (n =
    seeds), so it holds for a new seed. A profile is a part of the setting: it names the model
    and the sizes.
    """
    names = differing(found)
    for book in names:
        if len({r.profile for _, r in found if r.notebook == book}) > 1:
            names[book] += ("profile",)
    groups = grouped(
        ((r["notebook"], r["metric"], _text(r["params"], "seed")), r) for r in metrics(found)
    )
    out = []
    for (notebook, metric, _), rows in groups.items():
        if len({r["seed"] for r in rows}) < 2:
            continue
        clear = sum(r["low"] is not None and (r["low"] > 0 or r["high"] < 0) for r in rows)
        # runs of one seed are one draw, however often it was run
        by_seed = grouped((r["seed"], float(r["value"])) for r in rows)
        low, high = zip(*(r["range"] for r in rows), strict=True)
        values = tuple(math.fsum(v) / len(v) for v in by_seed.values())
        out.append(
            Seeds(
                notebook,
                metric,
                setting(rows[0]["params"], names[notebook]),
                mean_over_seeds(values, bounds=(min(low), max(high))),
                f"{clear} of {len(rows)}" if any(r["difference"] for r in rows) else "",
                len(rows),
                values,
                tuple(by_seed),
            )
        )
    return out

"""What runs found and what to distrust, as sentences with intervals. Numbers only, no HTML.

A sentence comes from a recorded metric: a difference says whether its interval excludes 0, a level
stands with interval and n. A notebook's own sentences (`run.found(...)`) come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..records import Run, grouped
from . import compare

GAMEABLE = ("attack", "loose", "hack", "trivial", "without skill", "sentinel", "gameable")
MOST_OWN = 12  # sentences of a notebook's several runs
FEW_CLUSTERS = 10  # fewer than these make even a t interval depend on its assumptions


def number(value: Any) -> str:
    """A number as people read it.

    >>> number(0.12345), number(1234567), number(None), number(3)
    ('0.1235', '1,234,567', 'unknown', '3')
    """
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10000 else f"{value:.4g}"
    return str(value)


def short(value: float) -> str:
    """A number in a sentence: three decimals, so that an estimate and its interval line up; more
    where it would read as 0.

    >>> short(0.5), short(12.345), short(3), short(0.0001), short(0.0)
    ('0.500', '12.35', '3', '0.0001', '0.000')
    """
    small = isinstance(value, float) and (not value or 0.0005 <= abs(value) < 10)
    return f"{value:.3f}" if small else number(value)


def sentence(name: str, value: Mapping[str, Any]) -> str:
    """A metric in one sentence.

    >>> gain = {"low": -0.2, "high": 0.4, "n": 40, "n_clusters": 20, "method": "paired difference"}
    >>> sentence("gain", {**gain, "value": 0.3, "low": 0.2})
    'gain: up by 0.300 [0.200, 0.400], n = 40 in 20 clusters'
    >>> sentence("ECE", {**gain, "value": -0.3, "low": -0.4, "high": -0.2})
    'ECE: down by 0.300 [0.200, 0.400], n = 40 in 20 clusters'
    >>> sentence("gain", {**gain, "value": 0.1})
    'gain: no difference shown, 0.100 [-0.200, 0.400], n = 40 in 20 clusters'
    >>> sentence("kappa", {"value": 0.5, "low": None, "high": None, "n": 3})
    'kappa: 0.500, without an interval, n = 3'
    """
    low, high = value.get("low"), value.get("high")
    known = low is not None and high is not None
    difference = compare.is_difference(value)
    sign = -1 if difference and known and high < 0 else 1  # "down by .3", not "down by -.3"
    band = _band(value, sign) or ", without an interval"
    clusters = f" in {value['n_clusters']} clusters" if value.get("n_clusters") else ""
    size = f", n = {number(value['n'])}{clusters}" if value.get("n") is not None else ""
    shown = f"{short(sign * value['value'])}{band}{size}"
    if not difference:
        return f"{name}: {shown}"
    if not known or low <= 0 <= high:
        return f"{name}: no difference shown, {shown}"
    return f"{name}: {'up by' if low > 0 else 'down by'} {shown}"


def _band(value: Mapping[str, Any], sign: int = 1) -> str:
    """The interval of a metric; nothing where it has none."""
    ends = [value.get("low"), value.get("high")]
    if None in ends:
        return ""
    return f" [{', '.join(short(e) for e in sorted(sign * e for e in ends))}]"


def estimates(run: Run) -> dict[str, Mapping[str, Any]]:
    """The run's metrics that are estimates (value and n): what holds on held-out data first, then
    differences, then levels; those without an interval last.
    """
    found = {
        k: v
        for k, v in run.metrics.items()
        if isinstance(v, Mapping) and isinstance(v.get("value"), (int, float)) and "n" in v
    }

    def rank(item: tuple[str, Mapping[str, Any]]) -> tuple[bool, bool, bool]:
        heldout = any(w in item[0].lower() for w in ("held-out", "test "))
        return item[1].get("low") is None, not heldout, not compare.is_difference(item[1])

    return dict(sorted(found.items(), key=rank))


def of_run(run: Run, most: int = 4) -> list[str]:
    """The run's own sentences, all of them, and where they are fewer, up to so many in all."""
    own = [str(s) for s in run.meta.get("found", ())]
    return own + [sentence(k, v) for k, v in estimates(run).items()][: max(0, most - len(own))]


def over_settings(found: Sequence[tuple[Path, Run]], most: int = 4) -> list[str]:
    """Sentences about one notebook's many runs: per metric the ends over its settings."""
    rows = grouped((row["metric"], row) for row in compare.metrics(found))
    wide = sorted(rows.items(), key=lambda kv: (kv[1][0]["low"] is None, kv[0]))
    out = []
    for name, group in wide[:most]:
        low = min(group, key=lambda r: r["value"])
        high = max(group, key=lambda r: r["value"])
        ends = [f"{short(r['value'])}{_band(r)} ({r['label']})" for r in (low, high)]
        if len({(r["value"], r["low"], r["high"], r["n"]) for r in group}) == 1:
            out.append(f"{sentence(name, low)}; the same in all {len(group)} runs")
        elif low["value"] == high["value"]:
            sizes = [r["n"] for r in group if r["n"] is not None]
            span = f" (n = {min(sizes)} to {max(sizes)})" if sizes else ""
            out.append(f"{name}: {short(low['value'])} in all {len(group)} runs{span}")
        else:
            out.append(f"{name}, {len(group)} runs: from {ends[0]} to {ends[1]}")
    return out


def title(run: Run, apart: str = "") -> str:
    """A run's notebook, what sets it apart from others, and the parameters that differ from the
    notebook's: a control is no result.
    """
    told = [name for name in compare.changed(run) if not name.endswith("_dir")]  # where, not what
    changed = compare.setting(run.params, told).split(", ")
    words = ", ".join(filter(None, dict.fromkeys([*apart.split(", "), *changed])))
    return f"{run.notebook}: {words}" if words else run.notebook


def found(pairs: Sequence[tuple[Path, Run]]) -> dict[str, list[str]]:
    """title -> sentences. With several runs of a notebook: what seeds or settings say."""
    out: dict[str, list[str]] = {}
    for book in dict.fromkeys(r.notebook for _, r in pairs):
        mine = [(f, r) for f, r in pairs if r.notebook == book and r.status == "done"]
        if len(mine) == 1:
            out[title(mine[0][1])] = of_run(mine[0][1])
        elif len(mine) > 1:
            common, alone = _own(mine)
            out[book] = common + alone[:MOST_OWN]
            if len(alone) > MOST_OWN:
                out[book].append(f"... and {len(alone) - MOST_OWN} more, in the runs below")
            rest = _over_seeds(mine) or over_settings(mine)
            out[book] += rest[: max(0, 4 - len(common))]
    return {k: v for k, v in out.items() if v}


def _own(mine: Sequence[tuple[Path, Run]]) -> tuple[list[str], list[str]]:
    """The runs' own sentences: what all say, and the others, each with the run that says it."""
    named = compare.labels(mine)
    each = {named[r.id]: r.meta.get("found", ()) for _, r in mine}
    said = grouped((s, name) for name, sentences in each.items() for s in sentences)
    common = [s for s, names in said.items() if set(names) == each.keys()]
    return common, [f"{s} ({names[0]})" for s, names in said.items() if s not in common]


def _over_seeds(mine: Sequence[tuple[Path, Run]]) -> list[str]:
    every = [s for s in compare.across_seeds(mine) if s.mean.low == s.mean.low]
    if len({s.setting for s in every}) != 1:
        return []
    return [
        f"{s.metric}: {short(s.mean.value)} [{short(s.mean.low)}, {short(s.mean.high)}] "
        f"over {len(s.seeds)} seeds"
        for s in every[:4]
    ]


def doubts(pairs: Sequence[tuple[Path, Run]], most: int = 9) -> list[str]:
    """What to distrust: unfinished runs, gameable rewards, unknowns, missing intervals, few
    clusters,
    and many looks at once.
    """
    runs, out = [r for _, r in pairs], []
    apart = {i: f"{name}, " for i, name in compare.labels(pairs).items() if name != i[:15]}
    for what, some in (
        ("did not finish", [r for r in runs if r.status != "done"]),
        ("recorded nothing", [r for r in runs if r.status == "done" and not r.metrics]),
    ):
        names = [f"{r.id} ({apart.get(r.id, '')}{r.status})" for r in some]
        out += _grouped(names, f"{len(some)} of {len(runs)} runs {what}:")
    every = [(k, v) for r in runs for k, v in estimates(r).items()]
    missing = [k for k, v in every if v.get("missing")]
    none = [k for k, v in every if v.get("low") is None]
    kept = [(k, v) for r in runs for k, v in r.metrics.items() if isinstance(v, dict) and "n" in v]
    gone = [k for k, v in kept if v.get("value") is None or v["value"] != v["value"]]
    few = [k for k, v in every if 0 < (v.get("n_clusters") or v["n"] or 0) < FEW_CLUSTERS]
    opened = [title(r) for r in runs if "no sealed result" in str(r.meta.get("found"))]
    out += [
        *_gameable(runs),
        *_grouped(missing, "unknown values are left out and counted in"),
        *_grouped(none, "no interval could be had for"),
        *_grouped(gone, "no value could be had for"),
        *_grouped(few, f"fewer than {FEW_CLUSTERS} clusters or rows stand behind"),
        *_grouped(opened, "the test was read more than once, and is no sealed result, in"),
        *_many(every, len(runs)),
    ]
    return out[:most]


def _gameable(runs: Sequence[Run]) -> list[str]:
    """What the reward can be had for without the skill, as far as the runs recorded it."""
    every = [(k, v) for r in runs for k, v in r.metrics.items()]
    named = [(k, v) for k, v in every if any(w in k.lower() for w in GAMEABLE)]
    each = [(k, v if isinstance(v, Mapping) else {"value": v}) for k, v in named]
    paid = [(k, v) for k, v in each if isinstance(v.get("value"), (int, float)) and v["value"]]
    return _grouped([sentence(*one) for one in paid], "a reward can be had without the skill:")


def _grouped(names: Sequence[str], what: str) -> list[str]:
    """A sentence that ends in names: three of them, and how many more; none without names."""
    distinct = list(dict.fromkeys(names))
    more = f"; and {len(distinct) - 3} more" if len(distinct) > 3 else ""
    if not distinct:
        return []
    head = f"{what[0].upper()}{what[1:]}"
    return [f"{head} {'; '.join(distinct[:3])}{more}."]


def _many(every: Sequence[tuple[str, Mapping[str, Any]]], runs: int) -> list[str]:
    """Several looks: how many differences would exclude 0 by chance, and the winner's curse.

    What several runs say alike, number by number, is one look.
    """
    known = [(k, v) for k, v in every if compare.is_difference(v) and v.get("low") is not None]
    tested = {(k, v["value"], v["low"], v["high"]) for k, v in known}
    out = []
    if len(tested) > 3:
        out.append(
            f"{len(tested)} differences stand here with 95% intervals: if nothing differed, about "
            f"{0.05 * len(tested):.1f} of them would exclude 0 by chance."
        )
    if runs > 5 and len({k for k, _ in every}) < len(every):
        out.append(
            "The best of many runs looks better than it is: confirm a setting with new seeds."
        )
    return out

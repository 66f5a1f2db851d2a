"""One self-contained HTML report over runs; opens, filters and prints without a network.

What was found and what to distrust stand first, in sentences; run ids, memory and money last.
Everything that came from outside (answers, file names, errors) is escaped by the template; figures
are data, never code, and are drawn when they come into view.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .. import page, runs
from ..data.schemas import readable
from ..errors import DataError
from ..people import view
from ..plots import compare as plots
from ..records import Run, grouped, is_number
from ..system import paths
from . import compare, findings
from .findings import number

SIZE_CAP = 7_600_000  # bytes; beyond it figures stay in their runs' own pages
SECTIONS = 40  # runs that are shown in full; the others are rows with a link
JUDGED = 3  # runs whose judgments are in the page
JUDGED_CAP = 2_000_000  # bytes of all of them

Found = list[tuple[Path, Run]]
Cell = dict[str, Any]


def estimate(value: Any) -> tuple[str, str, str]:
    """(value, interval, n) of a metric as text.

    >>> estimate({"value": 0.5, "low": 0.4, "high": 0.6, "n": 20, "n_clusters": 5})
    ('0.5', '[0.4, 0.6]', '20 in 5 clusters')
    """
    if not isinstance(value, Mapping):
        return number(value), "", ""
    if "value" not in value:
        return json.dumps(value)[:200], "", ""
    low, high = value.get("low"), value.get("high")
    band = f"[{number(low)}, {number(high)}]" if low is not None and high is not None else ""
    n = number(value["n"]) if value.get("n") is not None else ""
    clusters = f" in {value['n_clusters']} clusters" if value.get("n_clusters") else ""
    missing = f", {value['missing']} unknown" if value.get("missing") else ""
    return number(value["value"]), band, n + clusters + missing


def table(
    rows: Sequence[Mapping[str, Any]], *, limit: int = 60, right: Sequence[str] = ()
) -> dict[str, Any]:
    """Rows of dicts as a table for the template; what is beyond `limit` is said.

    right : further columns that are set as numbers are.
    """
    names = list(dict.fromkeys(k for r in rows for k in r))
    numeric = {n for n in names if all(_is_numeric(r.get(n)) for r in rows)} | set(right)
    beyond = len(rows) - limit

    def shown(r: Mapping[str, Any], name: str) -> Cell:
        """None is unknown in a column of numbers, and nothing in one of words."""
        value = r.get(name, "")
        return _cell("" if value is None and name not in numeric else value, name in right)

    return {
        "head": [{"text": n, "num": n in numeric} for n in names],
        "rows": [[shown(r, n) for n in names] for r in rows[:limit]],
        "more": f"{beyond} more rows are in tables.json of the run." if beyond > 0 else "",
    }


def _is_numeric(value: Any) -> bool:
    return value is None or (
        isinstance(value, (int, float, Mapping)) and not isinstance(value, bool)
    )


def _cell(value: Any, right: bool = False) -> Cell:
    if isinstance(value, Mapping) and "value" in value:
        shown, band, _ = estimate(value)
        return {"text": f"{shown} {band}".strip(), "num": True}
    if isinstance(value, Mapping) and "href" in value:
        return dict(value)
    if is_number(value):
        return {"text": number(value), "num": True}
    shown = number(value) if value is None or isinstance(value, bool) else str(value)
    return {"text": shown if len(shown) <= 400 else shown[:400] + " ...", "num": right}


class Figures:
    """The page's figures; plotly templates (7 kB each, all alike) stand once, not in each."""

    def __init__(self) -> None:
        self.templates: dict[str, int] = {}
        self.figures: dict[str, str] = {}

    def add(self, figure: Mapping[str, Any], name: str, caption: str = "") -> dict[str, Any]:
        """Keep a figure; returns what the template shows around it."""
        layout = dict(figure.get("layout", {}))
        template = page.script_json(layout.pop("template", {}))
        title = _plain((layout.pop("title", None) or {}).get("text") or name)
        layout["margin"] = {**layout.get("margin", {}), "t": 20}
        height = max(160, int(layout.get("height") or 420) - 50)
        layout["height"] = height
        at = self.templates.setdefault(template, len(self.templates))
        key = f"plot-{len(self.figures)}"
        caption = "" if caption and caption in title else caption
        body = page.script_json({"data": figure.get("data", []), "layout": layout, "template": at})
        self.figures[key] = body
        return {
            "id": key,
            "title": title,
            "caption": caption,
            "height": height,
            "bytes": len(body),
        }

    def json(self) -> str:
        """All of them as JSON that is safe inside a script element."""
        each = ",".join(f'"{k}":{v}' for k, v in self.figures.items())
        return f'{{"templates":[{",".join(self.templates)}],"figures":{{{each}}}}}'


def _plain(title: str) -> str:
    """A figure's title without its tags.

    >>> _plain("Kappa<br><sub>clustered &amp; paired</sub>")
    'Kappa: clustered & paired'
    """
    return html.unescape(re.sub(r"<[^>]+>", "", re.sub(r"<br\s*/?>", ": ", title))).strip()


def _read(folder: Path, name: str, wrong: list[str]) -> list[dict[str, Any]]:
    """The figures or tables of a run; where they cannot be read, `wrong` gets a line."""
    try:
        value = json.loads((folder / name).read_text(encoding="utf-8"))
        return value if isinstance(value, list) else []
    except FileNotFoundError:
        return []
    except ValueError as e:
        wrong.append(f"{folder / name} cannot be read: {e}")
        return []


def _name(run: Run, named: Mapping[str, str]) -> str:
    """The run's title; of a notebook's only run nothing sets it apart."""
    apart = named[run.id]
    return findings.title(run, "" if apart == run.id[:15] else apart)


def _metrics(run: Run) -> dict[str, Any]:
    """The run's metrics; lists and mappings of several values stand in metrics.json only."""
    each = {
        name: value if isinstance(value, Mapping) else {"value": value}
        for name, value in run.metrics.items()
        if not isinstance(value, (list, tuple))
    }
    rows = [
        {
            "metric": name,
            **dict(zip(("value", "95% interval", "n"), estimate(value), strict=True)),
            "note": value.get("note", ""),
        }
        for name, value in each.items()
        if "value" in value
    ]
    return table(rows, limit=400, right=("value", "95% interval", "n"))


def _section(folder: Path, run: Run, name: str, rows: int) -> dict[str, Any]:
    """One run in full, without its figures; `rows` : at most so many of each table."""
    wrong = [run.meta["error"]] if run.meta.get("error") else []
    config = {
        "run": run.id,
        "parameters": dict(run.params),
        "seed": run.seed,
        "profile": run.profile,
        "commit": run.commit,
        "versions": dict(run.versions),
    }
    return {
        "id": run.id,
        "name": name,
        "status": run.status,
        "class": "done" if run.status == "done" else "failed",
        "line": f"{number(run.seconds)} s · cost ${run.cost:.4f}",
        "wrong": wrong,
        "metrics": _metrics(run),
        "tables": [
            {"name": t["name"], "caption": t.get("caption", ""), **table(t["rows"], limit=rows)}
            for t in _read(folder, "tables.json", wrong)
        ],
        "config": json.dumps(config, indent=1, ensure_ascii=False),
        "figures": [],
    }


def _draw(folder: Path, section: dict[str, Any], figures: Figures, room: int) -> int:
    """Put the run's figures into its section as far as there is room; returns the bytes taken."""
    taken = left_out = 0
    for f in _read(folder, "figures.json", section["wrong"]):
        shown = figures.add(f["figure"], f["name"], f.get("caption", ""))
        if taken + shown["bytes"] > room:
            figures.figures.pop(shown["id"])
            left_out += 1
            continue
        taken += shown["bytes"]
        section["figures"].append({**shown, "front": f.get("front", False)})
    section["left_out"] = left_out
    return taken


def _glance(found: Found, shown: set[str]) -> dict[str, Any]:
    """All runs, a row each: what sets it apart, its id, what it took."""
    rows = compare.overview(found)
    apart = any(r["differs in"] for r in rows)
    out = [
        {
            "run": {"text": r["run"], "href": f"#{r['run']}"} if r["run"] in shown else r["run"],
            **({"differs in": r["differs in"]} if apart else {}),
            "profile": r["profile"],
            "seed": r["seed"],
            "status": r["status"],
            "seconds": r["seconds"],
            "peak GiB": r["GiB"],
            "cost $": f"{r['cost $']:.4f}",
        }
        for r in rows
    ]
    return {
        **table(out, limit=5000, right=("cost $",)),
        "more": (
            f"{sum(r['seconds'] or 0 for r in rows):,.0f} s "
            f"and ${sum(r['cost $'] for r in rows):.4f} together."
        ),
    }


def _compared(found: Found, figures: Figures) -> dict[str, Any]:
    """Runs of one notebook beside each other: one figure a notebook where few, else a few bands.

    What all runs say alike is no comparison: a row for all of them, and not drawn.
    """
    rows = compare.shared(found)
    if not rows:
        return {}
    drawn = []
    groups = plots.groups(rows, most=len(rows))
    alike = {
        k for k, g in groups.items() if len({(r["value"], r["low"], r["high"]) for r in g}) < 2
    }
    apart = {k: g for k, g in groups.items() if k not in alike}
    for book in dict.fromkeys(book for book, _ in apart):
        mine = [r for g in apart.values() for r in g if r["notebook"] == book]
        if len({r["run"] for r in mine}) <= 8:
            kept = [r for g in plots.groups(mine, most=24).values() for r in g]
            drawn.append(plots.forest_by_metric(kept, title=page.escape(book)))
            continue
        drawn += [
            plots.band(group, title=page.escape(f"{book}: {metric}"))
            for (_, metric), group in plots.groups(mine, most=6).items()
        ]
    once = [
        [{**groups[k][0], "label": f"all {len(groups[k])} alike"}] for k in groups if k in alike
    ]
    listed = [
        {
            "notebook": r["notebook"],
            "metric": r["metric"],
            "run": r["label"],
            "value": number(r["value"]),
            "95% interval": estimate(r)[1],
            "n": estimate(r)[2],
        }
        for group in (*apart.values(), *once)
        for r in group
    ]
    shown = table(_one_book(listed), limit=200, right=("value", "95% interval", "n"))
    if len(listed) > 200:
        shown["more"] = f"{len(listed) - 200} more rows: python -m kit report --json lists all."
    return {"figures": [figures.add(json.loads(f.to_json()), "") for f in drawn], "table": shown}


def _one_book(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the column `notebook` where it says the same in all."""
    if len({r["notebook"] for r in rows}) > 1:
        return rows
    return [{k: v for k, v in r.items() if k != "notebook"} for r in rows]


def _seeds(found: Found, figures: Figures) -> dict[str, Any]:
    groups = grouped(((s.notebook, s.metric), s) for s in compare.across_seeds(found))
    if not groups:
        return {}

    def vary(rows: Sequence[compare.Seeds]) -> bool:
        return any(s.mean.low == s.mean.low for s in rows)  # NaN: all seeds gave the same

    ranked = sorted(groups.items(), key=lambda kv: (not vary(kv[1]), kv[0]))
    drawn = [
        plots.over_seeds(rows[:30], title=page.escape(f"{book}: {metric}"))
        for (book, metric), rows in ranked[:4]
        if vary(rows)
    ]
    listed = [
        {
            "notebook": s.notebook,
            "metric": s.metric,
            "setting": s.setting or "all runs",
            "mean over seeds": number(s.mean.value),
            "95% interval": s.mean.note or f"[{number(s.mean.low)}, {number(s.mean.high)}]",
            "seeds": ", ".join(map(str, s.seeds[:12])) + (" ..." if len(s.seeds) > 12 else ""),
            "own interval excludes 0": s.excluded_zero or "a level",
        }
        for _, rows in ranked
        for s in rows
    ]
    return {
        "figures": [figures.add(json.loads(f.to_json()), "") for f in drawn],
        "table": table(
            _one_book(listed),
            limit=200,
            right=("mean over seeds", "95% interval", "seeds", "own interval excludes 0"),
        ),
    }


def _judged(found: Found, named: Mapping[str, str], room: int) -> list[dict[str, str]]:
    """Judgments of the newest runs that kept some, as elements of the page; and what is left
    out.
    """
    out: list[dict[str, str]] = []
    kept = [(f, r) for f, r in found if (f / runs.JUDGMENTS).is_file()]
    for folder, run in kept[::-1][:JUDGED]:
        path = folder / runs.JUDGMENTS
        name = _name(run, named)
        data = readable("judgments", json.loads(path.read_text("utf-8")), where=str(path))
        every = math.ceil(path.stat().st_size / max(room, 1))
        data = view.thinned(data, every)
        less = (
            f"To keep this page small, one task in {every} stands here, and its numbers are of "
            f"these {len(data['tasks'])}; all are in the run's {runs.JUDGMENTS}."
        )
        note = less if every > 1 else ""
        part = view.part(f"judged-{len(out)}", data)
        if len(part) > 1.5 * room:  # a single task is too large
            part = ""
            note = f"left out, too large: the run's {runs.JUDGMENTS}"
        room -= len(part)
        out.append({"name": name, "part": part, "note": note})
    return out


def _sections(
    found: Found, named: Mapping[str, str], figures: Figures, room: int
) -> list[dict[str, Any]]:
    """The runs shown in full: all, or the newest and those that did not finish."""
    shown = found
    if len(found) > SECTIONS:
        wrong = [p for p in found if p[1].status != "done"][:10]
        shown = wrong + [p for p in found if p not in wrong][len(wrong) - SECTIONS :]
    rows = max(10, min(60, 600 // len(shown)))  # the more runs, the shorter their tables here
    out = [_section(f, r, _name(r, named), rows) for f, r in shown]
    room -= sum(len(json.dumps(s)) for s in out)
    for i, ((folder, _), section) in enumerate(zip(shown, out, strict=True)):
        room -= _draw(folder, section, figures, max(0, room) // (len(shown) - i))
    return out


def _pictures(sections: Sequence[dict[str, Any]]) -> list[Any]:
    """Three pictures for the first screen, one of each notebook, taken out of its section: those
    that notebooks put in front, then first ones; of the newest run, without other parameters where
    there is one. The run is named where it is not its notebook's only one.
    """
    drawn = [s for s in sections if s["figures"]]
    last = {_book(s): s for s in sorted(drawn, key=lambda s: _book(s) == s["name"])}
    each = [(max(s["figures"], key=lambda f: f["front"]), s) for s in last.values()]
    shown = sorted(each, key=lambda pair: not pair[0]["front"])[:3]
    for picture, section in shown:
        section["figures"].remove(picture)
        if sum(_book(s) == _book(section) for s in drawn) > 1:
            picture["caption"] = f"Run {section['name']}. {picture['caption']}"
    return [picture for picture, _ in shown]


def _book(section: Mapping[str, Any]) -> str:
    return str(section["name"]).partition(":")[0]


def build(
    folder: str | Path,
    *,
    only: Iterable[str] | None = None,
    title: str = "Rubric rewards: report",
) -> str:
    """The report over all runs below `folder` (or those whose ids are in `only`) as HTML text."""
    import jinja2

    base = Path(folder).expanduser().resolve()
    wanted = set(only) if only is not None else None
    found = [(f, r) for f, r in runs.find(base) if wanted is None or r.id in wanted]
    if not found:
        raise DataError(
            "there is no run to report",
            where=str(base),
            fix="run a notebook first: python -m kit run NOTEBOOK",
        )
    figures = Figures()
    plotly = page.plotly_js()
    compared = _compared(found, figures)
    seeds = _seeds(found, figures)
    glance = _glance(found, set())
    named = compare.labels(found)
    judged = _judged(found, named, JUDGED_CAP)
    used = sum(
        len(x.encode())
        for x in (
            plotly,
            json.dumps([glance, compared, seeds, judged]),
            figures.json(),
            view.assets(),
        )
    )
    sections = _sections(found, named, figures, SIZE_CAP - used)
    template = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.ChainableUndefined,
        finalize=_shown,
    ).get_template("report.html")
    return template.render(
        title=title,
        lead=f"{len(found)} runs, made {datetime.now(UTC):%Y-%m-%d %H:%M} UTC.",
        found=findings.found(found),
        doubts=findings.doubts(found),
        pictures=_pictures(sections),
        compared=compared,
        seeds=seeds,
        judged=judged,
        assets=view.assets() if judged else "",
        sections=sections,
        open=len(found) == 1,
        glance=_glance(found, {s["id"] for s in sections}),
        plotly=plotly,
        plots=figures.json(),
    )


def _shown(value: Any) -> Any:
    """What the template writes: names from outside turn none of the page's numbers round."""
    import markupsafe

    return value if type(value) is not str else markupsafe.Markup(page.escape(value))


def write(folder: str | Path, out: str | Path | None = None, **options: Any) -> Path:
    """Write the report (default: report.html in the folder of runs) and return its path."""
    default = Path(folder).expanduser().resolve() / "report.html"
    path = Path(out).expanduser().resolve() if out else default
    text = build(folder, **options)
    path.parent.mkdir(parents=True, exist_ok=True)
    paths.write_text(path, text)  # whole or not at all: two sweeps may write the same file
    return path

"""One self-contained HTML report over runs: tables with intervals, plots, configurations, costs. Opens without a network.

Everything that came from outside (answers, file names, errors) is escaped; figures are data, never code.
"""

from __future__ import annotations

import html as escape_html
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .. import page as pages
from .. import runs
from ..errors import DataError
from ..records import Run

STYLE = """
:root{--ink:#1b1f24;--soft:#57606a;--line:#d8dee4;--accent:#0072B2;--bad:#B3261E;--ok:#00734F}
*{box-sizing:border-box}body{font:15px/1.55 Helvetica,Arial,"DejaVu Sans",sans-serif;color:var(--ink);max-width:1080px;margin:0 auto;padding:28px 24px 80px}
h1{font-size:28px;margin:0 0 4px}h2{font-size:21px;margin:44px 0 8px;border-bottom:2px solid var(--line);padding-bottom:6px}h3{font-size:16px;margin:26px 0 6px}
p.lead,.soft{color:var(--soft)}nav a{display:inline-block;margin:0 14px 6px 0}a{color:var(--accent)}
table{border-collapse:collapse;width:100%;margin:8px 0 18px;font-size:14px}th,td{text-align:left;padding:5px 10px;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}
th{background:#f6f8fa;font-weight:600;vertical-align:bottom}td.num,th.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}th.num{white-space:normal}.scroll{overflow-x:auto}
.failed{color:var(--bad);font-weight:600}.done{color:var(--ok);font-weight:600}.note{color:var(--soft);font-size:13px}
details{margin:8px 0}summary{cursor:pointer;color:var(--accent)}figure{margin:12px 0 22px}figcaption{color:var(--soft);font-size:13px}
pre{background:#f6f8fa;padding:10px;overflow-x:auto;font-size:12.5px}
@media print{body{max-width:none;padding:0}h2.run{break-before:page}figure,tr{break-inside:avoid}h2,h3{break-after:avoid}details{display:block}nav{display:none}}
"""
SIZE_CAP = 9_500_000  # bytes; beyond it figures stay in their runs' own pages
TEMPLATE = "kit-template"


def text(value: Any) -> str:
    """Escaped text of anything."""
    return escape_html.escape(str(value), quote=True)


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


def estimate(value: Any) -> tuple[str, str, str]:
    """(value, interval, n) of a metric as text.

    >>> estimate({"value": 0.5, "low": 0.4, "high": 0.6, "n": 20, "n_clusters": 5})
    ('0.5', '[0.4, 0.6]', '20 in 5 clusters')
    """
    if not isinstance(value, Mapping) or "value" not in value:
        return number(value) if not isinstance(value, Mapping) else json.dumps(value)[:200], "", ""
    low, high = value.get("low"), value.get("high")
    band = f"[{number(low)}, {number(high)}]" if low is not None and high is not None else ""
    n = number(value["n"]) if value.get("n") is not None else ""
    return (
        number(value["value"]),
        band,
        n + (f" in {value['n_clusters']} clusters" if value.get("n_clusters") else ""),
    )


def table_html(
    rows: Sequence[Mapping[str, Any]], *, limit: int = 60, right: Sequence[str] = ()
) -> str:
    """Rows of dicts as an escaped HTML table; what is beyond `limit` is said; `right` : further columns set as numbers are."""
    if not rows:
        return "<p class='note'>no rows</p>"
    names = list(dict.fromkeys(k for r in rows for k in r))
    numeric = {
        n
        for n in names
        if all(
            isinstance(r.get(n), (int, float, Mapping, type(None)))
            and not isinstance(r.get(n), bool)
            for r in rows
        )
    } | set(right)
    head = "".join(f"<th{' class=num' if n in numeric else ''}>{text(n)}</th>" for n in names)
    body = "".join(
        "<tr>" + "".join(_cell(r.get(n, ""), n in right) for n in names) + "</tr>"
        for r in rows[:limit]
    )
    more = (
        f"<p class='note'>{len(rows) - limit} more rows are in tables.json of the run.</p>"
        if len(rows) > limit
        else ""
    )
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{more}"


def _cell(value: Any, right: bool = False) -> str:
    if isinstance(value, Mapping) and "value" in value:
        v, band, _ = estimate(value)
        return f"<td class='num'>{text(v)} {text(band)}</td>"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"<td class='num'>{text(number(value))}</td>"
    shown = number(value) if value is None or isinstance(value, bool) else str(value)
    return f"<td{' class=num' if right else ''}>{text(shown if len(shown) <= 400 else shown[:400] + ' ...')}</td>"


def _metrics_html(run: Run) -> str:
    flat = [
        (n, v)
        for n, v in run.metrics.items()
        if not isinstance(v, (list, tuple)) and not (isinstance(v, Mapping) and "value" not in v)
    ]
    rows = "".join(
        f"<tr><td>{text(n)}</td><td class='num'>{text(estimate(v)[0])}</td><td class='num'>{text(estimate(v)[1])}</td>"
        f"<td class='num'>{text(estimate(v)[2])}</td><td class='note'>{text(v.get('note', '') if isinstance(v, Mapping) else '')}</td></tr>"
        for n, v in flat
    )
    return (
        (
            "<table><thead><tr><th>metric</th><th class=num>value</th><th class=num>95% interval</th><th class=num>n</th><th>note</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )
        if flat
        else "<p class='note'>no metrics were recorded</p>"
    )


def _read(folder: Path, name: str) -> list[dict[str, Any]]:
    try:
        value = json.loads((folder / name).read_text(encoding="utf-8"))
        return value if isinstance(value, list) else []
    except FileNotFoundError:
        return []
    except json.JSONDecodeError as e:
        raise DataError(
            f"broken JSON: {e.msg}",
            where=f"{folder / name}, line {e.lineno}",
            fix="run it again, or remove the file",
        ) from None


def _link(folder: Path, place: Path, run: Run) -> str:
    page = folder / f"{run.notebook}.html"
    if not page.exists():
        return ""
    try:
        ref = Path(
            os.path.relpath(page, place)
        ).as_posix()  # the folder of runs can be moved as a whole
    except ValueError:  # another drive
        ref = page.as_uri()
    return f" · <a href='{text(quote(ref, safe='/:'))}'>the notebook as it ran</a>"


def _name(run: Run, named: Mapping[str, str]) -> str:
    """Notebook and what sets the run apart; the notebook alone where it has one run."""
    apart = named[run.id]
    return run.notebook if apart == f"({run.id[:15]})" else f"{run.notebook}: {apart}"


class Figures:
    """Figures as HTML; the plotly templates (7 kB each, all alike) stand once in the page, not in every figure."""

    def __init__(self) -> None:
        self.templates: list[str] = []

    def div(self, figure: Mapping[str, Any], name: str) -> str:
        """A figure that takes its template from `script`."""
        layout = dict(figure.get("layout", {}))
        template = pages.script_json(layout.pop("template", {}))
        if template not in self.templates:
            self.templates.append(template)
        whole = pages.figure_div({**figure, "layout": {"template": TEMPLATE, **layout}}, name)
        return whole.replace(
            f'{{"template": "{TEMPLATE}"',
            f'{{"template": kitTemplates[{self.templates.index(template)}]',
            1,
        )

    def script(self) -> str:
        """What must stand before the figures."""
        return f"<script>const kitTemplates=[{','.join(self.templates)}]</script>"


def _run_html(folder: Path, run: Run, place: Path, name: str, rows: int) -> tuple[str, str]:
    """What stands above a run's figures and what below; `rows` : at most so many of each table."""
    top = [
        f"<h2 class='run' id='{text(run.id)}'>{text(name)}</h2>",
        f"<p class='lead'>{text(run.id)} · <span class='{_class(run.status)}'>{text(run.status)}</span> · "
        f"{text(number(run.seconds))} s · cost ${run.cost:.4f}{_link(folder, place, run)}</p>",
    ]
    if run.meta.get("error"):
        top.append(f"<pre class='failed'>{text(run.meta['error'])}</pre>")
    top.append(_metrics_html(run))
    low = [
        f"<h3>{text(t['name'])}</h3>{table_html(t['rows'], limit=rows)}"
        f"<p class='note'>{text(t.get('caption', ''))}</p>"
        for t in _read(folder, "tables.json")
    ]
    config = {
        "parameters": dict(run.params),
        "seed": run.seed,
        "profile": run.profile,
        "commit": run.commit,
        "versions": dict(run.versions),
    }
    low.append(
        f"<details><summary>configuration and versions</summary><pre>{text(json.dumps(config, indent=1, ensure_ascii=False))}</pre></details>"
    )
    return "\n".join(top), "\n".join(low)


def _figures_html(folder: Path, run: Run, figures: Figures, room: int) -> str:
    """The run's figures as far as there is room (bytes)."""
    parts, left_out = [], 0
    for i, f in enumerate(_read(folder, "figures.json")):
        titled = bool((f["figure"].get("layout", {}).get("title") or {}).get("text"))
        head = "" if titled else f"<h3>{text(f['name'])}</h3>"
        part = f"<figure>{head}{figures.div(f['figure'], f'{run.id}-{i}')}<figcaption>{text(f['name'])}: {text(f.get('caption', ''))}</figcaption></figure>"
        size = len(part.encode())
        if size > room:
            left_out += 1
            continue
        room -= size
        parts.append(part)
    if left_out:
        parts.append(
            f"<p class='note'>{left_out} figures are left out to keep this file small; they are in the notebook's own page.</p>"
        )
    return "\n".join(parts)


def _glance_html(found: list[tuple[Path, Run]]) -> str:
    """All runs in one table: what sets each apart, a link to its part of the page, what it took; below it, what all have in common."""
    from . import compare as numbers

    rows = numbers.overview(found)
    apart = any(r["differs in"] for r in rows)
    head = (
        f"<th>run</th>{'<th>differs in</th>' if apart else ''}<th>profile</th><th class=num>seed</th><th>status</th><th class=num>seconds</th>"
        "<th class=num>peak GiB</th><th class=num>cost $</th>"
    )
    body = "".join(
        f"<tr><td><a href='#{text(r['run'])}'>{text(r['run'])}</a></td>{'<td>' + text(r['differs in']) + '</td>' if apart else ''}<td>{text(r['profile'])}</td>"
        f"<td class='num'>{r['seed']}</td><td class='{_class(r['status'])}'>{text(r['status'])}</td><td class='num'>{text(number(r['seconds']))}</td>"
        f"<td class='num'>{text(number(r['GiB']))}</td><td class='num'>{r['cost $']:.4f}</td></tr>"
        for r in rows[:100]
    )
    total = f"{sum(r['seconds'] or 0 for r in rows):,.0f} s and ${sum(r['cost $'] for r in rows):.4f} together"
    more = f"; {len(rows) - 100} more runs follow below" if len(rows) > 100 else ""
    common = (
        {}
        if len(found) < 2 or len({r.notebook for _, r in found}) > 1
        else {
            k: v
            for k, v in found[0][1].params.items()
            if k not in ("seed", "profile") and all(r.params.get(k) == v for _, r in found)
        }
    )
    same = (
        f" The same in all: {', '.join(f'{k}={v!r}' for k, v in common.items())}." if common else ""
    )
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div><p class='note'>{text(total + more)}.{text(same)}</p>"


def _class(status: str) -> str:
    return "done" if status == "done" else "failed"


def _compare_html(found: list[tuple[Path, Run]], figures: Figures) -> str:
    from ..plots import compare
    from . import compare as numbers

    rows = numbers.shared(found)
    if not rows:
        return ""
    parts = [
        "<h2 id='compare'>Runs side by side</h2>",
        "<p class='lead'>Metrics that several runs of one notebook recorded. "
        "Two runs differ for sure only where an interval of their difference excludes 0; overlapping bars are no proof of equality.</p>",
    ]
    for i, ((book, metric), group) in enumerate(compare.groups(rows, most=12).items()):
        figure = json.loads(compare.forest(group, title=text(f"{book}: {metric}")).to_json())
        parts.append(f"<figure>{figures.div(figure, f'compare-{i}')}</figure>")
    table = [
        {
            "notebook": r["notebook"],
            "metric": r["metric"],
            "run": r["label"],
            "value": number(r["value"]),
            "95% interval": estimate(r)[1] or "not recorded",
            "n": estimate(r)[2] or "not recorded",
        }
        for group in compare.groups(rows, most=len(rows)).values()
        for r in group
    ]
    parts.append(table_html(_one_book(table), limit=200, right=("value", "95% interval", "n")))
    return "\n".join([*parts, _seeds_html(found, figures)])


def _one_book(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the column `notebook` where it says the same in all."""
    return (
        [{k: v for k, v in r.items() if k != "notebook"} for r in rows]
        if len({r["notebook"] for r in rows}) == 1
        else rows
    )


def _seeds_html(found: list[tuple[Path, Run]], figures: Figures) -> str:
    from ..plots import compare
    from . import compare as numbers

    every = numbers.across_seeds(found)
    if not every:
        return ""
    parts = [
        "<h2 id='seeds'>Over seeds</h2>",
        "<p class='lead'>A run's own interval says how sure its result is on new prompts. Whether the recipe works again with "
        "another seed, only several seeds tell: here the seeds are the sample, so few seeds make a wide interval.</p>",
    ]
    groups: dict[tuple[str, str], list[numbers.Seeds]] = {}
    for s in every:
        groups.setdefault((s.notebook, s.metric), []).append(s)
    ranked = sorted(
        groups.items(), key=lambda kv: (not any(s.mean.low == s.mean.low for s in kv[1]), kv[0])
    )
    for i, ((book, metric), rows) in enumerate(
        kv for kv in ranked[:8] if any(s.mean.low == s.mean.low for s in kv[1])
    ):
        figure = json.loads(compare.over_seeds(rows, title=text(f"{book}: {metric}")).to_json())
        parts.append(f"<figure>{figures.div(figure, f'seeds-{i}')}</figure>")
    table = [
        {
            "notebook": s.notebook,
            "metric": s.metric,
            "setting": s.setting or "all runs",
            "mean over seeds": number(s.mean.value),
            "95% interval": s.mean.note or f"[{number(s.mean.low)}, {number(s.mean.high)}]",
            "seeds": ", ".join(map(str, s.seeds)),
            "own interval excludes 0": f"{s.excluded_zero} of {s.runs}",
        }
        for _, rows in ranked
        for s in rows
    ]
    parts.append(
        table_html(
            _one_book(table),
            limit=200,
            right=("mean over seeds", "95% interval", "seeds", "own interval excludes 0"),
        )
    )
    return "\n".join(parts)


def build(
    folder: str | Path,
    *,
    only: Iterable[str] | None = None,
    title: str = "Rubric rewards: report",
    place: Path | None = None,
) -> str:
    """The report over all runs below `folder` (or those whose ids are in `only`) as HTML text.

    place : the folder that the report will lie in, for its links; default: `folder`.
    """
    from . import compare as numbers

    base = Path(folder).expanduser().resolve()
    wanted = set(only) if only is not None else None
    found = [(f, r) for f, r in runs.find(base) if wanted is None or r.id in wanted]
    if not found:
        raise DataError(
            "there is no run to report",
            where=str(base),
            fix="run a notebook first: python -m kit run NOTEBOOK",
        )
    named, figures, js = numbers.labels(found), Figures(), pages.plotly_js()
    side = _compare_html(found, figures)
    rows = max(10, min(60, 600 // len(found)))  # the more runs, the shorter their tables here
    texts = [_run_html(f, r, place or base, _name(r, named), rows) for f, r in found]
    nav = "".join(
        f"<a href='#{i}'>{name}</a>"
        for i, name in (("compare", "side by side"), ("seeds", "over seeds"))
        if f"id='{i}'" in side
    )
    nav += "".join(f"<a href='#{text(r.id)}'>{text(_name(r, named))}</a>" for _, r in found[:40])
    made = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    head = (
        f"<h1>{text(title)}</h1><p class='lead'>{len(found)} runs, made {made}. Every mean stands with n and an interval; "
        f"unknown is counted, never 0.</p><nav>{nav}</nav>{_glance_html(found)}"
    )
    room = SIZE_CAP - sum(
        len(part.encode()) for part in (js, head, side, *(t for two in texts for t in two))
    )
    sections = []
    for i, ((f, r), (top, low)) in enumerate(zip(found, texts, strict=True)):
        drawn = _figures_html(
            f, r, figures, max(0, room) // (len(found) - i)
        )  # an equal share of what is left
        room -= len(drawn.encode())
        sections.append("\n".join((top, drawn, low)))
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>{text(title)}</title><style>{STYLE}</style>{js}{figures.script()}</head><body>{head}{side}{''.join(sections)}</body></html>"
    )


def write(folder: str | Path, out: str | Path | None = None, **options: Any) -> Path:
    """Write the report (default: report.html in the folder of runs) and return its path."""
    path = (
        Path(out).expanduser().resolve()
        if out
        else Path(folder).expanduser().resolve() / "report.html"
    )
    page = build(folder, place=path.parent, **options)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(page, encoding="utf-8")
    os.replace(part, path)  # whole or not at all: two sweeps into one folder write the same file
    return path

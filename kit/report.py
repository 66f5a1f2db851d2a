"""One self-contained HTML report over runs: tables with intervals, plots, configurations, costs. Opens without a network.

Everything that came from outside (answers, file names, errors) is escaped; figures are data, never code.
"""

from __future__ import annotations

import html as escape_html
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import html, runs
from .errors import DataError
from .records import Run

STYLE = """
:root{--ink:#1b1f24;--soft:#57606a;--line:#d8dee4;--accent:#0072B2;--bad:#B3261E;--ok:#00734F}
*{box-sizing:border-box}body{font:15px/1.55 Helvetica,Arial,"DejaVu Sans",sans-serif;color:var(--ink);max-width:1080px;margin:0 auto;padding:28px 24px 80px}
h1{font-size:28px;margin:0 0 4px}h2{font-size:21px;margin:44px 0 8px;border-bottom:2px solid var(--line);padding-bottom:6px}h3{font-size:16px;margin:26px 0 6px}
p.lead,.soft{color:var(--soft)}nav a{display:inline-block;margin:0 14px 6px 0}a{color:var(--accent)}
table{border-collapse:collapse;width:100%;margin:8px 0 18px;font-size:14px}th,td{text-align:left;padding:5px 10px;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}
th{background:#f6f8fa;font-weight:600}td.num,th.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.scroll{overflow-x:auto}
.failed{color:var(--bad);font-weight:600}.done{color:var(--ok);font-weight:600}.note{color:var(--soft);font-size:13px}
details{margin:8px 0}summary{cursor:pointer;color:var(--accent)}figure{margin:12px 0 22px}figcaption{color:var(--soft);font-size:13px}
pre{background:#f6f8fa;padding:10px;overflow-x:auto;font-size:12.5px}
@media print{body{max-width:none;padding:0}h2{break-before:page}figure,table{break-inside:avoid}details{display:block}nav{display:none}}
"""
SIZE_CAP = 9_500_000  # bytes; beyond it the figures of further runs stay in their own pages


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
    return number(value["value"]), band, n + (f" in {value['n_clusters']} clusters" if value.get("n_clusters") else "")


def table_html(rows: Sequence[Mapping[str, Any]], *, limit: int = 60) -> str:
    """Rows of dicts as an escaped HTML table; what is beyond `limit` is said."""
    if not rows:
        return "<p class='note'>no rows</p>"
    names = list(dict.fromkeys(k for r in rows for k in r))
    numeric = {n for n in names if all(isinstance(r.get(n), (int, float, Mapping, type(None))) and not isinstance(r.get(n), bool) for r in rows)}
    head = "".join(f"<th{' class=num' if n in numeric else ''}>{text(n)}</th>" for n in names)
    body = "".join("<tr>" + "".join(_cell(r.get(n, "")) for n in names) + "</tr>" for r in rows[:limit])
    more = f"<p class='note'>{len(rows) - limit} more rows are in tables.json of the run.</p>" if len(rows) > limit else ""
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{more}"


def _cell(value: Any) -> str:
    if isinstance(value, Mapping) and "value" in value:
        v, band, _ = estimate(value)
        return f"<td class='num'>{text(v)} {text(band)}</td>"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"<td class='num'>{text(number(value))}</td>"
    shown = number(value) if value is None or isinstance(value, bool) else str(value)
    return f"<td>{text(shown if len(shown) <= 400 else shown[:400] + ' ...')}</td>"


def _metrics_html(run: Run) -> str:
    flat = [(n, v) for n, v in run.metrics.items() if not isinstance(v, (list, tuple)) and not (isinstance(v, Mapping) and "value" not in v)]
    rows = "".join(f"<tr><td>{text(n)}</td><td class='num'>{text(estimate(v)[0])}</td><td class='num'>{text(estimate(v)[1])}</td>"
                   f"<td class='num'>{text(estimate(v)[2])}</td><td class='note'>{text(v.get('note', '') if isinstance(v, Mapping) else '')}</td></tr>" for n, v in flat)
    return ("<table><thead><tr><th>metric</th><th class=num>value</th><th class=num>95% interval</th><th class=num>n</th><th>note</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>") if flat else "<p class='note'>no metrics were recorded</p>"


def _read(folder: Path, name: str) -> list[dict[str, Any]]:
    try:
        value = json.loads((folder / name).read_text(encoding="utf-8"))
        return value if isinstance(value, list) else []
    except FileNotFoundError:
        return []
    except json.JSONDecodeError as e:
        raise DataError(f"broken JSON: {e.msg}", where=f"{folder / name}, line {e.lineno}", fix="run it again, or remove the file") from None


def _link(folder: Path, base: Path, run: Run) -> str:
    page = folder / f"{run.notebook}.html"
    if not page.exists():
        return ""
    try:
        ref = page.relative_to(base).as_posix()
    except ValueError:
        ref = page.as_uri()
    return f" · <a href='{text(ref)}'>the notebook as it ran</a>"


def _run_html(folder: Path, run: Run, base: Path, room: int) -> tuple[str, int]:
    parts = [f"<h2 id='{text(run.id)}'>{text(run.notebook)}</h2>",
             f"<p class='lead'>{text(run.id)} · <span class='{'failed' if run.status != 'done' else 'done'}'>{text(run.status)}</span> · "
             f"{text(number(run.seconds))} s · cost ${run.cost:.4f}{_link(folder, base, run)}</p>"]
    if run.meta.get("error"):
        parts.append(f"<pre class='failed'>{text(run.meta['error'])}</pre>")
    parts.append(_metrics_html(run))
    left_out = 0
    for i, f in enumerate(_read(folder, "figures.json")):
        div = html.figure_div(f["figure"], f"{run.id}-{i}")
        if len(div) > room:
            left_out += 1
            continue
        room -= len(div)
        titled = bool((f["figure"].get("layout", {}).get("title") or {}).get("text"))
        head = "" if titled else f"<h3>{text(f['name'])}</h3>"
        parts.append(f"<figure>{head}{div}<figcaption>{text(f['name'])}: {text(f.get('caption', ''))}</figcaption></figure>")
    if left_out:
        parts.append(f"<p class='note'>{left_out} figures are left out to keep this file small; they are in the notebook's own page.</p>")
    for t in _read(folder, "tables.json"):
        parts.append(f"<h3>{text(t['name'])}</h3>{table_html(t['rows'])}<p class='note'>{text(t.get('caption', ''))}</p>")
    config = {"parameters": dict(run.params), "seed": run.seed, "profile": run.profile, "commit": run.commit, "versions": dict(run.versions)}
    parts.append(f"<details><summary>configuration and versions</summary><pre>{text(json.dumps(config, indent=1, ensure_ascii=False))}</pre></details>")
    return "\n".join(parts), room


def _compare_html(found: list[tuple[Path, Run]]) -> str:
    from . import compare as numbers
    from .plots import compare

    rows = numbers.shared(found)
    if not rows:
        return ""
    parts = ["<h2 id='compare'>Runs side by side</h2>", "<p class='lead'>Metrics that several runs of one notebook recorded. "
             "Two runs differ for sure only where an interval of their difference excludes 0; overlapping bars are no proof of equality.</p>"]
    for i, ((book, metric), group) in enumerate(compare.groups(rows, most=12).items()):
        figure = json.loads(compare.forest(group, title=f"{book}: {metric}").to_json())
        parts.append(f"<figure>{html.figure_div(figure, f'compare-{i}')}</figure>")
    parts.append(table_html([{k: r[k] for k in ("notebook", "metric", "run", "value", "low", "high", "n")} for r in rows], limit=200))
    return "\n".join(parts)


def build(folder: str | Path, *, only: Iterable[str] | None = None, title: str = "Rubric rewards: report") -> str:
    """The report over all runs below `folder` (or those whose ids are in `only`) as HTML text."""
    base = Path(folder).expanduser().resolve()
    wanted = set(only) if only is not None else None
    found = [(f, r) for f, r in runs.find(base) if wanted is None or r.id in wanted]
    if not found:
        raise DataError("there is no run to report", where=str(base), fix="run a notebook first: python -m kit run NOTEBOOK")
    js = html.plotly_js()
    room = SIZE_CAP - len(js.encode())
    sections = [_compare_html(found)]
    room -= len(sections[0])
    for f, r in found:
        section, room = _run_html(f, r, base, room)
        sections.append(section)
    nav = "".join(f"<a href='#{text(r.id)}'>{text(r.notebook)}</a>" for _, r in found[:40])
    glance = table_html([{"notebook": r.notebook, "run": r.id, "profile": r.profile, "seed": r.seed, "status": r.status,
                          "seconds": r.seconds, "cost $": r.cost} for _, r in found], limit=100)
    made = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return (f"<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
            f"<title>{text(title)}</title><style>{STYLE}</style>{js}</head><body><h1>{text(title)}</h1>"
            f"<p class='lead'>{len(found)} runs, made {made}. Every mean stands with n and an interval; unknown is counted, never 0.</p>"
            f"<nav>{nav}</nav>{glance}{''.join(sections)}</body></html>")


def write(folder: str | Path, out: str | Path | None = None, **options: Any) -> Path:
    """Write the report (default: report.html in the folder of runs) and return its path."""
    path = Path(out).expanduser().resolve() if out else Path(folder).expanduser().resolve() / "report.html"
    page = build(folder, **options)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path

"""One HTML page about a folder of runs: headlines first, then comparisons, runs, their tables, and caveats."""

import html
import io
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from .. import plots
from ..errors import DataError
from ..records import Run
from ..stats import format_number
from ..system import paths
from .compare import differences, metric_rows, over_seeds, overview, pairs
from .kept import Kept, Metric, kept_by, metrics_of

Pairs = Sequence[tuple[Path, Run]]
POINTS = 30  # lines of a forest
ROWS = 60  # of a run's table


def report(folder: str | Path | None = None, out: str | Path | None = None) -> Path:
    """Write one self-contained HTML report about the runs in a folder, and return its path.

    folder : default: the kit's runs. out : default: report.html in that folder.
    """
    base = Path(folder or paths.runs()).expanduser().resolve()
    runs = pairs(base)
    if not runs:
        raise DataError(
            "there is no run to report", where=str(base), fix="kit run NOTEBOOK"
        )
    path = Path(out).expanduser().resolve() if out else base / "report.html"
    # Headlines first: whoever opens the page wants the answer, and may stop there.
    seeds, doubts = over_seeds(runs), [html.escape(c) for c in caveats(runs)]
    done = sum(run.status == "done" for _, run in runs)
    blocks = [
        plots.Html(
            f"<p>{done} of {len(runs)} runs are done. Before you trust a number, "
            f"read the <a href='#caveats'>{len(doubts)} caveats</a>.</p>"
        ),
        *_headlines(runs, seeds),
        *_comparisons(runs, seeds),
        plots.Html("<h2>Runs</h2>"),
        _run_table(runs, path.parent),
        plots.Html("<h2 id='caveats'>Caveats</h2>"),
        plots.Html(f"<ul><li>{'<li>'.join(doubts)}</ul>"),
        *_details(runs),
    ]
    return plots.page("Rubric rewards: report", blocks, path=path)


def newest(runs: Pairs) -> dict[str, tuple[Path, Run]]:
    """The newest finished run of each notebook, in the order of the notebooks."""
    done = {
        # Runs come oldest first, so a later one takes an earlier one's place.
        run.notebook: (folder, run)
        for folder, run in runs
        if run.status == "done"
    }
    return dict(sorted(done.items()))


def _headlines(runs: Pairs, seeds: pd.DataFrame) -> Iterator[Any]:
    """Of each notebook the sentences, a card for every metric with a caption, and all differences."""
    for book, (folder, run) in newest(runs).items():
        metrics, differences = metrics_of(run), {}
        # The metrics with a caption; where the author gave none, the first two estimates.
        headlines = {name: m for name, m in metrics.items() if m.caption} or dict(
            [(name, m) for name, m in metrics.items() if m.estimate][:2]
        )
        figures = {r.name: r for r in kept_by(run) if r.kind == "figure"}
        sentences = [r.text for r in kept_by(run) if r.kind == "sentence"]
        if headlines or sentences:
            yield plots.Html(f"<h2>{html.escape(book)}</h2>")
        yield from sentences
        for name, newest_metric in headlines.items():
            of_metric = (seeds["notebook"] == book) & (seeds["metric"] == name)
            metric = _with_seeds(newest_metric, seeds[of_metric])
            figure = _figure(folder, figures[name]) if name in figures else None
            yield plots.Card(
                name, str(metric), metric.caption or metric.sentence, figure
            )
            if newest_metric.is_difference:
                differences[name] = metric.estimate
        # On one scale, so that a reader sees which one is large, and which one excludes 0.
        if differences:
            yield plots.Html("<h3>Differences, beside 0</h3>")
            yield plots.small_forest(differences, zero=0)


def _with_seeds(metric: Metric, several: pd.DataFrame) -> Metric:
    """A metric over its seeds where several ran, because they say more than the newest run alone."""
    if len(several) != 1:
        return metric
    row = several.iloc[0]
    span = f"{format_number(row['worst'])} to {format_number(row['best'])}"
    words = (metric.caption or metric.sentence).rstrip(".")
    caption = f"{words}. Mean over {row['seeds']} seeds, which gave {span}."
    return replace(metric, estimate=row["estimate"], caption=caption)


def _figure(folder: Path, result: Kept) -> Any:
    import plotly.io

    # Another version of plotly may have written it: what is unknown is skipped.
    return plotly.io.from_json(
        (folder / result.file).read_text("utf-8"), skip_invalid=True
    )


def _comparisons(runs: Pairs, seeds: pd.DataFrame) -> Iterator[Any]:
    """Metrics of notebooks that ran with several settings: over seeds where possible, else run by run."""
    # Without its limits a value would look certain in a forest.
    metrics = metric_rows(runs).dropna(subset=["low"])
    figures = []
    for (book, metric), group in metrics.groupby(["notebook", "metric"]):
        points = seeds[(seeds["notebook"] == book) & (seeds["metric"] == metric)]
        if len(points) < 2:
            points = group.drop_duplicates("setting", keep="last")
        # What did not vary is not compared.
        if len(points) > 1:
            # More lines than fit on a screen are read by nobody.
            names = points["setting"].head(POINTS)
            lines = dict(zip(names, points["estimate"].head(POINTS), strict=True))
            subtitle = ""
            if len(points) > POINTS:
                subtitle = f"{POINTS} of {len(points)} are drawn; `kit report --json` lists all"
            figures.append(
                plots.forest(lines, title=f"{book}: {metric}", subtitle=subtitle)
            )
    if figures or len(seeds):
        yield plots.Html("<h2>Comparisons</h2>")
        yield seeds.dropna(subset=["low"]).drop(columns="estimate").head(ROWS)
        yield from figures[:8]


def _run_table(runs: Pairs, base: Path) -> plots.Html:
    """All runs, with links to the executed notebook and to pages that a run wrote."""
    columns = ["run", "notebook", "setting", "status", "seconds", "GiB"]
    # Escaped here, because the links need a table that is not escaped.
    frame = overview(runs)[columns].fillna("").map(lambda v: html.escape(str(v)))
    links = []
    for folder, run in runs:
        # A notebook's training has its page one folder below.
        pages = [*sorted(folder.glob("*.html")), *sorted(folder.glob("*/*.html"))]
        anchors = ""
        for file in (folder / f"{run.notebook}.ipynb", *pages):
            if file.is_file() and file.name != "report.html":
                # Relative: the folder can be sent as a whole.
                address = html.escape(os.path.relpath(file, base))
                anchors += f'<a href="{address}">{html.escape(file.name)}</a> '
        links.append(anchors)
    frame["open"] = links
    return plots.Html(frame.to_html(escape=False, index=False, border=0))


def _details(runs: Pairs) -> Iterator[Any]:
    """Metrics, tables and figures of the newest run of each notebook."""
    setting = differences(runs)
    for folder, run in newest(runs).values():
        title = html.escape(f"{run.notebook} {setting[folder]}".strip())
        yield plots.Html(f"<h2>{title}</h2>")
        if metrics := metrics_of(run):
            results = list(map(str, metrics.values()))
            yield pd.DataFrame({"metric": list(metrics), "result": results})
        for result in kept_by(run):
            if result.kind != "sentence":
                yield plots.Html(f"<h3>{html.escape(result.name)}</h3>")
                yield result.caption
            if result.kind == "figure":
                yield _figure(folder, result)
            elif result.kind == "table":
                # pandas reads JSON from a file; it would take a text for a path.
                text = io.StringIO((folder / result.file).read_text("utf-8"))
                yield pd.read_json(text, orient="split").head(ROWS)


def caveats(runs: Pairs) -> Iterator[str]:
    """What to doubt, one sentence each: unfinished runs, few clusters, unknown values, many looks."""
    unfinished = [(folder, run) for folder, run in runs if run.status != "done"]
    for folder, run in unfinished[:5]:
        yield f"{folder.name} is {run.status}. {run.meta.get('error', '')[:300]}".strip()
    if len(unfinished) > 5:
        yield f"{len(unfinished) - 5} more runs did not finish."
    for _, run in newest(runs).values():
        for name, metric in metrics_of(run).items():
            estimate, place = metric.estimate, f"{run.notebook}, {name}"
            if estimate and estimate.missing:
                yield f"{place}: {estimate.missing} unknown values are left out."
            if estimate and math.isnan(estimate.low):
                yield f"{place}: no interval. {estimate.note}".strip()
            # Rows of one cluster resemble each other: an interval from few rests on its assumptions.
            elif estimate and 0 < estimate.units < 10:
                yield f"{place}: the interval rests on {estimate.units} clusters only."
    # Of many looks, some exclude 0 by chance; a reader of one page sees all of them.
    looks = sum(
        m.is_difference for _, run in runs for m in metrics_of(run).values()
    )
    if looks > 3:
        yield (
            f"{looks} differences stand here. If nothing differed, "
            f"about {0.05 * looks:.1f} of them would exclude 0 by chance."
        )
    if len(runs) > 5:
        yield "The best of many runs looks better than it is. Confirm a setting with new seeds."
    yield "Numbers of one machine and seed vary on others; the record of each run names its versions."

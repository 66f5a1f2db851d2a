"""One HTML page about a folder of runs: headlines first, then comparisons, runs, their tables, and caveats."""

from __future__ import annotations

import html
import io
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from .. import plots
from ..errors import DataError
from ..records import Run
from ..stats import Estimate, format_number
from ..system import paths
from .compare import compare, differences, over_seeds, overview, pairs
from .kept import Kept, kept_by, metrics_of

Pairs = Sequence[tuple[Path, Run]]
FEW = 10  # clusters; an interval from fewer rests on its assumptions
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
    seeds = over_seeds(runs)
    blocks = [
        *_headlines(runs, seeds),
        *_comparisons(runs, seeds),
        plots.Html("<h2>Runs</h2>"),
        _run_table(runs, path.parent),
        plots.Html("<h2>Caveats</h2>"),
        plots.Html(
            f"<ul>{''.join(f'<li>{html.escape(c)}</li>' for c in caveats(runs))}</ul>"
        ),
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
    """A card for every metric with a caption; over seeds where several ran. Then the sentences."""
    for book, (folder, run) in newest(runs).items():
        results = kept_by(run)
        figures = {r.name: r for r in results if r.kind == "figure"}
        every = metrics_of(run)
        metrics = {name: m for name, m in every.items() if m.caption}
        if not metrics:  # the author named no headline: the first two estimates
            metrics = dict([(n, m) for n, m in every.items() if m.estimate][:2])
        yield plots.Html(f"<h2>{html.escape(book)}</h2>")
        for name, metric in metrics.items():
            value, sentence = str(metric), metric.caption or metric.sentence
            figure = None
            if name in figures:
                figure = _figure(folder, figures[name])
            elif metric.estimate:
                figure = plots.small_forest({"interval": metric.estimate})
            # Several seeds say more than the newest run alone.
            several = seeds[(seeds["notebook"] == book) & (seeds["metric"] == name)]
            if len(several) == 1:
                row = several.iloc[0]
                value, span = (
                    str(row["estimate"]),
                    f"{format_number(row['worst'])} to {format_number(row['best'])}",
                )
                sentence += f" Mean over {row['seeds']} seeds, which gave {span}."
                figure = plots.small_forest({"interval": row["estimate"]})
            yield plots.Card(name, value, sentence, figure)
        yield from (r.text for r in results if r.kind == "sentence")


def _figure(folder: Path, result: Kept) -> Any:
    import plotly.io

    # Another version of plotly may have written it: what is unknown is skipped.
    return plotly.io.from_json(
        (folder / result.file).read_text("utf-8"), skip_invalid=True
    )


def _comparisons(runs: Pairs, seeds: pd.DataFrame) -> Iterator[Any]:
    """Metrics of notebooks that ran with several settings: over seeds where possible, else run by run."""
    # Without its limits a value would look certain in a forest.
    metrics = compare(runs).dropna(subset=["low"])
    several = metrics.groupby("notebook")["run"].nunique() > 1
    metrics = metrics[metrics["notebook"].isin(several.index[several])]
    if metrics.empty and seeds.empty:
        return
    yield plots.Html("<h2>Comparisons</h2>")
    yield seeds.dropna(subset=["low"]).drop(columns="estimate").head(ROWS)
    for (book, metric), group in list(metrics.groupby(["notebook", "metric"]))[:8]:
        title = f"{book}: {metric}"
        means = seeds[(seeds["notebook"] == book) & (seeds["metric"] == metric)]
        if len(means) > 1:
            rows = dict(zip(means["setting"], means["estimate"], strict=True))
        else:
            points = group.drop_duplicates("setting", keep="last").sort_values(
                ["seedless", "seed"]
            )
            rows = {
                p.setting or p.run: Estimate(
                    p.value, p.low, p.high, n=int(p.n or 0)
                )
                for p in points.itertuples()
            }
        # More lines than fit on a screen are read by nobody.
        yield plots.forest(dict(list(rows.items())[:POINTS]), title=title)
        if len(rows) > POINTS:
            yield f"{POINTS} of {len(rows)} settings are drawn; `kit report --json` lists all."


def _run_table(runs: Pairs, base: Path) -> Any:
    """All runs, with links to the executed notebook and to pages that a run wrote."""
    frame = overview(runs)[
        ["run", "notebook", "setting", "status", "seconds", "GiB"]
    ]
    # Escaped here, because the links need a table that is not escaped.
    frame = frame.fillna("").map(lambda value: html.escape(str(value)))
    # Relative links: the folder can be sent as a whole.
    frame["open"] = [_links(folder, run, base) for folder, run in runs]
    return plots.Html(frame.to_html(escape=False, index=False, border=0))


def _links(folder: Path, run: Run, base: Path) -> str:
    # a notebook's training has its page one folder below
    pages = sorted(folder.glob("*.html")) + sorted(folder.glob("*/*.html"))
    return " ".join(
        f'<a href="{html.escape(os.path.relpath(f, base))}">{html.escape(f.name)}</a>'
        for f in [folder / f"{run.notebook}.ipynb", *pages]
        if f.is_file() and f.name != "report.html"
    )


def _details(runs: Pairs) -> Iterator[Any]:
    """Metrics, tables and figures of the newest run of each notebook."""
    setting = differences(runs)
    for folder, run in newest(runs).values():
        title = f"{run.notebook} {setting[folder]}".strip()
        yield plots.Html(f"<h2>{html.escape(title)}</h2>")
        rows = [
            {"metric": name, "result": str(m)}
            for name, m in metrics_of(run).items()
        ]
        if rows:
            yield pd.DataFrame(rows)
        for result in kept_by(run):
            if result.kind == "sentence":
                continue
            yield plots.Html(f"<h3>{html.escape(result.name)}</h3>")
            yield result.caption
            if result.kind == "figure":
                yield _figure(folder, result)
            else:
                # pandas reads JSON from a file; it would take a text for a path.
                text = io.StringIO((folder / result.file).read_text("utf-8"))
                yield pd.read_json(text, orient="split").head(ROWS)


def caveats(runs: Pairs) -> list[str]:
    """What to doubt, one sentence each: unfinished runs, few clusters, unknown values, many looks."""
    open_runs = [
        f"{folder.name} is {run.status}. {run.meta.get('error', '')[:300]}".strip()
        for folder, run in runs
        if run.status != "done"
    ]
    out = open_runs[:5]
    if len(open_runs) > 5:
        out.append(f"{len(open_runs) - 5} more runs did not finish.")
    for _, run in newest(runs).values():
        for name, metric in metrics_of(run).items():
            if (e := metric.estimate) is None:
                continue
            # Rows of one cluster resemble each other, so clusters are what counts.
            units = e.n_clusters or e.n
            if e.missing:
                out.append(
                    f"{run.notebook}, {name}: {e.missing} unknown values are left out."
                )
            if math.isnan(e.low):
                out.append(f"{run.notebook}, {name}: no interval. {e.note}".strip())
            elif units and units < FEW:
                out.append(
                    f"{run.notebook}, {name}: the interval rests on {units} clusters only."
                )
    # Of many looks, some exclude 0 by chance; a reader of one page sees all of them.
    every = [m for _, run in runs for m in metrics_of(run).values()]
    looks = sum(
        bool(m.estimate) and not math.isnan(m.estimate.scale) for m in every
    )
    if looks > 3:
        chance = f"about {0.05 * looks:.1f} of them would exclude 0 by chance"
        out.append(
            f"{looks} differences stand here. If nothing differed, {chance}."
        )
    if len(runs) > 5:
        out.append(
            "The best of many runs looks better than it is. Confirm a setting with new seeds."
        )
    out.append(
        "Numbers of one machine and seed vary on others; the record of each run names its versions."
    )
    return out

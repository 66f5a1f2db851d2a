"""One HTML page about a folder of runs: answers first, then each notebook, comparisons, runs, and caveats."""

import html
import io
import math
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from .. import plots
from ..errors import DataError
from ..records import Run, count_of, group
from ..stats import Estimate, format_number
from ..system import paths
from .compare import FoundRuns, over_seeds, overview, settings_grids
from .folders import Kept, Metric, find, kept_by, metrics_of

ROWS = 60  # of a table
FIGURE = "application/vnd.plotly.v1+json"
DISTRUST = "What should you distrust?"
GRID = "a row for each setting; where several seeds ran, their mean and its interval over seeds."


def report(folder: str | Path | None = None, out: str | Path | None = None) -> Path:
    """Write one self-contained HTML report about the runs in a folder, and return its path.

    folder : default: the kit's runs. out : default: report.html in that folder.
    """
    base = Path(folder or paths.runs()).expanduser().resolve()
    path = Path(out or base / "report.html").expanduser().resolve()
    runs = find(base)
    if not runs:
        raise DataError(
            "there is no run to report", where=str(base), fix="kit run NOTEBOOK"
        )
    seeds, doubts = over_seeds(runs), list(caveats(runs))
    # What did not vary says nothing about other seeds.
    seeds = seeds[seeds["worst"] < seeds["best"]]
    sections, cards = [], []
    for at, run in newest(runs).values():
        answers = _answers(run, seeds[seeds["notebook"] == run.notebook])
        section = _notebook_section(at, run, answers, path.parent)
        sections.append(section)
        cards += [replace(card, link=section.anchor) for card in answers]
    last = plots.Section(DISTRUST, doubts)
    return plots.page(
        "Rubric rewards: report",
        # Answers first: whoever opens the page wants them, and may stop there.
        [
            _what_ran(runs),
            *cards,
            _distrust_card(doubts, last.anchor),
            *sections,
            _comparisons(runs, seeds),
            plots.Section("Which runs are these?", [_run_table(runs, path.parent)]),
            last,
        ],
        path=path,
    )


def _distrust_card(doubts: Sequence[str], link: str) -> plots.Card:
    """The first caveats, with a link to all of them."""
    words = f"All {count_of(len(doubts), 'caveat')} stand at the end."
    return plots.Card(DISTRUST, None, "\n".join([*doubts[:2], words]), link=link)


def _notebook_section(
    folder: Path, run: Run, answers: Sequence[plots.Card], base: Path
) -> plots.Section:
    """The newest run of a notebook, under the first question that it answers, which says more than its name."""
    write_notebook_page(folder / f"{run.notebook}.ipynb")
    questions = (card.title for card in answers if is_question(card.title))
    return plots.Section(
        next(questions, run.notebook),
        [*answers, _links(folder, run, base), *_results(folder, run)],
    )


def is_question(text: str) -> bool:
    """True for a caption that the first screen answers."""
    return text.endswith("?")


def write_notebook_page(book: Path) -> None:
    """Write BOOK.html beside an executed notebook, unless it is there already; figures become static."""
    page = book.with_suffix(".html")
    # a kernel in Jupyter leaves no executed notebook in the run's folder
    if not book.is_file() or (
        page.is_file() and page.stat().st_mtime > book.stat().st_mtime
    ):
        return
    import nbformat
    from nbconvert import HTMLExporter

    notebook = nbformat.read(book, 4)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if FIGURE in output.get("data", {}):
                output.data["text/html"] = plots.figure_html(
                    output.data.pop(FIGURE)
                )
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
    # a badge from elsewhere would ask the network: its words stay
    body = re.sub(r'<img alt="([^"]*)" src="https?:[^>]*>', r"\1", body)
    plots.page(f"Executed notebook {book.stem}", [plots.Html(body)], path=page)


def newest(runs: FoundRuns) -> dict[str, tuple[Path, Run]]:
    """The newest finished run of each notebook, in the order of the notebooks."""
    done = {
        # Runs come oldest first, so a later one takes an earlier one's place.
        run.notebook: (folder, run)
        for folder, run in runs
        if run.status == "done"
    }
    return dict(sorted(done.items()))


def _what_ran(runs: FoundRuns) -> str:
    """What was run, when, with which judges and data."""
    done = sum(run.status == "done" for _, run in runs)
    times = sorted((run.started or "")[:16].replace("T", " ") for _, run in runs)
    # The settings of a training begin with the name of its stage.
    named = {
        (k.split()[-1], str(v or ""))
        for _, run in runs
        for k, v in run.params.items()
    }
    words = {
        "Profile": {run.profile for _, run in runs},
        "Judges": {value for name, value in named if name.endswith("judge")},
        "Data": {
            # a notebook without a file of the user's reads the kit's own
            Path(value).name or "shipped with the kit"
            for name, value in named
            if re.fullmatch("rubrics|answers|.*_file", name)
        },
    }
    text = f"{done} of {count_of(len(runs), 'run')} done, from {times[0]} to {times[-1]} UTC.\n"
    for title, names in words.items():
        # What no run names has no words.
        if some := sorted(names - {""})[:6]:
            text += f"{title}: {', '.join(some)}. "
    return text


def _answers(run: Run, seeds: pd.DataFrame) -> list[plots.Card]:
    """A card for each caption that is a question; a run without one has a card for its first number.

    Metrics and sentences with the same question answer it together. seeds : metrics of this notebook
    over seeds; they say more than the newest run alone.
    """
    metrics = metrics_of(run)
    titles = {
        k: m.caption if is_question(m.caption) else k for k, m in metrics.items()
    }
    texts = [(name, m.caption) for name, m in metrics.items()]
    texts += [(r.caption, r.text) for r in kept_by(run) if r.kind == "sentence"]
    for name, (estimate, text) in _means_over_seeds(seeds).items():
        # The newest run may lack a metric.
        if name in metrics:
            metrics[name] = replace(metrics[name], estimate=estimate)
            texts.append((titles[name], text))
    sentences = group(texts)
    cards = []
    for title in _headlines(metrics, [*titles.values(), *sentences]):
        results = {name: metrics[name] for name in titles if titles[name] == title}
        # Whole names, so that no result hides another one.
        rows = {name: m.estimate for name, m in results.items() if m.estimate}
        value = rows or ", ".join(map(str, results.values())) or None
        text = "\n".join(sentences.get(title, ()))
        cards.append(plots.Card(title, value, text))
    return cards


def _means_over_seeds(seeds: pd.DataFrame) -> dict[str, tuple[Estimate, str]]:
    """By metric its mean over seeds, and a sentence on it; none where it has one for each of several settings."""
    means = {}
    for row in seeds.drop_duplicates("metric", keep=False).to_dict("records"):
        span = f"{format_number(row['worst'])} to {format_number(row['best'])}"
        means[row["metric"]] = (
            row["estimate"],
            f"Mean over {row['seeds']} seeds, which gave {span}.",
        )
    return means


def _headlines(metrics: Mapping[str, Metric], titles: Sequence[str]) -> list[str]:
    """The questions; where the author asked none, what has a caption, else the first estimate."""
    if questions := list(filter(is_question, dict.fromkeys(titles))):
        return questions
    if captioned := [name for name, m in metrics.items() if m.caption]:
        return captioned
    return [name for name, m in metrics.items() if m.estimate][:1]


def _results(folder: Path, run: Run) -> Iterator[Any]:
    """What a run kept besides its answers; tables and figures are folded."""
    results, metrics = kept_by(run), metrics_of(run)
    for result in results:
        if result.kind == "sentence" and not is_question(result.caption):
            yield result.text
    # On one scale, so that a reader sees which one is large, and which one excludes 0.
    for title, is_difference in (
        ("Differences, beside 0", True),
        ("Levels", False),
    ):
        rows = {
            ": ".join(filter(None, (name, m.caption))): m.estimate
            for name, m in metrics.items()
            if m.estimate
            and m.is_difference == is_difference
            and not is_question(m.caption)
        }
        if rows:
            card = plots.Card(title, rows)
            yield card if is_difference else plots.Section(title, [card])
    for result in results:
        if result.kind != "sentence":
            yield plots.Section(
                result.name, [result.caption, _read(folder, result)]
            )
    table = pd.DataFrame(
        {**run.params, **metrics}.items(), columns=["setting or metric", "value"]
    )
    yield plots.Section("All settings and numbers", [table.astype(str)])


def _read(folder: Path, result: Kept) -> Any:
    text = (folder / result.file).read_text("utf-8")
    if result.kind == "figure":
        return msgspec.json.decode(text)
    # pandas reads JSON from a file; it would take a text for a path.
    return pd.read_json(io.StringIO(text), orient="split").head(ROWS)


def _comparisons(runs: FoundRuns, seeds: pd.DataFrame) -> plots.Section:
    blocks: list[Any] = []
    for book, grid in settings_grids(runs, seeds).items():
        blocks += [f"{book}: {GRID}", grid.head(ROWS)]
    if not blocks:
        blocks = [
            "Not known: no number varied over seeds or settings. Run other seeds."
        ]
    return plots.Section("Do seeds and settings change a result?", blocks)


def _run_table(runs: FoundRuns, base: Path) -> plots.Html:
    """All runs, with links to the executed notebook and to pages that a run wrote."""
    columns = ["run", "notebook", "setting", "status", "seconds", "GiB"]
    # Escaped here, because the links need a table that is not escaped.
    frame = overview(runs)[columns].fillna("").map(lambda v: html.escape(str(v)))
    frame["open"] = [_links(folder, run, base).text for folder, run in runs]
    return plots.Html(frame.to_html(escape=False, index=False, border=0))


def _links(folder: Path, run: Run, base: Path) -> plots.Html:
    # A notebook's training has its page one folder below.
    files = [
        folder / f"{run.notebook}.ipynb",
        *sorted(folder.glob("*.html")),
        *sorted(folder.glob("*/*.html")),
    ]
    links = (
        # Relative: the folder can be sent as a whole.
        f'<a href="{html.escape(os.path.relpath(file, base))}">{html.escape(file.name)}</a>'
        for file in files
        if file.is_file() and file.name != "report.html"
    )
    return plots.Html(f"<p>{' '.join(links)}</p>")


def caveats(runs: FoundRuns) -> Iterator[str]:
    """What to doubt, one sentence each: unfinished runs, few clusters, unknown values, many looks."""
    unfinished = [(folder, run) for folder, run in runs if run.status != "done"]
    for folder, run in unfinished[:5]:
        yield f"{folder.name} is {run.status}. {run.meta.get('error', '')[:300]}".strip()
    if len(unfinished) > 5:
        yield f"Unfinished, too: {count_of(len(unfinished) - 5, 'more run')}."
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
    for _, run in newest(runs).values():
        for doubt, names in _doubts_of(run).items():
            yield f"{run.notebook}: {doubt}: {', '.join(names)}."
    yield "Numbers of one machine and seed vary on others; the record of each run names its versions."


def _doubts_of(run: Run) -> dict[str, list[str]]:
    """What to doubt -> the numbers of a run, with what says so."""
    doubts: defaultdict[str, list[str]] = defaultdict(list)
    for name, metric in metrics_of(run).items():
        estimate = metric.estimate
        if estimate is None:
            continue
        if estimate.missing:
            doubts["unknown values are left out"].append(
                f"{name} ({estimate.missing})"
            )
        if math.isnan(estimate.low):
            doubts["no interval"].append(f"{name} ({estimate.note or 'no rows'})")
        # Rows of one cluster resemble each other: an interval from few rests on its assumptions.
        elif 0 < estimate.units < 10:
            doubts["the interval rests on few clusters"].append(
                f"{name} ({count_of(estimate.units, 'cluster')})"
            )
    return doubts

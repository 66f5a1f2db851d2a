"""The report: one self-contained page, headlines first, hostile texts escaped, a thousand runs in seconds."""

from __future__ import annotations

import json
import re
import shutil
import time

import pandas as pd
import pytest

import kit
from kit import runs
from kit.errors import DataError
from kit.stats import Estimate

HOSTILE = "<script>alert(1)</script>"
PARAMS = {"profile": "test", "seed": 0, "steps": 2}


def make(name="mine", gain=0.1, finish=True, n=200, missing=0, **params):
    import plotly.express as px

    session = kit.start(name, {**PARAMS, **params})
    session.keep(
        "gain", Estimate(gain, 0.05, 0.2, n=n, missing=missing, scale=1.0), f"The gain {HOSTILE}."
    )
    session.keep("level", Estimate(0.4, n=n))
    session.keep("count", 3)
    session.keep("gain", px.line(y=[1, 2], title="A line"))
    session.keep(f"rows {HOSTILE}", pd.DataFrame({"text": [HOSTILE], "n": [1]}), HOSTILE)
    session.keep("words", f"It works {HOSTILE}.")
    (session.path("training", "page.html")).write_text("x")
    if finish:
        session.finish()
    return session


def test_one_run(tmp_path):
    session = make()
    path = runs.report()
    text = path.read_text()
    assert path == tmp_path / "runs" / "report.html"
    assert ".100 [.05, .20], n=200" in text and "The gain" in text and "It works" in text
    assert text.index("The gain") < text.index("no interval")
    assert HOSTILE not in text and "&lt;script&gt;" in text
    assert f"{session.folder.name}/training/page.html" in text
    assert not re.search(r"""(src|href)=["']https?:""", text), "the page needs a network"
    assert len(text) < 60_000, (
        "figures of the kit and of plotly express are drawn without plotly.js"
    )
    assert "viewport" in text and "prefers-color-scheme" in text


def test_several_seeds_and_settings():
    for seed in (0, 1, 2):
        for steps in (2, 3):
            make(seed=seed, steps=steps, gain=0.1 + seed / 100)
    make(seed=9, steps=9, finish=False)
    text = runs.report().read_text()
    table = text.partition('id="do-seeds')[2].partition("</table>")[0]
    assert table.count("<tr") == 3 and "steps=3" in table and ".110 [" in table and "n=3" in table
    assert "steps=2" in text and "7 differences stand here" in text
    assert "mine-" in text and "running" in text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n": 7}, "rests on few clusters: gain (7 clusters)"),
        ({"missing": 4}, "left out: gain (4)"),
        ({}, "no interval: level"),
    ],
)
def test_caveats(options, sentence):
    make(**options)
    assert sentence in runs.report().read_text()


def test_the_first_screen_says_what_ran_and_what_to_distrust():
    make(gain=0.1)
    kit.start("empty", {**PARAMS, "judge": "gpt-9", "tasks_file": "/far/mine.jsonl"}).finish()
    first, _, rest = runs.report().read_text().partition('<section id="')
    assert "2 of 2 runs done" in first and "Profile: test" in first
    assert "Judges: gpt-9" in first and "Data: mine.jsonl." in first and "/far" not in first
    assert "The gain" in first and 'href="#what-should-you-distrust"' in first
    # A notebook that kept nothing has no answer.
    assert first.count('<section class="card">') == 2 and rest.count("<h2") == 5


def test_results_with_one_question_answer_it_together():
    session = kit.start("mine", PARAMS)
    question = "Did it help?"
    session.keep(
        "gain", {"a": Estimate(0.1, 0.05, 0.2, scale=1.0), "b": Estimate(0.3, 0.1, 0.4)}, question
    )
    session.keep("words", "It helped a bit.", question)
    session.keep("other", Estimate(0.7, 0.6, 0.8), "Another number.")
    session.finish()
    first, _, rest = runs.report().read_text().partition('<section id="')
    assert '<a href="#did-it-help">Did it help?</a>' in first and "It helped a bit." in first
    assert ".100 [.05, .20]" in first and ".300 [.10, .40]" in first and ".700" not in first
    assert rest.startswith("did-it-help") and ".700 [.60, .80]" in rest


def test_nothing_is_compared_that_did_not_vary():
    for seed in (0, 1, 2):
        make(seed=seed, gain=0.1)
    make(name="other", gain=0.2)
    text = runs.report().read_text()
    assert "no number varied over seeds or settings" in text and "Mean over" not in text
    make(seed=3, gain=0.2)
    text = runs.report().read_text()
    assert "Mean over 4 seeds, which gave .100 to .200" in text
    # "level" is the same for all seeds
    table = text.partition('id="do-seeds')[2].partition("</table>")[0]
    assert "the same in all runs" in table and "<th>gain</th>" in table and "level" not in table


def test_a_failed_run_is_named():
    make(finish=False)
    make(seed=1)
    assert "is running" in runs.report().read_text()


def test_an_empty_folder_and_another_place(tmp_path):
    with pytest.raises(DataError, match="no run"):
        runs.report()
    make()
    path = runs.report(tmp_path / "runs", tmp_path / "elsewhere" / "page.html")
    assert "../runs/mine-" in path.read_text()


def test_the_executed_notebook_is_a_page_beside_it():
    import nbformat
    from nbformat import v4

    session = make()
    figure = json.loads(kit.plot({"a": Estimate(0.4, 0.3, 0.5)}).to_json())
    output = v4.new_output("display_data", {"application/vnd.plotly.v1+json": figure})
    badge = v4.new_markdown_cell("![Open it](https://example.org/badge.svg)")
    book = v4.new_notebook(cells=[badge, v4.new_code_cell("draw()", outputs=[output])])
    nbformat.write(book, session.folder / "mine.ipynb")
    text = runs.report().read_text()
    page = session.folder / "mine.html"
    assert text.count(f'href="{session.folder.name}/mine.html"') == 2
    assert ">draw<" in page.read_text() and '<figure class="drawn">' in page.read_text()
    assert "https://" not in page.read_text() and "Open it" in page.read_text()
    stamp = page.stat().st_mtime_ns
    runs.report()
    assert page.stat().st_mtime_ns == stamp


@pytest.mark.slow
def test_a_thousand_runs_in_seconds():
    first = make()
    record = json.loads((first.folder / "run.json").read_text())
    for number in range(1000):
        folder = shutil.copytree(first.folder, first.folder.with_name(f"mine-{number:08x}"))
        params = {**PARAMS, "seed": number // 4, "steps": number % 4}
        changes = {"id": folder.name, "params": params, "seed": number // 4}
        (folder / "run.json").write_text(json.dumps({**record, **changes}))
    begin = time.monotonic()
    path = runs.report()
    assert time.monotonic() - begin <= 15
    assert path.stat().st_size < 8_000_000


def test_two_results_with_one_last_name_both_stand_in_the_answer(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_RUNS", str(tmp_path))
    run = kit.start("two", PARAMS)
    for name in ("judge paid: code", "coin paid: code"):
        run.keep(name, Estimate(0.2, 0.1, 0.3, n=9), "Did it help?")
    run.finish()
    text = runs.report().read_text()
    assert text.count("judge paid: code") and text.count("coin paid: code")

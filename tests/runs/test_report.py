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
    assert text.index("The gain") < text.index("Caveats")
    assert HOSTILE not in text and "&lt;script&gt;" in text
    assert f"{session.folder.name}/training/page.html" in text
    page = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert not re.search(r"""(src|href)=["']https?:""", page), "the page needs a network"
    assert "viewport" in text and "prefers-color-scheme" in text


def test_several_seeds_and_settings():
    for seed in (0, 1, 2):
        for steps in (2, 3):
            make(seed=seed, steps=steps, gain=0.1 + seed / 100)
    make(seed=9, steps=9, finish=False)
    text = runs.report().read_text()
    assert "Mean over 3 seeds" in text or "seeds" in text
    assert "steps=2" in text and "7 differences stand here" in text
    assert "mine-" in text and "running" in text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n": 7}, "the interval rests on 7 clusters only"),
        ({"missing": 4}, "4 unknown values are left out"),
        ({}, "level: no interval"),
    ],
)
def test_caveats(options, sentence):
    make(**options)
    assert sentence in runs.report().read_text()


def test_the_first_screen_says_what_ran_and_where_the_caveats_are():
    make(gain=0.1)
    kit.start("empty", PARAMS).finish()
    text = runs.report().read_text()
    assert "2 of 2 runs are done" in text and "href='#caveats'" in text
    # Sentences first; a notebook that kept nothing has no heading among the headlines.
    assert text.index("It works") < text.index("The gain") < text.index("Differences, beside 0")
    assert "<h2>empty</h2>" not in text[: text.index("<h2>Runs</h2>")]


def test_nothing_is_compared_that_did_not_vary():
    make(gain=0.1)
    make(name="other", gain=0.2)
    assert "<h2>Comparisons</h2>" not in runs.report().read_text()


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

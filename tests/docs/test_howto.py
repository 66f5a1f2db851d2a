"""The how-tos: each block runs as the page shows it, and is short; the class path names what is in the notebooks."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from test_readme import BLOCK, ROOT, fake_server, run

PAGE = (ROOT / "docs" / "howto.md").read_text("utf-8")
# title -> its text
HOWTOS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
GRID = "Run a grid, here or on a cluster"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the how-tos name; the first one writes those in the kit's form."""
    base = tmp_path_factory.mktemp("howto")
    shutil.copytree(ROOT / "data" / "walkthrough", base / "my-files")
    shutil.copy(ROOT / "data" / "facts.jsonl", base)
    return base


def test_each_has_one_short_block():
    assert len(HOWTOS) == 11
    for title, text in HOWTOS.items():
        assert len(BLOCK.findall(text)) == 1, title
        # a class of one's own has three methods
        assert len(BLOCK.findall(text)[0][2].splitlines()) <= 17, title


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("KIT_HOME", str(folder / "home"))
    monkeypatch.setenv("KIT_RUNS", str(folder / "runs"))
    monkeypatch.setenv("KIT_JUDGE_KEY", "test")
    return folder


def test_every_howto_runs_in_order(here):
    """All but the grid, which has a test of its own."""
    names = {}
    with fake_server(lambda asked: "4" if "1 to 5:" in asked.prompt else None) as server:
        for title, text in HOWTOS.items():
            kind, _, code = BLOCK.findall(text)[0]
            code = code.replace("http://127.0.0.1:8000/v1", server.url)
            if kind == "python":
                exec(compile(code, title, "exec"), names)
            elif title != GRID:
                run_lines(code)
    assert names["labeller"].progress == "0 of 20" and len(names["verdicts"]) == 28
    assert "n=400" in names["result"].sentence


@pytest.mark.slow
def test_the_grid_runs(here):
    run_lines(BLOCK.findall(HOWTOS[GRID])[0][2])
    assert Path("sweep.html").stat().st_size > 10_000


def run_lines(code):
    for line in code.splitlines():
        exit_code, printed = run(line)
        assert exit_code == 0, (line, printed)


def test_the_cell_for_colab_is_that_of_the_notebooks():
    book = json.loads((ROOT / "notebooks" / "01_inspect_rubrics.ipynb").read_text("utf-8"))
    assert BLOCK.findall(HOWTOS["Run a notebook on Colab"])[0][2].strip() == "".join(
        book["cells"][1]["source"]
    )


def test_the_class_path_names_sections_that_exist():
    page = (ROOT / "docs" / "teaching.md").read_text("utf-8")
    prose = "".join(
        (ROOT / "notebooks" / name).read_text("utf-8")
        for name in ("01_inspect_rubrics.ipynb", "06_chain_stages.ipynb")
    )
    for section in re.findall(r"Run (?:to )?\*(.+?)\*", page):
        assert f"## {section}" in prose, section

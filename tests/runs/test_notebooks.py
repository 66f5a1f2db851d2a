"""The committed notebooks: their form, and that the stored outputs belong to the code; the script that makes them."""

from __future__ import annotations

import base64
import importlib.util
import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location(
    "make_notebooks", ROOT / "tests" / "make_notebooks.py"
)
maker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(maker)
BOOKS = {path.name: json.loads(path.read_text("utf-8")) for path in maker.books()}
CELLS_MOST = {"01": 28, "02": 41, "03": 51, "04": 33, "05": 21, "06": 18}


def text(cell):
    return "".join(cell["source"])


@pytest.fixture(
    params=BOOKS or [pytest.param("", marks=pytest.mark.skip("there are no notebooks yet"))]
)
def book(request):
    return request.param, BOOKS[request.param]


def test_outputs_belong_to_the_code(book):
    name, cells = book[0], maker.stale(book[1])
    assert not cells, f"{name}: outputs are stale; run `make notebooks`: {cells}"


def test_size_and_figures(book):
    name, whole = book
    assert (ROOT / "notebooks" / name).stat().st_size <= maker.BOOK_MOST
    assert len(whole["cells"]) <= CELLS_MOST.get(name[:2], 40)
    assert "widgets" not in whole["metadata"]
    pictures = []
    for number, cell in enumerate(whole["cells"], 1):
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            assert not {maker.FIGURE, maker.WIDGET} & set(data)
            if "image/png" in data:
                pictures.append(number)
                assert len(base64.b64decode("".join(data["image/png"]))) <= maker.PNG_MOST
            lines = "".join(data.get("text/plain", ""))
            assert lines.count("\n") < 100 and output.get("name") != "stderr"
    assert pictures and min(pictures) <= 9, "the first figure comes late"


def test_opening_cells(book):
    """Title with a badge, the install cell (one source), parameters, imports with kit.start."""
    name, whole = book
    cells = whole["cells"]
    assert "colab-badge.svg" in text(cells[0]) and f"notebooks/{name}" in text(cells[0])
    install = (ROOT / "kit" / "system" / "colab_cell.txt").read_text("utf-8")
    assert text(cells[1]).strip() == install.strip()
    assert "parameters" in cells[2]["metadata"]["tags"]
    assert f'kit.start("{name.removesuffix(".ipynb")}", locals())' in text(cells[3])
    assert "run.finish()" in text(cells[-1]) or "run.finish()" in text(cells[-2])


def test_cells_are_short_and_import_the_kit_only_by_rooms(book):
    for cell in book[1]["cells"][3:]:
        if cell["cell_type"] == "code":
            assert len(text(cell).splitlines()) <= 10, text(cell)[:80]
            assert "input(" not in text(cell) and ".show()" not in text(cell)


def made(cells, counts=None, stored=None):
    rows = [
        {
            "cell_type": "code",
            "source": c,
            "execution_count": 1 if counts is None else counts[i],
            "metadata": {},
        }
        for i, c in enumerate(cells)
    ]
    stored = [maker.fingerprint(r) for r in rows] if stored is None else stored
    return {"cells": rows, "metadata": {"outputs_of": stored}}


@pytest.mark.parametrize(
    ("whole", "number"),
    [
        (made(["a", "b"]), 0),
        (made(["a", "b", ""]), 1),  # an empty cell has no output, and no fingerprint
        (made(["a"], counts=[None]), 1),
        (made(["a"], stored=["0"]), 1),
        (made(["a", "b"], stored=[]), 1),
    ],
)
def test_stale(whole, number):
    assert len(maker.stale(whole)) == number


@pytest.mark.slow
def test_making_a_notebook(notebook, tmp_path):
    """A figure becomes a small PNG, a widget and progress are left out, paths of this machine too."""
    if not (shutil.which("chromium") or shutil.which("google-chrome")):
        pytest.skip("no Chromium on this machine")
    cells = [
        "import plotly.express as px\npx.line(y=list(range(500)))",
        "import ipywidgets\nipywidgets.IntSlider()",
        "import sys\nprint(run.folder)\nprint('50%|', file=sys.stderr)",
    ]
    path = notebook(cells)
    painter = maker.Painter()
    maker.make(path, tmp_path / "base", painter)
    painter.close()
    whole = json.loads(path.read_text("utf-8"))
    outputs = [o for c in whole["cells"] for o in c.get("outputs", ())]
    assert next(sorted(o["data"]) for o in outputs if "data" in o) == ["image/png", "text/plain"]
    assert maker.WIDGET not in json.dumps(outputs) and "50%" not in json.dumps(outputs)
    assert str(tmp_path) not in json.dumps(outputs) and "runs/07_small-" in json.dumps(outputs)
    assert maker.stale(whole) == []

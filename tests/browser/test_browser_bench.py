"""The workbench in a real JupyterLab: edit, try, filter, judge again; and its page with a filter."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tuning"))
from test_tuning_bench import STRICT, bench_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # starts JupyterLab and a browser
TUNING = sys.path[0]
CELL = f"""
import sys, tempfile, pathlib
sys.path.insert(0, {TUNING!r})
from test_tuning_bench import bench_of
from kit.widgets.bench import explorer
explorer(bench_of(pathlib.Path(tempfile.mkdtemp())))
"""


def test_controls_in_jupyterlab(lab: Any, page: Any) -> None:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}  # asks nobody
    nbformat.write(book, lab.folder / "bench.ipynb")
    lab.open(page, "bench.ipynb")
    lab.run_all(page, timeout=300)
    tab = page.page
    tab.fill(".widget-textarea textarea", f"{STRICT} Read all.")
    tab.wait_for_selector(f"text=+ {STRICT}", timeout=20_000)
    tab.fill(".widget-text input", "strict")
    tab.keyboard.press("Tab")
    tab.click("button:has-text('try it')")
    tab.wait_for_selector("table.flips td:text-is('mended')", timeout=60_000)
    begun = time.monotonic()
    tab.select_option(".widget-dropdown:has-text('show') select", label="wrong now")
    tab.wait_for_selector("table.flips td:text-is('mended')", state="detached", timeout=20_000)
    print(f"a filter took {time.monotonic() - begun:.2f} s")
    tab.select_option(".widget-dropdown:has-text('show') select", label="flips")
    tab.wait_for_selector("table.flips td:text-is('mended')", timeout=20_000)
    tab.click("button:has-text('judge again')")
    tab.wait_for_selector("text=asked again: unmet", timeout=20_000)
    page.shot("bench-controls", whole=True)
    assert not page.errors, page.errors[:5]


def test_the_page_filters_and_asks_no_network(page: Any, tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    bench.rows[bench._queue[0]].response.__dict__["text"] = (
        "<img src=x onerror=\"document.title='hacked'\">good" + "@" * 200
    )
    bench.try_("strict", STRICT)
    bench.try_("no", "Say no. Be harsh.", full=True)
    page.page.goto(bench.export(tmp_path / "b.html").as_uri())
    total = page.page.inner_text("#count").split(" of ")[1]
    page.page.select_option("#view", label="broken")
    assert page.page.inner_text("#count").split(" of ")[1] == total
    shown = page.page.eval_on_selector_all(
        "table.flips tr:not([hidden]) td:nth-child(3)", "es => es.map(e => e.textContent.trim())"
    )
    assert shown and set(shown) == {"broken"}
    page.page.set_viewport_size({"width": 390, "height": 900})  # a phone saw a page of 1,320 px
    wide = page.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390 and page.page.locator("table.flips tr[hidden]:visible").count() == 0
    assert page.page.title() == "Workbench" and not page.errors, page.errors[:3]

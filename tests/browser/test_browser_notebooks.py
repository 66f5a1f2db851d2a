"""Each notebook opened and run in a real JupyterLab in a real Chromium; widgets used; screenshots in test-artifacts/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kit.system import paths

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
BOOKS = sorted(b.stem for b in paths.notebooks().glob("*.ipynb"))


@pytest.mark.parametrize("book", BOOKS)
def test_notebook_runs_in_jupyterlab(lab: Any, page: Any, book: str) -> None:
    lab.open(page, f"{book}.ipynb")
    lab.run_all(page, timeout=900)
    outputs = page.page.query_selector_all(".jp-OutputArea-output")
    assert len(outputs) > 5
    for i, plot in enumerate(page.page.query_selector_all(".js-plotly-plot")):
        if not plot.is_visible():  # the twin of a widget that is alive
            continue
        plot.scroll_into_view_if_needed()
        assert plot.query_selector(".main-svg"), f"plot {i} of {book} is empty"
        page.page.wait_for_timeout(200)
        plot.screenshot(path=str(page.shot(book).parent / f"{book}-plot-{i}.png"))
    page.shot(book)
    assert not page.errors, page.errors[:5]


def use(page: Any, selector: str, act: str, value: Any = None) -> None:
    """Use the first visible control that fits and wait for the kernel to answer."""
    element = page.page.query_selector(selector)
    assert element, f"no control {selector}"
    element.scroll_into_view_if_needed()
    getattr(element, act)(*([] if value is None else [value]))
    page.page.wait_for_timeout(1500)


@pytest.mark.parametrize("book", BOOKS)
def test_widgets_answer(lab: Any, page: Any, book: str) -> None:
    """Every dropdown is set to its last entry and every slider moved: the widget's output changes, nothing complains."""
    lab.open(page, f"{book}.ipynb")
    lab.run_all(page, timeout=900)
    selects = page.page.query_selector_all(".widget-dropdown select")
    sliders = page.page.query_selector_all(
        ".widget-slider .noUi-handle, .jupyter-widgets .ui-slider-handle"
    )
    for s in selects:
        s.scroll_into_view_if_needed()
        options = s.query_selector_all("option")
        if len(options) > 1:
            s.select_option(index=len(options) - 1)
            page.page.wait_for_timeout(800)
    for h in sliders[:6]:
        h.scroll_into_view_if_needed()
        h.focus()
        for _ in range(3):
            page.page.keyboard.press("ArrowRight")
        page.page.wait_for_timeout(800)
    if selects or sliders:
        page.shot(f"{book}-widgets")
    wrong = page.page.eval_on_selector_all(
        '.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.error"]',
        "es => es.map(e => e.textContent)",
    )
    assert not wrong, wrong[0][:2000]
    assert not page.errors, page.errors[:5]


def test_report_opens_without_a_network(page: Any, tmp_path: Path) -> None:
    """The report of the newest demo (or of one small run made here) draws its plots with no request to anywhere."""
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "frame"))
    from test_frame_headless import book as small

    from kit.runs import headless, report

    folder, run = headless.run_notebook(
        small(tmp_path / "99_try.ipynb"), profile="test", out=tmp_path / "runs"
    )
    assert run.status == "done"
    again, _ = headless.run_notebook(
        tmp_path / "99_try.ipynb", profile="test", seed=1, out=tmp_path / "runs"
    )
    asked: list[str] = []
    page.page.on("request", lambda r: asked.append(r.url))
    page.page.goto(report.write(tmp_path / "runs").as_uri())
    page.page.wait_for_selector(".js-plotly-plot .main-svg", timeout=20_000)
    shown = page.page.inner_text("body")
    assert "seed=1" in shown and "Over seeds" in shown, shown
    assert re.search(r"0\.510? \[0\.40*, 0\.70*\], n ?= ?20", shown), shown
    page.shot("report-small", whole=True)
    page.page.goto((again / "99_try.html").as_uri())
    page.page.wait_for_selector(".js-plotly-plot .main-svg", timeout=20_000)
    assert folder != again
    assert not [u for u in asked if not u.startswith(("file:", "data:", "blob:"))], asked
    assert not page.errors, page.errors

"""The report in a real browser: on a phone and on a screen, light and dark, filtered and printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit import runs
from kit.plots import theme
from kit.records import Run, to_json
from kit.runs import report

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs with long words, long texts, many columns and a figure each."""
    base = tmp_path_factory.mktemp("runs")
    figure = json.loads(theme.figure(title="A picture").add_scatter(y=[1, 3, 2]).to_json())
    texts = {"severity": "warning", "rule": "labels_that_no_answer_pair_separates", "n": 3}
    rows = [{**texts, "example": "some words of an answer " * 12, "share": 0.25}] * 12
    for seed in range(4):
        name = f"20261121T20000{seed}-03_train_grpo-0123456{seed}"
        metrics = {
            f"metric number {k}": {"value": 0.5, "low": 0.4, "high": 0.6 + seed / 9, "n": 40}
            for k in range(12)
        }
        run = Run(id=name, notebook="03_train_grpo", profile="cpu", seed=seed, metrics=metrics)
        (base / name).mkdir()
        runs.write_json(base / name / "metrics.json", to_json(run))
        figures = [{"name": "a picture", "caption": "", "figure": figure}]
        runs.write_json(base / name / "figures.json", figures)
        runs.write_json(base / name / "tables.json", [{"name": "lint", "rows": rows}])
    return report.write(base)


BROKEN_WORDS = """() => [...document.querySelectorAll('th,td')].filter(c => {
  const longest = Math.max(...c.textContent.split(/\\s+/).map(w => w.length));
  return c.offsetParent && longest < 20 && c.clientWidth < Math.min(longest, 20) * 5;
}).length"""


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_reads_on_a_phone_and_on_a_screen(page, written, width, scheme) -> None:
    """On a phone letters stood one per line, 58,476 px tall; at 1280 px "severity" broke in two."""
    p = page.page
    p.set_viewport_size({"width": width, "height": 900})
    p.emulate_media(color_scheme=scheme)
    p.goto(written.as_uri())
    p.wait_for_selector(".js-plotly-plot .main-svg", timeout=20_000)
    p.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert p.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
    assert p.evaluate(BROKEN_WORDS) == 0
    assert p.evaluate("document.body.scrollHeight") < 36_000
    dark = p.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    assert not page.errors, page.errors


def test_the_search_box_hides_what_does_not_match(page, written) -> None:
    p = page.page
    p.goto(written.as_uri())
    p.fill("input[type=search]", "seed=2")
    shown = p.evaluate("[...document.querySelectorAll('details.run')].filter(d=>!d.hidden).length")
    assert shown == 1
    p.fill("input[type=search]", "")
    assert p.evaluate("document.querySelectorAll('[hidden]').length") == 0


def test_the_report_prints_with_every_section(page, written, tmp_path) -> None:
    p = page.page
    p.goto(written.as_uri())
    pdf = p.pdf()
    assert pdf[:4] == b"%PDF" and len(pdf) > 40_000


def test_plots_follow_a_dark_jupyterlab(page) -> None:
    """Every plot was a white box on black; the run's first table carries what turns them."""
    from kit.page import LAB_DARK

    seen = []
    for light in ("true", "false"):
        plot = "<div class='js-plotly-plot' id=x>plot</div>"
        page.page.set_content(f"<body data-jp-theme-light='{light}'>{LAB_DARK}{plot}</body>")
        seen.append(page.page.evaluate("getComputedStyle(x).filter"))
    assert seen[0] == "none" and "invert" in seen[1]

"""The page of judgments in a real browser: filters, search, phone, dark; hostile text does nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "people"))
from answered import made, rows_of, write

import kit

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]  # starts a browser


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("view")
    tasks, labels, grades = made(folder, prompts=50)
    rows = rows_of(labels)
    rows[7]["response"] = "<img src=x onerror=\"document.title='hacked'\">needle\u202e"
    answers = write(folder / "a.jsonl", rows)
    return kit.view(grades, tasks=tasks, answers=answers, labels=answers)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_reads_on_a_phone_and_on_a_screen(page, written, width, scheme):
    p = page.page
    p.set_viewport_size({"width": width, "height": 900})
    p.emulate_media(color_scheme=scheme)
    p.goto(written.as_uri())
    p.wait_for_selector(".card")
    assert p.evaluate("document.documentElement.scrollWidth") <= width
    page.shot(f"view-{width}-{scheme}")
    dark = p.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark") and not page.errors


def test_paper_shows_whole_texts_side_by_side(page, written):
    """A long text was cut where its scroll bar began, and nine prompts filled 20 pages."""
    p = page.page
    p.set_viewport_size({"width": 720, "height": 1000})
    p.emulate_media(media="print")
    p.goto(written.as_uri())
    p.wait_for_selector(".card", state="attached")
    style = "e => { const s = getComputedStyle(e); return [s.maxHeight, s.fontSize] }"
    assert p.eval_on_selector(".kv .text", style) == ["none", "10.5px"]
    columns = "e => getComputedStyle(e).gridTemplateColumns.split(' ').length"
    assert p.eval_on_selector(".kv .two", columns) == 2


def test_filters_and_search(page, written):
    p = page.page
    p.goto(written.as_uri())
    p.wait_for_selector(".card")
    said = ".tools + .note"
    p.select_option("label:has-text('verdict') select", "unknown")
    assert p.inner_text(said) == "1 of 100 answers, 1 verdicts of this kind"
    p.select_option("label:has-text('verdict') select", "parted")
    assert p.inner_text(said).startswith("34 of 100")  # every third answer
    p.select_option("label:has-text('criterion') select", "c0: text of c0")
    assert p.inner_text(said).startswith("0 of 100")
    p.select_option("label:has-text('verdict') select", "")
    p.select_option("label:has-text('criterion') select", "")
    p.fill("input[type=search]", "NEEDLE")
    assert p.inner_text(said).startswith("1 of 100")
    assert p.title() != "hacked" and p.locator("img").count() == 0
    assert "needle\u2039U+202E\u203a" in p.inner_text("body")  # it turned what stood behind it
    p.fill("input[type=search]", "")
    p.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    p.locator(".card").nth(40).wait_for(state="attached")
    assert not page.errors

"""The workbench's controls without a browser: each click does what it says, or shows why not."""

import time

import pytest
from test_tuning_bench import STRICT, bench_of

from kit.widgets import bench as controls


@pytest.fixture
def box(tmp_path, monkeypatch):
    pytest.importorskip("ipywidgets")
    monkeypatch.setenv("KIT_HEADLESS", "0")
    return controls.explorer(bench_of(tmp_path))


def parts(box):
    """The controls by their description or kind, in order."""
    flat = [x for row in box.children for x in (getattr(row, "children", None) or [row])]
    named = {x.description: x for x in flat if getattr(x, "description", "")}
    shown = [x for x in flat if type(x).__name__ == "HTML"]
    text = next(x for x in flat if type(x).__name__ == "Textarea")
    return named, dict(zip(("diff", "said", "trials", "flips"), shown, strict=True)), text


def test_edit_run_filter_judge_again_doubt_and_export(box, tmp_path):
    named, shown, text = parts(box)
    text.value = f"{STRICT} Read all."
    assert "Be kind." in shown["diff"].value and STRICT in shown["diff"].value
    named["name"].value = "strict"
    named["try it"].click()
    assert "strict: " in shown["said"].value and named["now"].value == "strict"
    assert "mended" in shown["flips"].value and "kappa on dev" in shown["trials"].value
    begun = time.process_time()
    named["show"].value = "wrong now"
    assert time.process_time() - begun < 0.3 and "mended" not in shown["flips"].value
    named["show"].value = "flips"
    named["judge again"].click()
    assert "asked again: unmet" in shown["said"].value
    named["doubt label"].click()
    assert "a doubt needs who and why" in shown["said"].value
    named["who"].value, named["why"].value = "ann", "<b>unclear</b>"
    named["doubt label"].click()
    assert len(box.bench.doubts) == 1
    named["file"].value = str(tmp_path / "b.html")
    named["export"].click()
    page = (tmp_path / "b.html").read_text()
    assert "&lt;b&gt;unclear" in page and "<b>unclear" not in page


def test_headless_it_is_the_static_twin(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_HEADLESS", "1")
    bench = bench_of(tmp_path)
    bench.try_("strict", STRICT)
    html = controls.explorer(bench).data
    assert "baseline &rarr; strict" in html and "mended" in html and "<script" not in html

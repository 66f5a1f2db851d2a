"""Figures carry their numbers, escape text, and fit a phone; pages are self-contained; explorers redraw."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace

import kit
from kit import plots, stats
from kit.errors import DataError, MissingError
from kit.records import Criterion, Response, Task, Verdict
from kit.rewards import score_rubric
from kit.stats import calibration

EVIL = "<script>alert(1)</script>" + "x" * 200
RNG = np.random.default_rng(0)
CONF = RNG.random(200).round(2)
RIGHT = RNG.random(200) < CONF
REPORT = calibration.reliability(CONF, RIGHT, draws=50)
GAIN = stats.difference(RNG.random(40), RNG.random(40))
AGREE = stats.agree([1, 0] * 20, [1, 1, 0, 0] * 10)
RESULTS: dict[str, Any] = {
    "estimate": GAIN,
    "no interval": stats.Estimate(0.3),
    "estimates": {"a": GAIN, EVIL: stats.mean([1, 0, 1])},
    "agreement": AGREE,
    "agreements": {"one": AGREE, "two": AGREE},
    "reliability": REPORT,
    "reliabilities": {"before": REPORT, EVIL: REPORT},
    "ece": REPORT.ece,
    "sensitivity": calibration.sensitivity(CONF, RIGHT),
    "risk": calibration.risk_coverage(CONF, RIGHT),
    "comparison": calibration.compare((CONF, RIGHT), (CONF, RIGHT)),
    "numbers": {"short": 1, EVIL: 3.5},
    "parts": {"answer": {"rubric": 0.4, "citations": -0.1}, EVIL: {"rubric": None}},
    "frame": pd.DataFrame({"reward": [0.1, None, 0.3]}),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_has_a_figure_with_its_numbers(name: str) -> None:
    fig = plots.plot(RESULTS[name])
    assert fig.layout.paper_bgcolor == fig.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert fig.layout.meta["rows"] and "<script" not in fig.to_json().lower()
    assert all(len(line) < 80 for line in (fig.layout.title.text or "").split("<br>"))
    assert fig.layout.width is None  # it takes the width of a phone


def test_what_has_no_figure_is_an_error() -> None:
    for thing in (3, {"a": "text"}):
        with pytest.raises(DataError, match="there is no figure"):
            plots.plot(thing)


def test_long_names_stay_apart_and_unknown_limits_are_empty() -> None:
    names = {f"{'a' * 40}{i}": stats.Estimate(i) for i in range(3)}
    fig = plots.forest(names, zero=0)
    assert len(set(fig.data[0].y)) == 3 and np.isnan(fig.data[0].error_x.array[0])
    assert [row["name"] for row in fig.layout.meta["rows"]] == list(names)


def test_lines() -> None:
    rows = {"step": [1, 2, 3], "reward": [0.1, None, 0.3], "kl": [1, 2, 3]}
    bands = {"reward": ([0, 0, 0], [1, 1, 1])}
    fig = plots.lines(rows, "step", smooth=2, bands=bands, title="Training")
    names = [t.name for t in fig.data if t.name]
    assert names == ["reward", "kl"] and fig.layout.xaxis.title.text == "step"
    assert fig.layout.meta["rows"][0] == {"step": 1, "reward": 0.1, "kl": 1}
    stacked = plots.lines({"good": [0.2, 0.4], "bad": [0.8, 0.6]}, stack=True)
    assert {t.stackgroup for t in stacked.data} == {"one"}


def test_bars_are_sorted_and_stacked() -> None:
    fig = plots.bars({"few": 1, "many": 5})
    assert list(fig.data[0].y) == ["many", "few"]
    fig = plots.bars({"a": {"x": 1}, "b": {"x": 1, "y": -2}}, order=False)
    assert [t.name for t in fig.data] == ["x", "y"] and fig.data[1].x == (None, -2)


def test_reliability_line_stops_where_there_are_no_rows() -> None:
    gap = calibration.reliability([0.1] * 30 + [0.9] * 30, [0, 1] * 30, draws=20)
    line = next(t for t in gap.plot().data if t.mode == "lines")
    assert np.isnan(line.y[1]) and line.connectgaps is False


def blocks() -> list[Any]:
    return [
        plots.Card(EVIL, {EVIL: GAIN, "b": AGREE}, GAIN.sentence),
        plots.Card("Reward", 0.25, EVIL),
        plots.Section(EVIL, [EVIL, plots.Section(EVIL, [EVIL])]),
        EVIL,
        pd.DataFrame({EVIL: [EVIL]}),
        AGREE,
        plots.Html("<b>trusted</b>"),
        SimpleNamespace(text=EVIL),
    ]


def test_page_escapes_all_text_and_needs_no_network(tmp_path: Path) -> None:
    path = plots.page(EVIL, blocks(), path=tmp_path / "deep" / "page.html")
    text = path.read_text("utf-8")
    # one script of the page's own, which unfolds parts
    assert text.count("<script") == 1 and "<b>trusted</b>" in text and "&lt;script&gt;" in text
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    assert "prefers-color-scheme: dark" in text and 'name="viewport"' in text
    assert text.count('<section class="card">') == 2 and len(text) < 20_000


def one_page(folder: Path, *blocks: Any) -> str:
    return plots.page("A page", blocks, path=folder / "page.html").read_text("utf-8")


@pytest.mark.parametrize("name", [n for n in RESULTS if n not in ("agreement", "agreements")])
def test_figures_of_the_kit_are_static_and_their_numbers_are_there(
    name: str, tmp_path: Path
) -> None:
    fig = plots.plot(RESULTS[name])
    text = one_page(tmp_path, fig)
    assert text.count('<figure class="drawn">') == 1 and text.count("<script") == 1
    assert "nan" not in text.partition("<main")[2].lower() and "<script>alert" not in text
    first = fig.layout.meta["rows"][0]
    # beside the rows of intervals and bars, in a table below lines
    assert str(first.get("result", "<summary>Numbers</summary>")) in text or "name" in first
    # what Session.keep stores is drawn as well
    assert one_page(tmp_path, json.loads(fig.to_json())) == text


def test_figures_of_other_forms_need_plotly_which_is_there_once(tmp_path: Path) -> None:
    counts = np.array([[3.0, 1.0], [0.0, 4.0]])
    figure = plots.heatmap(counts, ["met", "unmet"], title=EVIL)
    text = one_page(tmp_path, figure, plots.Section("More", [figure]))
    assert text.count("plotly.js v") == 1 and text.count("<summary>Numbers</summary>") == 2
    assert (
        "alert(1)</script>" not in text and "cdn.plot.ly/plotly" not in text.split("</script>")[1]
    )


def test_bars_and_intervals_stand_where_their_numbers_are(tmp_path: Path) -> None:
    # the axis of a row goes from 3 to 97 percent
    text = one_page(tmp_path, plots.bars({"a": {"x": 1, "y": 1}, "b": {"x": -2}}, order=False))
    assert re.findall(r'class="c(.)" x="([\d.]+)%" y="4" width="([\d.]+)%"', text) == [
        ("0", "50.00", "23.50"),
        ("1", "73.50", "23.50"),
        ("0", "3.00", "47.00"),
    ]
    text = one_page(tmp_path, plots.forest({"a": stats.Estimate(0.5, 0.25, 1.0)}, zero=0))
    assert 'x1="26.50%" x2="97.00%"' in text and 'cx="50.00%"' in text
    assert re.search(r'class="mark" x1="3.00%" x2="3.00%"', text)
    text = one_page(tmp_path, plots.lines({"y": [0.0, None, 1.0, 0.5]}))
    assert "M0.0 190.0M206.7 0.0L310.0 95.0" in re.sub(r"(?<=[0-9])\s+(?=[ML])", "", text)


def test_cards_of_one_unit_share_an_axis_with_0(tmp_path: Path) -> None:
    one, two = stats.Estimate(0.5, 0.4, 0.6), stats.Estimate(-0.5, -0.6, -0.4)
    cards = [
        plots.Card("a", one),
        plots.Card("b", {"two": two}),
        plots.Card("c", stats.Estimate(30, 20, 40)),
    ]
    text = one_page(tmp_path, *cards)
    marks = re.findall(r'class="mark" x1="([\d.]+)%"', text)
    assert marks == ["50.00", "50.00", "3.00"]
    assert "<p>two</p>" in text  # what the number measures
    # the interval is in the sentence, or beside the number
    assert one_page(tmp_path, plots.Card("a", one, f"It is {one}.")).count("[.40, .60]") == 1
    assert one_page(tmp_path, plots.Card("a", one, "It rose.")).count("[.40, .60]") == 1
    assert "nan" not in one_page(tmp_path, plots.Card("a", stats.Estimate(float("nan")))).lower()


def test_contents_link_to_sections_and_inner_sections_are_folded(tmp_path: Path) -> None:
    inner = plots.Section("A table", [pd.DataFrame({"n": [1]})])
    text = one_page(
        tmp_path, plots.Card("c", 1, link="did-it-help"), plots.Section("Did it help?", [inner])
    )
    anchors = set(re.findall(r'href="#([\w-]+)"', text))
    assert anchors == {"content", "did-it-help"} and all(f'id="{a}"' in text for a in anchors)
    assert "<details><summary>A table</summary>" in text
    assert "<nav" not in one_page(tmp_path, "No section, no contents.")


TASK = Task(
    id="t1",
    prompt=f"Write it.\n{EVIL}",
    criteria=(Criterion(id="c1", text="Is it short?"), Criterion(id="c2", text="Bad?", weight=-1)),
)


def verdict(answer: str, criterion: str, value: bool | None) -> Verdict:
    status = {True: "met", False: "unmet", None: "unknown"}[value]
    more = {"failure": "parse"} if value is None else {}
    ids = {"task_id": "t1", "response_id": answer, "criterion_id": criterion}
    return Verdict(**ids, judge="code", status=status, **more)


VERDICTS = [
    verdict("a", "c1", True),
    verdict("a", "c2", True),
    verdict("b", "c1", True),
    verdict("b", "c2", None),
]
TASKS = SimpleNamespace(
    tasks=[TASK, Task(id="t2", prompt="Other")],
    responses=[Response(id="a", task_id="t1", text=EVIL), Response(id="b", task_id="t1", text="B")],
    verdicts=VERDICTS,
)


def scores(weights: dict[str, float]) -> dict[str, float | None]:
    """The score of each answer when the criteria have these weights."""
    criteria = [replace(c, weight=weights[c.id]) for c in TASK.criteria]
    out = {}
    for answer in ("a", "b"):
        verdicts = [v for v in VERDICTS if v.response_id == answer]
        out[answer] = score_rubric(criteria, verdicts).value
    return out


BENCH = SimpleNamespace(views=lambda: {"table": lambda: plots.Html("<i>table</i>")})


def steps(folder: Path) -> Path:
    rows = [{"step": i, "reward": i / 10, "note": "x", "kl": 0.1} for i in range(3)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "steps.jsonl").write_text(text + '{"step": 3, "rew')  # being written
    return folder


def things(folder: Path) -> dict[str, tuple[Any, dict[str, Any]]]:
    return {
        "tasks": (TASKS, {}),
        "bins": (REPORT, {}),
        "bench": (BENCH, {}),
        "training": (steps(folder), {}),
    }


@pytest.mark.parametrize("name", ["tasks", "bins", "bench", "training"])
def test_explorers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    thing, options = things(tmp_path)[name]
    monkeypatch.setenv("KIT_HEADLESS", "1")
    first = plots.explore(thing, **options)
    assert isinstance(first, plots.Html) or first.layout.meta["rows"]
    monkeypatch.setenv("KIT_HEADLESS", "0")
    box = plots.explore(thing, **options)
    controls = box.children[0].children
    assert len(box.children) == 2 and controls
    for control in controls:  # every choice can be made
        for value in getattr(control, "options", ()):
            control.value = value
    assert not [o for o in box.children[1].outputs if o.get("output_type") == "error"]


def test_browsing_escapes_and_shows_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIT_HEADLESS", "1")
    text = plots.explore(TASKS).text
    assert "<script" not in text and "2 of 2 tasks" in text
    assert "verdicts: code" in text and "unknown" in text and "Is it short?" in text


def test_browsing_shows_the_task_of_the_menu_or_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KIT_HEADLESS", "0")
    menu, words = plots.explore(TASKS).children[0].children
    assert f"<b>{menu.value}</b>" in capsys.readouterr().out
    words.value = "no task has this"
    page = capsys.readouterr().out
    assert "0 of 2 tasks" in page and "<table" not in page


def test_side_by_side_marks_what_differs_and_escapes() -> None:
    criteria = tuple(Criterion(id=i, text=f"<i>{i}</i>") for i in "abc")
    task = Task(id="t", prompt="<script>", criteria=criteria)
    answers = [
        Response(task_id="t", id=i, text="<img src=x onerror=alert(1)>") for i in ("r1", "r2", "r3")
    ]
    statuses = {("r1", "a"): "met", ("r2", "a"): "unmet", ("r1", "b"): "met", ("r2", "b"): "met"}
    verdicts = [
        Verdict(task_id="t", response_id=r, criterion_id=c, status=s, judge="<b>j", reason="</table>", p=0.25)
        for (r, c), s in statuses.items()
    ]  # fmt: skip
    text = plots.side_by_side(task, answers, verdicts).text
    assert text.count("differs") == 1 and text.index("differs") < text.index("&lt;i&gt;a")
    assert (
        text.count("P(met) 0.25") == 4 and text.count("verdicts: &lt;b&gt;j") == 2 and "r3" in text
    )
    assert not [word for word in ("<script", "<img", "<i>", "<b>j") if word in text]
    assert text.count("</table>") == 1


def test_what_cannot_be_explored(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no explorer of a int"):
        plots.explore(3)
    with pytest.raises(MissingError, match="no steps yet"):
        plots.explore(tmp_path)


def test_verdicts_and_grades_have_a_figure():
    task = Task(
        id="t", prompt="p", criteria=(Criterion(id="c", text="x", check={"name": "lowercase"}),)
    )
    answers = [Response(task_id="t", id=f"r{i}", text="a" if i % 2 else "A") for i in range(4)]
    verdicts = kit.judge([task], answers, judge="code", progress=False)
    rows = plots.plot(verdicts).layout.meta["rows"]
    assert rows == [{"name": "c", "met": 2, "unmet": 2}]
    rows = plots.plot(kit.grade([task], verdicts, responses=answers)).layout.meta["rows"]
    assert sum(row["value"] for row in rows) == 4 and rows[-1] == {"name": "unknown", "value": 0}


def test_what_has_no_explorer_gets_a_remedy():
    task = Task(id="t", prompt="p", criteria=(Criterion(id="c", text="x"),))
    ids = {"task_id": "t", "response_id": "r", "criterion_id": "c"}
    label, verdict = (Verdict(**ids, status="met", judge=judge) for judge in ("human", "j"))
    with pytest.raises(DataError, match=r"kit\.plot draws results"):
        plots.explore(kit.agreement_report([task], [label], [verdict]))


def test_line_breaks_of_a_cell_stay(tmp_path):
    page = plots.page("t", [pd.DataFrame({"answer": ["one\ntwo"]})], path=tmp_path / "p.html")
    assert "one\ntwo" in page.read_text("utf-8")


def test_the_guide_prints_lines():
    assert "kit.judge: " in str(kit.guide())

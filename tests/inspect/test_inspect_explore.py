"""Summary, splits, explorers' functions, overviews and their widgets."""

import json
import random

import pytest

from kit import rubrics as inspect
from kit.data import TaskSet
from kit.errors import DataError
from kit.records import Criterion, Response, Task, Verdict
from kit.rubrics import explore, splits
from kit.rubrics.summary import Spread

EVIL = "<img src=x onerror=alert(1)>"


def sample():
    tasks = [
        Task(
            id=f"t{i}",
            prompt=f"Prompt {i} {EVIL if i == 0 else ''}",
            kind="ab"[i % 2],
            group=f"g{i // 2}",
            criteria=(
                Criterion(id="c1", text=f"Names thing {i}. {EVIL}"),
                Criterion(id="c2", text="Invents a number.", weight=-2),
                Criterion(id="c3", text="Is short.", check={"name": "words", "max": 9}),
            ),
        )
        for i in range(10)
    ]
    responses = [Response(task_id="t0", id=r, text=f"{r} {EVIL}", source=EVIL) for r in ("x", "y")]
    told = [
        ("x", "c1", "met", "human:a"),
        ("x", "c1", "met", "human:b"),
        ("y", "c1", "unmet", "human:a"),
        ("y", "c1", "met", "human:b"),
        ("x", "c2", "met", "gpt"),
        ("y", "c2", "unmet", "gpt"),
    ]
    verdicts = [
        Verdict(task_id="t0", response_id=r, criterion_id=c, status=s, judge=j)
        for r, c, s, j in told
    ]
    verdicts.append(
        Verdict(
            task_id="t0",
            response_id="x",
            criterion_id="c3",
            status="unknown",
            failure="parse",
            judge="gpt",
        )
    )
    return TaskSet(tasks=tasks, responses=responses, verdicts=verdicts, rows=10)


def test_spread_matches_the_statistics_module():
    import statistics
    from collections import Counter

    for seed in range(20):
        rng = random.Random(seed)
        values = [rng.randrange(6) for _ in range(rng.randrange(1, 12))]
        s = Spread.of(Counter(values))
        assert (s.n, s.min, s.median, s.max) == (
            len(values),
            min(values),
            statistics.median(values),
            max(values),
        )
        assert s.mean == pytest.approx(statistics.mean(values))
    assert Spread.of({}).median is None and str(Spread.of({})) == "none"


def test_summary_counts_and_unknown_is_not_unmet():
    s = inspect.summarize(sample())
    assert (s.tasks, s.criteria, s.negative, s.by_code, s.groups) == (
        10,
        30,
        10,
        10,
        5,
    ) and s.checkable == pytest.approx(1 / 3)
    assert s.labels == {"met": 3, "unmet": 1}
    assert (
        s.share_met == {"human": 0.75, "gpt": 0.5}
        and s.recorded["unknown"] == 1
        and s.coverage == pytest.approx(2 / 6)
    )
    assert inspect.summarize([]).checkable is None and "tasks" in str(inspect.summarize([]))
    assert EVIL not in s._repr_html_()


def test_splits_are_seeded_disjoint_and_provable():
    tasks = sample().tasks
    for split in (
        splits.shuffle(tasks, seed=1, share=0.3),
        splits.by_group(tasks, seed=1, share=0.3),
    ):
        train, held = split.of(tasks, "train"), split.of(tasks, "heldout")
        assert (
            sorted(t.id for t in (*train, *held)) == sorted(t.id for t in tasks)
            and train
            and held
            and {t.split for t in held} == {"heldout"}
        )
        assert splits.verify(json.loads(json.dumps(split.manifest)), [*train, *held]) == []
    assert (
        splits.shuffle(tasks, seed=1).parts
        == splits.shuffle(tasks, seed=1).parts
        != splits.shuffle(tasks, seed=2).parts
    )
    changed = [
        Task(id=t.id, prompt=t.prompt + ("!" if t.id == "t3" else "")) if t.id == "t3" else t
        for t in tasks
    ]
    assert ["t3" in x for x in splits.verify(splits.shuffle(tasks).manifest, changed)] == [True]
    with pytest.raises(DataError, match="no group"):
        splits.by_group(tasks, heldout=["nowhere"])
    with pytest.raises(DataError, match="share"):
        splits.shuffle(tasks, share=1.5)


def test_table_filters():
    ts = sample()
    report = inspect.lint(ts)
    ids = lambda **k: [r["task_id"] for r in explore.table(ts, **k)]  # noqa: E731
    assert len(ids()) == 10 and ids(text="prompt 3") == ["t3"] and len(ids(kind="a")) == 5
    assert set(ids(code="subjective", lint=report)) <= {f"t{i}" for i in range(10)}


def test_read():
    ts = sample()
    task = explore.read(ts, "t0")
    assert task["criteria"][0]["verdicts"] == {
        "x": {"human:a": "met", "human:b": "met"},
        "y": {"human:a": "unmet", "human:b": "met"},
    }
    assert task["criteria"][2]["verdicts"]["x"] == {"gpt": "unknown (parse)"}
    with pytest.raises(DataError, match="no task"):
        explore.read(ts, "t99x")


def test_overviews_hold_the_numbers_and_escape_text():
    pytest.importorskip("plotly")
    from kit.plots import data as plots

    ts = sample()
    s, report = inspect.summarize(ts), inspect.lint(ts)
    assert list(plots.criteria_per_task(s).data[0].y) == [10]
    assert sum(sum(t.y) for t in plots.weights(s).data) == 30
    assert plots.kinds(s).data[0].x is not None and len(plots.lengths(s).data) == 3
    assert sum(sum(t.x) for t in plots.findings(report).data) == sum(report.counts.values())
    for empty in (plots.criteria_per_task, plots.lengths, plots.weights, plots.kinds):
        assert empty(inspect.summarize([])) is not None


def test_static_twins_escape(monkeypatch):
    from kit.widgets import data as widgets

    monkeypatch.setenv("KIT_HEADLESS", "1")
    ts = sample()
    shown = widgets.browse(ts)
    assert "<img" not in shown.data and "&lt;img" in shown.data


def test_the_browser_filters(monkeypatch):
    pytest.importorskip("ipywidgets")
    from kit.widgets import data as widgets

    monkeypatch.setenv("KIT_HEADLESS", "0")
    ts = sample()
    box = widgets.browse(ts, inspect.lint(ts))
    text, chosen, shown = box.children[0].children[0], box.children[2], box.children[3]
    assert len(chosen.options) == 10 and "<img" not in shown.value and "onerror" in shown.value
    text.value = "prompt 3"
    assert [v for _, v in chosen.options] == ["t3"] and "Prompt 3" in shown.value
    text.value = "nothing like it"
    assert len(chosen.options) == 0 and shown.value == ""

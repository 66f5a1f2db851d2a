"""Figures hold the numbers of their tables, and text from outside is escaped."""

import json

import numpy as np

from kit import stats
from kit.plots import agreement as plots


def results():
    rng = np.random.default_rng(0)
    h = rng.integers(0, 2, 300)
    return {
        "<b>j</b>": stats.agree(
            np.where(rng.random(300) < 0.8, h, 1 - h), h, cluster=np.arange(300) // 3
        ),
        "all": stats.agree([1] * 300, h),
    }


def test_forest_and_rows():
    es = {"a": stats.mean([1, 0, 1, 1]), "<i>": stats.mean([]), "c": stats.mean([0.5, 0.7])}
    fig = plots.forest(es, reference=0)
    assert (
        list(fig.data[0].x) == [es["a"].value, None, es["c"].value] and "<i>" not in fig.to_json()
    )
    json.loads(fig.to_json())


def test_confusion_and_trap():
    r = results()
    fig = plots.confusion(r["<b>j</b>"])
    assert fig.data[0].text[0][0] == str(int(r["<b>j</b>"].confusion[0, 0]))
    fig = plots.trap(r)
    assert len(fig.data) == 2 and "<b>j" not in fig.data[0].name
    assert {row["judge"] for row in plots.trap_rows(r)} == set(r)


def test_labels():
    rows = plots.label_rows([141, 246], 0.8, q1=0.9, q0=0.8)
    assert round(rows[1]["human_only"], 3) == 0.05 and round(rows[0]["with_judge"], 3) == 0.05
    assert len(plots.labels(rows).data) == 2

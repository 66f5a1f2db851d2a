"""The numbers that a page computes from embedded verdicts equal the kit's own to 1e-9."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pytest

from kit import stats
from kit.people import view as views
from kit.people.labels import Labels
from kit.records import Criterion, Grade, Response, Task, Verdict
from kit.rewards.aggregate import grade

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]  # starts a browser


def study(seed: int) -> tuple[list[Task], dict[str, list[Grade]], dict]:
    """Tasks of unequal size, two sets of answers with unknowns and levels, labels of some."""
    rng = random.Random(seed)
    tasks, sets, labels = [], {"before": [], "after": []}, {}
    for t in range(rng.choice([3, 9, 30])):
        criteria = tuple(
            Criterion(
                id=f"c{k}",
                text=f"criterion {k}",
                weight=rng.choice([1, 2, 0.5, -1, 0]),
                required=rng.random() < 0.25,  # a gate; left out, scores rose from .147 to .236
                meta=rng.choice([{}, {}, {"pass_at": 0.75}]),
            )
            for k in range(rng.randint(1, 5))
        )
        tasks.append(Task(id=f"t{t}", prompt="p", criteria=criteria, group=f"g{t % 4}"))
        for name, made in sets.items():
            for a in range(rng.randint(1, 3)):
                made.append(_graded(rng, tasks[-1], f"{name}{a}", labels, seed))
    return tasks, sets, labels


def _graded(rng: random.Random, task: Task, name: str, labels: dict, seed: int) -> Grade:
    verdicts = []
    for c in task.criteria:
        ids = {"task_id": task.id, "response_id": name, "criterion_id": c.id, "judge": "j"}
        kind = rng.random()
        if kind < 0.04:
            verdicts.append(Verdict(**ids, status="unknown", failure="parse"))
        elif kind < 0.1 and seed % 2:
            verdicts.append(Verdict(**ids, status="level", value=0.25 * rng.randint(0, 4)))
        else:
            p = rng.random() if seed % 3 else None
            met = rng.random() < 0.6 if p is None else p >= 0.5
            verdicts.append(Verdict(**ids, status="met" if met else "unmet", p=p))
        if rng.random() < 0.5:
            labels[task.id, name, c.id] = float(rng.random() < 0.6)
    ends = {"score": None, "score_low": 0.0, "score_high": 1.0}
    return Grade(task_id=task.id, response_id=name, verdicts=tuple(verdicts), **ends)


def expected(tasks, sets, labels, settings) -> dict:
    """The same numbers by the kit."""
    weights = settings["weights"]
    moved = {
        t.id: replace(
            t,
            criteria=tuple(
                replace(c, weight=weights.get(f"{c.id}: {c.text}", c.weight)) for c in t.criteria
            ),
        )
        for t in tasks
    }
    unit = {"task": lambda i: i, "group": lambda i: moved[i].group, "none": None}
    of = unit[settings["cluster"]]

    def cluster(ids):
        return None if of is None else [of(i) for i in ids]

    out, means = {"sets": {}}, []
    for name, grades in sets.items():
        again = [
            grade(moved[g.task_id], g.verdicts, how="flip", response_id=g.response_id)
            for g in grades
        ]
        xs, ids = [g.score for g in again], [g.task_id for g in again]
        passed = [None if x is None else float(x >= settings["pass"] - 1e-9) for x in xs]
        more = {"cluster": cluster(ids), "bounds": (0.0, 1.0)}
        out["sets"][name] = {"score": stats.mean(xs, **more), "passed": stats.mean(passed, **more)}
        by = {
            i: [x for x, j in zip(xs, ids, strict=True) if j == i and x is not None] for i in moved
        }
        means.append([sum(v) / len(v) if v else None for v in by.values()])
    out["change"] = stats.difference(means[1], means[0], cluster=cluster(list(moved)))
    rows = [
        v
        for grades in sets.values()
        for g in grades
        for v in g.verdicts
        if (v.task_id, v.response_id, v.criterion_id) in labels
    ]
    people = [labels[v.task_id, v.response_id, v.criterion_id] for v in rows]
    judge = [
        None if not v.known else float((v.value if v.p is None else v.p) >= settings["cut"] - 1e-9)
        for v in rows
    ]
    more = {"cluster": cluster([v.task_id for v in rows]), "categories": (0, 1)}
    out["kappa"] = stats.kappa(judge, people, **more)
    out["accuracy"] = stats.accuracy(judge, people, **more)
    return out


def same(got, want: stats.Estimate, where: str) -> None:
    """Value and limits to 1e-9; what is unknown here is unknown there."""
    if math.isnan(want.value):
        assert got is None, where
        return
    assert got["n"] == want.n, where
    for name in ("value", "low", "high"):
        x, y = got[name], getattr(want, name)
        assert (x is None and math.isnan(y)) or abs(x - y) <= 1e-9, (where, name, x, y)


def test_numbers_equal_pythons(page, tmp_path):
    p = page.page
    p.set_content(f"<body>{views.assets()}</body>")
    compared = 0
    for seed in range(12):
        tasks, sets, labels = study(seed)
        parts = [
            views.judgments(g, tasks=tasks, labels=Labels(labels), set=name)
            for name, g in sets.items()
        ]
        data = views.joined(*parts)
        rng = random.Random(seed)
        for cluster in ("task", "group", "none"):
            weights = {f"c{k}: criterion {k}": rng.choice([-1.5, 0, 0.25, 3]) for k in range(2)}
            settings = {
                "weights": weights if rng.random() < 0.7 else {},
                "cluster": cluster,
                "pass": rng.choice([0, 0.5, 0.75, 1]),
                "cut": rng.choice([0.2, 0.5, 0.8]),
            }
            got = p.evaluate("([d, s]) => kitRecompute(d, s)", [data, settings])
            want = expected(tasks, sets, labels, settings)
            where = json.dumps([seed, settings])
            for name, one in want["sets"].items():
                for which, e in one.items():
                    same(got["sets"][name][which], e, f"{which} {name} {where}")
            for which in ("change", "kappa", "accuracy"):
                same(got[which], want[which], f"{which} {where}")
            compared += 7
    assert compared == 12 * 3 * 7 and not page.errors


def test_quantiles_equal_pythons(page):
    from kit.stats.tails import t_quantile

    page.page.set_content(f"<body>{views.assets()}</body>")
    for df in (1.0, 1.37, 2.5, 7.0, 40.2, 333.3, 499.0, 2000.0):
        got = page.page.evaluate("df => kitStats.quantile(df)", df)
        assert abs(got - t_quantile(0.95, df)) < 1e-10, df


def test_moving_a_slider_moves_the_numbers(page, tmp_path):
    tasks, sets, labels = study(5)
    parts = [
        views.judgments(
            g,
            tasks=tasks,
            labels=Labels(labels),
            set=name,
            answers=[Response(task_id=x.task_id, id=x.response_id, text="x") for x in g],
        )
        for name, g in sets.items()
    ]
    data = views.joined(*parts)
    path = tmp_path / "p.html"
    path.write_text(views.page(data))
    p = page.page
    p.goto(path.as_uri())
    before = p.inner_text(".numbers")
    p.evaluate("""() => { const s = document.querySelector('input[type=range]');
        s.value = 0.9; s.dispatchEvent(new Event('input')); }""")
    now = p.evaluate("document.getElementById('judgments-numbers').kit")
    assert now["settings"]["pass"] == 0.9 and p.inner_text(".numbers") != before
    want = expected(tasks, sets, labels, now["settings"])
    same(now["now"]["sets"]["after"]["passed"], want["sets"]["after"]["passed"], "slider")
    p.select_option("label:has-text('clustered') select", "none")
    assert "clusters" not in p.inner_text(".numbers")
    page.shot("recompute")
    assert not page.errors

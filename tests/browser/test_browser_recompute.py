"""The numbers that a page computes from embedded verdicts equal the kit's own to 1e-9."""

from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kit import stats
from kit.people import view as views
from kit.people.labels import Labels
from kit.records import Criterion, Grade, Response, Task, Verdict
from kit.rewards.aggregate import HOWS, grade, leaves
from kit.train.rollouts import span

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]  # starts a browser


def study(seed: int) -> tuple[list[Task], dict[str, list[Grade]], dict]:
    """Tasks of unequal size, two sets of answers with unknowns and levels, labels of some."""
    rng = random.Random(seed)
    tasks, sets, labels = [], {"before": [], "after": []}, {}
    for t in range(rng.choice([3, 9, 45])):  # above 20 clusters: room for unseen ones
        criteria = tuple(_criterion(rng, f"c{k}") for k in range(rng.randint(1, 5)))
        if rng.random() < 0.4:  # their parents' weights and gates were dropped
            criteria += tuple(_criterion(rng, f"c0{k}", "c0") for k in range(rng.randint(1, 3)))
        tasks.append(Task(id=f"t{t}", prompt="p", criteria=criteria, group=f"g{t % 4}"))
        for name, made in sets.items():
            for a in range(rng.randint(1, 3)):
                made.append(_graded(rng, tasks[-1], f"{name}{a}", labels, seed))
    return tasks, sets, labels


def _criterion(rng: random.Random, name: str, parent: str | None = None) -> Criterion:
    return Criterion(
        id=name,
        text=f"criterion {name[1:]}",
        weight=rng.choice([1, 2, 0.5, -1, 0]),
        required=rng.random() < 0.25,  # a gate; left out, scores rose from .147 to .236
        meta=rng.choice([{}, {}, {"pass_at": 0.75}]),
        parent=parent,
    )


def _graded(rng: random.Random, task: Task, name: str, labels: dict, seed: int) -> Grade:
    verdicts = []
    for c in leaves(task.criteria):
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


def _met_from(v: Verdict, cut: float) -> Verdict:
    """Scores stayed as judged beside a kappa of another threshold."""
    if not cut or v.status not in ("met", "unmet"):
        return v
    met = (v.value if v.p is None else v.p) >= cut - 1e-9
    return replace(v, status="met" if met else "unmet", value=None)


def expected(tasks, sets, labels, settings) -> dict:
    """The same numbers by the kit."""
    times = settings["times"]
    moved = {
        t.id: replace(
            t,
            criteria=tuple(
                replace(c, weight=c.weight * times.get(f"{c.id}: {c.text}", 1)) for c in t.criteria
            ),
        )
        for t in tasks
    }
    unit = {"task": lambda i: i, "group": lambda i: moved[i].group, "none": None}
    of = unit[settings["cluster"]]

    def cluster(ids):
        return None if of is None else [of(i) for i in ids]

    out, means = {"sets": {}}, []
    how = settings["how"]
    for name, grades in sets.items():
        again = [
            grade(
                moved[g.task_id],
                [_met_from(v, settings["cut"]) for v in g.verdicts],
                how=how,
                max_width=settings["wide"],
                response_id=g.response_id,
            )
            for g in grades
        ]
        xs, ids = [g.score for g in again], [g.task_id for g in again]
        passed = [None if x is None else float(x >= settings["pass"] - 1e-9) for x in xs]
        clusters = cluster(ids)
        bounds = span([g.meta["range"] for g in again], xs)
        score = stats.mean(xs, cluster=clusters, bounds=bounds)
        share = stats.mean(passed, cluster=clusters, bounds=(0.0, 1.0))
        out["sets"][name] = {"score": score, "passed": share}
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
    cut = settings["cut"]
    judge = [
        None
        if not v.known
        else float((v.p if cut and v.p is not None else v.value) >= (cut or 0.5) - 1e-9)
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
    assert (got["n"], got["missing"]) == (want.n, want.missing), where  # 4 of 38 went unsaid
    for name in ("value", "low", "high"):
        x, y = got[name], getattr(want, name)
        assert (x is None and math.isnan(y)) or abs(x - y) <= 1e-9, (where, name, x, y)


@pytest.fixture
def compute(request) -> Callable[[str, Any], Any]:
    """A function of the page's script, by name: in Node where it is installed (no page is needed
    to compute), else in Chromium."""
    node = shutil.which("node")
    script = (views.HERE / "recompute.js").read_text("utf-8")
    if node is None:
        page = request.getfixturevalue("page").page
        page.set_content(f"<body>{views.assets()}</body>")
        return lambda name, args: page.evaluate(f"x => {name}(...x)", args)

    def by_node(name: str, args: Any) -> Any:
        given = "JSON.parse(require('fs').readFileSync(0, 'utf8'))"
        said = f"console.log(JSON.stringify({name}(...{given})))"
        done = subprocess.run(
            [node, "-e", f"{script}\n{said}"],
            input=json.dumps(args),
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return json.loads(done.stdout)

    return by_node


def test_numbers_equal_pythons(compute):
    """The mean of a net score had an interval without its bounds, [.082, .248], beside the
    report's [.095, .263]: both read the range that the rubrics allow."""
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
            times = {f"c{k}: criterion {k}": rng.choice([0, 0.25, 1.5, 3]) for k in range(2)}
            settings = {
                "times": times if rng.random() < 0.7 else {},
                "cluster": cluster,
                "pass": rng.choice([0, 0.5, 0.75, 1]),
                "cut": rng.choice([0, 0.2, 0.5, 0.8]),
                "how": rng.choice(HOWS),
                "wide": rng.choice([0.1, 0.3]),
            }
            got = compute("kitRecompute", [data, settings])
            want = expected(tasks, sets, labels, settings)
            where = json.dumps([seed, settings])
            for name, one in want["sets"].items():
                for which, e in one.items():
                    same(got["sets"][name][which], e, f"{which} {name} {where}")
            for which in ("change", "kappa", "accuracy"):
                same(got[which], want[which], f"{which} {where}")
            compared += 7
    assert compared == 12 * 3 * 7


def test_quantiles_equal_pythons(compute):
    from kit.stats.tails import t_quantile

    for df in (1.0, 1.37, 2.5, 7.0, 40.2, 333.3, 499.0, 2000.0):
        got = compute("kitStats.quantile", [df])
        assert abs(got - t_quantile(0.95, df)) < 1e-10, df


def scored(seed: int, how: str, wide: float) -> tuple[list[Task], dict[str, list[Grade]], dict]:
    """A study whose verdicts are decided at .7, with the scores that the kit gave."""
    tasks, sets, labels = study(seed)
    of = {t.id: t for t in tasks}
    for name, grades in sets.items():
        judged = [[_decided(v) for v in g.verdicts] for g in grades]
        sets[name] = [
            grade(of[g.task_id], vs, how=how, max_width=wide, response_id=g.response_id)
            for g, vs in zip(grades, judged, strict=True)
        ]
    return tasks, sets, labels


def _decided(v: Verdict) -> Verdict:
    return v if v.p is None else replace(v, status="met" if v.p >= 0.7 else "unmet", value=None)


@pytest.mark.parametrize(("how", "wide"), [("net", 0.1), ("signed_unclipped", 0.4), ("mean", 0.0)])
def test_untouched_the_panel_says_what_the_run_says(page, how, wide):
    """Always "flip": .429 stood over answers whose scores had the mean .045. Kappa took verdicts
    for met from P .5 on, whatever had decided them. Sets named 2 and 1 were subtracted backwards.
    """
    tasks, sets, labels = scored(2, how, wide)
    named = {"2": sets["before"], "1": sets["after"]}
    parts = [
        views.judgments(g, tasks=tasks, labels=Labels(labels), set=n) for n, g in named.items()
    ]
    data = views.joined(*parts)
    page.page.set_content(f"<body>{views.assets()}<div id=x></div></body>")
    got = page.page.evaluate("d => (kitPanel(x, d), [x.kit, x.innerText])", data)
    settings, now = got[0]["settings"], got[0]["now"]
    want = expected(tasks, named, labels, settings)
    assert settings["cut"] == 0
    assert "It is the score that the answers have below" in got[1]
    for name, grades in named.items():
        clusters = [next(t.group for t in tasks if t.id == g.task_id) for g in grades]
        bounds = span([g.meta["range"] for g in grades], [g.score for g in grades])
        run = stats.mean([g.score for g in grades], cluster=clusters, bounds=bounds)
        same(now["sets"][name]["score"], run, name)
    same(now["change"], want["change"], "change")
    same(now["kappa"], want["kappa"], "kappa")
    assert "1 less 2, by prompt" in got[1] and not page.errors
    # said whatever was moved: the score went from .257 to .354, the cards kept .425
    page.page.evaluate(
        "() => { const s = x.querySelector('.tools select'); s.value = 'flip';"
        " s.value = s.value === x.kit.settings.how ? 'mean' : 'flip'; s.onchange(); }"
    )
    assert "answers below keep the score" in page.page.inner_text("#x")


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


def test_a_criterion_of_weight_0_has_no_slider(page):
    """Gates of weight 0 took 7 of the 24 places: a factor changes nothing of them."""
    criteria = (Criterion(id="a", text="a"), Criterion(id="g", text="g", weight=0, required=True))
    tasks = [Task(id="t", prompt="p", criteria=criteria)]
    ids = {"task_id": "t", "response_id": "r"}
    verdicts = tuple(Verdict(**ids, criterion_id=c.id, status="met") for c in criteria)
    grade = Grade(**ids, score=1.0, score_low=1.0, score_high=1.0, verdicts=verdicts)
    page.page.set_content(f"<body>{views.assets()}<div id=x></div></body>")
    page.page.evaluate("d => kitPanel(x, d)", views.judgments([grade], tasks=tasks))
    assert page.page.evaluate("x.querySelectorAll('details input').length") == 1

"""The statistics of a page, in another language, are those of kit.stats: without a browser, in node."""

from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kit import people, stats

PAGE = Path(people.__file__).with_name("recompute.js")
needs_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="node runs the page's code without a browser"
)
OPEN = (-math.inf, math.inf)

Case = dict[str, Any]


def in_node(cases: list[Case]) -> list[Any]:
    """What the page's code gives for these calls."""
    asked = "cases.map(c => kitStats[c.name](...c.args))"
    given = "JSON.parse(require('fs').readFileSync(0, 'utf8'))"
    code = (
        f"{PAGE.read_text('utf-8')}\nconst cases = {given};\nconsole.log(JSON.stringify({asked}))"
    )
    done = subprocess.run(
        ["node", "-e", code],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout)


def by_kit(case: Case) -> Any:
    *columns, cluster = case["args"]
    if case["name"] == "mean":
        return stats.mean(*columns, cluster=cluster, bounds=(0.0, 1.0))
    if case["name"] == "difference":
        return stats.difference(*columns, cluster=cluster)
    return stats.kappa(*columns, cluster=cluster, categories=(0, 1))


def same(page: Any, ours: Any) -> bool:
    """Limits that one of the two does not give are missing in both."""
    ends = [(page["low"], ours.low), (page["high"], ours.high), (page["value"], ours.value)]
    return all(
        math.isnan(y) if x is None else math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-9)
        for x, y in ends
    )


def wrong(cases: list[Case]) -> list[Any]:
    found = []
    for case, page in zip(cases, in_node(cases), strict=True):
        ours = by_kit(case)
        page = page["kappa"] if case["name"] == "agreement" else page
        if page is None or not same(page, ours):
            found.append((case["name"], page, ours))
    return found


@needs_node
def test_sets_that_differ_nowhere_have_no_interval():
    """Two sets that score .5 throughout: ".000 [.000, .000]"; all .9 apart: up to 1.8."""
    prompts = [f"t{i}" for i in range(40)]
    cases = [
        {"name": "difference", "args": [[x + d] * 40, [x] * 40, prompts]}
        for x, d in ((0.5, 0.0), (0.4, 0.1), (0.05, 0.9))
    ]
    assert not wrong(cases)


@needs_node
def test_one_giant_prompt_and_three_small_ones_have_no_interval():
    """46 rows worth 1.3 independent ones were ".500 [.058, .942]"."""
    prompts = ["t0"] * 40 + ["t1", "t1", "t2", "t2", "t3", "t3"]
    passed = [float(i % 2) for i in range(46)]
    cases = [
        {"name": "mean", "args": [passed, prompts]},
        {"name": "difference", "args": [passed, [0.0] * 46, prompts]},
        {"name": "agreement", "args": [passed, [0.0, 1.0, 1.0] * 15 + [0.0], prompts]},
    ]
    assert not wrong(cases)


@needs_node
def test_kappa_where_one_prompt_alone_holds_a_verdict():
    """A gradient lacked a term: [-1, 1] in place of [.13, .94]."""
    prompts = [f"t{i // 3}" for i in range(60)]
    for first in (((0, 0), (0, 1), (1, 1)), ((0, 0), (0, 0), (1, 0)), ((1, 0), (1, 1), (1, 1))):
        judge = [a for a, _ in first] + [1] * 57
        human = [b for _, b in first] + [1] * 57
        assert not wrong([{"name": "agreement", "args": [judge, human, prompts]}])


@needs_node
def test_random_columns_have_the_same_limits():
    rng, cases = random.Random(0), []
    for _ in range(200):
        clusters = rng.choice([2, 5, 20, 60])
        prompts = [f"t{i}" for i in range(clusters) for _ in range(rng.choice([1, 2, 9]))]
        rate = rng.choice([0.02, 0.5, 0.97])
        digits = rng.choice([0, 2])
        drawn = [[rng.random() ** (1 / rate) for _ in prompts] for _ in range(2)]
        xs, ys = ([round(v, digits) for v in column] for column in drawn)
        bits = [[float(v >= 0.5) for v in column] for column in (xs, ys)]
        cases += [
            {"name": "mean", "args": [xs, prompts]},
            {"name": "difference", "args": [xs, ys, prompts]},
            {"name": "agreement", "args": [*bits, prompts]},
        ]
    cases = [c for c in cases if not math.isnan(by_kit(c).value)]
    assert not wrong(cases)


@needs_node
def test_prompts_with_more_rows_that_are_harder_have_the_same_limits():
    """One correlation for all prompts was too narrow there."""
    rng, cases = random.Random(1), []
    for n in (3, 8, 20, 60):
        size = [rng.choice([4, 4, 16]) for _ in range(n)]
        prompts = [f"t{i}" for i, s in enumerate(size) for _ in range(s)]
        xs = [float(rng.random() < (0.95 if s == 4 else 0.4)) for s in size for _ in range(s)]
        cases.append({"name": "mean", "args": [xs, prompts]})
        cases.append({"name": "difference", "args": [xs, [1.0] * len(xs), prompts]})
    assert not wrong(cases)

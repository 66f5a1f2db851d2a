"""Builds every figure of kit.plots and every control of kit.widgets on small data; run under old and new plotly and ipywidgets.

`python every_view.py` prints the versions and how many of each were built; a public function that was not called is an error.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["KIT_HEADLESS"] = "1"  # as in the rooms' tests; the live controls are built below
ROOT = Path(__file__).resolve().parents[3]
# Helpers that return no figure and no control: texts, numbers, rows.
PLAIN = {
    "audit_page",
    "trap_rows",
    "label_rows",
    "rgba",
    "safe",
    "binned",
    "groups_of",
    "label",
    "subtitle",
    "table",
    "running",
    "number",
}


class Seen:
    """Wraps the public functions of a module, so that every call and its result is counted."""

    def __init__(self) -> None:
        self.wanted: set[str] = set()
        self.called: dict[str, Any] = {}

    def watch(self, package: str) -> None:
        home = importlib.import_module(package)
        for info in pkgutil.iter_modules(home.__path__):
            module = importlib.import_module(f"{package}.{info.name}")
            for name, f in list(vars(module).items()):
                if (
                    inspect.isfunction(f)
                    and f.__module__ == module.__name__
                    and not name.startswith("_")
                    and name not in PLAIN
                ):
                    self.wanted.add(f"{module.__name__}.{name}")
                    setattr(module, name, self.wrap(f"{module.__name__}.{name}", f))

    def wrap(self, name: str, f: Any) -> Any:
        def inner(*args: Any, **kwargs: Any) -> Any:
            result = f(*args, **kwargs)
            self.called[name] = result
            if hasattr(result, "to_json"):
                json.loads(result.to_json())
                result.to_html(include_plotlyjs=False)
            return result

        inner.__wrapped__ = f  # type: ignore[attr-defined]  # as a control with a static twin has
        return inner


def load(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main() -> int:
    import ipywidgets
    import plotly
    import pytest

    seen = Seen()
    seen.watch("kit.plots")
    seen.watch("kit.widgets")
    # the rooms' own tests of figures and controls, in this process, so that the wrappers count them
    tests = [
        ROOT / "tests" / t
        for t in (
            "inspect/test_inspect_explore.py",
            "rewards/test_rewards_report.py",
            "stats/test_stats_plots.py",
            "train/test_train_views.py",
            "judges/test_judges_audit.py",
            "judges/test_judges_panel.py",
            "tuning/test_tuning_widget.py",
        )
    ]
    with tempfile.TemporaryDirectory() as folder:
        code = pytest.main(
            [
                "-q",
                "-p",
                "no:cacheprovider",
                "--rootdir",
                str(ROOT),
                "-c",
                str(ROOT / "pyproject.toml"),
                "--basetemp",
                folder,
                "-o",
                "addopts=",
                "-m",
                "not slow and not gpu and not network",
                *map(str, tests),
                "-k",
                SELECT,
            ]
        )
    os.environ["KIT_HEADLESS"] = "0"
    calibration_views()
    other_views()
    left = sorted(seen.wanted - set(seen.called))
    figures = sum(hasattr(v, "to_json") for v in seen.called.values())
    print(
        json.dumps(
            {
                "plotly": plotly.__version__,
                "ipywidgets": ipywidgets.__version__,
                "called": len(seen.called),
                "figures": figures,
                "controls": sum(isinstance(v, ipywidgets.Widget) for v in seen.called.values()),
                "left": left,
                "tests": int(code),
            }
        )
    )
    return 1 if left or code else 0


SELECT = "plot or figure or widget or forest or confusion or curse or view or slider or health or escape or gain or report"


def calibration_views() -> None:
    """Every figure of calibration."""
    import numpy as np

    from kit import calibration
    from kit.plots import calibration as plots

    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(float)
    first, other = calibration.reliability(p, y), calibration.reliability(np.clip(p + 0.1, 0, 1), y)
    plots.reliability(first)
    plots.risk_coverage(calibration.risk_coverage(p, y))
    plots.sensitivity(calibration.sensitivity(p, y))
    plots.comparison(calibration.compare((p, y), (np.clip(p + 0.1, 0, 1), y)))
    plots.side_by_side({"a": first, "b": other})
    plots.null_by_n({50: 0.1, 100: 0.07}, observed=(80, 0.12))
    from kit.widgets import calibration as widgets

    widgets.bins_explorer(p, y)
    plots.eces({"a": calibration.ece(p, y), "b": calibration.ece(np.clip(p + 0.1, 0, 1), y)})


def other_views() -> None:
    """What no room's test draws."""
    from kit.plots import compare as comparing
    from kit.plots import judging, training
    from kit.records import Run
    from kit.widgets import compare

    found = [
        (
            Path(f"r{i}"),
            Run(
                id=f"r{i}",
                notebook="03_x",
                profile="test",
                seed=i,
                params={"lr": 0.1 * i},
                status="done",
                seconds=3.0,
                cost=0.1,
                metrics={"gain": {"value": 0.1, "low": 0.0, "high": 0.2, "n": 5}},
            ),
        )
        for i in range(2)
    ]
    from kit.runs import compare as numbers

    rows = numbers.metrics(found, notebook="03_x")
    comparing.forest_by_metric(rows)
    comparing.band(rows)
    comparing.over_seeds(numbers.across_seeds(found))
    comparing.groups(rows)
    compare.explorer(found)
    compare.show(found, "03_x")
    live_controls()
    judging.audits([FakeAudit(), FakeAudit()])
    training.series([{"step": 1, "loss": 0.1}, {"step": 2, "loss": 0.05}], "loss")


class FakeAudit:
    """As much of an AuditReport as its figure needs."""

    judge, n_responses, n_tasks = "<b>j", 4, 2

    def table(self) -> list[dict[str, Any]]:
        return [
            {"name": k, "kind": k, "what": "w", "rate": 0.2, "low": 0.1, "high": None, "n": 4}
            for k in ("attack", "bias")
        ]


def live_controls() -> None:
    """The controls that a person moves, as a live kernel shows them."""
    from kit.data.taskset import TaskSet
    from kit.records import Criterion, Response, Task, Verdict
    from kit.widgets import data, rewards

    tasks = [
        Task(
            id=f"t{i}",
            prompt="p",
            criteria=(Criterion(id="c1", text="a"), Criterion(id="c2", text="b")),
        )
        for i in range(3)
    ]
    answers = [Response(task_id=t.id, id=f"{t.id}{k}", text="x y") for t in tasks for k in "ab"]
    verdicts = [
        Verdict(
            task_id=r.task_id,
            response_id=r.id,
            criterion_id=c,
            status="met" if r.id.endswith("a") else "unmet",
        )
        for r in answers
        for c in ("c1", "c2")
    ]
    rewards.weight_explorer(tasks, answers, verdicts)
    every = TaskSet(
        tasks=tasks, responses=answers, verdicts=verdicts, findings=[], format="own", path="x"
    )
    data.browse(every)
    from kit.plots import data as pictures
    from kit.rubrics import summarize

    for what in ("weights", "lengths", "kinds"):
        pictures.overview(summarize(tasks), what=what)


if __name__ == "__main__":
    sys.exit(main())

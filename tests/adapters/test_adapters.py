"""The adapters against the real libraries, each in the Python that has it; skipped where none has.

`make bench` makes build/bench-venv with inspect-ai and verifiers; KIT_INSPECT_PYTHON and
KIT_VERIFIERS_PYTHON name others. The kit's own environment has neither: they want different
openai versions.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kit.adapters
from kit.errors import KitError, MissingError
from kit.records import Criterion, Task

ROOT = Path(__file__).resolve().parents[2]
TASKS = [
    Task(id="t0", prompt="Say red.", criteria=(Criterion(id="c", text="red"),)),
    Task(id="t1", prompt="Say blue.", criteria=(Criterion(id="c", text="blue"),)),
]
FAKE = '''
import asyncio, json, sys
sys.path.insert(0, "ROOT")
import kit.adapters
from kit.records import Criterion, Task, Verdict, unknown

class Fake:
    """Says "met" when the criterion's text occurs in the answer; "away" gives no verdict."""
    name = "fake"
    async def verdicts(self, task, response, criteria):
        ids = dict(task_id=task.id, response_id=response.id)
        if "away" in response.text:
            return [unknown(**ids, criterion_id=c.id, failure="parse") for c in criteria]
        said = {True: "met", False: "unmet"}
        return [Verdict(**ids, criterion_id=c.id, status=said[c.text in response.text]) for c in criteria]

TASKS = [Task(id=f"t{i}", prompt=f"Say {w}.", criteria=(Criterion(id="c", text=w),)) for i, w in enumerate(("red", "blue"))]
'''.replace("ROOT", str(ROOT))
INSPECT = """
from inspect_ai import Task as Eval, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.solver import generate
says = ["red it is", "red again", "away"]
outputs = [ModelOutput.from_content("mockllm/model", s) for s in says]
for output in outputs:  # else its tokens are counted, with a tokenizer file from the network
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
model = get_model("mockllm/model", custom_outputs=outputs)
samples = [Sample(id="t0", input="Say red."), Sample(id=7, input="Say blue."), Sample(id="other", input="x", metadata={"task_id": "t0"})]
scorer = kit.adapters.inspect_scorer(TASKS, Fake())
log = eval(Eval(dataset=samples, solver=generate(), scorer=scorer), model=model, display="none", log_dir=sys.argv[1], max_samples=1)[0]
assert log.status == "success", log.error
scores = [s.scores["rubric"] for n in ("t0", 7, "other") for s in log.samples if s.id == n]
print(json.dumps({
    "values": [str(s.value) for s in scores],
    "mean": log.results.scores[0].metrics["mean"].value,
    "criteria": [s.metadata["criteria"] for s in scores],
}))
"""
VERIFIERS = """
import verifiers.v1 as vf
from types import SimpleNamespace

class Words(vf.Task):
    rubric = kit.adapters.verifiers_reward(TASKS, Fake(), weight=2.0)

class Trace:  # what scoring writes to
    def __init__(self, reply):
        self.last_reply, self.rewards, self.metrics = reply, {}, {}
    def record_metric(self, name, value): self.metrics[name] = value
    def record_metrics(self, values): self.metrics.update(values)
    def record_reward(self, name, value, weight): self.rewards[name] = [value, weight]

out = []
for data, reply in ((dict(id="t0", prompt="x"), "red"), (dict(prompt="Say blue."), "red"), (dict(id="t1", prompt="x"), "away")):
    trace = Trace(reply)
    try:
        asyncio.run(Words(vf.TaskData(**data)).score(trace))
        out.append([trace.rewards["rubric"], trace.metrics["rubric/c"]])
    except Exception as e:
        out.append([type(e).__name__, str(e)])
print(json.dumps(out))
"""


def run(module: str, variable: str, code: str, *args: str) -> dict | list:
    """What the script prints, in the first Python that has the module."""
    extra = str(ROOT / "build" / "bench-openai3") if module == "inspect_ai" else ""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in (extra, str(ROOT)) if p)}
    env.pop("KIT_RUNS", None)
    named = os.environ.get(variable)
    for python in (named, sys.executable, str(ROOT / "build" / "bench-venv" / "bin" / "python")):
        if not python or not Path(python).exists():
            continue
        found = subprocess.run([python, "-c", f"import {module}"], capture_output=True, env=env)
        if found.returncode == 0:
            done = subprocess.run(
                [python, "-c", FAKE + code, *args], capture_output=True, text=True, env=env
            )
            assert done.returncode == 0, done.stderr[-3000:]
            return json.loads(done.stdout.strip().split("\n")[-1])
    pytest.skip(f"no Python here has {module}; `make bench` makes one, or set {variable}")


@pytest.mark.slow  # another interpreter and a large library
def test_inspect_ai_scores_with_a_rubric(tmp_path):
    got = run("inspect_ai", "KIT_INSPECT_PYTHON", INSPECT, str(tmp_path))
    assert got["values"] == ["1.0", "0.0", "nan"] and got["mean"] == 0.5
    assert got["criteria"] == [{"c": "met"}, {"c": "unmet"}, {"c": "parse"}]


@pytest.mark.slow  # another interpreter and a large library
def test_a_verifiers_task_is_rewarded_by_a_rubric(tmp_path):
    first, second, lost = run("verifiers", "KIT_VERIFIERS_PYTHON", VERIFIERS)
    assert first == [[1.0, 2.0], 1.0] and second == [[0.0, 2.0], 0.0]
    assert lost[0] == "TaskError" and "c parse" in lost[1]


def test_the_room_imports_nobodys_framework():
    code = (
        "import sys, kit.adapters.verifiers, kit.adapters.inspect_ai as i;"
        "print([m for m in ('inspect_ai', 'verifiers', 'torch', 'trl') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_library_that_is_absent_is_named():
    if importlib.util.find_spec("inspect_ai"):
        pytest.skip("inspect-ai is installed here")
    with pytest.raises(MissingError, match="pip install inspect-ai"):
        kit.adapters.inspect_scorer(TASKS)


def test_the_reward_of_a_verifiers_task_raises_where_nothing_is_known():
    import asyncio
    from types import SimpleNamespace

    f = kit.adapters.verifiers_reward(TASKS, _Away())
    assert f.reward is True and f._vf_weight == 1.0 and f.__name__ == "rubric"
    trace = SimpleNamespace(last_reply="x", record_metric=lambda n, v: None)
    with pytest.raises(KitError, match="not known"):
        asyncio.run(f(None, SimpleNamespace(id="t0", prompt="x"), trace))


class _Away:
    """A judge of which nothing can be read."""

    name = "away"

    async def verdicts(self, task, response, criteria):
        from kit.records import unknown

        return [unknown(task.id, response.id, c.id, "parse") for c in criteria]

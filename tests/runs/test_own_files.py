"""Each notebook with the smallest files of one's own: it ends, and shows nothing of the kit's own tasks."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

from kit import runs
from kit.system import paths

sys.path.append(str(Path(__file__).parents[1] / "judging"))
from fake_server import FakeServer, chat

pytestmark = pytest.mark.slow


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with rubrics, answers, labels, a chain, and no runs."""
    folder = tmp_path_factory.mktemp("own")
    tasks = [
        {"id": f"q{i}", "prompt": f"Question {i}?", "criteria": [{"id": "c", "text": "Is polite."}]}
        for i in range(4)
    ]
    answers = [
        {"record": "response", "task_id": t["id"], "id": x, "text": f"Answer {x}"}
        for t in tasks
        for x in "ab"
    ]
    labels = [
        {
            **{"record": "verdict", "task_id": a["task_id"], "response_id": a["id"]},
            **{"criterion_id": "c", "status": "met" if a["id"] == "a" else "unmet"},
            "judge": "human",
        }
        for a in answers
    ]
    check = {"name": "contains", "any": ["e"], "whole": False}
    by_code = [{**t, "criteria": [{"id": "c", "text": "Has an e.", "check": check}]} for t in tasks]
    write(folder / "rubrics.jsonl", tasks)
    write(folder / "one.jsonl", tasks[:1])
    write(folder / "by_code.jsonl", by_code)
    write(folder / "answers.jsonl", answers)
    write(folder / "labelled.jsonl", [*answers, *labels])
    write(folder / "models.jsonl", [{**a, "source": a["id"]} for a in answers])
    whole = json.loads(paths.data("ladder_runs.json").read_text("utf-8"))["ladder_chain"]["0"]
    chain = {"ladder_chain": {"0": {stage: whole[stage] for stage in ("start", "sft")}}}
    (folder / "chain.json").write_text(json.dumps(chain), "utf-8")
    (folder / "runs").mkdir()
    rows = [f"{0.1 + 0.08 * (i % 11):.2f},{i % 3 % 2},g{i}" for i in range(60)]
    (folder / "table.csv").write_text("\n".join(["p,met,group", *rows]), "utf-8")
    return folder


# notebook, parameter -> file, what it skips, results that it must not have
OWN = [
    ("1", {"rubrics": "rubrics.jsonl"}, 5, ["drafts", "reward"]),
    ("1", {"rubrics": "one.jsonl"}, 6, ["drafts", "reward"]),
    ("1", {"rubrics": "rubrics.jsonl", "answers": "answers.jsonl"}, 4, ["drafts", "reward"]),
    ("1", {"rubrics": "rubrics.jsonl", "answers": "labelled.jsonl"}, 3, ["drafts"]),
    ("3", {"tasks_file": "by_code.jsonl"}, 3, ["stored", "hacks", "gain seen"]),
    ("3", {"tasks_file": "rubrics.jsonl"}, 3, ["stored", "hacks", "gain seen"]),
    ("4", {"table_file": "table.csv"}, 0, []),
    ("5", {"runs_dir": "runs"}, 0, []),
    (
        "5",
        {"runs_dir": "runs", "tasks_file": "by_code.jsonl", "answers_file": "models.jsonl"},
        1,
        ["science"],
    ),
    ("6", {"runs_file": "chain.json"}, 0, ["dpo"]),
]


@pytest.mark.parametrize(("number", "values", "skips", "absent"), OWN)
def test_a_notebook_ends_with_files_of_ones_own(files, tmp_path, number, values, skips, absent):
    own = {name: str(files / file) for name, file in values.items()}
    folder = runs.run(number, own, profile="test", out=tmp_path)
    record = runs.load(folder)
    assert record.status == "done", record.meta["error"]
    book = json.loads((folder / f"{record.notebook}.ipynb").read_text("utf-8"))
    outputs = [o for c in book["cells"] for o in c.get("outputs", ())]
    texts = ["".join(o.get("text", o.get("data", {}).get("text/plain", ""))) for o in outputs]
    assert sum("Skipped" in text for text in texts) == skips
    names = [*record.metrics, *(result.get("name", "") for result in record.meta["results"])]
    assert not [n for n in names for a in absent if n.startswith(a)]


def reply_of_own_judge(asked):
    """Reasons as ever; one word says no to all, with a P(met) that tells the answers apart."""
    if "Is the criterion met" not in asked.prompt:
        return None
    p = 0.45 if "polite" in asked.answer else 0.2
    top = [{"token": w, "logprob": math.log(x)} for w, x in (("yes", p), ("no", 1 - p))]
    body = chat("no")
    body["choices"][0]["logprobs"] = {"content": [{"token": "no", "top_logprobs": top}]}
    return body


@pytest.mark.parametrize("prompts", [4, 40])
def test_notebook_2_tunes_a_judge_for_labels_of_ones_own(tmp_path, monkeypatch, prompts):
    if not any((paths.home() / "recorded").glob("*")):
        pytest.skip("needs the download `recorded`")
    rows = [
        {
            **{"task_id": f"q{i}", "prompt": f"Question {i}?", "response_id": f"q{i}{x}"},
            **{"criterion_id": "c", "criterion": "Is polite.", "label": label},
            "response": f"It is polite {i}." if label == "met" else f"Go away {i}.",
        }
        for i in range(prompts)
        for x, label in (("a", "met"), ("b", "unmet"))
    ]
    write(tmp_path / "labels.jsonl", rows)
    with FakeServer(reply_of_own_judge) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
        own = {"labels_file": str(tmp_path / "labels.jsonl"), "judge": "endpoint:fake"}
        folder = runs.run("2", own, profile="test", out=tmp_path / "runs")
    record = runs.load(folder)
    assert record.status == "done", record.meta["error"]
    judge = json.loads((folder / "judge.json").read_text("utf-8"))
    assert judge["cutoff"]["endpoint"] == "fake" and 0.2 < judge["at"] <= 0.45
    names = [*record.metrics, *(result.get("name", "") for result in record.meta["results"])]
    assert any(n.startswith("gain on the sealed test") for n in names) == (prompts == 40)


@pytest.mark.parametrize("number", ["2", "4"])
def test_the_notebooks_without_file_parameters(number, tmp_path):
    if not any((paths.home() / "recorded").glob("*")):
        pytest.skip("needs the download `recorded`")
    folder = runs.run(number, {}, profile="test", out=tmp_path)
    assert runs.load(folder).status == "done"

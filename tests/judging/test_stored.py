"""Verdicts that an earlier edition stored: their keys are the same today, so nothing is paid again."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from fake_server import FakeServer

import kit
from kit.data import TaskSet
from kit.judging import complete, prompt
from kit.records import fingerprint
from kit.system import paths

STORED = Path(__file__).parent / "stored"
CASES = json.loads((STORED / "expected.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def old_ledger(tmp_path_factory):
    with kit.Ledger(tmp_path_factory.mktemp("stored") / "old.sqlite") as book:
        book.load(STORED / "verdicts.jsonl.gz")
        yield book


def records_of(rows):
    return [msgspec.convert(row, kit.Task | kit.Response) for row in rows]


@pytest.mark.parametrize("case", CASES["verdicts"])
def test_a_stored_verdict_answers_without_a_call(case, old_ledger):
    name, _, task_id = case.partition("/")
    task = next(t for t in records_of(CASES["tasks"]) if t.id == task_id)
    answers = [r for r in records_of(CASES["answers"]) if r.task_id == task_id]
    # Nobody listens at the port of the recording.
    verdicts = kit.judge(
        task, answers, judge=CASES["judges"][name], ledger=old_ledger, progress=False
    )
    wanted = CASES["verdicts"][case]
    assert [[*v.ids, v.status, v.value, v.p, v.key] for v in verdicts] == wanted
    assert verdicts.spent.calls == 0 and all(v.cached for v in verdicts)


def test_a_stored_completion_answers_without_a_call(old_ledger):
    assert complete(CASES["judges"]["all"], "hello", ledger=old_ledger) == "echo: hello"


def test_the_recording_of_the_package_answers_without_a_call():
    labels = kit.load(paths.data("judge_labels.jsonl"))
    some = TaskSet(tasks=labels.tasks, responses=labels.responses[:5])
    verdicts = kit.judge(some, judge="replay:small", progress=False)
    assert sum(v.is_known for v in verdicts) > len(verdicts) / 2


def test_a_changed_text_is_another_question(old_ledger):
    """The keys do depend on what they name: one changed part, and the server is asked."""
    task = records_of(CASES["tasks"])[0]
    answer = kit.Response(task_id=task.id, id="r0", text="w0 one and more")
    with FakeServer() as server:
        judge = {**CASES["judges"]["all"], "base_url": server.url}
        kit.judge(task, [answer], judge=judge, ledger=old_ledger, progress=False)
        assert len(server.calls) == 1


def test_another_wording_needs_another_version():
    """Else verdicts that the old wording gave would pass for those of the new one."""
    wording = [prompt.prompt_wording(name) for name in ("user", "word", "group", "yes_no")]
    assert (prompt.VERSION, fingerprint(wording)) == (1, "e52b1f617e1b9591e23f683b19ba2ae3")

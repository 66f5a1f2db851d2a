"""judge() and ajudge(): order, ledger, code checks, duplicates, loops, Ctrl-C."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from kit.data import load_tasks
from kit.errors import BudgetError, DataError, JudgeDownError, KitError
from kit.judge import Budget, Ledger, ajudge, ask, estimate, judge, loop
from kit.judge.records import Call, Forecast, Unkept, question
from kit.judge.session import Session, using
from kit.judge.session import session as current
from kit.records import Criterion, Response, Task, Verdict, fingerprint, unknown


class FakeJudge:
    """Says "met" when the criterion's text occurs in the answer; counts what it was asked."""

    name = "fake"
    workers = 8

    def __init__(self, wait: float = 0.0):
        self.wait, self.asked, self.running, self.most = wait, [], 0, 0

    def key(self, task, response, criterion):
        return fingerprint(["fake", task.prompt, response.text, criterion.id, criterion.text])

    async def verdicts(self, task, response, criteria):
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(self.wait)
            ticket = await current().budget.take(Forecast(calls=1)) if current().budget else None
            self.asked += [(response.id, c.id) for c in criteria]
            out = [
                Verdict(
                    task_id=task.id,
                    response_id=response.id,
                    criterion_id=c.id,
                    key=self.key(task, response, c),
                    judge=self.name,
                    status="met" if c.text in response.text else "unmet",
                    tokens_in=3,
                    cost=0.01,
                )
                for c in criteria
            ]
            if ticket:
                current().budget.settle(ticket, ticket)
            current().record(
                Call(
                    id=f"call-{len(self.asked)}",
                    judge="fake",
                    model="m",
                    endpoint="e",
                    reply="raw",
                    cost=0.01,
                ),
                out,
            )
            return out
        finally:
            self.running -= 1


TASK = Task(
    id="t",
    prompt="p",
    criteria=(
        Criterion(id="c1", text="red"),
        Criterion(id="c2", text="blue"),
        Criterion(id="c3", text="long", check={"name": "words", "min": 2}),
    ),
)


def answers(n, task="t"):
    return [Response(task_id=task, id=f"r{i}", text=f"red {i}") for i in range(n)]


def test_order_is_responses_by_criteria_and_code_decides_its_own():
    got = judge(TASK, answers(5), judge=FakeJudge(), progress=False)
    assert [(v.response_id, v.criterion_id) for v in got] == [
        (f"r{i}", c) for i in range(5) for c in ("c1", "c2", "c3")
    ]
    assert [v.status for v in got[:3]] == ["met", "unmet", "met"]
    assert got.spent.by_code == 5 and got.spent.calls == 5


def test_a_second_run_asks_nothing_and_costs_nothing(tmp_path):
    who = FakeJudge()
    first = judge(TASK, answers(4), judge=who, ledger=tmp_path / "l.sqlite", progress=False)
    again = judge(TASK, answers(4), judge=who, ledger=tmp_path / "l.sqlite", progress=False)
    assert len(who.asked) == 8
    assert [v.status for v in again] == [v.status for v in first]
    assert again.spent.cached == 8 and again.spent.cost == 0 and sum(v.cost for v in again) == 0
    assert again[0].meta["paid"]["cost"] == 0.01 and first[0].cost == 0.01


def test_equal_answers_in_flight_are_asked_once_and_keep_their_own_ids():
    """GRPO groups often hold the same text several times; each copy used to be paid for."""
    who = FakeJudge(wait=0.05)
    twins = [Response(task_id="t", id=f"r{i}", text="red") for i in range(6)]
    got = judge(TASK, twins, judge=who, progress=False)
    assert len(who.asked) == 2
    assert [v.response_id for v in got[::3]] == [r.id for r in twins]


def test_when_the_first_of_two_equal_questions_dies_the_second_asks_itself():
    class Shaky(FakeJudge):
        async def verdicts(self, task, response, criteria):
            if response.id == "r0":
                await asyncio.sleep(0.02)
                raise RuntimeError("first asker dies")
            return await super().verdicts(task, response, criteria)

    async def both():
        twins = [Response(task_id="t", id=f"r{i}", text="red") for i in range(2)]
        who = Shaky()
        return await asyncio.gather(
            *(ask(who, TASK, r, TASK.criteria[:2]) for r in twins), return_exceptions=True
        )

    first, second = loop.run(both())
    assert isinstance(first, RuntimeError)
    assert [v.status for v in second] == ["met", "unmet"]


def test_a_judge_that_returns_too_little_or_shuffled_is_put_in_order_by_id():
    class Sloppy(FakeJudge):
        async def verdicts(self, task, response, criteria):
            return (await super().verdicts(task, response, criteria))[:0:-1]

    got = judge(TASK, answers(1), judge=Sloppy(), progress=False)
    assert [(v.criterion_id, v.status, v.failure) for v in got[:2]] == [
        ("c1", "unknown", "missing"),
        ("c2", "unmet", None),
    ]


def test_transport_failures_are_not_stored_but_parse_failures_are_until_retry(tmp_path):
    class Ill(FakeJudge):
        async def verdicts(self, task, response, criteria):
            self.asked += [c.id for c in criteria]
            kinds = {"c1": "transport", "c2": "parse"}
            return [
                unknown(task.id, response.id, c.id, kinds[c.id], key=self.key(task, response, c))
                for c in criteria
            ]

    who, book = Ill(), tmp_path / "l.sqlite"
    for _ in range(2):
        judge(TASK, answers(1), judge=who, ledger=book, progress=False)
    assert who.asked == ["c1", "c2", "c1"]
    judge(TASK, answers(1), judge=who, ledger=book, progress=False, retry=("parse",))
    assert who.asked[3:] == ["c1", "c2"]


def test_budget_stops_before_the_call_and_keeps_what_was_paid():
    who = FakeJudge()
    with pytest.raises(BudgetError) as e:
        judge(TASK, answers(20), judge=who, progress=False, budget=Budget(calls=3))
    done = [v for v in e.value.verdicts if v.judge == "fake" and v.known]
    assert len(done) == 6 and len(e.value.verdicts) == 60
    assert sum(v.failure == "budget" for v in e.value.verdicts) == 34


def test_judge_down_carries_the_verdicts_that_were_given():
    class Dies(FakeJudge):
        workers = 1

        async def verdicts(self, task, response, criteria):
            if response.id == "r2":
                raise JudgeDownError("nobody answers")
            return await super().verdicts(task, response, criteria)

    with pytest.raises(JudgeDownError) as e:
        judge(TASK, answers(4), judge=Dies(), progress=False)
    assert [v.known for v in e.value.verdicts if v.criterion_id == "c1"] == [
        True,
        True,
        False,
        False,
    ]


def test_a_programming_error_of_a_judge_is_not_hidden():
    class Broken(FakeJudge):
        async def verdicts(self, task, response, criteria):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        judge(TASK, answers(1), judge=Broken(), progress=False)


def test_an_answer_to_no_task_is_named():
    with pytest.raises(DataError, match="response 1 .'r0'."):
        judge(TASK, answers(1, task="nowhere"), judge=FakeJudge(), progress=False)


def test_parents_are_not_judged():
    tree = Task(
        id="t",
        prompt="p",
        criteria=(
            Criterion(id="root", text="all"),
            Criterion(id="leaf", text="red", parent="root"),
        ),
    )
    assert [v.criterion_id for v in judge(tree, answers(1), judge=FakeJudge(), progress=False)] == [
        "leaf"
    ]


def test_estimate_leaves_out_what_is_in_the_ledger(tmp_path):
    class Priced(FakeJudge):
        def forecast(self, task, response, criteria):
            return Forecast(calls=1, tokens_in=10, cost=0.5)

    book, who = tmp_path / "l.sqlite", Priced()
    assert estimate(TASK, answers(4), judge=who, ledger=book).cost == 2.0
    judge(TASK, answers(1), judge=who, ledger=book, progress=False)
    assert estimate(TASK, answers(4), judge=who, ledger=book).calls == 3


def test_works_inside_a_running_loop_and_from_an_async_reward():
    async def cell():
        return judge(
            TASK, answers(2), judge=FakeJudge(0.01), progress=False
        )  # what a notebook cell does

    async def reward():
        return await ajudge(TASK, answers(2), judge=FakeJudge(0.01))

    assert len(asyncio.run(cell())) == len(asyncio.run(reward())) == 6


def test_one_judge_serves_several_loops_and_threads():
    """One client shared by two loops fails every call; ours hops to one loop."""
    who, out = FakeJudge(0.01), []
    threads = [
        threading.Thread(
            target=lambda: out.append(asyncio.run(ajudge(TASK, answers(2), judge=who)))
        )
        for _ in range(3)
    ]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert [len(o) for o in out] == [6, 6, 6]


def test_judge_from_the_kit_loop_itself_says_what_to_do():
    async def inner():
        judge(TASK, answers(1), judge=FakeJudge(), progress=False)

    with pytest.raises(KitError, match="ajudge"):
        loop.run(inner())


def test_session_is_seen_by_judges_made_of_judges(tmp_path):
    class Panel:
        name = "panel"

        def __init__(self, members):
            self.members = members

        async def verdicts(self, task, response, criteria):
            return (
                await asyncio.gather(*(ask(m, task, response, criteria) for m in self.members))
            )[0]

    member, book = FakeJudge(), Ledger(tmp_path / "l.sqlite")
    for _ in range(2):
        judge(TASK, answers(2), judge=Panel([member]), ledger=book, progress=False)
    assert len(member.asked) == 4


def test_cancelling_the_caller_leaves_no_task():
    who = FakeJudge(wait=30)

    async def given_up():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(ajudge(TASK, answers(5), judge=who), 0.2)

    asyncio.run(given_up())
    assert who.running == 0


@pytest.mark.skipif(
    not hasattr(signal, "SIGINT") or sys.platform == "win32", reason="needs POSIX signals"
)
def test_ctrl_c_leaves_no_task_behind(tmp_path):
    code = f"""
import asyncio, sys, threading, time
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_judge_engine_run import FakeJudge, TASK, answers
from kit.judge import judge, loop
who = FakeJudge(wait=300)
def tell():
    while who.running < 8:
        time.sleep(0.02)
    print("ready", flush=True)
threading.Thread(target=tell, daemon=True).start()
try:
    judge(TASK, answers(50), judge=who, progress=False)
except KeyboardInterrupt:
    left = [t for t in asyncio.all_tasks(loop.get()) if not t.done()]
    print("left", len(left), who.running, who.most, flush=True)
"""
    p = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # ignored where pytest runs in the background
    assert p.stdout.readline() == "ready\n"
    p.send_signal(signal.SIGINT)
    assert p.communicate(timeout=100)[0] == "left 0 0 8\n"


def test_an_interrupt_that_wakes_nobody_is_seen_all_the_same():
    """A Ctrl-C that came between the last look at signals and the wait was seen after 300 s, when the wait ended.

    `interrupt_main` is such an interrupt at will: it marks the signal and wakes no waiting thread.
    """
    code = f"""
import _thread, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where pytest runs in the background
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_judge_engine_run import FakeJudge, TASK, answers
from kit.judge import judge
who = FakeJudge(wait=300)
def stop():
    while who.running < 8:
        time.sleep(0.02)
    time.sleep(0.2)
    _thread.interrupt_main()
threading.Thread(target=stop, daemon=True).start()
try:
    judge(TASK, answers(50), judge=who, progress=False)
except KeyboardInterrupt:
    print("stopped", who.running)
"""
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=100
        ).stdout
        == "stopped 0\n"
    )


def test_a_forked_child_gets_its_own_loop_and_connection(tmp_path):
    book = Ledger(tmp_path / "l.sqlite")
    judge(TASK, answers(1), judge=FakeJudge(), ledger=book, progress=False)
    pid = os.fork()
    if pid == 0:
        ok = 1
        try:
            ok = (
                0
                if len(judge(TASK, answers(2), judge=FakeJudge(), ledger=book, progress=False)) == 6
                else 1
            )
        finally:
            os._exit(ok)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert len(book) == 4


def test_the_garbage_collector_is_as_before_after_nested_runs():
    before = gc.get_threshold()
    seen = []

    class Nested(FakeJudge):
        async def verdicts(self, task, response, criteria):
            seen.append(gc.get_threshold()[0])
            return await super().verdicts(task, response, criteria)

    try:
        gc.set_threshold(700, 10, 10)
        judge(TASK, answers(3), judge=Nested(), progress=False)
        assert gc.get_threshold() == (700, 10, 10) and set(seen) == {loop.YOUNG}
        gc.disable()
        gc.set_threshold(0)
        judge(TASK, answers(3), judge=Nested(), progress=False)
        assert gc.get_threshold()[0] == 0 and seen[-1] == 0
    finally:
        gc.enable()
        gc.set_threshold(*before)


def test_record_outside_of_a_run_is_harmless():
    with using(Session()) as run:
        run.record(Call(id="x", judge="j", model="m", endpoint="e", cost=1.0))
    assert run.spent.cost == 1.0 and current().spent.cost == 0.0


@pytest.mark.slow
def test_the_same_two_lines_in_a_real_notebook_kernel():
    """A notebook runs a loop already; a cell, an async cell and their tables work all the same."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    v4 = nbformat.v4
    cells = [
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\nfrom test_judge_engine_run import FakeJudge, TASK, answers\n"
        "from kit.judge import ajudge, judge",
        "judge(TASK, answers(3), judge=FakeJudge(0.01))",
        "print(len(await ajudge(TASK, answers(3), judge=FakeJudge(0.01))))",
    ]
    book = v4.new_notebook(cells=[v4.new_code_cell(c) for c in cells])
    nbclient.NotebookClient(book, kernel_name="python3", timeout=120).execute()
    outputs = [
        o for c in book.cells for o in c.outputs if o.output_type != "stream" or o.name == "stdout"
    ]
    assert "<table>" in outputs[0].data["text/html"] and outputs[-1].text == "9\n"


def test_work_that_fails_while_it_is_stopped_prints_no_traceback(caplog):
    """Nobody took its exception: asyncio printed "Task exception was never retrieved"."""
    gc.collect()  # what other tests left is no work of this one
    caplog.clear()

    async def work():
        try:
            await asyncio.sleep(30)
        finally:
            raise OSError("the disk is full")

    done, over = concurrent.futures.Future(), threading.Event()
    loop._submit(work(), done, over)
    time.sleep(0.05)  # it has begun
    done.cancel()
    assert over.wait(10)
    del done  # it holds the task
    time.sleep(0.05)
    gc.collect()
    assert "never retrieved" not in caplog.text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("<think>red</think>blue one", "blue one"),
        ("so red</think>blue one", "blue one"),
        ("<think>red blue", ""),
        ("red < blue", "red < blue"),
    ],
)
def test_a_judge_reads_the_answer_that_a_check_reads_without_its_thoughts(text, read):
    who, seen = FakeJudge(), []
    who.key = lambda task, response, c: fingerprint([seen.append(response.text), response.text])
    got = judge([TASK], [Response(task_id="t", id="r", text=text)], judge=who, progress=False)
    assert set(seen) == {read}
    assert [v.status for v in got[:2]] == ["met" if c in read else "unmet" for c in ("red", "blue")]
    named = replace(TASK, criteria=(Criterion(id="c", text="Puts its thoughts in <think>"),))
    asked = question(FakeJudge(), named, Response(task_id="t", id="r", text=text), named.criteria)
    assert asked.response.text == text, "it asks for the tags"


@pytest.mark.parametrize("cached", [True, False])
def test_thoughts_are_shown_for_the_criteria_alone_that_name_their_tags(tmp_path, cached):
    """One criterion on <think> showed the thoughts to the judge for all criteria of the call: what
    an answer had only thought of was met."""
    whole, plain, seen = "<think>red</think>blue one", "blue one", []

    class Seeing(FakeJudge):
        async def verdicts(self, task, response, criteria):
            seen.append((response.text, [c.id for c in criteria]))
            return await super().verdicts(task, response, criteria)

    who = Seeing() if cached else Unkept(Seeing())
    tags = Criterion(id="tags", text="Puts its thoughts in <think>")
    task = replace(TASK, criteria=(TASK.criteria[0], tags, *TASK.criteria[1:]))
    response = [Response(task_id="t", id="r", text=whole)]
    options = {"judge": who, "ledger": tmp_path / "l.sqlite", "progress": False}
    assert estimate([task], response, judge=who).calls == 2
    got = judge([task], response, **options)
    assert [(v.criterion_id, v.status) for v in got] == [
        ("c1", "unmet"),
        ("tags", "unmet"),
        ("c2", "met"),
        ("c3", "met"),
    ]
    assert sorted(seen) == [(whole, ["tags"]), (plain, ["c1", "c2"])]
    seen.clear()
    assert [v.status for v in judge([task], response, **options)] == [v.status for v in got]
    assert bool(seen) != cached
    bare = replace(task, criteria=tuple(c for c in task.criteria if c.id != "tags"))
    seen.clear()
    judge([bare], [replace(response[0], text=plain)], **options)
    judge([replace(task, criteria=(tags,))], response, **options)
    assert bool(seen) != cached, "ordinary questions keep their keys"


def test_a_file_says_how_many_answers_hold_their_thoughts():
    rows = [
        {"task_id": "t", "response_id": str(i), "response": "<think>a</think>b"} for i in (1, 2)
    ]
    found = load_tasks([*rows, {**rows[0], "response_id": "3", "response": "b"}]).findings
    assert [f.message[:14] for f in found if f.code == "reasoning"] == ["2 of 3 rows ho"]

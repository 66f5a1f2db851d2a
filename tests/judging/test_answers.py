"""`kit.answer`: answers from a model are recorded whole, and paid once, also after kill -9 and by two processes."""

import logging
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_server import FakeServer, chat, http

import kit
from kit import DataError, JudgeDownError, Task
from kit.evaluation import estimate_answers

TASKS = [Task(id=f"t{n}", prompt=f"Say {n}.", system="Be brief.") for n in range(6)]
SCRIPT = """
import kit
tasks = [kit.Task(id=f"t{{n}}", prompt=f"Say {{n}}.") for n in range({n})]
model = {{"endpoint": "fake", "base_url": {url!r}, "concurrency": 4, "tries": 0}}
answers = kit.answer(tasks, model, ledger={ledger!r}, progress=False)
assert [r.text for r in answers.responses] == [f"echo: Say {{n}}." for n in range({n})]
"""


def model(server, **options):
    return {"endpoint": "fake", "base_url": server.url, "tries": 0, **options}


def start(server, ledger, n):
    code = SCRIPT.format(url=server.url, ledger=str(ledger), n=n)
    where = str(Path(kit.__file__).parents[1])
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": where}
    return subprocess.Popen([sys.executable, "-c", code], **pipes)


def test_an_answer_says_what_it_took(tmp_path):
    with FakeServer() as server:
        source = model(server, price=[1.0, 2.0])
        first = kit.answer(TASKS, source, ledger=tmp_path / "l.db", progress=False)
        again = kit.answer(TASKS, source, ledger=tmp_path / "l.db", progress=False)
        asked = server.calls[0]
    assert len(server.calls) == len(TASKS) and again.responses == first.responses
    assert [m["role"] for m in asked.body["messages"]] == ["system", "user"]
    assert asked.system == "Be brief." and asked.body["temperature"] == 0
    (r, *_) = first.responses
    assert (r.task_id, r.text, r.source, r.truncated) == ("t0", "echo: Say 0.", "fake", False)
    assert r.meta["tokens_in"] == 100 and r.meta["tokens_out"] == 20 and r.meta["seconds"] > 0
    assert r.meta["cost"] == pytest.approx((100 * 1.0 + 20 * 2.0) / 1e6)


def test_a_ledger_of_the_caller_stays_open():
    with FakeServer() as server, kit.Ledger(None) as book:
        kit.answer(TASKS[:1], model(server), ledger=book, progress=False)
        assert book.costs()["calls"].tolist() == [1]


def test_several_answers_are_several_calls():
    with FakeServer() as server:
        found = kit.answer(TASKS[:2], model(server), 3, ledger=False, progress=False)
    assert len(server.calls) == 6 and server.calls[0].body["temperature"] == 1
    assert len({r.ids for r in found.responses}) == 6


@pytest.mark.parametrize(
    ("reply", "text", "truncated", "thought"),
    [
        (lambda a: chat("cut he", finish="length"), "cut he", True, ""),
        (lambda a: chat("yes", reasoning_content="hm"), "yes", False, "hm"),
        (lambda a: chat("yes", reasoning=7), "yes", False, ""),
    ],
)
def test_cut_answers_and_thoughts_are_marked(reply, text, truncated, thought):
    with FakeServer(reply) as server:
        (r,) = kit.answer(TASKS[:1], model(server), ledger=False, progress=False).responses
    assert (r.text, r.truncated, r.meta["thought"]) == (text, truncated, thought)


def test_a_refused_answer_is_missing_and_counted(caplog):
    refused = http({"error": {"message": "filtered", "code": "content_filter"}}, "400 Bad Request")

    def reply(asked):
        return refused if asked.prompt == "Say 3." else None

    with FakeServer(reply) as server, caplog.at_level(logging.WARNING):
        found = kit.answer(TASKS, model(server), ledger=False, progress=False)
    assert [r.task_id for r in found.responses] == ["t0", "t1", "t2", "t4", "t5"]
    assert "no answer to task t3" in caplog.text and "1 of 6 answers missing" in caplog.text


def test_a_server_that_is_not_there_ends_at_once():
    begin = time.monotonic()
    with pytest.raises(JudgeDownError, match="nothing listens there"):
        kit.answer(TASKS, {"endpoint": "m", "base_url": "http://127.0.0.1:9/v1"}, ledger=False)
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "`int` >= 1"),
        ({"n": 2, "temperature": 0.0}, "all answers to a prompt are the same"),
        ({"model": "code"}, "'code' writes no answers"),
        ({"model": {"panel": ["small", "local"]}}, "'panel' writes no answers"),
    ],
)
def test_a_wrong_request_is_refused(options, message):
    with pytest.raises((DataError, kit.MissingError), match=message):
        kit.answer(TASKS, **{"model": "endpoint:m", "ledger": False, **options})


def test_an_estimate_sends_nothing():
    with FakeServer() as server:
        usage = estimate_answers(TASKS, model(server), n=2, ledger=False)
    assert usage.calls == 12 and server.calls == [] and usage.tokens_in > 0


def kill_often(times, n, ledger):
    luck = random.Random(3)
    with FakeServer(delay=0.02) as server:
        for _ in range(times):
            before = len(server.calls)
            process = start(server, ledger, n)
            goal = before + luck.randint(1, max(1, n // times))
            end = time.monotonic() + 60
            while len(server.calls) < goal and process.poll() is None and time.monotonic() < end:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        process = start(server, ledger, n)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        # At most the four calls in flight at each kill were paid without an answer.
        assert n <= len(server.calls) <= n + 4 * times


def test_two_kills_pay_no_answer_twice(tmp_path):
    kill_often(2, 40, tmp_path / "l.db")


@pytest.mark.slow
def test_twenty_kills_pay_no_answer_twice(tmp_path):
    kill_often(20, 200, tmp_path / "l.db")


def test_two_processes_pay_each_answer_once(tmp_path):
    with FakeServer(delay=0.05) as server:
        both = [start(server, tmp_path / "l.db", 30) for _ in range(2)]
        for process in both:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
        assert len(server.calls) == 30


@pytest.mark.slow
def test_weights_answer_and_are_sampled_once(tmp_path):
    tasks = TASKS[:3]
    options = {"n": 2, "max_tokens": 8, "ledger": tmp_path / "l.db", "progress": False}
    first = kit.answer(tasks, "SmolLM2-135M-Instruct", **options)
    begin = time.monotonic()
    again = kit.answer(tasks, "SmolLM2-135M-Instruct", **options)
    assert again.responses == first.responses and time.monotonic() - begin < 5
    assert len(first.responses) == 6 and all(r.truncated or r.text for r in first.responses)

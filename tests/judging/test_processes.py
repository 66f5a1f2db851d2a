"""Nothing is paid twice: killed processes, Ctrl-C, two processes at once, a fork."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time

import pytest
from fake_server import FakeServer
from judged_words import TASK, answers, are_true, endpoint, start

import kit
from kit import cli


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def complete_answers(path):
    """Texts of answers whose three verdicts are stored."""
    if not path.exists():
        return set()
    with kit.Ledger(path) as book:
        rows = [v.response_id for v in book.verdicts() if v.is_known]
    texts = {r.id: r.text for r in answers(200)}
    return {texts[i] for i in rows if rows.count(i) == 3}


def kill_often(times, n, ledger):
    luck = random.Random(1)
    with FakeServer(delay=0.02) as server:
        for _ in range(times):
            stored, before = complete_answers(ledger), len(server.calls)
            process = start(server, ledger, n)
            goal = before + luck.randint(1, max(1, n // times))
            until(lambda goal=goal, p=process: len(server.calls) >= goal or p.poll() is not None)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            again = {a.answer for a in server.calls[before:]} & stored
            assert again == set()
        verdicts = kit.judge(
            TASK, answers(n), judge=endpoint(server, concurrency=4), ledger=ledger, progress=False
        )
        # At most the four calls in flight at each kill were paid without a verdict.
        assert are_true(verdicts) and n <= len(server.calls) <= n + 4 * times
    with kit.Ledger(ledger) as book:
        assert len(list(book.verdicts())) == 3 * n


def test_three_kills_pay_nothing_twice(ledger):
    kill_often(3, 60, ledger)


@pytest.mark.slow
def test_twenty_kills_pay_nothing_twice(ledger):
    kill_often(20, 200, ledger)


def test_two_processes_ask_each_question_once(ledger):
    with FakeServer(delay=0.05) as server:
        both = [start(server, ledger, 60, "assert are_true(go())") for _ in range(2)]
        for process in both:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
        assert len(server.calls) == 60


def test_ctrl_c_waits_for_calls_in_flight_and_starts_no_new_ones(ledger):
    with FakeServer(delay=0.5) as server:
        process = start(server, ledger, 60)
        until(lambda: len(server.calls) >= 6)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert "KeyboardInterrupt" in errors and process.returncode != 0
        assert len(server.calls) <= 12
        assert len(complete_answers(ledger)) == len(server.calls)


def count_stored(path):
    with kit.Ledger(path) as book:
        return len(list(book.verdicts()))


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "name", ["judge", "explain", pytest.param("train", marks=pytest.mark.slow)]
)
def test_a_signal_ends_a_command_soon_and_its_rerun_asks_the_rest(
    tmp_path, monkeypatch, name, sent
):
    """`kit explain` and `kit train` judge inside a coroutine of theirs, `kit judge` does not."""
    ledger, file = tmp_path / "ledger.sqlite", tmp_path / "tasks.jsonl"
    monkeypatch.setenv("KIT_LEDGER", str(ledger))
    monkeypatch.chdir(tmp_path)
    criteria = [kit.Criterion(id=f"k{i}", text=f"says w{i}") for i in range(20)]
    task = kit.Task(id="t", prompt="Name words.", criteria=criteria, split="test")
    some = [task, kit.Task(id="u", prompt="Name one word.", criteria=criteria[:1])]
    kit.save(file, kit.data.TaskSet(tasks=some, responses=answers(1, task)))
    with FakeServer(delay=0.3) as server:
        judge = endpoint(server, how="one", concurrency=1)
        words = [name, str(file), "--judge", json.dumps(judge)]
        if name == "train":
            options = {"model": "tiny-random", "steps": 1, "judge": judge, "ledger": str(ledger)}
            config = tmp_path / "config.yaml"
            config.write_text(json.dumps({"tasks": str(file), "max_answer_tokens": 8, **options}))
            words = [name, str(config), "--profile", "test", "--set", f"out={tmp_path / 'run'}"]
        command = [sys.executable, "-m", "kit", *words]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        # One at a time: the first verdicts are in the ledger.
        until(lambda: len(server.calls) == 3, 200)
        process.send_signal(sent)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130 and "the same command goes on" in errors, errors
        # Of twenty questions, those in flight were answered, and the others not asked.
        assert 3 <= len(server.calls) == count_stored(ledger) < 15
        server.delay = 0
        assert cli.main(words) == 0
        assert 20 <= count_stored(ledger) == len(server.calls)


def test_a_cancelled_caller_leaves_the_calls_in_flight_to_the_ledger(ledger):
    import asyncio

    async def main(url):
        judge = {"endpoint": "fake", "base_url": url, "concurrency": 2, "tries": 0}
        run = asyncio.create_task(kit.ajudge(TASK, answers(20), judge=judge, ledger=ledger))
        while len(server.calls) < 2:
            await asyncio.sleep(0.01)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    with FakeServer(delay=0.3) as server:
        asyncio.run(main(server.url))
        until(lambda: len(complete_answers(ledger)) == 2)
        time.sleep(0.5)
        assert len(server.calls) == 2


FORK = """
import os
assert are_true(go())
child = os.fork()
if not child:
    good = are_true(go(ledger=None, n=3))
    os._exit(0 if good else 7)
assert os.waitpid(child, 0)[1] == 0
assert go().spent.calls == 0
"""


def test_a_forked_child_has_a_loop_of_its_own(ledger):
    with FakeServer() as server:
        process = start(server, ledger, 5, FORK)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert len(server.calls) == 8 and "Unclosed" not in errors

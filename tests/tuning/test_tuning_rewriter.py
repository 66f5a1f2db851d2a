"""Who rewrites and proposes, over a real connection: what is asked, paid, lost, and said."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from test_tuning_bench import STRICT, FakeJudge, bench_of

import kit
from kit.errors import BudgetError, DataError, JudgeDownError
from kit.judge import factory
from kit.train import evolving, reward
from kit.tuning.makers import Reflector, maker

pytest.importorskip("gepa")


class FakeModelServer(BaseHTTPRequestHandler):
    """A local HTTP server with chat completions: gives a strict prompt, and keeps what it read."""

    asked: ClassVar[list[dict]] = []
    said: ClassVar[str] = f"```\n{STRICT}\n```"

    def do_POST(self):
        FakeModelServer.asked.append(
            json.loads(self.rfile.read(int(self.headers["content-length"])))
        )
        message = {"role": "assistant", "content": FakeModelServer.said}
        reply = {"choices": [{"message": message, "finish_reason": "stop", "index": 0}]}
        data = json.dumps({**reply, "usage": {"prompt_tokens": 9, "completion_tokens": 5}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def model():
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeModelServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    FakeModelServer.asked = []
    yield {"endpoint": "w", "base_url": f"http://127.0.0.1:{server.server_address[1]}/v1"}
    server.shutdown()


def test_a_model_over_http_rewrites_and_is_paid_once(tmp_path, model):
    """The caller's third argument had become a number of tokens: each of 20 reflections was paid,
    failed with an AttributeError that GEPA swallowed, and was paid again by the next run.
    """
    assert Reflector(None, maker(model))("Rewrite.") == FakeModelServer.said
    bench = bench_of(tmp_path)
    bench.search(model, rows=100)
    assert bench.trials["found 1"].prompt == STRICT
    asked = len(FakeModelServer.asked)
    bench_of(tmp_path).search(model, rows=100)
    assert len(FakeModelServer.asked) == asked > 1
    assert FakeModelServer.asked[0]["max_completion_tokens"] == 1200


def test_a_model_over_http_proposes_criteria_in_a_training(model):
    bill = reward.Bill()
    ask = evolving.asker(factory.judge_of({**model, "price": [1, 2]}), bill)
    assert asyncio.run(ask("Propose.")) == FakeModelServer.said
    assert bill.calls == 1 and bill.cost == pytest.approx(19e-6)


@pytest.mark.parametrize("reply", [None, "", 7, RuntimeError("401")])
def test_a_rewriter_that_fails_ends_the_search_and_says_so(tmp_path, reply):
    """All reflections failed, and the search said that it had found nothing, with exit code 0."""
    asked = []

    def rewrite(prompt):
        asked.append(prompt)
        if isinstance(reply, Exception):
            raise reply
        return reply

    with pytest.raises(RuntimeError if isinstance(reply, Exception) else JudgeDownError):
        bench_of(tmp_path).search(rewrite, rows=100)
    assert len(asked) == 1


def test_a_rewriter_that_is_down_is_an_error(tmp_path):
    down = {"endpoint": "w", "base_url": "http://127.0.0.1:9/v1", "tries": 1, "patience": 1}
    with pytest.raises(JudgeDownError):
        bench_of(tmp_path).search(down, rows=100)


def test_the_budget_holds_in_a_search_and_nothing_is_lost(tmp_path, model):
    """A search went past kit.Budget and --budget-usd, by its verdicts and its reflections."""
    bench = bench_of(tmp_path)
    bench.budget = kit.Budget(calls=1)
    with pytest.raises(BudgetError):
        bench.search(lambda prompt: f"```\nBe kind, {len(prompt)}.\n```", rows=200)
    assert bench.budget.spent.calls == 1
    bench = bench_of(tmp_path)
    bench.budget = kit.Budget(calls=0)
    with pytest.raises(BudgetError):
        bench.search(model, rows=100)
    assert FakeModelServer.asked == []
    bench.budget = kit.Budget(calls=9)
    bench.search(model, rows=100)
    assert bench.budget.spent.calls == len(FakeModelServer.asked) > 0 and "found 1" in bench.trials


def test_labels_in_doubt_are_no_lesson(tmp_path):
    """Labels that somebody doubted were shown to the rewriter as what people say."""
    seen, bench = [], bench_of(tmp_path)
    bench.try_("baseline", bench.prompt)
    train = [i for i, part in enumerate(bench.part) if part == "train"]
    names = list(dict.fromkeys(bench.rows[i].task.asked for i in train))[:8]
    for i in train:
        if bench.rows[i].task.asked in names:
            bench.doubt(i, "ann", "unclear")
    bench.search(lambda prompt: seen.append(prompt) or f"```\nBe {len(seen)}.\n```", rows=100)
    shown = "\n".join(seen)
    assert seen and not any(f"{name}\n" in shown for name in names)


def test_rows_is_a_cap_and_too_few_are_refused_unpaid(tmp_path):
    """rows=10 judged 87 rows, rows=100 judged 198."""
    bench = bench_of(tmp_path)
    paid = FakeJudge.asked
    with pytest.raises(DataError, match="10 rows are too few") as error:
        bench.search(lambda prompt: f"```\nBe kind {len(prompt)}.\n```", rows=10)
    least = int(error.value.fix.split("rows=")[1].split()[0])
    assert paid == FakeJudge.asked and not bench.trials
    for rows in (least, least + 1, 2 * least):
        found = bench.search(lambda prompt: f"```\n{STRICT} {len(prompt)}\n```", rows=rows)
        assert 0 < found.judged_rows <= rows and len(found.instructions) > 1


@pytest.mark.parametrize("rewrites", [True, False])
def test_a_search_makes_no_more_calls_than_its_estimate(tmp_path, rewrites):
    """ "At most" left out the reflections, the trials of what is found, and calls for one row."""
    asked, bench = [], bench_of(tmp_path)

    def rewrite(prompt):
        asked.append(prompt)
        return f"```\n{STRICT if rewrites else 'Be kind.'} {len(asked)}\n```"

    most = bench.estimate(60).calls
    bench.search(rewrite, rows=60)
    assert asked and FakeJudge.asked + len(asked) <= most

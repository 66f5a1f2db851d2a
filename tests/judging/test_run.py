"""One run: order, cache, budget, outages, what is asked twice and what is not."""

from __future__ import annotations

import asyncio
import pickle
import threading

import pytest
from fake_server import FakeServer, chat, http, obj
from judged_words import KEY, TASK, answers, are_true, endpoint

import kit
from kit.judging import Judge


def test_verdicts_come_in_order_and_are_paid_once(ledger):
    with FakeServer() as server:
        judge = endpoint(server)
        forecast = kit.estimate(TASK, answers(12), judge=judge, ledger=ledger)
        first = kit.judge(TASK, answers(12), judge=judge, ledger=ledger, progress=False)
        again = kit.judge(TASK, answers(12), judge=judge, ledger=ledger, progress=False)
        after = kit.estimate(TASK, answers(12), judge=judge, ledger=ledger)
    assert are_true(first) and len(server.calls) == 12 == forecast.calls
    assert [v.ids for v in first] == [("t", r.id, c.id) for r in answers(12) for c in TASK.criteria]
    assert [v.status for v in again] == [v.status for v in first]
    assert all(v.cached and v.cost == 0 and v.tokens_in == 0 for v in again)
    assert again.spent.calls == 0 and again.spent.cached == 36
    assert (after.calls, after.cached) == (0, 36)


def test_async_in_any_loop_and_in_many_threads(ledger):
    with FakeServer() as server:
        judge = endpoint(server)

        async def both():
            runs = [kit.ajudge(TASK, answers(6), judge=judge, ledger=ledger) for _ in range(2)]
            return await asyncio.gather(*runs)

        for verdicts in asyncio.run(both()):
            assert are_true(verdicts)
        results = []

        def run():
            results.append(kit.judge(TASK, answers(6), judge=judge, ledger=False, progress=False))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert all(map(are_true, results)) and len(results) == 4
    # The two runs with a ledger asked each answer once: the first in flight serves both.
    assert len(server.calls) == 6 + 4 * 6


def test_equal_answers_share_a_call(ledger):
    same = [kit.Response(task_id="t", id=f"r{i}", text="w0 and more") for i in range(9)]
    with FakeServer(delay=0.05) as server:
        verdicts = kit.judge(TASK, same, judge=endpoint(server), ledger=ledger, progress=False)
    assert len(server.calls) == 1 and verdicts.spent.calls == 1
    assert {v.response_id for v in verdicts} == {r.id for r in same}
    assert [v.status for v in verdicts] == ["met", "unmet", "unmet"] * 9
    assert sum(v.tokens_in for v in verdicts) <= 100


def test_criteria_by_code_need_no_call(caplog):
    by_code = kit.Criterion(id="k", text="short", check={"name": "words", "max": 3})
    task = kit.Task(id="t", prompt="p", criteria=(by_code,))
    verdicts = kit.judge(task, answers(2), judge="endpoint:none", progress=False)
    assert [(v.judge, v.status) for v in verdicts] == [("code", "met")] * 2
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("how", "calls", "longest"), [("all", 1, 3), ("one", 3, 1), (2, 2, 2), ("word", 3, 1)]
)
def test_how_criteria_are_asked(how, calls, longest, ledger):
    with FakeServer() as server:
        judge = endpoint(server, how=how)
        assert kit.estimate(TASK, answers(1), judge=judge).calls == calls
        verdicts = kit.judge(TASK, answers(1), judge=judge, ledger=ledger, progress=False)
        assert are_true(verdicts) and len(server.calls) == calls
        assert max(len(a.criteria) for a in server.calls) == (0 if how == "word" else longest)


def test_scales():
    criteria = (
        kit.Criterion(id="o", text="tone w1", scale="ordinal", levels=("bad", "fair", "good")),
        kit.Criterion(id="p", text="points w1", scale="points", points=4),
        kit.Criterion(id="q", text="points w2", scale="points", points=4),
    )
    task = kit.Task(id="t", prompt="p", criteria=criteria)
    with FakeServer(lambda a: obj(a, {"c1": "fair", "c2": 3, "c3": 5})) as server:
        verdicts = kit.judge(task, answers(1), judge=endpoint(server), progress=False)
        assert server.calls[0].words["c2"][0] == "a number from 0 to 4"
    with FakeServer() as server:
        verdicts_by_word = kit.judge(task, answers(1), judge=endpoint(server, how="word"))
    assert "chooses no level" in verdicts_by_word[0].reason
    assert [(v.status, v.value) for v in verdicts] == [
        ("level", 0.5),
        ("level", 0.75),
        ("unknown", None),
    ]


def test_what_is_unknown_explains_itself_and_is_asked_again_on_demand(ledger):
    def reply(a):
        return "no JSON" if len(server.calls) <= 4 else None

    with FakeServer(reply) as server:
        judge = endpoint(server, concurrency=1)
        run = {"judge": judge, "ledger": ledger, "progress": False}
        first = kit.judge(TASK, answers(2), **run)
        assert {v.failure for v in first} == {"parse"} and len(server.calls) == 4
        causes = first.causes()
        assert causes["cause"].tolist() == ["parse"] and causes["verdicts"].tolist() == [6]
        assert "retry" in causes["what to do"][0] and "6 parse" in repr(first)
        assert len(kit.judge(TASK, answers(2), **run).causes()) == 1 and len(server.calls) == 4
        again = kit.judge(TASK, answers(2), retry=True, **run)
        assert are_true(again) and len(again.causes()) == 0 and len(server.calls) == 6


def test_only_the_lost_criterion_is_asked_again():
    def reply(a):
        return obj(a, {n: v for n, v in a.truth.items() if n != "c2"}) if len(a.truth) > 1 else None

    with FakeServer(reply) as server:
        verdicts = kit.judge(TASK, answers(1), judge=endpoint(server), progress=False)
    assert are_true(verdicts) and [list(a.criteria) for a in server.calls] == [
        ["c1", "c2", "c3"],
        ["c2"],
    ]


def test_a_cut_reply_gets_four_times_the_room_once(ledger):
    with FakeServer(lambda a: chat("{", "length")) as server:
        verdicts = kit.judge(
            TASK, answers(1), judge=endpoint(server, max_tokens=50), ledger=ledger, progress=False
        )
    rooms = [a.body["max_completion_tokens"] for a in server.calls]
    assert rooms == [50, 200] and {v.failure for v in verdicts} == {"parse"}
    with kit.Ledger(ledger) as book:
        assert book.costs()["calls"].tolist() == [2]


# -- budget, outages --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("caps", "price", "calls"),
    [
        ({"calls": 5}, None, range(5, 6)),
        ({"calls": 0}, None, range(1)),
        ({"usd": 0.0}, [1, 1], range(1)),
        # a call reserves at most about .0026 and costs .00012
        ({"usd": 0.004}, [1, 1], range(6, 17)),
        ({"usd": 9.0}, [1, 1], range(30, 31)),
    ],
)
def test_a_budget_is_never_exceeded(caps, price, calls, ledger):
    budget = kit.Budget(**caps)
    with FakeServer() as server:
        judge = endpoint(server, price=price)
        run = {"judge": judge, "ledger": ledger, "progress": False}
        if calls == range(30, 31):
            kit.judge(TASK, answers(30), budget=budget, **run)
        else:
            with pytest.raises(kit.BudgetError) as stop:
                kit.judge(TASK, answers(30), budget=budget, **run)
            verdicts = stop.value.verdicts
            assert len(verdicts) == 90
            assert sum(v.is_known for v in verdicts) == 3 * len(server.calls)
            assert {v.failure for v in verdicts if not v.is_known} == {"budget"}
        assert len(server.calls) in calls and budget.calls_made == len(server.calls)
        assert budget.usd_spent <= caps.get("usd", 9.0)
        # Nothing that was stopped is stored: the next run does the rest.
        assert are_true(kit.judge(TASK, answers(30), **run)) and len(server.calls) == 30


def test_a_cap_in_dollars_needs_a_price():
    judge = {"endpoint": "own-model", "base_url": "http://judge.invalid/v1", "tries": 0}
    with pytest.raises(kit.BudgetError, match="price"):
        kit.judge(TASK, answers(1), judge=judge, budget=kit.Budget(usd=1), progress=False)
    with pytest.raises(kit.DataError, match="usd is"):
        kit.Budget(usd=float("nan"))


@pytest.mark.parametrize(
    ("status", "calls"), [(401, 1), (402, 1), (404, 1), (403, 8), (500, 8), (503, 8)]
)
def test_a_judge_that_is_down_is_one_clear_stop(status, calls, ledger):
    with FakeServer(lambda a: http({}, f"{status} No")) as server:
        judge = endpoint(server, concurrency=1)
        with pytest.raises(kit.JudgeDownError, match=f"HTTP {status}") as stop:
            kit.judge(TASK, answers(50), judge=judge, ledger=ledger, progress=False)
        assert len(server.calls) == calls
    assert len(stop.value.verdicts) == 150 and not any(v.is_known for v in stop.value.verdicts)
    with kit.Ledger(ledger) as book:
        assert len(list(book.verdicts())) == 0
    with pytest.raises(kit.JudgeDownError):  # nobody listens any more
        kit.judge(TASK, answers(1), judge=judge, progress=False)


def test_one_lost_call_stops_nothing():
    with FakeServer(lambda a: http({}, "500 No") if "number 3" in a.answer else None) as server:
        verdicts = kit.judge(TASK, answers(9), judge=endpoint(server), progress=False)
    lost = [v for v in verdicts if not v.is_known]
    assert {(v.response_id, v.failure, v.reason) for v in lost} == {("r3", "transport", "HTTP 500")}


def test_storms_lose_nothing(ledger):
    """Every third first request is refused with 429 or 500, 64 in flight."""

    def reply(a):
        if a.nth == 1 and int(a.answer.split()[-1]) % 3 == 0:
            status = "429 No" if int(a.answer.split()[-1]) % 2 else "500 No"
            return http({}, status, Retry_After="0.05")
        return None

    with FakeServer(reply, delay=0.2) as server:
        judge = endpoint(server, concurrency=64, tries=10)
        verdicts = kit.judge(TASK, answers(150), judge=judge, ledger=ledger, progress=False)
    assert are_true(verdicts) and len(server.calls) == 200 and server.most > 16


def test_concurrency_is_a_cap():
    with FakeServer(delay=0.02) as server:
        kit.judge(TASK, answers(20), judge=endpoint(server, concurrency=3), progress=False)
        assert server.most == 3
    with FakeServer(delay=0.02) as server:
        kit.judge(TASK, answers(20), judge=endpoint(server, how="one"), progress=False)
        assert server.most == 2


def test_a_judge_that_raises_loses_only_its_question():
    class Broken(Judge):
        name = "broken"

        def readings(self, task, response, criteria):
            if response.id == "r1":
                raise ZeroDivisionError("x")
            return [{"status": "met"}] * len(criteria)

    verdicts = kit.judge(TASK, answers(3), judge=Broken(), progress=False)
    assert [v.failure for v in verdicts] == [None] * 3 + ["error"] * 3 + [None] * 3


WRONG = {
    "no answers": (TASK, []),
    "another task": (TASK, [kit.Response(task_id="u", id="r", text="x")]),
    "no Response": (TASK, ["text"]),
    "one id, two texts": (TASK, [kit.Response(task_id="t", id="r", text=x) for x in "ab"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_judged_is_an_error(case):
    with pytest.raises(kit.DataError) as error:
        kit.judge(*WRONG[case], progress=False)
    assert error.value.where and error.value.fix


# -- the request ------------------------------------------------------------------------------------
def test_the_request_goes_through_the_official_client_and_keeps_connections():
    with FakeServer() as server:
        kit.judge(TASK, answers(20), judge=endpoint(server, concurrency=2), progress=False)
    assert all(a.headers["user-agent"].startswith("AsyncOpenAI/") for a in server.calls)
    assert server.connections <= 2
    assert {a.path for a in server.calls} == {"/v1/chat/completions"}
    assert len({a.mark for a in server.calls}) > 10 and all(a.mark for a in server.calls)


REQUESTS = {
    "plain": ({}, {"temperature": 0.0, "max_completion_tokens": 680}, ()),
    "GPT-5": ({"endpoint": "gpt-5-mini"}, {"max_completion_tokens": 4680}, ("temperature", "max_tokens")),
    "options": (
        {"temperature": 0.7, "max_tokens": 99, "extra": {"reasoning_effort": "low", "top_p": 0.5}},
        {"temperature": 0.7, "max_completion_tokens": 99, "reasoning_effort": "low", "top_p": 0.5},
        (),
    ),
    "one word": ({"how": "word"}, {"logprobs": True, "max_completion_tokens": 2}, ("response_format",)),
}  # fmt: skip


@pytest.mark.parametrize("case", REQUESTS)
def test_the_body_of_a_request(case):
    options, wanted, absent = REQUESTS[case]
    with FakeServer() as server:
        kit.judge(TASK, answers(1), judge={**endpoint(server), **options}, progress=False)
    body = server.calls[0].body
    assert {name: body.get(name) for name in wanted} == wanted and not set(absent) & set(body)
    if "response_format" in body:
        form = body["response_format"]["json_schema"]
        assert form["strict"] and list(form["schema"]["properties"]) == ["call", "c1", "c2", "c3"]
        assert list(form["schema"]["properties"]["c1"]["properties"]) == ["reason", "verdict"]


@pytest.mark.parametrize("thought", ["<think>w0 maybe</think>\n", "w0 maybe\n</think>\n\n"])
def test_what_is_judged_is_the_whole_conversation_without_thoughts(thought):
    task = kit.Task(
        id="t",
        prompt="And now?",
        system="Be brief.",
        history=({"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}),
        sources={"s1": "A source."},
        criteria=TASK.criteria[:1],
    )
    answer = kit.Response(task_id="t", id="r", text=f"{thought}Nothing.")
    with FakeServer() as server:
        verdicts = kit.judge(task, [answer], judge=endpoint(server), progress=False)
    asked = server.calls[0]
    assert asked.answer == "Nothing." and verdicts[0].status == "unmet"
    assert all(x in asked.prompt for x in ("Be brief.", "Hello", "And now?", "A source."))


def test_one_prompt_file_for_all(tmp_path, ledger):
    file = tmp_path / "prompt.txt"
    file.write_text("You are strict.\nExample: ...\n")
    with FakeServer() as server:
        run = {"ledger": ledger, "progress": False}
        kit.judge(TASK, answers(1), judge=endpoint(server, prompt=str(file)), **run)
        kit.judge(
            TASK, answers(1), judge=endpoint(server, system="You are strict.\nExample: ..."), **run
        )
        assert [a.system for a in server.calls] == ["You are strict.\nExample: ..."]
        kit.judge(TASK, answers(1), judge=endpoint(server), **run)
        assert len(server.calls) == 2
    with pytest.raises(FileNotFoundError, match=r"absent\.txt"):
        kit.judge_of({"endpoint": "m", "prompt": str(tmp_path / "absent.txt")})


def test_keys_go_only_where_they_belong(ledger, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-key-of-openai")
    with FakeServer(lambda a: obj(a).replace("looked", f"your key is {a.key}")) as server:
        answer = kit.Response(task_id="t", id="r0", text=f"w0 {KEY}")
        verdicts = kit.judge(TASK, [answer], judge=endpoint(server), ledger=ledger, progress=False)
        assert server.calls[0].key == KEY
    assert "[key]" in verdicts[0].reason
    for path in ledger.parent.iterdir():
        assert KEY.encode() not in path.read_bytes()
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(kit.MissingError, match="no key"):
        kit.judge(TASK, [answer], judge="endpoint:gpt-4o", progress=False)
    for url, fault in (("http://user:pass@host/v1", "password"), ("host:8000/v1", "no http")):
        with pytest.raises(kit.DataError, match=fault):
            kit.judge_of({"endpoint": "m", "base_url": url})


def test_completions_go_through_the_same_client_and_ledger(ledger):
    from kit.judging import acomplete, complete

    with FakeServer() as server:
        judge = endpoint(server)
        assert complete(judge, "hello", ledger=ledger) == "echo: hello"
        assert (
            complete(judge, [{"role": "user", "content": "hello"}], ledger=ledger) == "echo: hello"
        )
        text = asyncio.run(acomplete(judge, "hello", ledger=ledger))
        assert text == "echo: hello" and len(server.calls) == 1
        with pytest.raises(kit.BudgetError):
            complete(judge, "more", ledger=ledger, budget=kit.Budget(calls=0))
    with FakeServer(lambda a: chat("x", "length")) as server, pytest.raises(kit.JudgeDownError):
        complete(endpoint(server), "hello")
    with pytest.raises(kit.DataError, match="cannot write"):
        complete("code", "hello")


def test_verdicts_show_themselves_safely():
    with FakeServer(lambda a: obj(a).replace("looked", "<script>x</script>")) as server:
        verdicts = kit.judge(TASK, answers(2), judge=endpoint(server), progress=False)
    assert "<script>" not in verdicts._repr_html_() and "2 calls" in repr(verdicts)
    assert verdicts.table()["status"].tolist().count("met") == 2
    assert len(pickle.loads(pickle.dumps(list(verdicts)))) == 6

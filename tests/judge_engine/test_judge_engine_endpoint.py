"""The endpoint judge against a real local HTTP server; each failure mode tells its incident."""

from __future__ import annotations

import dataclasses
import json
import logging
import time
from types import SimpleNamespace

import pytest
from judge_stub import HOSTILE, StubServer, asked, completion, content

from kit.errors import BudgetError, JudgeDownError, KitError
from kit.judge import Budget, EndpointJudge, Ledger, judge
from kit.judge import limiter as limiting
from kit.judge.keys import key_for
from kit.records import Criterion, Response, Task

TASK = Task(
    id="t",
    prompt="Name colours.",
    criteria=tuple(Criterion(id=f"c{i}", text=f"says w{i}") for i in range(4)),
)
SECRET = "sk-test-0123456789abcdef"


def answers(n, tag=""):
    return [
        Response(task_id="t", id=f"r{i}", text=f"{tag} w{i % 4} number {i} end") for i in range(n)
    ]


def right(v, text):
    return v.status == ("met" if f"w{v.criterion_id[1:]} " in text + " " else "unmet")


def at(stub, **more):
    return EndpointJudge("m", **{"base_url": stub.url, "timeout": 5.0, "concurrency": 32, **more})


def all_right(got, rs):
    texts = {r.id: r.text for r in rs}
    return all(right(v, texts[v.response_id]) for v in got)


@pytest.mark.parametrize("how, calls", [("all", 6), ("one", 24), (3, 12)])
def test_all_in_one_call_some_or_one_each(how, calls):
    with StubServer() as stub:
        got = judge(TASK, answers(6), judge=at(stub, how=how), progress=False)
        assert all_right(got, answers(6)) and stub.calls == calls == got.spent.calls
        assert sum(v.tokens_in for v in got) == 100 * calls


def test_plain_text_where_schemas_are_refused_once_and_openly(tmp_path, caplog):
    def handler(body, n):
        if "response_format" in body:
            return 400, {
                "error": {
                    "message": "response_format json_schema is not supported",
                    "param": "response_format",
                }
            }
        answer, rows = asked(body)
        return completion(content(answer, rows, False))

    with StubServer(handler=handler) as stub, caplog.at_level(logging.WARNING):
        who = at(stub, concurrency=1)
        got = judge(TASK, answers(5), judge=who, ledger=tmp_path / "l.sqlite", progress=False)
        assert all_right(got, answers(5))
        assert (
            "response_format" in who.abilities["refused"]
            and "does not take response_format" in caplog.text
        )
        assert got[0].meta["without"] == ["response_format"] and got[-1].meta["mode"] == "text"
        before = stub.calls
        judge(TASK, answers(2, "new"), judge=at(stub), ledger=tmp_path / "l.sqlite", progress=False)
        assert stub.calls == before + 2  # the next run knows already


def test_temperature_is_sent_and_left_out_only_where_refused():
    """A judge promised temperature 0 and never sent it; another failed on reasoning models because it did."""

    def handler(body, n):
        if "temperature" in body and body["model"] == "picky":
            return 400, {
                "error": {"message": "Unsupported value: 'temperature'", "param": "temperature"}
            }
        answer, rows = asked(body)
        return completion(content(answer, rows, True))

    with StubServer(handler=handler) as stub:
        stub.keep = True
        judge(TASK, answers(1), judge=at(stub), progress=False)
        assert stub.bodies[0]["temperature"] == 0.0
        picky = EndpointJudge("picky", base_url=stub.url)
        assert (
            judge(TASK, answers(1), judge=picky, progress=False)[0].known
            and "temperature" in picky.abilities["refused"]
        )
        judge(
            TASK, answers(1), judge=EndpointJudge("gpt-6-luna", base_url=stub.url), progress=False
        )
        assert (
            "temperature" not in stub.bodies[-1] and stub.bodies[-1]["max_completion_tokens"] > 4000
        )


def test_old_servers_get_max_tokens():
    def handler(body, n):
        if "max_completion_tokens" in body:
            return 422, {"error": "unknown field max_completion_tokens"}
        answer, rows = asked(body)
        return completion(content(answer, rows, True))

    with StubServer(handler=handler) as stub:
        stub.keep = True
        assert judge(TASK, answers(1), judge=at(stub), progress=False)[0].known
        assert "max_tokens" in stub.bodies[-1]


def test_http_200_does_not_mean_that_the_schema_was_enforced(caplog):
    with (
        StubServer(handler=lambda body, n: completion(content(*asked(body), False))) as stub,
        caplog.at_level(logging.WARNING),
    ):
        who = at(stub)
        assert all_right(judge(TASK, answers(3), judge=who, progress=False), answers(3))
        assert who.abilities["enforced"] is False and "does not enforce" in caplog.text


def test_a_reply_whose_envelope_is_not_believed_says_nothing_of_the_schema(caplog):
    """ "Answers 200 but does not enforce the schema", of replies that obeyed it to the letter."""

    def handler(body, n):
        return {**completion(content(*asked(body), "response_format" in body)), "draft": True}

    with StubServer(handler=handler) as stub, caplog.at_level(logging.WARNING):
        who = at(stub)
        (v, *_) = judge(TASK, answers(1), judge=who, progress=False)
        assert "'draft'" in v.reason and who.abilities["enforced"] is None
        assert "does not enforce" not in caplog.text


def test_what_is_missing_is_asked_again_alone_and_after_wrong_ids_all():
    """A reply that speaks of a criterion that nobody asked for may have mixed up the others too."""

    def handler(body, n):
        answer, rows = asked(body)
        if n == 1:
            del rows[1]
        if n == 3:
            rows[1]["id"] = "zz"
        return completion(content(answer, rows, True))

    with StubServer(handler=handler) as stub:
        stub.keep = True
        got = judge(TASK, answers(1), judge=at(stub), progress=False)
        assert all_right(got, answers(1)) and stub.calls == 2
        assert [r["id"] for r in asked(stub.bodies[1])[1]] == ["c1"]
        assert got[1].meta["asked_again"] == "missing" and got[1].tokens_in == 125
        got = judge(TASK, answers(1), judge=at(stub), progress=False)
        assert all_right(got, answers(1)) and stub.calls == 4
        assert [r["id"] for r in asked(stub.bodies[3])[1]] == ["c0", "c1", "c2", "c3"]
        assert {v.meta["asked_again"] for v in got} == {"parse"}


def test_an_empty_structured_reply_is_asked_again_as_plain_text():
    """Structured output came back empty on long inputs where plain text worked."""

    def handler(body, n):
        answer, rows = asked(body)
        return completion("" if "response_format" in body else content(answer, rows, False))

    with StubServer(handler=handler) as stub:
        got = judge(TASK, answers(1), judge=at(stub), progress=False)
        assert all_right(got, answers(1)) and got[0].meta["mode"] == "text"


def test_a_refusal_is_a_refusal():
    with StubServer(
        handler=lambda body, n: completion(None, refusal="I cannot help with that.")
    ) as stub:
        assert {v.failure for v in judge(TASK, answers(1), judge=at(stub), progress=False)} == {
            "refusal"
        }


@pytest.mark.parametrize(
    "reply",
    [
        {"choices": [None]},
        {"choices": [{"message": None}]},
        {"choices": [{}]},
        {"choices": "x"},
        {"choices": [{"message": {"content": {"a": 1}}}]},
        {"choices": [{"message": {"content": ["x", None]}}]},
    ],
)
def test_odd_shapes_of_a_reply_are_failures_not_crashes(reply):
    with StubServer(handler=lambda body, n: reply) as stub:
        assert all(
            v.failure for v in judge(TASK, answers(1), judge=at(stub, repair=0), progress=False)
        )


def test_one_timeout_does_not_abort_the_run_or_lose_its_siblings():
    """One time-out aborted a whole run and threw finished criteria away."""

    def handler(body, n):
        answer, rows = asked(body)
        if rows[0]["id"] == "c2" and "number 1 " in answer:
            time.sleep(0)
            return 500, {"error": {"message": "always broken"}}
        return completion(content(answer, rows, True))

    with StubServer(handler=handler) as stub:
        got = judge(TASK, answers(3), judge=at(stub, how="one", tries=2), progress=False)
        assert [(v.response_id, v.criterion_id, v.failure) for v in got if not v.known] == [
            ("r1", "c2", "transport")
        ]
        assert "2 attempts failed" in next(v.reason for v in got if not v.known)


def test_retries_are_counted_once():
    """The client library retried inside the judge's own retry: 5 became 15."""
    with StubServer(handler=lambda body, n: (500, {"error": {"message": "no"}})) as stub:
        got = judge(
            Task(id="t", prompt="p", criteria=TASK.criteria[:1]),
            answers(1),
            judge=at(stub, tries=3),
            progress=False,
        )
        assert stub.calls == 3 and got[0].failure == "transport"


def test_no_infinite_retry():
    """A judge retried for ever: with nobody answering, the run ends after `patience`."""
    with StubServer(
        handler=lambda body, n: (429, {"error": {"message": "busy"}}, {"Retry-After": "0.05"})
    ) as stub:
        start = time.monotonic()
        with pytest.raises(JudgeDownError, match="no call has succeeded"):
            judge(TASK, answers(3), judge=at(stub, patience=0.6), progress=False)
        assert time.monotonic() - start < 5


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_wrong_key_or_model_stops_at_once_and_never_shows_the_key(
    status, monkeypatch, tmp_path, caplog
):
    monkeypatch.setenv("KIT_JUDGE_KEY", SECRET)
    with StubServer(
        handler=lambda body, n: (
            status,
            {"error": {"message": f"Incorrect API key provided: {SECRET}"}},
        )
    ) as stub:
        with pytest.raises(JudgeDownError) as e:
            judge(TASK, answers(2), judge=at(stub), ledger=tmp_path / "l.sqlite", progress=False)
        assert SECRET not in str(e.value) + caplog.text and stub.calls <= 2


def test_keys_come_from_the_environment_and_go_to_their_own_server_only(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert key_for("https://api.openai.com/v1", None) == SECRET
    assert (
        key_for("http://127.0.0.1:9/v1", None)
        == key_for("https://elsewhere.example/v1", None)
        == "none"
    )
    monkeypatch.setenv("OTHER_KEY", SECRET + "2")
    with StubServer() as stub:
        stub.keep = True
        judge(
            TASK,
            answers(1),
            judge=at(stub, key_env="OTHER_KEY"),
            ledger=tmp_path / "l.sqlite",
            progress=False,
        )
        assert stub.headers[0]["Authorization"] == f"Bearer {SECRET}2"
    assert SECRET.encode() not in b"".join(p.read_bytes() for p in tmp_path.iterdir())


def test_a_lone_429_delays_only_its_own_call():
    """Retry-After held everybody back: 5% random 429 made a run 16 to 65 times longer."""
    came = []

    def handler(body, n):
        answer, rows = asked(body)
        came.append((time.monotonic(), answer))
        if n == 3:
            return 429, {"error": {"message": "wait"}}, {"Retry-After": "1.0"}
        return completion(content(answer, rows, True))

    with StubServer(handler=handler) as stub:
        who = at(stub, concurrency=2)
        judge(TASK, answers(20), judge=who, progress=False)
    twice = [a for _, a in came if [x for _, x in came].count(a) > 1]
    first, second = (t for t, a in came if a == twice[0])
    assert len(twice) == 2 and second - first >= 1.0  # by the clocks of the server, not of the run
    assert any(first < t < first + 1.0 for t, _ in came) and who.caller.limiter.limit == 2


def test_budget_is_checked_before_the_call_and_not_broken_by_calls_in_flight():
    with StubServer(latency=0.05) as stub:
        with pytest.raises(BudgetError):
            judge(TASK, answers(40), judge=at(stub), progress=False, budget=Budget(calls=7))
        assert stub.calls == 7
        with pytest.raises(BudgetError, match="price"):
            judge(
                TASK,
                answers(1),
                judge=EndpointJudge("m", base_url="http://example.invalid/v1"),
                progress=False,
                budget=Budget(usd=1),
            )
        priced = at(stub, price=(10.0, 10.0))
        with pytest.raises(BudgetError, match="dollars"):
            judge(TASK, answers(40, "x"), judge=priced, progress=False, budget=Budget(usd=0.02))
        assert stub.calls < 7 + 20


def test_the_key_holds_everything_that_shapes_a_verdict():
    """Keys without endpoint, parameters or schema credited one judge's verdicts to another."""
    base = {"base_url": "http://127.0.0.1:1/v1"}
    r, c = answers(1)[0], TASK.criteria[0]
    one = EndpointJudge("m", **base).key(TASK, r, c)
    others = [
        EndpointJudge("n", **base),
        EndpointJudge("m", base_url="http://127.0.0.1:2/v1"),
        EndpointJudge("m", temperature=1.0, **base),
        EndpointJudge("m", how="one", **base),
        EndpointJudge("m", how=2, **base),
        EndpointJudge("m", mode="text", **base),
        EndpointJudge("m", seed=1, **base),
        EndpointJudge("m", probability="stated", **base),
        EndpointJudge("m", sample=1, **base),
        EndpointJudge("m", max_tokens=5, **base),
        EndpointJudge("m", template="single", **base),
    ]
    keys = [j.key(TASK, r, c) for j in others]
    same = EndpointJudge("m", **base)
    keys += [
        same.key(dataclasses.replace(TASK, prompt="other"), r, c),
        same.key(TASK, dataclasses.replace(r, text="other"), c),
        same.key(dataclasses.replace(TASK, criteria=TASK.criteria[:3]), r, c),
        same.key(TASK, r, TASK.criteria[1]),
        same.key(TASK, r, dataclasses.replace(c, text="other")),
        same.key(dataclasses.replace(TASK, sources={"a": "b"}), r, c),
    ]
    assert one == same.key(TASK, r, c) and len({one, *keys}) == 1 + len(keys)
    assert (
        same.key(
            dataclasses.replace(TASK, id="u"),
            dataclasses.replace(r, id="q"),
            dataclasses.replace(c, weight=5.0),
        )
        == one
    )


def test_the_request_puts_shared_parts_first():
    who = EndpointJudge("m", base_url="http://127.0.0.1:1/v1")
    one, two = (json.dumps(who.body(TASK, r, TASK.criteria)["messages"]) for r in answers(2))
    common = next(i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
    assert common > one.index("says w3")  # prompt and criteria are the common prefix of all answers
    single = EndpointJudge("m", base_url="http://127.0.0.1:1/v1", how="one")
    one, two = (
        json.dumps(single.body(TASK, answers(1)[0], [c])["messages"]) for c in TASK.criteria[:2]
    )
    common = next(i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
    assert common > one.index("number 0 end")  # the answer is the common prefix of all criteria


def test_stated_confidence_and_logprobs_become_p():
    def handler(body, n):
        _, rows = asked(body)
        assert (
            "CONFIDENCE" in body["messages"][1]["content"]
            or '"confidence" third' in body["messages"][1]["content"]
        )
        return completion(
            json.dumps(
                {r["id"]: {"reason": "r", "verdict": "unmet", "confidence": 90} for r in rows[:2]}
                | {r["id"]: {"reason": "r", "verdict": "met"} for r in rows[2:]}
            )
        )

    with StubServer(handler=handler) as stub:
        got = judge(TASK, answers(1), judge=at(stub, probability="stated"), progress=False)
        assert [v.p for v in got] == [pytest.approx(0.1)] * 2 + [None, None]


def test_a_verdict_can_be_traced_to_its_call(tmp_path):
    with StubServer() as stub:
        who, book = at(stub), Ledger(tmp_path / "l.sqlite")
        got = judge(TASK, answers(1), judge=who, ledger=book, progress=False)
        assert len(list(book.calls())) == 1
        found = book.explain(got[0].key[:24])
        assert (
            found["call"]["request"]["messages"][0]["role"] == "system"
            and len(found["same_call"]) == 3
        )
        assert book.costs()[0]["calls"] == 1


def test_queueing_servers_are_not_flooded(monkeypatch):
    """vLLM and llama.cpp never say 429: with 4 slots and a deadline, 256 at once lost 180 of 256 calls."""
    now, most = 0.0, 0
    monkeypatch.setattr(limiting, "time", SimpleNamespace(monotonic=lambda: now))
    limiter = EndpointJudge("m", base_url="http://127.0.0.1:9/v1").caller.limiter
    for _ in range(400):
        while limiter.used < int(limiter.limit):
            free(limiter.acquire())
        most = max(most, limiter.used)
        now += 0.05 / min(4, limiter.used)  # whatever is in flight, 4 are worked on
        limiter.told("ok")
        limiter.release()
    assert 4 <= most <= 48 and limiter.queues


def free(slot):
    """Take a slot that is free: nothing to wait for."""
    with pytest.raises(StopIteration):
        slot.send(None)


def hostile(n, seed=1, **more):
    faults = dict(HOSTILE)
    with StubServer(latency=0.01, faults=faults, seed=seed) as stub:
        who = at(stub, timeout=4.0, concurrency=64, **more)
        rs = answers(n)
        got = judge(TASK, rs, judge=who, progress=False)
        return stub, got, rs


def check_hostile(n):
    stub, got, rs = hostile(n)
    texts = {r.id: r.text for r in rs}
    assert len(got) == 4 * n
    wrong = [v for v in got if v.known and not right(v, texts[v.response_id])]
    lost = [v for v in got if not v.known]
    assert not wrong and all(v.failure for v in lost) and len(lost) <= 0.001 * len(got)
    assert max(stub.paid.values()) == 1, "something was paid twice"
    return stub


def test_hostile_server_nothing_lost_nothing_paid_twice():
    stub = check_hostile(400)
    assert sum(stub.served.values()) > 400


@pytest.mark.slow
def test_hostile_server_ten_thousand_calls():
    stub = check_hostile(10_000)
    assert all(stub.served[k] > 20 for k in HOSTILE)


def test_wrong_choices_are_named():
    for bad in ({"how": "some"}, {"how": 0}, {"mode": "xml"}, {"probability": "gut"}):
        with pytest.raises(KitError):
            EndpointJudge("m", **bad)


def test_a_dying_default_is_announced(caplog):
    with caplog.at_level(logging.WARNING):
        EndpointJudge("gpt-5-mini")
    assert "2026-12-11" in caplog.text


def test_the_small_judge_waits_longer_than_a_busy_laptop_needs():
    # two answers took over 120 s on a machine with other work: "the judge is down" ended the run
    from kit.judge.server import small

    judge = small()
    assert judge._free["timeout"] >= 600 and judge._free["patience"] >= 1800
    assert small(timeout=5)._free["timeout"] == 5

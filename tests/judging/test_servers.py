"""Servers that speak chat completions in dialects of their own, as their users reported them.

Each is a function of the request (see fake_server). The right verdict, or unknown with the server's words.
"""

from __future__ import annotations

import json
import logging
import socket
import time

import pytest
from fake_server import FakeServer, chat, honest, http, obj
from judged_words import KEY, TASK, answers, are_true, endpoint

import kit

OPENAI = "invalid_request_error"


def error(status, message, **fields):
    row = {"message": message, "type": OPENAI, "param": None, "code": None, **fields}
    return http({"error": row}, f"{status} No")


def run(server, n=3, ledger=False, **options):
    judge = endpoint(server, **options)
    return kit.judge(TASK, answers(n), judge=judge, ledger=ledger, progress=False)


# -- parameters that a server refuses ---------------------------------------------------------------
ECHOED = {"json_schema": {"name": "reply", "schema": {"properties": {"temperature": 1}}}}


def refuses(name, make):
    """A server that refuses one parameter, in the words of `make`."""
    return lambda asked: make(name) if name in asked.body else None


REFUSALS = {
    "a proxy, at length": ("response_format", lambda n: error(
        400, "litellm.UnsupportedParamsError: openai does not support parameters: "
        f"['{n}'], for model=mine. To drop these, set `litellm.drop_params=True`. " + "More words. " * 60)),
    "pydantic with an echo": ("response_format", lambda n: http(
        {"detail": [{"loc": ["body", n], "msg": "Extra inputs are not permitted", "input": ECHOED}]}, "422 No")),
    "errors as a text": ("max_completion_tokens", lambda n: http(
        {"object": "error", "message": str([{"loc": ("body", n), "msg": "Extra inputs"}]), "code": 400}, "400 No")),
    "a list of errors": ("temperature", lambda n: http(
        [{"error": {"code": 400, "message": f'Invalid JSON. Unknown name "{n}": Cannot find field.'}}], "400 No")),
    "param": ("temperature", lambda n: error(400, "Unsupported value", param=n)),
    "part of a param": ("response_format", lambda n: error(400, "Invalid schema", param=f"{n}.json_schema.schema")),
    "between backquotes": ("temperature", lambda n: error(400, f"The field `{n}` is not known here")),
    "without quotes": ("response_format", lambda n: error(400, f"{n} is not supported by this model")),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refused_parameter_is_left_out_once_and_recorded(case, ledger):
    name, make = REFUSALS[case]
    with FakeServer(refuses(name, make)) as server:
        assert are_true(run(server, ledger=ledger, concurrency=1))
        assert [name in a.body for a in server.calls] == [True, False, False, False]
        if name == "max_completion_tokens":
            assert server.calls[-1].body["max_tokens"] == server.calls[0].body[name]
    with kit.Ledger(ledger) as book:
        assert all(f'"left out":["{name}"]' in call["settings"] for call in book.calls())


KEPT = {
    "an echo of the request": lambda a: error(400, f"bad request: {json.dumps(a.body)}"),
    "another parameter's name inside": lambda a: error(400, "see 'my_temperature' and 'logprobs_2'"),
    "an English word": lambda a: error(400, "lower the temperature of your language"),
    "a value that is too large": lambda a: error(
        400, "'max_tokens' or 'max_completion_tokens' is too large: 680 > 4096 - 4000"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", KEPT)
def test_what_is_not_refused_by_name_stays_in_the_request(case):
    def reply(a):
        return KEPT[case](a) if "number 1" in a.answer else None

    with FakeServer(reply) as server:
        verdicts = run(server, concurrency=1)
    first, last = server.calls[0].body, server.calls[-1].body
    assert set(first) == set(last)
    lost = [v for v in verdicts if v.response_id == "r1"]
    assert {v.failure for v in lost} == {"error"} and "HTTP 400" in lost[0].reason
    assert are_true([v for v in verdicts if v.response_id != "r1"])


def words(limit, asked):
    """A server of one word that allows so many candidates, or none (None)."""
    sent = asked.body.get("top_logprobs", 0)
    if limit is None and "logprobs" in asked.body:
        return error(400, "'logprobs' is not supported", param="logprobs")
    if sent > (limit or 0):
        return error(400, f"'top_logprobs' must be at most {limit}", param="top_logprobs")
    if sent and not asked.body.get("logprobs"):
        return error(400, "'logprobs' must be true if 'top_logprobs' is used", param="top_logprobs")
    data = chat(honest(asked))
    if sent:
        word, other = ("yes", "no") if honest(asked) == "yes" else ("no", "yes")
        rows = [{"token": word, "logprob": -0.2}, {"token": other, "logprob": -1.7}][:sent]
        content = [{"token": word, "top_logprobs": rows}]
        data["choices"][0]["logprobs"] = {"content": content}
    return data


LIMITS = [(20, 20, True), (5, 5, True), (0, None, False), (None, None, False)]


@pytest.mark.parametrize(("limit", "sent", "has_p"), LIMITS)
def test_fewer_candidates_before_none_and_a_lost_probability_is_said(limit, sent, has_p, caplog):
    with FakeServer(lambda a: words(limit, a)) as server:
        verdicts = run(server, how="word", concurrency=1)
    assert are_true(verdicts) and all((v.p is not None) == has_p for v in verdicts)
    assert server.calls[-1].body.get("top_logprobs") == sent
    assert ("no P(met)" in caplog.text) is not has_p


# What SmolLM2-135M gave beside the words that its grammar forced.
SPELLINGS = {
    "w0": ("yes", "unmet", {"No": -2.99, "Yes": -3.36, "yes": -5.14, "no": -5.19}),
    "w1": ("no", "met", {"Yes": -2.99, "No": -3.36, "no": -5.14, "yes": -5.19}),
    "w2": ("yes", "met", {"Yes": -3.23, "No": -3.86}),
}


def forced(asked):
    """A server whose grammar allows lower case only, and whose candidates come before it."""
    word, _, tops = SPELLINGS[asked.answer.split()[0]]
    rows = [{"token": token, "logprob": x} for token, x in tops.items()]
    data = chat(word)
    data["choices"][0]["logprobs"] = {"content": [{"token": word, "top_logprobs": rows}]}
    return data


def test_a_verdict_of_one_word_follows_p_and_says_so_where_the_word_differs():
    with FakeServer(forced) as server:
        verdicts = run(server, how="word", concurrency=1)
    for v in verdicts:
        word, status, _ = SPELLINGS[f"w{int(v.response_id[1:]) % 3}"]
        assert v.status == status and (v.p >= 0.5) == (status == "met")
        assert v.value == float(status == "met")
        said = f'the reply is "{word}"' in (v.reason or "")
        assert said == ((word == "yes") != (status == "met"))


def test_the_schema_can_be_turned_off(ledger):
    with FakeServer() as server:
        assert are_true(run(server, ledger=ledger, schema=False))
        assert not any("response_format" in a.body for a in server.calls)
        # Another request is another question.
        run(server, ledger=ledger)
        assert len(server.calls) == 6


SCHEMA_FAILS = {
    "json_validate_failed": (lambda: error(400, "Failed to generate JSON.", code="json_validate_failed"), "parse", 6),
    "grammar": (lambda: http({"error": {"message": "failed to parse grammar"}}, "400 No"), "error", 3),
}  # fmt: skip


@pytest.mark.parametrize("case", SCHEMA_FAILS)
def test_a_schema_that_always_fails_says_which_option_to_set(case, caplog):
    make, failure, calls = SCHEMA_FAILS[case]
    with FakeServer(lambda a: make() if "response_format" in a.body else None) as server:
        verdicts = run(server)
        assert len(server.calls) == calls
        assert are_true(run(server, schema=False))
    assert {v.failure for v in verdicts} == {failure}
    assert "schema: false" in verdicts[0].reason and "schema: false" in caplog.text


# -- errors about one answer ------------------------------------------------------------------------
FILTERS = {
    "Azure": lambda: error(400, "The response was filtered", code="content_filter", param="prompt"),
    "Azure, inner": lambda: error(400, "Filtered", innererror={"code": "content_filter"}),
    "a policy": lambda: error(400, "Your request was rejected", code="content_policy_violation"),
    "a router": lambda: http(
        {"error": {"code": 403, "message": "flagged", "metadata": {"flagged_input": "x"}}}, "403 No"
    ),
    "in the reply": lambda: chat("", "content_filter"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILTERS)
@pytest.mark.parametrize("concurrency", [1, 64])
def test_a_content_filter_is_a_stored_refusal_however_many_answers_it_hits(
    case, concurrency, ledger
):
    def reply(a):
        return FILTERS[case]() if int(a.answer.split()[-1]) < 12 else None

    with FakeServer(reply) as server:
        first = run(server, 30, ledger, concurrency=concurrency)
        again = run(server, 30, ledger, concurrency=concurrency)
        assert len(server.calls) == 30 and again.spent.calls == 0
    lost = [v for v in first if v.failure]
    assert {v.failure for v in lost} == {"refusal"} and len(lost) == 3 * 12
    assert are_true([v for v in first if not v.failure])


def test_an_error_about_one_answer_is_unknown_with_the_servers_words(ledger):
    words = "This model's maximum context length is 4096 tokens."

    def reply(a):
        return error(400, words) if int(a.answer.split()[-1]) < 12 else None

    with FakeServer(reply) as server:
        verdicts = run(server, 30, ledger, concurrency=1)
        lost = [v for v in verdicts if v.failure]
        assert {v.failure for v in lost} == {"error"} and len(lost) == 3 * 12
        assert all(words in v.reason for v in lost)
        assert are_true([v for v in verdicts if not v.failure])
        # It is not stored: a server with more room is asked again.
        run(server, 30, ledger, concurrency=1)
        assert len(server.calls) == 30 + 12


# -- replies that are whole, and those that are not -------------------------------------------------
ENDS = ["stop", "eos", "eos_token", "stop_sequence", "end_turn", "STOP", "COMPLETE"]


@pytest.mark.parametrize("end", ENDS)
def test_words_of_other_servers_for_a_whole_reply(end):
    with FakeServer(lambda a: chat(obj(a), end)) as server:
        assert are_true(run(server))


def broken_choice(asked):
    data = chat("", "error")
    data["choices"][0]["error"] = {"code": 502, "message": "Upstream error"}
    return data


UNFINISHED = {
    "cut": (lambda a: chat("{", "length"), "max_tokens"),
    "a thought alone": (lambda a: chat(None, reasoning_content="hm"), "only a thought"),
    "an empty text": (lambda a: chat(""), "(empty)"),
    "parts": (lambda a: chat([{"type": "text", "text": "x"}]), "list"),
    "a tool": (lambda a: chat(None, "tool_calls", tool_calls=[{}]), "tool"),
    "no end": (lambda a: chat(obj(a), None), "None"),
    "another form": (lambda a: "Sure! Here it is", "Sure! Here"),
    "another role": (lambda a: chat(obj(a), role="user"), "'user'"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNFINISHED)
def test_the_reason_of_an_unknown_names_what_came(case):
    reply, part = UNFINISHED[case]
    with FakeServer(lambda a: reply(a) if "number 0" in a.answer else None) as server:
        verdicts = run(server)
    assert {v.failure for v in verdicts[:3]} == {"parse"} and part in verdicts[0].reason
    assert are_true(verdicts[3:])


def test_an_error_inside_a_reply_is_the_servers_and_not_the_answers(ledger):
    with FakeServer(lambda a: broken_choice(a) if "number 0" in a.answer else None) as server:
        verdicts = run(server, ledger=ledger)
        assert {v.failure for v in verdicts[:3]} == {"transport"}
        assert "Upstream error" in verdicts[0].reason
        run(server, ledger=ledger)
        assert len(server.calls) == 4


# -- endpoints that are not there -------------------------------------------------------------------
def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.mark.parametrize("n", [1, 50])
def test_a_port_where_nothing_listens_stops_a_run_by_name_at_once(n):
    judge = {"endpoint": "m", "base_url": f"http://127.0.0.1:{free_port()}/v1"}
    start = time.monotonic()
    with pytest.raises(kit.JudgeDownError, match="nothing listens") as stop:
        kit.judge(TASK, answers(n), judge=judge, progress=False)
    assert time.monotonic() - start < 2
    assert len(stop.value.verdicts) == 3 * n


def test_an_unknown_host_stops_a_run_by_name_at_once():
    judge = {"endpoint": "m", "base_url": "http://judge.invalid/v1"}
    start = time.monotonic()
    with pytest.raises(kit.JudgeDownError, match="unknown host"):
        kit.judge(TASK, answers(3), judge=judge, progress=False)
    assert time.monotonic() - start < 2


DOORS = {
    401: ("Incorrect API key provided", {}, "KIT_JUDGE_KEY"),
    404: ("The model `m` does not exist", {}, "name of the model"),
    402: ("Insufficient Balance", {}, "balance"),
    429: ("You exceeded your current quota", {"code": "insufficient_quota"}, "balance"),
}


@pytest.mark.parametrize("status", DOORS)
def test_a_closed_door_stops_a_run_with_the_servers_words(status):
    message, fields, fix = DOORS[status]
    start = time.monotonic()
    with FakeServer(lambda a: error(status, message, **fields)) as server:
        with pytest.raises(kit.JudgeDownError, match=f"HTTP {status}: {message}") as stop:
            run(server, 50, tries=10)
        assert len(server.calls) <= 2
    assert time.monotonic() - start < 2 and fix in stop.value.fix


def test_a_server_that_is_busy_at_first_is_waited_for():
    def reply(a):
        return http({}, "503 No", Retry_After="0.05") if a.nth <= 2 else None

    with FakeServer(reply) as server:
        assert are_true(run(server, 6, tries=3))


# -- what is on the screen, and what never is -------------------------------------------------------
def test_where_every_verdict_fails_the_reason_and_a_raw_reply_are_said(caplog):
    with FakeServer(lambda a: "I would rather talk about cheese.") as server:
        run(server)
    assert "not in the requested form" in caplog.text and "about cheese" in caplog.text


def test_one_known_verdict_is_enough_for_silence(caplog):
    caplog.set_level(logging.WARNING)
    with FakeServer(lambda a: "cheese" if "number 1" in a.answer else None) as server:
        run(server)
    assert caplog.text == ""


KEYS = ['half"quote\\back/slash12345', KEY, "new\nline\ttab-1234567"]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_not_stored_however_json_writes_it(key, ledger, monkeypatch):
    key = key.strip()
    monkeypatch.setenv("OWN_KEY", key)
    forms = [key, json.dumps(key)[1:-1], json.dumps(json.dumps(key))[3:-3]]

    def reply(a):
        return obj(a).replace("looked", json.dumps("your key is " + "; ".join(forms))[1:-1])

    with FakeServer(reply) as server:
        answer = kit.Response(task_id="t", id="r0", text=f"w0 {key}")
        judge = endpoint(server, key_env="OWN_KEY")
        if "\n" in key:
            # No header can carry it.
            with pytest.raises(kit.KitError):
                kit.judge(TASK, [answer], judge=judge, ledger=ledger, progress=False)
            return
        verdicts = kit.judge(TASK, [answer], judge=judge, ledger=ledger, progress=False)
        assert server.calls[0].key == key
    texts = [repr(list(verdicts)), *(v.reason or "" for v in verdicts)]
    with kit.Ledger(ledger) as book:
        texts += [
            str(list(book.verdicts())),
            *(f"{c['request']}{c['reply']}" for c in book.calls()),
        ]
    for path in ledger.parent.glob("ledger.sqlite*"):
        texts.append(path.read_bytes().decode("latin-1"))
    assert not any(form in text for form in forms for text in texts)


def test_half_of_a_surrogate_pair_in_a_task_is_an_error_of_data():
    task = kit.Task(id="t", prompt="Name \ud83d words.", criteria=TASK.criteria)
    with FakeServer() as server, pytest.raises(kit.DataError, match="surrogate"):
        kit.judge(task, answers(1), judge=endpoint(server), progress=False)


# -- costs ------------------------------------------------------------------------------------------
def test_an_unknown_price_is_never_zero_dollars():
    judge = {"endpoint": "own", "base_url": "https://judge.invalid/v1"}
    forecast = kit.estimate(TASK, answers(2), judge=judge)
    assert forecast.cost is None and "price unknown" in str(forecast) and "$" not in str(forecast)
    assert " s," not in str(forecast)


def test_a_run_without_a_price_says_so(ledger):
    with FakeServer() as server:
        kit.judge(TASK, answers(1), judge=endpoint(server), ledger=ledger, progress=False)
        budget = kit.Budget()
        judge = kit.judge_of(endpoint(server))
        judge.server.price = None  # a server elsewhere whose price nobody knows
        verdicts = kit.judge(
            TASK, answers(2), judge=judge, ledger=ledger, budget=budget, progress=False
        )
        assert verdicts.spent.cost is None and "price unknown" in repr(verdicts)
        assert budget.unpriced_calls == 1


def test_python_and_the_command_line_share_a_ledger():
    with FakeServer() as server:
        run_once = {"judge": endpoint(server), "progress": False}
        kit.judge(TASK, answers(2), **run_once)
        assert kit.judge(TASK, answers(2), **run_once).spent.calls == 0
        assert kit.judge(TASK, answers(2), ledger=False, **run_once).spent.calls == 2

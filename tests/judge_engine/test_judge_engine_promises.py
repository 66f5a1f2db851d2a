"""What somebody from outside found in a later round: each test tells one of those finds."""

from __future__ import annotations

import json

import pytest
from judge_stub import StubServer, completion

from kit.errors import KitError
from kit.judge import EndpointJudge, judge, keys
from kit.judge.decisions import DecisionJudge
from kit.judge.factory import judge_of
from kit.judge.ledger import Ledger
from kit.judge.wire import Address
from kit.records import Criterion, Response, Task

TASK = Task(id="t", prompt="Say it", criteria=(Criterion(id="c1", text="names Paris"),))
ANSWER = Response(task_id="t", id="r", text="Paris")
NAMELESS = "Zq8Wm3Kx9Lr2Tn5Bv7Cd1"  # a key by its look alone


def says(verdict, reason="r", **more):
    return completion(json.dumps({"c1": {"reason": reason, "verdict": verdict, **more}}))


def once(url, book=None, **options):
    who = {"endpoint": "m", "base_url": url, "tries": 1, "repair": 0, **options}
    return judge([TASK], [ANSWER], judge=who, ledger=book, progress=False)[0]


# -- what chooses the judge is in the key ---------------------------------------------------------
def test_headers_that_choose_who_answers_are_in_the_key(tmp_path):
    """A gateway's route "a" said met; route "b" got it from the ledger, and would have said unmet."""
    with StubServer(handler=lambda body, n: says("met" if n == 1 else "unmet")) as stub:
        for route, want in (("a", "met"), ("b", "unmet"), ("a", "met")):
            v = once(stub.url, tmp_path / "l", headers={"x-portkey-config": route})
            assert v.status == want
        assert stub.calls == 2
        capital = once(stub.url, tmp_path / "l", headers={"X-Portkey-Config": "a"})
        assert capital.cached
        for key in ("first-key-1", "second-key-2"):  # a new key is no new judge
            v = once(stub.url, tmp_path / "l", headers={"X-Portkey-Config": "a", "X-Api-Key": key})
            assert v.cached


def test_a_judge_without_headers_keeps_its_keys():
    """What was paid before headers were in the key must be found again."""
    one = EndpointJudge("m", base_url="http://127.0.0.1:1/v1", headers={"X-Auth": "x"})
    none = EndpointJudge("m", base_url="http://127.0.0.1:1/v1")
    assert one._own == none._own


# -- a key is known by its look -------------------------------------------------------------------
def test_a_key_under_any_name_is_not_stored(tmp_path):
    """?jwt=KEY stood in the ledger and in its cost book; a header X-Gateway: KEY in reasons."""
    with StubServer(handler=lambda body, n: says("met", f"you sent {NAMELESS}")) as stub:
        url = f"{stub.url}?t={NAMELESS}&jwt={NAMELESS}&api-version=1"
        extra = {"tools": [{"opts": {"who": NAMELESS}}]}
        v = once(url, tmp_path / "l", headers={"X-Gateway": NAMELESS}, extra=extra)
    with Ledger(tmp_path / "l") as book:
        book.export(tmp_path / "x.jsonl", requests=True)
        endpoint = book.costs()[0]["endpoint"]
    assert v.status == "met" and "[key]" in v.reason
    assert NAMELESS not in (tmp_path / "x.jsonl").read_text() + endpoint
    assert endpoint.endswith("&jwt=[key]&api-version=1")


def test_two_deployments_in_a_query_are_two_endpoints():
    """Their digests stay apart, as they do in a path."""
    a, b = (Address.of(f"http://h/v1?d={c * 20}1").shown for c in "ab")
    assert a != b and "aaa" not in a


@pytest.mark.parametrize("name", ["X-JWT", "pwd", "X-Pass", "X-Bearer", "X-Session", "X-Sig"])
def test_more_names_tell_of_a_secret(name):
    assert keys.secret_name(name)
    assert not any(map(keys.secret_name, ("x-portkey-config", "passage", "X-Route", "design")))


# -- options that cannot be kept ------------------------------------------------------------------
@pytest.mark.parametrize(
    "name", ["model", "messages", "max_tokens", "max_completion_tokens", "n", "stream"]
)
def test_a_field_that_the_kit_fills_in_is_refused(name):
    """extra={"max_completion_tokens": 5} was dropped without a word; n=3 was paid, none believed."""
    with pytest.raises(KitError, match=f"{name} is the kit's to fill in"):
        EndpointJudge("m", extra={name: 3})


UNSENDABLE = (
    *({"X": "a\r\nEvil: b"}, {"X\r\nEvil": "b"}, {"X": "a\0b"}, {"": "z"}, {"X Y": "z"}),
    *({"Content-Length": "5"}, {"transfer-encoding": "chunked"}),
)


@pytest.mark.parametrize("header", UNSENDABLE)
def test_a_header_that_cannot_be_sent_is_named_before_the_first_call(header):
    """Every call failed with "Forbidden control character", or the message was no HTTP."""
    with pytest.raises(KitError, match="is no header"):
        judge_of({"endpoint": "m", "headers": header})


# -- decisions ------------------------------------------------------------------------------------
ROW = {"type": "noul", "noul": 0.9}


@pytest.mark.parametrize(
    ("row", "whole", "failure"),
    [
        ({"noul": 0.9, "probability": 0.1}, {}, "contradiction"),
        ({"probability": 0.9, "answer": False}, {}, "contradiction"),
        ({"type": "choice", "probability": 0.9, "choice": "no"}, {}, "parse"),
        ({"type": "error", "noul": 0.1}, {}, "parse"),
        ({"noul": 0.1, "error": "could not"}, {}, "parse"),
        ({"noul": 0.1, "refusal": "I refuse"}, {}, "refusal"),
        ({"noul": 0.1, "status": "failed"}, {}, "parse"),
        ({"noul": 0.9, "name": "c2"}, {}, "parse"),
        (ROW, {"status": "incomplete", "incomplete_details": {"reason": "x"}}, "parse"),
        ({"noul": "high"}, {}, "parse"),
        (None, {}, "missing"),
    ],
)
def test_a_decision_that_contradicts_itself_or_failed_is_unknown(row, whole, failure):
    """Each was believed: .1 beside .9, a choice "no" as met, a failed row as unmet."""
    found = {"answers": {"c1": row, "x": ROW}, "usage": {}, **whole}
    with StubServer(handler=lambda body, n: found) as stub:
        who = DecisionJudge("m", base_url=stub.url, tries=1)
        v = judge([TASK], [ANSWER], judge=who, progress=False)[0]
    assert (v.status, v.failure) == ("unknown", failure) and v.reason


def test_what_decision_servers_add_refuses_nothing():
    row = {**ROW, "name": "c1", "label_mass": 0.98, "answer": True, "latency_ms": 3}
    more = {"id": "d", "object": "decision", "status": "completed", "request_id": "q"}
    with StubServer(handler=lambda body, n: {"answers": {"c1": row}, **more}) as stub:
        who = DecisionJudge("m", base_url=stub.url, tries=1)
        v = judge([TASK], [ANSWER], judge=who, progress=False)[0]
    assert (v.status, v.p) == ("met", 0.9)

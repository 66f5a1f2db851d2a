"""The batch judge against a provider that loses answers: each test tells what was paid twice."""

from __future__ import annotations

import json

import pytest
from judge_stub import BatchStub, completion, content

from kit.errors import JudgeDownError
from kit.judge import BatchJudge, EndpointJudge, Ledger, judge, provider
from kit.records import Criterion, Response, Task

TASK = Task(
    id="t", prompt="Say.", criteria=tuple(Criterion(id=f"c{i}", text=f"says w{i}") for i in "01")
)
ANSWERS = [Response(task_id="t", id=f"r{i}", text=f"w{i % 2} number {i}") for i in range(4)]


def ask(stub, book, patience=20.0):
    inner = EndpointJudge("m", base_url=stub.url, patience=patience)
    who = BatchJudge(inner, poll=0.01, gather=0.02)
    return judge(TASK, ANSWERS, judge=who, ledger=book, progress=False)


def right(got):
    return len(got) == 8 and all(
        v.status == ("met" if int(v.response_id[1]) % 2 == int(v.criterion_id[1]) else "unmet")
        for v in got
    )


def once(stub):
    return len(stub.batches) == 1 and set(stub.paid.values()) == {1}


def half(text):
    return text[: len(text) // 2]


PAGE = "<html>gateway</html>"


@pytest.mark.parametrize("bad", [PAGE, "", half, (500, "{}"), (404, "{}"), None, "[]"])
def test_one_bad_download_of_the_replies_loses_none(tmp_path, bad):
    """It lost them all; the batch was forgotten, and the same command paid for a second one."""
    with BatchStub(spoil={"content": [bad]}) as stub:
        assert right(ask(stub, tmp_path / "l.sqlite")) and once(stub)


@pytest.mark.parametrize("bad", [PAGE, "", half])
def test_a_batch_whose_replies_stay_broken_is_fetched_again_by_the_next_run(tmp_path, bad):
    with BatchStub(spoil={"content": [bad] * 200}) as stub:
        got = ask(stub, tmp_path / "l.sqlite", patience=0.05)
        assert "transport" in {v.failure for v in got}
        assert all(v.failure == "transport" for v in got if not v.known)
        stub.spoil.clear()
        assert right(ask(stub, tmp_path / "l.sqlite")) and once(stub)


@pytest.mark.parametrize("bad", [None, (500, "{}"), "junk", "[]", "{}"])
def test_a_batch_whose_answer_was_lost_is_looked_for(tmp_path, bad):
    """Its client's own retry, or the next run, sent it again: paid twice without a word. What was
    no answer at all (junk, a list) was a traceback.
    """
    with BatchStub(spoil={"batches": [bad]}) as stub:
        assert right(ask(stub, tmp_path / "l.sqlite")) and once(stub)


def test_a_batch_of_which_nobody_knows_is_looked_for_by_the_next_run(tmp_path):
    """The list was never asked for; while it cannot be had, nothing is sent and it is said so."""
    with BatchStub(spoil={"batches": [None], "look": ["junk"] * 200}) as stub:
        with pytest.raises(JudgeDownError, match="nobody knows whether a batch"):
            ask(stub, tmp_path / "l.sqlite", patience=0.05)
        stub.spoil.clear()
        assert right(ask(stub, tmp_path / "l.sqlite")) and once(stub)


@pytest.mark.parametrize("bad", [(404, "{}"), "[]", "junk", '{"id": "batch_0", "status": 5}', None])
def test_one_strange_answer_to_a_look_ends_nothing(tmp_path, bad):
    """A 404, once, made the batch forgotten and paid again; a list was a traceback."""
    with BatchStub(spoil={"look": [bad]}) as stub:
        assert right(ask(stub, tmp_path / "l.sqlite")) and once(stub)


def test_a_batch_that_stays_away_is_named_and_then_sent_anew(tmp_path):
    with BatchStub(spoil={"look": [(404, "{}")] * 200}) as stub:
        with pytest.raises(JudgeDownError, match="cannot be asked for"):
            ask(stub, tmp_path / "l.sqlite", patience=0.05)
        stub.spoil.clear()
        assert right(ask(stub, tmp_path / "l.sqlite")) and len(stub.batches) == 2


@pytest.mark.parametrize("bad", ["junk", "[]", "{}"])
def test_a_file_that_was_not_taken_in_is_sent_again(tmp_path, bad):
    """Each was a traceback, and {} left a batch called null behind."""
    with BatchStub(spoil={"files": [bad]}) as stub:
        assert right(ask(stub, tmp_path / "l.sqlite")) and once(stub)


def test_a_crash_between_sending_and_noting_sends_nothing_twice(tmp_path):
    """The batch's id was noted only when the answer had come."""

    class Killed(Exception):
        pass

    with BatchStub() as stub:
        inner = EndpointJudge("m", base_url=stub.url)
        who = BatchJudge(inner, poll=0.01, gather=0.02)
        create = who.provider._create

        async def killed(file_id):
            await create(file_id)
            raise Killed

        who.provider._create = killed
        with pytest.raises(Killed):
            judge(TASK, ANSWERS, judge=who, ledger=tmp_path / "l.sqlite", progress=False)
        assert right(ask(stub, tmp_path / "l.sqlite")) and once(stub)


def test_two_processes_note_their_batches_beside_each_other(tmp_path):
    """Each wrote down only what it knew: the other's batch was forgotten."""
    from kit.judge.provider import Sent

    book = Ledger(tmp_path / "l.sqlite")
    one, two = Sent(book, "b"), Sent(book, "b")
    one.change({"x": ["1"]})
    two.change({"y": ["2"]})
    one.change({}, gone="x")
    assert book.note("b") == {"y": ["2"]} and one.of(["2"]) == {"y": ["2"]}


def spoiled(change):
    """The output file with its first line changed to these."""

    def text(lines):
        first, *rest = lines.split("\n")
        return "\n".join([json.dumps(r) for r in change(json.loads(first))] + rest)

    return text


def other(row):
    """The same request with the opposite reply."""
    rows = [{"id": c, "criterion": "says nothing"} for c in ("c0", "c1")]
    body = completion(content("w0 w1 nothing", rows, True))
    return [row, {**row, "response": {"status_code": 200, "body": body}}]


def test_two_replies_to_one_request_are_no_verdict(tmp_path):
    """The first line was believed."""
    with BatchStub(spoil={"content": [spoiled(other)]}) as stub:
        got = ask(stub, tmp_path / "l.sqlite")
        assert [v.failure for v in got if not v.known] == ["contradiction"] * 2
    with BatchStub(spoil={"content": [spoiled(lambda row: [row, row])]}) as stub:
        assert right(ask(stub, tmp_path / "m.sqlite"))  # the same twice says nothing new


@pytest.mark.parametrize(
    "change",
    [
        lambda row: [{**row, "error": {"code": "batch_expired", "message": "too late"}}],
        lambda row: [{**row, "response": {**row["response"], "status_code": 500}}],
        lambda row: [{**row, "response": {"status_code": 200, "body": None}}],
        lambda row: [
            {**row, "response": {"status_code": 200, "body": {"error": "x", "choices": [1]}}}
        ],
    ],
)
def test_a_reply_beside_an_error_is_not_believed(tmp_path, change):
    """A line with an error and a reply was taken for the reply."""
    with BatchStub(spoil={"content": [spoiled(change)]}) as stub:
        got = ask(stub, tmp_path / "l.sqlite")
        assert [v.failure for v in got if not v.known] == ["transport"] * 2


def test_a_mark_before_the_first_line_and_other_line_ends_lose_no_answer():
    """The output file of a batch with a byte order mark lost its first answer."""
    rows: dict = {}
    assert provider._lines('\ufeff{"custom_id": "a"}\r\n{"custom_id": "b"}\r\n', rows)
    assert set(rows) == {"a", "b"}

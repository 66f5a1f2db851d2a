"""The ledger: what it keeps, what it explains, and what it does with files that are not its own."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import stat
import time

import psutil
import pytest
from fake_server import FakeServer
from judged_words import TASK, answers, are_true, endpoint
from msgspec.structs import replace

import kit
from kit.data import TaskSet
from kit.judging import complete
from kit.system import paths

IDS = {"task_id": "t", "response_id": "r", "criterion_id": "c", "judge": "m"}


def key(settings="a", answer="b"):
    parts = (settings, "t", answer, "c", "g")
    return "-".join((p * 16)[:16] for p in parts)


def verdict(place, status="met", **more):
    failure = {"failure": "parse"} if status == "unknown" else {}
    return kit.Verdict(**{**IDS, "key": place, "status": status, **failure, **more})


def call(number="c1", **more):
    row = {
        "call": number,
        "judge": "m",
        "model": "x",
        "created": 1.0,
        "tokens_in": 5,
        "tokens_out": 2,
    }
    return {**row, "cost": 0.5, "settings": "{}", "request": "[]", "reply": "text", **more}


def test_a_verdict_is_stored_once_and_an_unknown_one_gives_way(ledger):
    with kit.Ledger(ledger) as book:
        book.put([verdict(key(), "unknown")], call("c1"))
        book.put([verdict(key(), "met")], call("c2"))
        book.put([verdict(key(), "unmet"), verdict(key("z"), "unmet")], call("c3"))
        book.put([verdict(None)], call("c3"))  # no key: not stored; the same call: stored once
    with kit.Ledger(str(ledger)) as book:
        assert len(list(book.verdicts())) == 2
        assert book.get([key(), key("z"), "none"])[key()].status == "met"
        assert [v.status for v in book.verdicts()] == ["met", "unmet"]
        assert [c["call"] for c in book.calls()] == ["c1", "c2", "c3"]
        costs = book.costs()
        assert costs.loc[0, ["calls", "tokens_in", "cost"]].tolist() == [3, 15, 1.5]
        assert book.explain(key()[:12])["verdict"].status == "met"


def test_a_new_folder_is_private(tmp_path):
    folder = tmp_path / "new" / "folder"
    kit.Ledger(folder / "ledger.sqlite").close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def broken_text(path):
    path.write_text("no database, " * 1000)


def broken_half(path):
    with kit.Ledger(path) as book:
        book.put([verdict(key(str(i))) for i in range(500)])
    sqlite3.connect(path).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    data = bytearray(path.read_bytes())
    data[4096:-4096] = os.urandom(len(data) - 8192)
    path.write_bytes(data)


def of_another_tool(path):
    sqlite3.connect(path).executescript("CREATE TABLE t(x); INSERT INTO t VALUES(1)")


@pytest.mark.parametrize("breaks", [broken_text, broken_half, of_another_tool])
def test_a_broken_file_is_an_error_and_stays_as_it_is(breaks, ledger):
    breaks(ledger)
    before = ledger.read_bytes()
    with pytest.raises(kit.DataError) as error:
        book = kit.Ledger(ledger)
        list(book.verdicts())
        book.put([verdict(key("new"))])
    assert error.value.where == str(ledger) and error.value.fix
    assert ledger.read_bytes() == before


def test_export_and_load_give_the_same_ledger(tmp_path):
    with kit.Ledger(tmp_path / "a.sqlite") as book:
        book.put([verdict(key(), reason="because \u2713", p=0.9), verdict(key("z"))], call("c1"))
        book.put([verdict(key("y"), "unknown")], call("c2"))
        for name in ("out.jsonl", "out.jsonl.gz"):
            assert book.export(tmp_path / "out.jsonl") == 3
            with gzip.open(tmp_path / "out.jsonl.gz", "wb") as f:
                f.write((tmp_path / "out.jsonl").read_bytes())
            with kit.Ledger(tmp_path / f"{name}.sqlite") as other:
                assert other.load(tmp_path / name) == 3 == other.load(tmp_path / name)
                assert list(other.verdicts()) == list(book.verdicts())
                assert other.calls() == book.calls()
                assert other.explain(key("z"))["reply"] == "text"
    with gzip.open(tmp_path / "out.jsonl.gz", "rt") as f:
        kinds = [json.loads(line)["record"] for line in f]
    assert kinds == ["verdict"] * 3 + ["call"] * 2
    (tmp_path / "bad.jsonl").write_text('{"record": "verdict", "task_id": 5}\n')
    with kit.Ledger(tmp_path / "c.sqlite") as book, pytest.raises(kit.DataError, match="task_id"):
        book.load(tmp_path / "bad.jsonl")


def test_explain_shows_why_a_call_was_made_twice(ledger):
    """Another prompt, another answer and another set of criteria each change one part of the key."""
    with FakeServer() as server:
        judge = endpoint(server)
        run = {"ledger": ledger, "progress": False}
        first = kit.judge(TASK, answers(1), judge=judge, **run)
        kit.judge(TASK, answers(1), judge={**judge, "system": "Be strict."}, **run)
        fewer = kit.Task(id="t", prompt=TASK.prompt, criteria=TASK.criteria[:2])
        kit.judge(fewer, answers(1), judge=judge, **run)
        longer = [kit.Response(task_id="t", id="r0", text="w0 number 0!")]
        kit.judge(TASK, longer, judge=judge, **run)
        assert len(server.calls) == 4
    with kit.Ledger(ledger) as book:
        why = book.explain(first[0].key)
        differing = [["settings"], ["together"], ["answer"]]
        assert [other["differs in"] for other in why["others"]] == differing
        assert why["verdict"].status == "met" and why["model"] == "fake"
        assert "w0 number 0" in why["request"] and '"c1"' in why["reply"]
        assert json.loads(why["settings"])["model"] == "fake"
        for wrong in ("0000", ""):
            with pytest.raises(kit.DataError, match="begins with"):
                book.explain(wrong)


def test_leases_keep_two_askers_apart(ledger):
    here = f"{os.getpid()} {psutil.Process().create_time()}"
    me, other = f"{here} 1", f"{here} 2"
    with kit.Ledger(ledger) as a, kit.Ledger(ledger) as b:
        assert a.lease(["x", "y"], me, 60)
        assert not b.lease(["y", "z"], other, 60)
        assert b.lease(["z"], other, 60) and a.lease(["x", "y"], me, 60)
        a.release(["x"], me)
        assert b.lease(["x"], other, 60) and not b.lease(["y"], other, 60)
        a.release(["y"], me)
        assert b.lease(["y"], other, 0.05)
        time.sleep(0.06)
        assert a.lease(["y"], me, 60)  # it ran out
        # A process that was killed, and one with its number that started later.
        for name, dead in (("k", "4194304 1.0 3"), ("l", f"{os.getpid()} 1.0 3")):
            assert a.lease([name], dead, 60) and b.lease([name], other, 60)


def test_a_ledger_is_a_recording(ledger, tmp_path):
    with FakeServer() as server:
        run = {"judge": endpoint(server), "progress": False}
        first = kit.judge(TASK, answers(4), ledger=ledger, **run)
    kit.Ledger(ledger).export(tmp_path / "book.jsonl")
    other_ids = [kit.Response(task_id="t", id=f"other{r.id}", text=r.text) for r in answers(4)]
    for place in (ledger, tmp_path / "book.jsonl"):
        again = kit.judge(TASK, answers(4), judge=f"replay:{place}", progress=False)
        assert are_true(again) and again.spent.calls == 0
        # Found by the texts, whatever the ids.
        again = kit.judge(TASK, other_ids, judge=f"replay:{place}", progress=False)
        assert [v.status for v in again] == [v.status for v in first]
        changed = [kit.Response(task_id="t", id="r0", text="w0 number 0 and more")]
        with pytest.raises(kit.MissingError, match="no verdict") as miss:
            kit.judge(TASK, changed, judge=f"replay:{place}", progress=False)
        assert [v.failure for v in miss.value.verdicts] == ["budget"] * 3


REPLAYS = {
    "by ids": ([{**IDS, "criterion_id": "k0"}], None),
    "two judges": ([{**IDS, "criterion_id": "k0"}, {**IDS, "criterion_id": "k0", "judge": "n"}], "several"),
    "at odds": ([{**IDS, "criterion_id": "k0"}, {**IDS, "criterion_id": "k0", "status": "unmet"}], "several"),
    "nothing": ([], "no verdict"),
}  # fmt: skip


@pytest.mark.parametrize("case", REPLAYS)
def test_replay_of_a_verdict_file(case, tmp_path):
    rows, error = REPLAYS[case]
    path = tmp_path / "verdicts.jsonl"
    path.write_text(
        "".join(json.dumps({"record": "verdict", "status": "met", **r}) + "\n" for r in rows)
    )
    task = kit.Task(id="t", prompt="p", criteria=TASK.criteria[:1])
    answer = kit.Response(task_id="t", id="r", text="x")
    run = {"judge": f"replay:{path}", "progress": False}
    if error:
        with pytest.raises(kit.KitError, match=error):
            kit.judge(task, [answer], **run)
    else:
        assert kit.judge(task, [answer], **run)[0].status == "met"
    if case == "two judges":
        judge = {"replay": str(path), "judge": "n"}
        assert kit.judge(task, [answer], judge=judge, progress=False)[0].judge == "n"


def test_completions_are_replayed_by_their_chat(ledger, tmp_path):
    with FakeServer() as server:
        run = {"judge": endpoint(server), "ledger": ledger}
        kit.judge(TASK, answers(1), progress=False, **run)
        text = complete(run["judge"], "hello", ledger=ledger)
    with kit.Ledger(ledger) as book, kit.Ledger(tmp_path / "again.sqlite") as other:
        book.export(tmp_path / "book.jsonl")
        other.load(tmp_path / "book.jsonl")
        assert complete(run["judge"], "hello", ledger=other) == text  # nobody serves any more
    for place in (ledger, tmp_path / "book.jsonl"):
        assert complete({"replay": str(place)}, "hello") == text
        with pytest.raises(kit.MissingError, match="no completion"):
            complete({"replay": str(place)}, "hello!")


def test_a_draft_is_replayed_from_its_recording():
    whole = kit.load(paths.data("rubrics.json")).joined(kit.load(paths.data("answers.jsonl")))
    names = ("email-01", "summary-01", "explain-01")
    role = {"good": "chosen", "bad": "rejected"}
    tasks = [replace(whole.by_id[name], criteria=()) for name in names]
    pairs = [
        replace(r, source=role[r.source])
        for n in names
        for r in whole.answers(n)
        if r.source in role
    ]
    both = TaskSet(tasks=tasks, responses=pairs)
    recording = {"replay": str(paths.data("draft_recording.jsonl.gz"))}
    draft = kit.draft(both, judge=recording, most=4)
    # The 1.5B judge proposes two criteria a task and sees no difference between the answers.
    assert [f.code for f in draft.findings] == ["draft-not-separated"] * 6
    with pytest.raises(kit.MissingError, match="no completion"):
        kit.draft(both, judge=recording, most=3)

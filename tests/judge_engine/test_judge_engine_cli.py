"""`kit judge` from the command line: output, resume, budget, estimate, explain, bad input."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from judge_stub import HeldStub, StubServer, asked, completion, content

import kit
from kit.__main__ import main
from kit.cli import gradefile
from kit.errors import DataError
from kit.judge.ledger import Ledger
from kit.people.draw import draw
from kit.system import paths


@pytest.fixture
def files(tmp_path):
    rows = [
        {
            "id": f"t{i}",
            "prompt": f"p{i}",
            "criteria": [
                {"id": "c1", "text": "says w1"},
                {"id": "c2", "text": "long", "check": {"name": "words", "min": 3}},
            ],
        }
        for i in range(3)
    ]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    answers = [
        {"task_id": f"t{i % 3}", "response": f"w{i % 2} answer {i}", "response_id": f"r{i}"}
        for i in range(9)
    ]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(r) + "\n" for r in answers))
    return tmp_path


def command(files, stub, *more):
    return [
        "judge",
        str(files / "tasks.jsonl"),
        str(files / "answers.jsonl"),
        "--judge",
        "endpoint",
        "--model",
        "m",
        "--base-url",
        stub.url if stub else "http://127.0.0.1:1/v1",
        "--out",
        str(files / "grades.jsonl"),
        "--ledger",
        str(files / "l.sqlite"),
        *more,
    ]


def grades(files):
    return [json.loads(line) for line in (files / "grades.jsonl").read_text().splitlines()]


def test_grades_hold_what_was_promised(files, capsys):
    with StubServer() as stub:
        assert main(command(files, stub, "--json")) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["calls"] == 9 and said["verdicts"] == 18 and said["unknown"] == 0
    rows = grades(files)
    assert [g["response_id"] for g in rows] == [f"r{i}" for i in range(9)]
    assert set(rows[0]) >= {
        "task_id",
        "response_id",
        "score",
        "score_low",
        "score_high",
        "verdicts",
        "usage",
        "cost",
    }
    assert [g["score"] for g in rows] == [1.0 if i % 2 else 0.5 for i in range(9)]
    assert rows[0]["verdicts"][0]["criterion_id"] == "c1" and rows[0]["verdicts"][0]["judge"] == "m"


def test_a_budget_stops_with_exit_code_4_and_resume_does_the_rest(files, capsys):
    with StubServer() as stub:
        assert main(command(files, stub, "--budget-calls", "4", "--concurrency", "1")) == 4
        assert len(grades(files)) == 4
        with open(files / "grades.jsonl", "a") as f:
            f.write('{"task_id": "t1", "resp')  # a crash in the middle of a line
        assert main(command(files, stub, "--resume")) == 0
        assert (
            sorted(g["response_id"] for g in grades(files)) == [f"r{i}" for i in range(9)]
            and stub.calls == 9
        )
        assert main(command(files, stub)) == 0 and stub.calls == 9  # afresh, all from the ledger
    assert "raise the cap" in capsys.readouterr().err


def test_after_a_kill_a_line_says_what_its_verdicts_cost(files, capsys):
    """What was judged and paid before the kill cost $0 in the lines that the resumed run wrote."""
    with StubServer() as stub:
        more = ["--price", "1,2"]
        assert main(command(files, stub, *more)) == 0
        first = [(g["usage"], g["cost"]) for g in grades(files)]
        # two criteria asked in one request were two calls in the line, one in the cost book
        assert [u["calls"] for u, _ in first] == [1] * 9
        lines = (files / "grades.jsonl").read_text().splitlines(keepends=True)
        (files / "grades.jsonl").write_text("".join(lines[:4]))  # the others were not written yet
        capsys.readouterr()
        assert main(command(files, stub, "--resume", "--json", *more)) == 0
    said = json.loads(capsys.readouterr().out)
    assert [(g["usage"], g["cost"]) for g in grades(files)] == first and first[8][1] > 0
    assert said["calls"] == 0 and said["cost"] == 0  # of this run


@pytest.mark.parametrize("more", [(), ("--votes", "2")])
def test_a_line_counts_every_call_that_its_tokens_are_of(files, capsys, more):
    """An unreadable reply was asked again: tokens and cost of two calls, "calls" said 1."""
    seen = set()

    def handler(body, n):
        answer, rows = asked(body)
        if answer not in seen and not more:
            seen.add(answer)
            return completion("?", tokens_in=100, tokens_out=10)
        return completion(content(answer, rows, True), tokens_in=100, tokens_out=10)

    with StubServer(handler=handler) as stub:
        assert main(command(files, stub, *more)) == 0
        capsys.readouterr()
        assert main(["ledger", "costs", "--json", "--ledger", str(files / "l.sqlite")]) == 0
    paid = json.loads(capsys.readouterr().out)
    used = [g["usage"] for g in grades(files)]
    assert all(u == {"calls": 2, "tokens_in": 200, "tokens_out": 20} for u in used)
    assert sum(u["calls"] for u in used) == sum(row["calls"] for row in paid) == stub.calls == 18


def test_a_second_run_into_the_same_file_is_refused(files):
    """Two runs into one file used to mix their lines, and the second one deleted what the first had written."""
    with HeldStub() as stub:
        first = threading.Thread(target=main, args=(command(files, stub),))
        first.start()
        assert stub.arrived.wait(60)
        code = "import sys; from kit.__main__ import main; sys.exit(main(sys.argv[1:]))"
        second = subprocess.run(
            [sys.executable, "-c", code, *command(files, stub)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        stub.go()
        first.join()
    assert second.returncode == 2 and "another run is writing this file" in second.stderr
    assert len(grades(files)) == 9
    with StubServer() as stub:
        assert main(command(files, stub)) == 0


def test_no_command_writes_over_a_folder_or_a_device(files, capsys):
    """`kit ledger export .` was a raw ValueError; an --out of /dev/null became a file, as root."""
    os.mkfifo(files / "pipe")
    with StubServer() as stub:
        assert main(command(files, stub)) == 0
        ledger = ["--ledger", str(files / "l.sqlite")]
        for odd in (".", "/", str(files), str(files / "pipe")):
            assert main(["ledger", "export", odd, *ledger]) == 2
            assert main([*command(files, stub), "--out", odd]) == 2
            with pytest.raises(DataError, match="no regular file"):
                paths.write_text(Path(odd), "x")
    assert capsys.readouterr().err.count("no regular file") == 8
    (files / "link").symlink_to(files / "text")
    paths.write_text(files / "link", "x")
    assert (files / "link").is_symlink() and (files / "text").read_text() == "x"
    assert stub.calls == 9


def test_the_mean_has_an_interval_within_the_scores_range(files, capsys):
    with StubServer() as stub:
        assert main(command(files, stub, "--json")) == 0
    said = json.loads(capsys.readouterr().out)
    assert (
        0 <= said["score_low"] < said["score_mean"] < said["score_high"] <= 1 and said["tasks"] == 3
    )


def test_estimate_sends_nothing(files, capsys):
    with StubServer() as stub:
        assert main(command(files, stub, "--estimate", "--json")) == 0
        assert stub.calls == 0 and json.loads(capsys.readouterr().out)["calls"] == 9


def test_explain_costs_and_export(files, capsys):
    with StubServer() as stub:
        main(command(files, stub))
    key = grades(files)[0]["verdicts"][0]["key"]
    capsys.readouterr()
    assert main(["ledger", "explain", key, "--ledger", str(files / "l.sqlite")]) == 0
    said = capsys.readouterr().out
    assert "raw reply" in said and "says w1" in said and key in said
    assert main(["ledger", "costs", "--ledger", str(files / "l.sqlite")]) == 0
    assert "9 calls" in capsys.readouterr().out
    assert (
        main(["ledger", "export", str(files / "x.jsonl"), "--ledger", str(files / "l.sqlite")]) == 0
    )
    assert (
        main(["ledger", "import", str(files / "x.jsonl"), "--ledger", str(files / "new.sqlite")])
        == 0
    )
    assert main(["ledger", "explain", "nothing", "--ledger", str(files / "l.sqlite")]) == 3


@pytest.mark.parametrize(
    "line, code, words",
    [
        ("{nonsense", 2, "line 2"),
        ('{"task_id": "t0"}', 2, "line 2"),
        ('{"task_id": "nowhere", "response": "x"}', 2, "the task 'nowhere', which is not there"),
        ('{"record": "response", "schema": 7, "task_id": "t0", "text": "b"}', 2, "answers.jsonl"),
        ('{"task_id": "t0", "response": "a", "response_id": "r0"}', 2, "occurs again"),
    ],
)
def test_bad_answers_name_file_and_line(files, capsys, line, code, words):
    (files / "answers.jsonl").write_text(
        '{"task_id": "t0", "response": "a", "response_id": "r0"}\n' + line + "\n"
    )
    assert main(command(files, None)) == code
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"task_id": "t1", "text": "THE SOURCE", "response": "w1 THE ANSWER"}, None),
        ({"task_id": "t1", "response_id": "gpt", "id": "row0", "response": "w1 THE ANSWER"}, "gpt"),
        ({"prompt": "p1", "response": "w1 THE ANSWER"}, "response"),
        (
            {"task_id": "t1", "prompt": "p1", "response_id": "gpt", "response": "w1 THE ANSWER"}
            | {"labels": {"c1": "met"}},
            "gpt",
        ),
    ],
)
def test_the_answers_that_are_judged_are_those_that_python_reads(files, capsys, row, name):
    """The text of a row was judged in the place of its response, an answer was called by its row's
    id, and one that was named by its prompt was refused."""
    (files / "answers.jsonl").write_text(json.dumps(row) + "\n")
    tasks, answers = (kit.load(files / f) for f in ("tasks.jsonl", "answers.jsonl"))
    with StubServer() as stub:
        stub.keep = True
        assert main(command(files, stub)) == 0
    sent = json.dumps(stub.bodies)
    assert "THE ANSWER" in sent and "THE SOURCE" not in sent
    ids = [(g["task_id"], g["response_id"]) for g in grades(files)]
    assert ids == [r.ids for r in tasks.joined(answers).responses]
    assert ids[0][0] == "t1" and ids[0][1] == (name or ids[0][1])
    drawn = draw(files / "tasks.jsonl", files / "answers.jsonl", n=1)
    assert (drawn.rows[0]["task_id"], drawn.rows[0]["response_id"]) == ids[0]
    page = files / "p.html"
    more = ["--answers", str(files / "answers.jsonl"), "--out", str(page)]
    assert (
        main(["view", str(files / "grades.jsonl"), "--tasks", str(files / "tasks.jsonl"), *more])
        == 0
    )
    assert "THE ANSWER" in page.read_text()


def test_several_answers_beside_the_prompt_of_one_task_are_all_judged(files, capsys):
    """They were refused: the id of the second row "occurs again"."""
    rows = [{"task_id": "t1", "prompt": "p1", "response": f"w1 ANSWER {x}"} for x in "ABC"]
    (files / "answers.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    tasks, answers = (kit.load(files / f) for f in ("tasks.jsonl", "answers.jsonl"))
    with StubServer() as stub:
        stub.keep = True
        assert main(command(files, stub)) == 0
    sent = json.dumps(stub.bodies)
    assert all(f"ANSWER {x}" in sent for x in "ABC")
    ids = [(g["task_id"], g["response_id"]) for g in grades(files)]
    assert ids == [r.ids for r in tasks.joined(answers).responses]
    assert len(set(ids)) == 3 and {task for task, _ in ids} == {"t1"}


def test_an_answer_to_another_question_under_a_tasks_id_is_not_judged(files, capsys):
    """The prompt, the system and the sources of an answer's row went without a word."""
    row = {"task_id": "t0", "prompt": "ANOTHER QUESTION", "response": "w1", "note": "x"}
    (files / "answers.jsonl").write_text(json.dumps(row) + "\n")
    with StubServer() as stub:
        assert main(command(files, stub)) == 2
        assert stub.calls == 0
    assert "another task 't0'" in capsys.readouterr().err


def test_missing_file_and_down_server(files, capsys):
    os.remove(files / "answers.jsonl")
    assert main(command(files, None)) == 3
    (files / "answers.jsonl").write_text('{"task_id": "t0", "response": "a"}\n')
    assert main(command(files, None, "--patience", "0.3")) in (0, 5)
    assert main(command(files, None, "--price", "cheap")) == 2


def test_a_down_server_is_exit_code_5(files, capsys):
    with StubServer(handler=lambda body, n: (503, {"error": {"message": "down"}})) as stub:
        assert main(command(files, stub, "--patience", "0.5")) == 5
    assert "the ledger continues" in capsys.readouterr().err


def test_code_only(files):
    assert (
        main(
            [
                "judge",
                str(files / "tasks.jsonl"),
                str(files / "answers.jsonl"),
                "--judge",
                "code",
                "--out",
                str(files / "grades.jsonl"),
                "--ledger",
                str(files / "l.sqlite"),
            ]
        )
        == 0
    )
    assert [v["failure"] for v in grades(files)[0]["verdicts"]] == ["abstain", None]


def test_audit_reports_rates_with_intervals(files, capsys):
    with StubServer() as stub:
        assert main(command(files, stub, "--audit", "--json")) == 0
        rows = json.loads(capsys.readouterr().out)["rows"]
        assert len(rows) > 8 and all({"name", "rate", "low", "high", "n"} <= set(r) for r in rows)


def test_a_slow_answer_holds_up_nobody_and_lines_keep_their_order(files, capsys):
    """Every 200 answers waited for the slowest: 25 s by command against 8 s in Python."""
    rows = [
        {"task_id": "t0", "response": f"w1 answer {i}", "response_id": f"r{i}"} for i in range(60)
    ]
    (files / "answers.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    running = []

    class Slow(StubServer):
        async def _post(self, request, raw, n):
            running.append(self.now)
            slow = b"answer 0" in raw
            self.latency = 2.0 if slow else 0.02
            return await super()._post(request, raw, n)

    with Slow() as stub:
        start = time.monotonic()
        assert main(command(files, stub, "--concurrency", "4")) == 0
    assert time.monotonic() - start < 6
    assert [g["response_id"] for g in grades(files)] == [f"r{i}" for i in range(60)]


def interrupted(files, *more, wait):
    """A run in a process of its own that meets Ctrl-C once three calls are on their way."""
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from kit.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", code, *more], stderr=subprocess.PIPE, text=True
    )  # SIGINT is ignored where pytest runs in the background
    assert wait()
    run.send_signal(signal.SIGINT)
    return run


def test_the_first_ctrl_c_waits_for_what_is_paid_and_lines_come_in_order(files):
    """Calls on their way were dropped and paid again: 550 requests for 500 answers. The lines of
    the resumed run stood behind those of the interrupted one.
    """
    with HeldStub(n=3) as stub:
        run = interrupted(
            files, *command(files, stub, "--concurrency", "3"), wait=lambda: stub.arrived.wait(60)
        )
        said = run.stderr.readline()
        assert "3 calls are on their way" in said and "Ctrl-C once more" in said
        stub.go()
        assert run.wait(60) == 130 and stub.calls == 3
        assert len(grades(files)) == 3
        lines = (files / "grades.jsonl").read_text().splitlines(keepends=True)
        (files / "grades.jsonl").write_text("".join([lines[2], lines[0], lines[1]]))
        assert main(command(files, stub, "--resume")) == 0 and stub.calls == 9
    assert [g["response_id"] for g in grades(files)] == [f"r{i}" for i in range(9)]


def test_a_second_ctrl_c_drops_the_calls(files):
    with HeldStub() as stub:
        run = interrupted(files, *command(files, stub), wait=lambda: stub.arrived.wait(60))
        assert "on their way" in run.stderr.readline()
        run.send_signal(signal.SIGINT)
        assert run.wait(30) == 130
        stub.go()
    assert grades(files) == []


def test_a_full_disk_says_what_was_paid_and_keeps_what_it_can(files, monkeypatch, capsys):
    """The calls on their way were dropped without a word, and paid again. A disk that is full
    for the grades need not be full for the ledger, and one that was full may not be now.
    """

    class Staggered(StubServer):
        async def _post(self, request, raw, n):
            await asyncio.sleep(0.2 * n)
            return await super()._post(request, raw, n)

    def no_grades(self, grade):
        raise OSError(28, "No space left on device", "grades.jsonl")

    def no_ledger(self, batch, done=(), **more):
        if batch:
            raise DataError("the ledger cannot be written (full)", where="l.sqlite")

    with monkeypatch.context() as m, Staggered() as stub:
        m.setattr(gradefile.Grades, "put", no_grades)
        assert main(command(files, stub, "--concurrency", "3")) == 2
        assert "grades.jsonl" in capsys.readouterr().err
        with Ledger(files / "l.sqlite") as book:
            assert book.costs()[0]["calls"] == stub.calls >= 3
    with monkeypatch.context() as m, Staggered() as stub:
        m.setattr(Ledger, "put_many", no_ledger)
        (files / "l.sqlite").unlink()
        assert main(command(files, stub, "--concurrency", "3", "--price", "1,2")) == 2
        said = capsys.readouterr().err
        lost = f"{stub.calls} calls that were paid (${stub.calls * 0.00014:.4f}) are not in it"
        assert lost in said and stub.calls >= 3


def test_resume_asks_again_what_only_the_way_lost(files, capsys):
    """An outage used to be permanent: --resume kept "transport" unknowns for ever."""
    down = {"yes": True}

    def handler(body, n):
        answer, rows = asked(body)
        if down["yes"] and "answer 4" in answer:
            return 503, {"error": {"message": "away"}}
        return completion(content(answer, rows, "response_format" in body))

    with StubServer(handler=handler) as stub:
        assert main(command(files, stub, "--tries", "1")) == 0
        lost = [g for g in grades(files) if g["verdicts"][0]["failure"] == "transport"]
        assert [g["response_id"] for g in lost] == ["r4"]
        down["yes"], calls = False, stub.calls
        assert main(command(files, stub, "--resume")) == 0
        assert stub.calls == calls + 1
    rows = grades(files)
    assert sorted(g["response_id"] for g in rows) == [f"r{i}" for i in range(9)]
    assert all(v["failure"] is None for g in rows for v in g["verdicts"])


def test_resume_reads_lines_that_hold_other_line_ends(files, capsys):
    """U+2028 in a reason made half lines of whole ones: exit code 2."""

    def handler(body, n):
        _answer, rows = asked(body)
        said = {r["id"]: {"reason": "a\u2028b\u2029c\x85d", "verdict": "met"} for r in rows}
        return completion(json.dumps(said, ensure_ascii=False))

    with StubServer(handler=handler) as stub:
        assert main(command(files, stub)) == 0
        before, calls = (files / "grades.jsonl").read_bytes(), stub.calls
        assert "\u2028".encode() in before
        capsys.readouterr()
        assert main(command(files, stub, "--resume")) == 0 and stub.calls == calls
        # "no answer got a score" read as a failure
        assert "nothing to do: 9 answers are graded already" in capsys.readouterr().out
    assert (files / "grades.jsonl").read_bytes() == before


def test_resume_on_a_full_disk_names_the_file(files, monkeypatch, capsys):
    """It said "unknown file"; without --resume the file was named."""

    def full(row, where):
        raise OSError(28, "No space left on device")

    with StubServer() as stub:
        assert main(command(files, stub)) == 0
        monkeypatch.setattr("kit.people.labels.grade_of", full)
        there = sorted(p.name for p in files.iterdir())
        assert main(command(files, stub, "--resume")) == 2
    assert "grades.jsonl" in capsys.readouterr().err
    assert sorted(p.name for p in files.iterdir()) == there


def change(path, **fields):
    """Other fields in the first line of a file."""
    first, *rest = path.read_text().splitlines(keepends=True)
    path.write_text("".join([json.dumps({**json.loads(first), **fields}) + "\n", *rest]))


def test_resume_judges_anew_what_another_text_rubric_or_judge_has_graded(files, capsys):
    """Only ids were compared: grades of an old text, of a criterion that said the contrary, of two
    criteria of three, of another judge stood there as "graded already".
    """
    with StubServer() as stub:
        stub.keep = True

        def asked_by(*more):
            before = len(stub.bodies)
            capsys.readouterr()
            assert main([*command(files, stub, "--resume", *more)]) == 0
            said = capsys.readouterr()
            held = [*files.glob("grades.jsonl.*.before")]
            assert not held and ("of another text" in said.err) == (len(stub.bodies) > before)
            assert [g["response_id"] for g in grades(files)] == [f"r{i}" for i in range(9)]
            return [asked(b)[0] for b in stub.bodies[before:]], said.out

        assert main(command(files, stub)) == 0
        assert asked_by()[0] == []
        change(files / "answers.jsonl", response="w1 anew")
        assert asked_by()[0] == ["w1 anew"] and grades(files)[0]["score"] == 0.5
        task = json.loads((files / "tasks.jsonl").read_text().splitlines()[0])
        c1, c2 = task["criteria"]
        change(files / "tasks.jsonl", criteria=[{**c1, "text": "says w0"}, c2])
        assert len(asked_by()[0]) == 3 and grades(files)[0]["score"] == 0.0
        change(files / "tasks.jsonl", criteria=[{**c1, "text": "says w0"}, {**c2, "weight": 3}])
        assert asked_by()[0] == [] and grades(files)[3]["score"] == 0.75
        whole = (files / "grades.jsonl").read_bytes()  # another judge would be paid for all
        assert main(command(files, stub, "--resume", "--model", "other")) == 2
        assert "all 9 grades are by another judge" in capsys.readouterr().err
        assert (files / "grades.jsonl").read_bytes() == whole
        change(files / "answers.jsonl", response_id="new")
        lines = (files / "answers.jsonl").read_text().splitlines(keepends=True)
        (files / "answers.jsonl").write_text("".join(lines[:2]))
        assert main(command(files, stub, "--resume")) == 0
        assert "1 answers judged (1 kept from before; 8 lines are of other answers)" in (
            capsys.readouterr().out
        )


def test_a_run_that_fails_leaves_the_grades_that_were_there(files, capsys):
    """An address where nobody answers made rows with the score null of all of them; the second such
    run kept the oldest grades and lost the newer; a file of the user's own was deleted.
    """

    def held():
        return [p.read_bytes() for p in sorted(files.glob("grades.jsonl.*.before"))]

    with StubServer() as stub:
        assert main(command(files, stub)) == 0
        good = (files / "grades.jsonl").read_bytes()
        (files / "grades.jsonl.before").write_bytes(b"my own")
        away = ["--base-url", "http://127.0.0.1:9/v1", "--patience", "0.2", "--tries", "1"]
        for _ in range(2):  # the second fails as the first, and what is good is still there
            assert main([*command(files, stub), *away, "--model", "other"]) == 5
            assert held() == [good]
        assert ".before" in capsys.readouterr().err
        assert main([*command(files, stub), "--model", "b", "--budget-calls", "3"]) == 4
        some = (files / "grades.jsonl").read_bytes()
        assert main([*command(files, stub), *away, "--model", "other"]) == 5
        assert held() == [good, some]
        assert main(command(files, stub)) == 0 and not held()
        good = (files / "grades.jsonl").read_bytes()
        assert main([*command(files, stub, "--resume"), *away]) == 2
        assert (files / "grades.jsonl").read_bytes() == good and not held()
    assert (files / "grades.jsonl.before").read_bytes() == b"my own"


def test_what_a_judge_wrote_cannot_command_the_terminal(files, capsys):
    def handler(body, n):
        _answer, rows = asked(body)
        text = "\x1b[2J\x9b31m\u202eevil\r"
        return completion(json.dumps({r["id"]: {"reason": text, "verdict": "met"} for r in rows}))

    with StubServer(handler=handler) as stub:
        main(command(files, stub))
    key = grades(files)[0]["verdicts"][0]["key"]
    for more in ((), ("--json",)):
        capsys.readouterr()
        assert main(["ledger", "explain", key, "--ledger", str(files / "l.sqlite"), *more]) == 0
        out = capsys.readouterr().out
        assert "evil" in out and "u001b[2J" in out
        assert not any(c in out for c in "\x1b\x9b\u202e\r")


def test_a_table_per_criterion_ends_the_run(files, capsys):
    with StubServer() as stub:
        assert main(command(files, stub)) == 0
        out = capsys.readouterr().out
        assert "criterion" in out and "c1: says w1" in out
        assert main(command(files, stub, "--json")) == 0
    rows = {r["id"]: r for r in json.loads(capsys.readouterr().out)["criteria"]}
    assert rows["c1"]["n"] == 9 and rows["c1"]["met"] == 4 and rows["c1"]["unmet"] == 5
    assert rows["c1"]["low"] is None or rows["c1"]["low"] < 4 / 9 < rows["c1"]["high"]
    assert rows["c1"]["mean"] == pytest.approx(4 / 9) and rows["c2"]["mean"] == 1.0


def test_the_ledger_has_a_command_of_its_own(files, capsys):
    with StubServer() as stub:
        main(command(files, stub))
    own, new = ["--ledger", str(files / "l.sqlite")], ["--ledger", str(files / "new.sqlite")]
    assert main(["ledger", "costs", *own]) == 0 and "9 calls" in capsys.readouterr().out
    assert main(["ledger", "export", str(files / "x.jsonl"), *own]) == 0
    assert main(["ledger", "import", str(files / "x.jsonl"), *new]) == 0
    assert main(["ledger", "merge", str(files / "l.sqlite"), *new]) == 0
    assert "0 verdicts and 0 calls are new" in capsys.readouterr().out
    nowhere = files / "none.sqlite"  # a name that was misspelt made an empty ledger
    assert main(["ledger", "merge", "nofile", "--ledger", str(nowhere)]) == 3
    assert capsys.readouterr().err.count("nofile") == 1 and not nowhere.exists()
    assert main(["ledger", "prune", "--judge", "m", *new, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdicts"] == 9
    with pytest.raises(SystemExit, match="2"):
        main(["ledger", "exprot", "x", *own])
    assert "did you mean 'export'" in capsys.readouterr().err
    assert main(["ledger", "prune", *own]) == 2


@pytest.mark.parametrize(
    "more",
    [
        *(["--out", f"l.sqlite{end}"] for end in ("-wal", "-shm", "-journal", "")),
        *(["--log-file", name] for name in ("answers.jsonl", "tasks.jsonl", "l.sqlite", "new.md")),
        *(["--log-file", "grades.jsonl"], ["--log-file", "l.sqlite-wal"]),
    ],
)
def test_no_file_of_a_command_is_written_over_by_another(files, capsys, more, monkeypatch):
    """--out L-wal was gone with rc 0; --log-file over RESPONSES added log lines to them."""
    monkeypatch.chdir(files)
    (files / "new.md").write_text("# Mine\n")
    before = {p.name: p.read_bytes() for p in files.iterdir()}
    with StubServer() as stub:
        assert main(command(files, stub, *more)) == 2
        assert not stub.calls
    assert before.items() <= {p.name: p.read_bytes() for p in files.iterdir()}.items()
    assert "another name" in capsys.readouterr().err


def test_an_error_is_said_once():
    """Without a handler, logging wrote it to stderr before the command did."""
    command = [sys.executable, "-m", "kit", "ledger", "merge", "nofile"]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 3 and done.stderr.count("nofile") == 1


@pytest.mark.parametrize(
    "more",
    [
        *(["--timeout", "nan"], ["--timeout", "-1"], ["--patience", "nan"], ["--concurrency", "0"]),
        *(
            ["--max-tokens", "-1"],
            ["--tries", "0"],
            ["--extra", "x=NaN"],
            ["--extra", "messages=[]"],
            ["--how", "\u00b2"],
        ),
    ],
)
def test_numbers_that_cannot_be_meant_are_refused_before_anything_is_sent(files, more):
    """--tries 0 and --timeout nan were taken silently; --extra x=NaN and --how \u00b2 were tracebacks."""
    with StubServer() as stub:
        assert main(command(files, stub, *more)) == 2
        assert not stub.calls


def test_a_key_that_is_no_text_is_not_found(files, capsys):
    """`kit ledger explain $'\\xff'` was a traceback."""
    with StubServer() as stub:
        main(command(files, stub))
    assert main(["ledger", "explain", "\udcff", "--ledger", str(files / "l.sqlite")]) == 3
    assert "error" in capsys.readouterr().err


def test_a_disk_that_filled_while_a_ledger_was_made_is_not_left_full(tmp_path, monkeypatch):
    """l.sqlite-wal stayed, without an l.sqlite, and with it the full disk; a merge left an empty file."""
    from kit.cli import ledger
    from kit.errors import DataError
    from kit.judge.ledger import Ledger

    book = tmp_path / "l.sqlite"

    def full(*_):
        raise DataError("the ledger cannot be written (database or disk is full)")

    def half(opened, what, args):
        (tmp_path / "l.sqlite-wal").write_bytes(b"x")
        full()

    monkeypatch.setitem(ledger.ACTIONS, "import", half)
    monkeypatch.setattr(Ledger, "__len__", full)
    (tmp_path / "in.jsonl").write_text("{}")
    assert main(["ledger", "import", str(tmp_path / "in.jsonl"), "--ledger", str(book)]) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_refused_import_leaves_no_empty_ledger(tmp_path, capsys):
    """An empty file was left, for which `costs` then said that nothing had been paid."""
    book, lines = tmp_path / "none.sqlite", tmp_path / "x.jsonl"
    for text, code in (('{"kind": "call"}\n', 2), ("\n\n", 0)):
        lines.write_text(text)
        assert main(["ledger", "import", str(lines), "--ledger", str(book)]) == code
        assert sorted(tmp_path.iterdir()) == [lines]
    assert "0 lines read" in capsys.readouterr().out, "blank lines were counted"
    Ledger(book).close()
    assert main(["ledger", "import", str(lines), "--ledger", str(book)]) == 0 and book.exists()

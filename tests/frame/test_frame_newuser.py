"""Incidents of a first week with the kit, through its command line: each test is one thing that once went wrong."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from kit.__main__ import main
from kit.cli import common

TASK = {
    "id": "t1",
    "prompt": "Name the capital of France.",
    "criteria": [{"id": "c1", "text": "At most 20 words.", "check": {"name": "words", "max": 20}}],
}


def lines(path: Path, *rows: object) -> str:
    path.write_text(
        "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows), encoding="utf-8"
    )
    return str(path)


def judge(folder: Path, tasks: str, answers: str, *more: str) -> int:
    return main(
        [
            "judge",
            tasks,
            answers,
            "--judge",
            "code",
            "--out",
            str(folder / "g.jsonl"),
            "--ledger",
            str(folder / "l.sqlite"),
            *more,
        ]
    )


@pytest.fixture
def tasks(tmp_path: Path) -> str:
    return lines(tmp_path / "tasks.jsonl", TASK)


def grades(folder: Path) -> list[dict]:
    return [json.loads(x) for x in (folder / "g.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize(
    "third, says, field",
    [
        ('{"id": "t3", "prompt": "x", "criteria": [', "not JSON", "line 3"),
        ({**TASK, "id": "t3", "criteria": [{"id": "c", "text": ""}]}, "no text", "line 3, c"),
        (
            {**TASK, "id": "t3", "criteria": [{"id": "c", "text": "x", "weight": "heavy"}]},
            "'heavy'",
            "weight",
        ),
        (
            {**TASK, "id": "t3", "criteria": [{"id": "c", "text": "x", "check": "words"}]},
            "not an object",
            "check",
        ),
        ({**TASK, "id": "t1"}, "occurs again", "line 3"),
    ],
)
def test_a_task_file_that_is_half_readable_is_not_judged_in_silence(
    tmp_path, capsys, third, says, field
):
    file = lines(tmp_path / "tasks.jsonl", TASK, {**TASK, "id": "t2"}, third)
    answers = lines(tmp_path / "a.jsonl", {"task_id": "t1", "response": "Paris."})
    assert judge(tmp_path, file, answers) == 2
    err = capsys.readouterr().err
    assert says in err and field in err and "to do:" in err and not (tmp_path / "g.jsonl").exists()
    assert judge(tmp_path, file, answers, "--skip-bad") == 0 and grades(tmp_path)[0]["score"] == 1.0


def test_an_empty_rubric_is_an_error_and_its_grade_keeps_the_answers_id(tmp_path, capsys):
    file = lines(tmp_path / "tasks.jsonl", {**TASK, "criteria": []})
    answers = lines(
        tmp_path / "a.jsonl", {"task_id": "t1", "response_id": "mine", "response": "Paris."}
    )
    assert judge(tmp_path, file, answers) == 2 and "has no criteria" in capsys.readouterr().err
    assert judge(tmp_path, file, answers, "--skip-bad") == 0
    assert [(g["response_id"], g["score"]) for g in grades(tmp_path)] == [("mine", None)]


@pytest.mark.parametrize(
    "raw, says",
    [
        (
            '{"task_id": "t1", "response": "größer, naïve"}\n'.encode()
            + b'{"task_id": "t1", "response": "caf\xe9"}\n',
            "line 2",
        ),
        (b"\xff\xfe\x00binary\x80", "line 1"),
        (b'{"task_id": "t1", "response": "a"}\n\n{"task_id": "t1", "response":\n', "line 3"),
        (b"", "empty"),
        (b"\n\n", "a.jsonl"),
        (b'{"task_id": "t1", "respones": "a"}\n', "'respones' for 'response'?"),
        (b'{"task_id": "t2", "response": "a"}\n', "nearest is 't1'"),
    ],
)
def test_bad_answers_name_file_and_line_and_give_no_traceback(tmp_path, tasks, capsys, raw, says):
    (tmp_path / "a.jsonl").write_bytes(raw)
    assert judge(tmp_path, tasks, str(tmp_path / "a.jsonl")) == 2
    assert says in capsys.readouterr().err


def test_answers_come_from_csv_and_numbers_as_ids_are_text(tmp_path, capsys):
    file = lines(tmp_path / "tasks.jsonl", {**TASK, "id": 7})
    (tmp_path / "a.csv").write_text("task_id,response_id,response\n7,1,Paris\n", encoding="utf-8")
    assert judge(tmp_path, file, str(tmp_path / "a.csv")) == 0
    assert (grades(tmp_path)[0]["task_id"], grades(tmp_path)[0]["response_id"]) == ("7", "1")
    assert (
        judge(
            tmp_path,
            file,
            lines(tmp_path / "a.jsonl", {"task_id": 7, "response_id": 1, "response": "Paris"}),
        )
        == 0
    )
    assert grades(tmp_path)[0]["response_id"] == "1"


def test_a_line_of_grades_has_the_promised_fields(tmp_path, tasks, capsys):
    assert (
        judge(
            tmp_path,
            tasks,
            lines(tmp_path / "a.jsonl", {"task_id": "t1", "response": "Paris."}),
            "--json",
        )
        == 0
    )
    json.loads(capsys.readouterr().out)
    row = grades(tmp_path)[0]
    assert list(row)[:8] == [
        "task_id",
        "response_id",
        "score",
        "score_low",
        "score_high",
        "verdicts",
        "usage",
        "cost",
    ]
    assert next(iter(row["verdicts"][0])) == "criterion_id" and {
        "status",
        "p",
        "reason",
        "failure",
    } <= set(row["verdicts"][0])


@pytest.mark.parametrize(
    "command",
    [
        ["calibrate", "FILE", "--confidence", "conf", "--correct", "ok"],
        ["agree", "FILE", "--judge", "conf", "--human", "ok"],
        ["inspect", "FILE"],
    ],
)
def test_a_folder_is_said_to_be_a_folder(tmp_path, capsys, command):
    assert main([str(tmp_path) if x == "FILE" else x for x in command]) == 2
    err = capsys.readouterr().err
    assert "folder" in err and str(tmp_path) in err and "did you mean" not in err


def test_a_table_with_a_header_only_has_no_rows_rather_than_no_column(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("conf,ok\n", encoding="utf-8")
    assert (
        main(["calibrate", str(tmp_path / "t.csv"), "--confidence", "conf", "--correct", "ok"]) == 2
    )
    assert "no rows" in capsys.readouterr().err


def test_a_threshold_that_is_no_number_is_refused(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a,b\n0.1,1\n0.9,0\n", encoding="utf-8")
    assert (
        main(
            ["agree", str(tmp_path / "t.csv"), "--judge", "a", "--human", "b", "--threshold", "nan"]
        )
        == 2
    )
    assert "threshold" in capsys.readouterr().err


def test_an_unknown_profile_of_inspect_is_refused(tasks, capsys):
    assert main(["inspect", tasks, "--profile", "t5"]) == 2
    assert "no profile 't5'" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("as_json", [True, False])
def test_text_that_the_terminal_cannot_show_is_escaped(monkeypatch, encoding, as_json):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    common.emit(type("Args", (), {"json": as_json}), {"a": "caf\u00e9 \ud800"}, "caf\u00e9 \ud800")
    sys.stdout.flush()
    if as_json:
        assert json.loads(raw.getvalue().decode(encoding)) == {"a": "caf\u00e9 \ud800"}
    else:
        assert b"\\ud800" in raw.getvalue()


@pytest.mark.parametrize("target", ["tasks.jsonl", "a.jsonl", "l.sqlite"])
def test_out_over_an_input_is_refused_and_the_input_survives(tmp_path, tasks, capsys, target):
    answers = lines(tmp_path / "a.jsonl", {"task_id": "t1", "response": "Paris."})
    before = Path(answers).read_bytes()
    assert judge(tmp_path, tasks, answers, "--out", str(tmp_path / "." / target)) == 2
    assert "would be lost" in capsys.readouterr().err and Path(answers).read_bytes() == before


@pytest.mark.parametrize(
    "options, says",
    [
        (["--max-width", "nan"], "max_width"),
        (["--max-width", "-1"], "max_width"),
        (["--retry", "parse,bogus"], "'bogus'"),
        (["--judge", "endpoint", "--base-url", "localhost:8000"], "no address"),
    ],
)
def test_options_that_cannot_be_meant_stop_at_once(
    tmp_path, tasks, capsys, monkeypatch, options, says
):
    answers = lines(tmp_path / "a.jsonl", {"task_id": "t1", "response": "Paris."})
    assert judge(tmp_path, tasks, answers, *options) == 2 and says in capsys.readouterr().err


LOCAL = "http://127.0.0.1:9/v1"  # a server of one's own needs a key only where one is named


@pytest.mark.parametrize(
    "options, says",
    [
        (["--judge", "endpoint", "--key-env", "NO_SUCH_KEY"], "NO_SUCH_KEY"),
        (["--judge", "endpoint", "--key-env", "NO_SUCH_KEY", "--base-url", LOCAL], "NO_SUCH_KEY"),
        (["--judge", "endpoint", "--model", "m"], "OPENAI_API_KEY"),
        (["--judge", "code", "--panel", "endpoint:m"], "OPENAI_API_KEY"),
        (["--judge", "code", "--escalate", "endpoint:m"], "OPENAI_API_KEY"),
        (["--judge", "endpoint", "--key-env", "sk-" + "a1b2c3d4" * 4], "[key "),
    ],
)
def test_a_judge_without_its_key_stops_before_it_is_asked(
    tmp_path, tasks, capsys, monkeypatch, options, says
):
    """Of a panel, or of --escalate, each call was refused in its turn."""
    for name in ("OPENAI_API_KEY", "KIT_JUDGE_KEY", "OPENAI_BASE_URL", "NO_SUCH_KEY"):
        monkeypatch.delenv(name, raising=False)
    answers = lines(tmp_path / "a.jsonl", {"task_id": "t1", "response": "Paris."})
    assert judge(tmp_path, tasks, answers, *options) == 3
    said = capsys.readouterr().err
    assert "there is no key" in said and says in said and "a1b2c3d4" not in said


def test_a_run_in_which_no_call_came_through_does_not_exit_with_zero(tmp_path, capsys, monkeypatch):
    from kit.cli import judge as command
    from kit.records import unknown

    class FakeDown:
        name = "down"

        async def verdicts(self, task, response, criteria):
            return [
                unknown(
                    task.id,
                    response.id,
                    c.id,
                    "transport",
                    judge="down",
                    reason="connection refused",
                )
                for c in criteria
            ]

    monkeypatch.setattr(command, "make", lambda args: FakeDown())
    file = lines(
        tmp_path / "tasks.jsonl",
        {**TASK, "criteria": [*TASK["criteria"], {"id": "c2", "text": "Says Paris."}]},
    )
    answers = lines(tmp_path / "a.jsonl", {"task_id": "t1", "response": "Paris."})
    assert judge(tmp_path, file, answers) == 5 and "connection refused" in capsys.readouterr().err
    assert grades(tmp_path)[0]["score"] is None


@pytest.mark.parametrize(
    "text, says",
    [
        ("stage: grpo\njugde: none\n", "did you mean 'judge'"),
        ("stage: grpo\na: [\n", "line 3"),
        (
            "stage: grpo\npreset: test\ntasks: short_answers.json\njudge: {endpoint: m, base_ur: http://127.0.0.1:9/v1}\n",
            "base_url",
        ),
    ],
)
def test_a_mistyped_training_config_names_the_place_and_the_nearest_name(tmp_path, text, says):
    from kit.errors import KitError
    from kit.train import job

    (tmp_path / "job.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(KitError) as e:
        job.read(tmp_path / "job.yaml")
    assert says in str(e.value) and "job.yaml" in str(e.value)


def test_a_value_of_set_that_is_no_yaml_is_an_error_for_people():
    from kit.cli.train import _changes
    from kit.errors import KitError

    with pytest.raises(KitError, match="cannot be read as YAML"):
        _changes(["lr=["])


def test_a_judge_that_abstains_on_everything_says_why_on_the_screen(tmp_path, capsys):
    file = lines(
        tmp_path / "tasks.jsonl", {**TASK, "criteria": [{"id": "c2", "text": "Says Paris."}]}
    )
    assert (
        judge(tmp_path, file, lines(tmp_path / "a.jsonl", {"task_id": "t1", "response": "Paris."}))
        == 0
    )
    assert "unknown, 1 times: abstain: no judge was asked" in capsys.readouterr().out


def test_a_local_model_that_is_not_there_is_named(tmp_path, tasks, capsys):
    answers = lines(tmp_path / "a.jsonl", {"task_id": "t1", "response": "Paris."})
    assert (
        judge(tmp_path, tasks, answers, "--judge", "local", "--model", str(tmp_path / "none")) == 3
    )
    assert "no such model folder" in capsys.readouterr().err


def test_a_full_disk_is_not_called_a_broken_ledger(tmp_path, monkeypatch):
    import sqlite3

    from kit.errors import DataError
    from kit.judge.ledger import Ledger

    def full(self, db):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Ledger, "_settle", full)
    with pytest.raises(DataError, match="cannot be written") as e:
        len(Ledger(tmp_path / "l.sqlite"))
    assert "free some space" in str(e.value)


def test_a_package_that_is_missing_is_named(tmp_path, monkeypatch, capsys):
    """Without the extra "train" a raw ModuleNotFoundError ended the command, with exit code 1."""
    monkeypatch.setitem(sys.modules, "peft", None)
    (tmp_path / "rows.jsonl").write_text('{"text": "a b c"}\n')
    config = {"stage": "sft", "preset": "test", "steps": 1, "rows": "rows.jsonl"}
    (tmp_path / "c.json").write_text(json.dumps(config | {"out": str(tmp_path / "run")}))
    assert main(["train", str(tmp_path / "c.json")]) == 3
    said = capsys.readouterr().err
    assert "the package 'peft' is not installed" in said and "Traceback" not in said

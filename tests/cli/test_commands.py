"""The command line: help, options from signatures, JSON, exit codes, the way of a user's own files."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kit import cli, runs, training, tuning
from kit.system import paths

COMMANDS = "check demo fetch inspect judge tune agree rate label view calibrate train export run sweep report".split()
DATA = Path(paths.data())
FAKE_SERVER = Path(__file__).parents[1] / "judging" / "fake_server.py"
TASKS = [
    {"id": "t1", "prompt": "Name a colour.", "criteria": [{"id": "c1", "text": "Names a colour."}]},
    {
        "id": "t2",
        "prompt": "Say hello in lower case.",
        "criteria": [
            {"id": "c1", "text": "All is lower case.", "check": {"name": "lowercase"}},
            {
                "id": "c2",
                "text": "Contains hello.",
                "check": {"name": "contains", "any": ["hello"]},
                "weight": 2,
            },
        ],
    },
]
ANSWERS = [
    {"task_id": "t1", "id": "a", "text": "Red."},
    {"task_id": "t2", "id": "a", "text": "hello"},
    {"task_id": "t2", "id": "b", "text": "Good day"},
]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with tasks.jsonl and answers.jsonl, which is the working directory; the cache is elsewhere."""
    (tmp_path / "tasks.jsonl").write_text(lines({"record": "task", **t} for t in TASKS))
    (tmp_path / "answers.jsonl").write_text(lines({"record": "response", **a} for a in ANSWERS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KIT_HOME", str(tmp_path / "home"))
    return tmp_path


def run(capsys, *words):
    """(exit code, stdout, stderr) of a command in this process."""
    code = cli.main(list(map(str, words)))
    out = capsys.readouterr()
    return code, out.out, out.err


def test_help_lists_the_commands_in_the_order_of_the_steps(capsys):
    code, out, _ = run(capsys, "--help")
    places = [re.search(rf"^\W+{name} ", out, re.M).start() for name in COMMANDS]
    assert code == 0 and places == sorted(places) and "Exit codes" in out
    assert "Judge, and compare with people" in out and "--install-completion" in out
    # Colours are off where the output is not a terminal.
    assert "\x1b" not in out


@pytest.mark.parametrize("name", COMMANDS)
def test_each_option_has_help(capsys, name):
    code, out, _ = run(capsys, name, "--help")
    rows = re.findall(r"^│ \*?\s*(--[\w-]+|[A-Z]+)(.*?)│$", out, re.M)
    assert code == 0 and "--json" in dict(rows)
    assert [option for option, text in rows if not re.search(r"[a-z]{3}", text)] == []


def cpu_seconds(*words):
    """The least CPU seconds of four processes of Python: a busy neighbour, which slows some of them, does not count."""
    seconds = []
    for _ in range(4):
        child = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        assert status == 0
        seconds.append(usage.ru_utime + usage.ru_stime)
    return min(seconds)


def test_help_is_fast():
    """It imports none of the heavy libraries; an idle machine needs .33 s, 3 times what its own library takes."""
    heavy = "torch", "pandas", "numpy", "plotly", "openai", "transformers"
    show = f"import sys, kit.cli as c; c.main(['--help']); sys.exit(any(m in sys.modules for m in {heavy}))"
    subprocess.run([sys.executable, "-c", show], capture_output=True, check=True)
    assert cpu_seconds("-m", "kit", "--help") <= 4.5 * cpu_seconds("-c", "import cyclopts")


MAPPED = ["--judge", '{"endpoint": "m"}', "--base-url", "http://127.0.0.1:9/v1"]
WRONG = [
    (["juge"], 2, "Did you mean"),
    (["judge"], 2, "TASKS requires"),
    (["judge", "nowhere.jsonl"], 3, "no such file"),
    (["judge", "tasks.jsonl", "nowhere.jsonl"], 3, "no such file"),
    (["judge", "tasks.jsonl", "--nonsense"], 2, "Unknown option"),
    (["judge", "tasks.jsonl", "answers.jsonl", "--set", "how"], 2, "not NAME=VALUE"),
    (["judge", "tasks.jsonl", "answers.jsonl", "--judge", "nobody"], 2, "nobody"),
    (["rate", "a", "b", "c", "--design", "other"], 2, "Choose from"),
    (["inspect", "bad.jsonl"], 2, "bad.jsonl"),
    (["run", "99"], 3, "there is no notebook"),
    (["sweep", "1"], 2, "no cells"),
    (["report", "nowhere"], 3, "no such folder"),
    (["view", "nowhere"], 3, "no such folder"),
    (["view", "nowhere.jsonl"], 3, "no such file"),
    (["export", "nowhere"], 3, "no such folder"),
    (["run", "1", "--set", "heldout_share=3"], 2, "< 1.0"),
    (["run", "5", "--set", "metric=nothing"], 2, "attacks earn less"),
    (["run", "3", "--set", "judge=nobody"], 2, "there is no judge"),
    (["fetch", "gpt"], 2, "there is no download"),
    (["train", "nowhere.yaml"], 3, "nowhere.yaml"),
    (["calibrate", "nowhere.csv", "p", "y"], 3, "nowhere.csv"),
    (["inspect", "tasks.jsonl", "--out", "tasks.jsonl"], 2, "would replace the input"),
    (["judge", "tasks.jsonl", "--out", "./tasks.jsonl"], 2, "would replace"),
    (["answer", "tasks.jsonl", "--model", "small", "--out", "tasks.jsonl"], 2, "would replace"),
    (["tune", "tasks.jsonl", "--try", "a=answers.jsonl", "--out", "answers.jsonl"], 2, "replace"),
    (["view", "tasks.jsonl", "--out", "tasks.jsonl"], 2, "would replace the input"),
    (["answer", "tasks.jsonl", "--model", "endpoint:m"], 2, "such as answers_2.jsonl"),
    (["judge", "tasks.jsonl", "--out", "answers.jsonl"], 2, "else than verdicts of a judge"),
    (["inspect", "answers.jsonl", "--out", "tasks.jsonl"], 2, "such as tasks_2.jsonl"),
    (["view", "nowhere", "--out", "tasks.jsonl"], 2, "something else than a page"),
    (["judge", "tasks.jsonl", "answers.jsonl", *MAPPED], 5, "where: http://127.0.0.1:9/v1"),
    (["answer", "answers.jsonl", "--model", "endpoint:m", "--out", "n"], 2, "no prompt to answer"),
    (["check", "tasks.jsonl"], 2, "more words than the command takes: ['tasks.jsonl']"),
]


@pytest.mark.parametrize(("words", "code", "text"), WRONG)
def test_errors_have_a_code_and_no_traceback(own, capsys, words, code, text):
    Path("bad.jsonl").write_text(
        '{"id": "t", "prompt": "x", "criteria": [{"id": "c", "text": "x", "wieght": 1}]}\n'
    )
    got_code, out, err = run(capsys, *words)
    assert (got_code, "Traceback" in err) == (code, False) and text in err and not out


def test_debug_shows_the_traceback(own, capsys, monkeypatch):
    monkeypatch.setenv("KIT_DEBUG", "1")
    with pytest.raises(Exception, match="no such file"):
        cli.main(["judge", "nowhere.jsonl"])


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m kit train --names | head -1"
    shell = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True
    )
    assert shell.returncode == 0 and not shell.stderr


def test_check_names_versions_device_and_remedies(capsys, own):
    code, out, _ = run(capsys, "check", "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert code == 0 and rows["kit"]["state"].startswith("0.2")
    assert rows["device"]["state"] and rows["download recorded"]["remedy"] == "kit fetch"
    assert "need it" in rows["OPENAI_API_KEY"]["state"]
    _, text, _ = run(capsys, "check")
    assert "to do: kit fetch" in text and text.strip().splitlines()[-1].startswith("next: ")


def test_inspect_renames_fields_and_writes_the_own_form(own, capsys):
    row = {
        "qid": "q1",
        "prompt": "Name a colour.",
        "rubrics": [{"desc": "Names a colour.", "points": 2}],
    }
    Path("theirs.jsonl").write_text(lines([row]))
    words = ["inspect", "theirs.jsonl", "--map", "desc=text,qid=task_id", "--out", "mine.jsonl"]
    code, out, err = run(capsys, *words)
    assert code == 0 and "1 task," in out and "kit judge mine.jsonl ANSWERS" in out, err
    code, out, _ = run(capsys, "inspect", "mine.jsonl", "--json", "--lint")
    assert json.loads(out)["tasks"] == 1


def test_lint_fails_where_a_finding_is_an_error(capsys, tmp_path):
    assert run(capsys, "inspect", DATA / "rubrics.json", "--lint")[0] == 0
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"prompt": "Why?", "rubrics": [{"text": "x", "weight": 0}]}')
    code, out, _ = run(capsys, "inspect", bad, "--lint")
    assert code == 1 and "error: " in out and out.endswith("next: mend the errors above\n")


def test_judge_writes_verdicts_and_says_what_comes_next(own, capsys):
    code, out, _ = run(capsys, "judge", "tasks.jsonl", "answers.jsonl")
    assert (
        code == 0
        and "1 abstain" in out
        and "next: kit view verdicts.jsonl --tasks tasks.jsonl" in out
    )
    verdicts = [json.loads(line) for line in Path("verdicts.jsonl").read_text().splitlines()]
    assert [v["status"] for v in verdicts] == ["unknown", "met", "met", "unmet", "unmet"]
    code, out, _ = run(
        capsys, "view", "verdicts.jsonl", "--tasks", "tasks.jsonl", "--answers", "answers.jsonl"
    )
    assert (
        code == 0
        and "hello" in Path("verdicts.html").read_text()
        and "next: open verdicts.html" in out
    )


def test_no_known_verdict_is_a_failure(own, capsys):
    Path("one.jsonl").write_text(lines([{"record": "task", **TASKS[0]}]))
    Path("a.jsonl").write_text(lines([{"record": "response", **ANSWERS[0]}]))
    code, out, _ = run(capsys, "judge", "one.jsonl", "a.jsonl")
    assert code == 5 and "cannot tell" in out


def test_an_estimate_sends_nothing(own, capsys):
    words = "--judge endpoint --model gpt-5-mini --base-url http://127.0.0.1:9/v1 --estimate --json"
    code, out, _ = run(capsys, "judge", "tasks.jsonl", "answers.jsonl", *words.split())
    assert code == 0 and json.loads(out)["calls"] == 1 and not Path("verdicts.jsonl").exists()


def test_a_judge_that_is_down_exits_with_5(own, capsys):
    words = ["--judge", "endpoint", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"]
    code, _, err = run(
        capsys,
        "judge",
        "tasks.jsonl",
        "answers.jsonl",
        *words,
        "--set",
        "timeout=1",
        "--set",
        "tries=1",
    )
    assert code == 5 and "Traceback" not in err


def test_tune_compares_prompts_and_writes_the_best(own, capsys):
    prompts = [
        f"--try={name}={DATA / 'judge_prompts' / f'{name}.txt'}" for name in ("strict", "fair")
    ]
    words = [
        "tune",
        DATA / "judge_labels.jsonl",
        "--judge",
        "replay:small",
        *prompts,
        "--keep",
        "strict",
    ]
    Path("verdicts.jsonl").write_text("of the old prompt")
    code, out, err = run(capsys, *words, "--out", "prompt.txt")
    assert code == 0 and "baseline" in out and "fair" in out, err
    strict = (DATA / "judge_prompts" / "strict.txt").read_text()
    assert Path("prompt.txt").read_text().strip() == strict.strip()
    assert "next: kit judge" in out and "--out verdicts_2.jsonl" in out
    _, out, _ = run(capsys, *words, "--test", "--json")
    assert "baseline" in json.loads(out)["sealed_test"]["sentence"]
    Path("prompt.txt").write_text("By hand.")  # which no trial wrote
    assert run(capsys, *words)[0] == 2 and Path("prompt.txt").read_text() == "By hand."


def test_answers_of_the_same_model_are_written_again(own, capsys):
    words = "answer tasks.jsonl --model tiny-random --max-tokens 4 --out n.jsonl --json".split()
    first, again = (json.loads(run(capsys, *words)[1]) for _ in range(2))
    assert first == again and first["answers"] == first["truncated"] == 2


@pytest.fixture
def server():
    """A fake judge server that replies honestly, and is silent from its second call on."""
    spec = importlib.util.spec_from_file_location("fake_server_of_cli", FAKE_SERVER)
    fake = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fake)

    def reply(asked):
        if "not JSON" in asked.answer:
            return "I would rather talk about cheese."
        return fake.http({}, "500 No") if len(made.calls) > 1 else None

    with fake.FakeServer(reply) as made:
        yield made


def ask(server, answers, out):
    judge = ["--judge", "endpoint:m", "--base-url", server.url, "--set", "tries=0"]
    return ["judge", "tasks.jsonl", answers, *judge, "--set", "concurrency=1", "--out", out]


def test_a_run_that_stops_writes_what_it_has(own, capsys, server):
    rows = [{"task_id": "t1", "id": f"r{i}", "text": f"colour {i}"} for i in range(20)]
    (own / "many.jsonl").write_text(lines({"record": "response", **r} for r in rows))
    code, _, err = run(capsys, *ask(server, "many.jsonl", "v.jsonl"))
    assert code == 5 and "HTTP 500" in err and "v.jsonl" in err
    verdicts = [json.loads(line) for line in (own / "v.jsonl").read_text().splitlines()]
    assert [v["status"] == "unknown" for v in verdicts] == [False] + [True] * 19
    # Where nothing is known, an older file stays.
    assert run(capsys, *ask(server, "many.jsonl", "v.jsonl"), "--ledger", own / "new.db")[0] == 5
    assert len((own / "v.jsonl").read_text().splitlines()) == 20


def test_where_every_verdict_fails_a_raw_reply_is_on_the_screen(own, capsys, server, caplog):
    row = {"record": "response", "task_id": "t1", "id": "r", "text": "not JSON"}
    (own / "one.jsonl").write_text(lines([row]))
    code, out, _ = run(capsys, *ask(server, "one.jsonl", "v.jsonl"))
    assert code == 5 and "parse" in out and "cheese" in caplog.text


def test_an_estimate_counts_the_audit(own, capsys):
    judge = ["judge", "tasks.jsonl", "answers.jsonl", "--judge", "endpoint:m", "--estimate"]
    judge += ["--base-url", "https://judge.invalid/v1"]
    _, plain, _ = run(capsys, *judge)
    _, audit, _ = run(capsys, *judge, "--audit")
    calls = [int(re.search(r"(\d+) calls?,", text)[1]) for text in (plain, audit)]
    kinds = [c.kind for c in tuning.AUDIT_CHANGES.values()]
    assert (
        calls == [1, 1 + sum(kinds.count(k) for k in ("attack", "bias", "step"))]
        and "price unknown" in plain
    )


def test_judge_can_be_followed_by_an_audit(own, capsys):
    words = ["judge", DATA / "judge_labels.jsonl", "--judge", "replay:small", "--audit"]
    code, out, err = run(capsys, *words)
    # The recording holds the plain answers; of the attacks it holds a few answers only.
    assert code == 0 and "self-praise" in out and "\nUse: " in out, err


def test_calibrate(own, capsys):
    rows = [(0.9, 1), (0.8, 1), (0.7, 0), (0.6, 1), (0.9, 1), (0.8, 0), (0.7, 1), (0.6, 0)] * 6
    Path("c.csv").write_text(
        "p,y,q\n" + "".join(f"{p},{y},q{i % 12}\n" for i, (p, y) in enumerate(rows))
    )
    code, out, _ = run(capsys, "calibrate", "c.csv", "p", "y", "--cluster", "q")
    assert code == 0 and "ECE" in out and Path("calibration.html").is_file()
    assert run(capsys, "calibrate", "c.csv", "p", "nope")[0] == 2
    assert json.loads(run(capsys, "calibrate", "c.csv", "p", "y", "--json")[1])


def test_train_lists_all_settings_apart_from_other_names(capsys):
    code, out, _ = run(capsys, "train", "--names")
    own_names, others = out.split("names of other systems")
    assert code == 0 and "groups_per_batch: prompts_per_step" in others
    names = [line.split()[0] for line in own_names.splitlines() if line]
    assert {"tasks", "judge", "train_ratio", "out", "preset", *training.NAMES} <= {*names}
    assert run(capsys, "train")[0] == 2


def test_run_lists_the_parameters_of_a_notebook(capsys):
    code, out, _ = run(capsys, "run", "3", "--names")
    assert code == 0 and re.search(r"^beta +0\.0 +pull towards .*at least 0$", out, re.M)


def test_a_table_is_plain_when_piped_and_folds_in_a_terminal(own, capsys, monkeypatch):
    """Numbers on the right, the sentence first, the next step last; in a terminal a bold head at most."""
    words = ["judge", DATA / "rubrics.json", DATA / "answers.jsonl"]
    code, piped, _ = run(capsys, *words)
    sentence, _, head, row, following = piped.splitlines()
    assert code == 0 and "verdicts (0 calls" in sentence and following.startswith("next: kit view")
    assert head.index("verdicts") + len("verdicts") == row.index("934") + 3
    assert "\x1b" not in piped and "the judge cannot tell" in row
    monkeypatch.setenv("COLUMNS", "80")
    for name, is_bold in (("xterm-256color", True), ("dumb", False)):
        monkeypatch.setenv("TERM", name)
        with monkeypatch.context() as patch:
            patch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
            _, screen, _ = run(capsys, *words)
        table = screen.splitlines()[2:-1]
        assert ("\x1b[1m" in screen) == is_bold and "[.10, .39]" in screen
        assert len(table) > 2 and max(len(re.sub(r"\x1b\[\d*m", "", t)) for t in table) <= 80


def test_no_command_is_help_with_an_exit_code(capsys):
    code, out, _ = run(capsys)
    assert code == 2 and "Usage: kit" in out


def test_run_and_report(own, capsys, notebook_file):
    code, out, err = run(
        capsys, "run", notebook_file, "--set", "seed=3", "--profile", "test", "--out", "r"
    )
    assert code == 0 and "done" in out and "cell 1 of 4" in err, err
    assert "next: kit report" in out
    code, out, _ = run(capsys, "report", "r", "--json")
    assert json.loads(out)[0]["value"] == 3 and Path("r/report.html").is_file()
    assert [r.params["seed"] for _, r in runs.find("r")] == [3]
    assert run(capsys, "run", notebook_file, "--set", "sed=3")[0] == 2


@pytest.mark.slow
def test_sweep(own, capsys, notebook_file):
    words = "--grid seed=0,1 --profile test --out s --jobs 2".split()
    code, out, err = run(capsys, "sweep", notebook_file, *words)
    assert code == 0 and "2 of 2 cells done" in out and "[2 of 2" in err, err


@pytest.fixture
def notebook_file(tmp_path):
    """A notebook of four cells that keeps its seed."""
    cells = [
        'profile = ""\nseed = 0',
        "import kit\nrun = kit.start('small', locals())",
        "run.keep('seed', seed)",
        "run.finish()",
    ]
    rows = [
        {"cell_type": "code", "source": c, "metadata": {"tags": ["parameters"]} if i == 0 else {}, "outputs": [],
         "execution_count": None, "id": f"c{i}"}
        for i, c in enumerate(cells)
    ]  # fmt: skip
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path = tmp_path / "small.ipynb"
    path.write_text(
        json.dumps({"cells": rows, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})
    )
    return path


def pasted(capsys, out):
    """The command of the last line "next: ..." as it would be pasted; its exit code and output."""
    following = out.strip().splitlines()[-1].removeprefix("next: ")
    words = shlex.split(following[following.index("kit ") :])
    return run(capsys, *(PLACEHOLDERS.get(word, word) for word in words[1:]))


# What a user puts in place of the words in capitals.
PLACEHOLDERS = {"TASKS": "train.jsonl", "LABELS": "l1.csv", "VERDICTS": "v.jsonl", "ANSWERS": "a.jsonl"}  # fmt: skip


THEIRS = {"qid": "q1", "prompt": "Say hello.", "rubrics": [{"desc": "Says hello.", "points": 2}]}
LABELLED = DATA / "judge_labels.jsonl"
REPLIES = "recipe=task_id,answer_id=response_id,text=response,model=source"


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["inspect", "theirs.jsonl", "--map", "desc=text,qid=task_id"], "desc=text --map qid=task_id"),
        (["inspect", "both.jsonl", "--on-error", "skip"], "--on-error skip --out both.kit.jsonl"),
        (["inspect", "both.jsonl"], "kit judge both.jsonl --estimate --judge endpoint"),
        (["inspect", "both.jsonl", "--out", "own.jsonl"], "judge own.jsonl"),
        (["inspect", "replies.csv", "--map", REPLIES, "--out", "my replies.jsonl"], "judge TASKS 'my replies.jsonl'"),
        (["inspect", "l1.csv"], "agree TASKS l1.csv VERDICTS"),
        (["inspect", "v.jsonl"], "agree TASKS LABELS v.jsonl"),
        (["judge", "tasks.jsonl", "answers.jsonl"], "--answers answers.jsonl"),
        (["judge", "tasks.jsonl", "answers.jsonl", "--out", "v 2.jsonl"], "'v 2.jsonl'"),
        (["judge", LABELLED, "--judge", "replay:small", "--set", "how=one", "--estimate"], "--set how=one"),
        (["answer", "tasks.jsonl", "--model", "tiny-random", "--max-tokens=4", "--estimate", "--out", "n"], "tokens=4"),
        (["tune", LABELLED, "--judge", "replay:small", "--out", "p.txt", "--budget-usd", "5"], "--budget-usd 5.0"),
        (["agree", "t.jsonl", "l1.csv,l2.csv", "v.jsonl", "--answers", "a.jsonl"], "l1.csv,l2.csv"),
        (["rate", "t.jsonl", "l1.csv", "v.jsonl", "--answers", "a.jsonl"], "--labels l1.csv --out labels.csv"),
        (["rate", "t.jsonl", "l1.csv", "v.jsonl"], "t.jsonl ANSWERS --verdicts v.jsonl"),
        (["label", "t.jsonl", "a.jsonl", "--verdicts", "v.jsonl", "--out", "l3.csv"], "l3.csv v.jsonl"),
        (["label", "t.jsonl", "a.jsonl", "--labels", "l1.csv", "--verdicts", "v.jsonl", "--out", "l3.csv"],
         "l1.csv,l3.csv v.jsonl"),
        (["train", "c.yaml", "--set", "steps=1", "--profile", "test", "--forecast"], "--set steps=1"),
        (["run", "small.ipynb", "--profile", "test", "--out", "my runs"], "kit report"),
    ],
)  # fmt: skip
def test_the_printed_next_step_runs_when_it_is_pasted(
    own, capsys, notebook_file, monkeypatch, words, options
):
    monkeypatch.setenv("KIT_RUNS", str(own / "runs"))
    Path("theirs.jsonl").write_text(lines([THEIRS]))
    Path("both.jsonl").write_text(
        Path("tasks.jsonl").read_text() + Path("answers.jsonl").read_text()
    )
    Path("replies.csv").write_text("recipe,answer_id,text,model\nt1,a,Red.,m\nt2,a,Blue.,m\n")
    labelled_files()
    check = {"name": "contains", "any": ["e"], "whole": False}
    rows = [
        {"id": f"t{i}", "prompt": f"Name colour {i}.", "criteria": [{"id": "c", "text": "An e.", "check": check}]}
        for i in range(8)
    ]  # fmt: skip
    Path("train.jsonl").write_text(lines(rows))
    Path("c.yaml").write_text("tasks: train.jsonl\ntrain_ratio: 0.5\nout: trained\n")
    code, out, err = run(capsys, *words)
    assert code == 0 and options in out.splitlines()[-1], (out, err)
    if words[0] == "label":  # what the line asks people to do first
        text = Path("l3.csv").read_text().splitlines()
        Path("l3.csv").write_text("\n".join([text[0], *(f"{line}met" for line in text[1:])]))
    code, out, err = pasted(capsys, out)
    assert code == 0, (out, err)


def labelled_files():
    """Tasks, answers, verdicts and two files of labels in the working directory."""
    ids = [{"task_id": f"t{i}", "response_id": "a", "criterion_id": "c"} for i in range(12)]
    tasks = [
        {"record": "task", "id": k["task_id"], "prompt": "Q?", "criteria": [{"id": "c", "text": "Is right."}]}
        for k in ids
    ]  # fmt: skip
    answers = [{"record": "response", "task_id": k["task_id"], "id": "a", "text": "A"} for k in ids]
    verdicts = [
        {"record": "verdict", **k, "status": "met" if i % 3 else "unmet", "judge": "j"}
        for i, k in enumerate(ids)
    ]
    for name, rows in (("t.jsonl", tasks), ("a.jsonl", answers), ("v.jsonl", verdicts)):
        Path(name).write_text(lines(rows))
    head = "task_id,response_id,criterion_id,label\n"
    texts = [f"t{i},a,c,{'met' if i % 2 else 'unmet'}\n" for i in range(12)]
    Path("l1.csv").write_text(head + "".join(texts[:6]))
    Path("l2.csv").write_text(head + "".join(texts[6:]))


def test_runs_are_found_by_name_from_anywhere(own, capsys, monkeypatch):
    place = own / "elsewhere" / "runs" / "sweep" / "a-run"
    place.mkdir(parents=True)
    monkeypatch.setenv("KIT_RUNS", str(own / "elsewhere" / "runs"))
    for name in ("runs/sweep/a-run", "sweep/a-run", "a-run", place):
        assert runs.find_folder(name) == place


@pytest.mark.parametrize(
    "text", ["options: 3", "profiles: 4", "profiles: {test: 3}", "preset: [1]", "[1, 2]", "stages: 3", "\xff"]
)  # fmt: skip
def test_a_config_of_another_form_is_an_error_without_a_traceback(own, capsys, text):
    Path("c.yaml").write_bytes(text.encode("latin-1"))
    code, _, err = run(capsys, "train", "c.yaml", "--profile", "test")
    assert code == 2 and err.startswith("error: ") and "Traceback" not in err

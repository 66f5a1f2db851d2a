"""`kit tune` against a fake endpoint: the same command goes on after kill -9 and pays nothing twice."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import ClassVar

import pytest
from served import FakeChat, served
from test_tuning_bench import STRICT, labels

import kit
from kit.__main__ import main, parser
from kit.cli import tune


class FakeEndpoint(FakeChat):
    """Met to all, unless the prompt is strict. Counts what it is asked."""

    asked: ClassVar[list[tuple[str, str]]] = []
    wait = 0.0

    def do_POST(self):
        system, user = (m["content"] for m in self.body()["messages"])
        FakeEndpoint.asked.append((system, user))
        time.sleep(FakeEndpoint.wait)
        met = "good" in user or STRICT not in system
        if "Odd" in system:
            met = "good" in user or "Q 1" in user
        said = {"reason": "so", "verdict": "met" if met else "unmet"}
        self.answer(json.dumps(dict.fromkeys(re.findall(r'"id": "([^"]+)"', user), said)))


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_RUNS", str(tmp_path / "runs"))
    FakeEndpoint.asked, FakeEndpoint.wait = [], 0.0
    kit.save(tmp_path / "labels.jsonl", labels())
    (tmp_path / "strict.txt").write_text(STRICT)
    judge = {"endpoint": "m", "concurrency": 4}
    with served(FakeEndpoint) as url:
        yield [
            "tune",
            str(tmp_path / "labels.jsonl"),
            f"--judge={json.dumps({**judge, 'base_url': url})}",
            f"--ledger={tmp_path / 'l.sqlite'}",
            f"--try=strict={tmp_path / 'strict.txt'}",
            "--test",
            "--json",
        ]


def test_tune_names_the_winner_and_a_second_run_asks_nothing(place, capsys, tmp_path):
    assert main([*place, f"--page={tmp_path / 'b.html'}"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["winner"] == "strict" and first["prompt"] == STRICT
    assert first["test"]["gain"]["value"] == 1 and first["test"]["reads"] == 1
    asked = len(FakeEndpoint.asked)
    assert main(place) == 0
    second = json.loads(capsys.readouterr().out)
    assert len(FakeEndpoint.asked) == asked and second["test"]["replayed"]
    assert second["trials"] == first["trials"] and "strict" in (tmp_path / "b.html").read_text()


def test_a_live_server_is_named_by_options_as_in_kit_judge(place, capsys):
    """`kit tune --judge endpoint:m --base-url URL` was an error: the address went into JSON."""
    url = json.loads(place[2].removeprefix("--judge="))["base_url"]
    place[2] = "--judge=endpoint:m"
    assert main([*place, "--base-url", "nowhere"]) != 0
    assert "no address" in capsys.readouterr().err
    more = ["--base-url", url, "--concurrency", "4", "--gain", ".3", "--vary"]
    more.append('odd={"prompt": "Odd.", "full": true}')
    assert main([*place, *more]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["winner"] == "strict" and said["plan"]["needed"] > 60 and FakeEndpoint.asked


def test_the_test_is_read_for_the_trial_that_is_named(place, capsys):
    assert main([*place, "--vary", 'odd={"prompt": "Odd."}', "--choose", "odd"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["winner"] == said["test"]["winner"] == "odd" and said["prompt"] == "Odd."
    assert main([*place, "--choose", "odd2"]) == 2 and "'odd2'" in capsys.readouterr().err


def test_the_price_of_the_judge_is_not_that_of_who_rewrites(place):
    """--price took the place of the price in --reflect's mapping: a cap of dollars was overrun."""
    own = '{"endpoint": "big", "price": [100, 100]}'
    given = parser("tune").parse_args([*place, "--price", "1,2", "--reflect", own])
    assert tune._rewriter(given)["price"] == [100, 100]
    given = parser("tune").parse_args([*place, "--price", "1,2", "--reflect", "endpoint:big"])
    assert "price" not in tune._rewriter(given) and tune._judge(given)["price"] == (1, 2)


def test_trials_beyond_wording_have_flags(place, capsys):
    more = ["--examples", "2", "--vary", 'panel={"of": ["baseline", "strict", "one"]}']
    more = ["--vary", 'one={"how": "one"}', *more]
    assert main([*place, *more]) == 0
    names = {r["trial"] for r in json.loads(capsys.readouterr().out)["trials"]}
    assert names == {"baseline", "strict", "one", "panel", "2 examples"}
    assert main([*place, "--cascade", "strict,one"]) == 2  # all of it went to both judges
    assert "no P(met)" in capsys.readouterr().err
    assert main([*place, "--vary", "one"]) != 0 and "is no JSON" in capsys.readouterr().err
    for trials in ("strict", "strict,one,two"):  # was a traceback, after trials were paid
        assert main([*place, "--cascade", trials]) == 2
        assert "name two or more" in (err := capsys.readouterr().err) or "one,two" in err
    assert main([*place[:-2], "--whole", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {r["trial"] for r in said["trials"]} == {"baseline", "strict", "in parts"}


def test_an_estimate_sends_nothing_whatever_the_folder_holds(place, capsys, tmp_path):
    """ "Nothing was sent" stood below what had just been paid: the trials of the folder."""
    assert main([*place, f"--out={tmp_path / 'out'}"]) == 0
    asked = len(FakeEndpoint.asked)
    again = [*place[:-2], f"--out={tmp_path / 'out'}", "--estimate"]
    again[3] = f"--ledger={tmp_path / 'other.sqlite'}"
    assert main(again) == 0 and "nothing was sent" in capsys.readouterr().out
    again[2] = again[2].replace('"m"', '"m2"')
    assert main(again[:-1]) == 2 and "not endpoint:m2" in capsys.readouterr().err
    assert main([*place, "--vary", 'a={"name": "b"}']) == 2
    assert len(FakeEndpoint.asked) == asked


@pytest.mark.slow  # a process is killed in the middle: 6 s
def test_tune_goes_on_after_kill_9_and_pays_nothing_twice(place, capsys):
    FakeEndpoint.wait = 0.05
    process = subprocess.Popen([sys.executable, "-m", "kit", *place], env=dict(os.environ))
    while len(FakeEndpoint.asked) < 15:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    FakeEndpoint.wait = 0.0
    assert main(place) == 0
    assert json.loads(capsys.readouterr().out)["winner"] == "strict"
    twice = len(FakeEndpoint.asked) - len(set(FakeEndpoint.asked))
    assert twice <= 4  # what was in flight when it was killed


@pytest.mark.parametrize(
    "wrong",
    [
        ["--measure", "f1"],
        ["--examples", "1000"],
        ["--examples", "0"],
        ["--vary", 'x={"how": 0}'],
        ["--vary", 'x={"temperature": "hot"}'],
        ["--vary", 'x={"of": ["strict", "strikt"]}'],
        ["--vary", 'strict={"how": "one"}'],
        ["--vary", "x={}", "--vary", "x={}"],
        ["--page", "/dev/null/x.html"],
        ["--page", "/dev/null"],
        ["--cascade", "baseline,baseline"],
        ["--cascade", "strict,strikt"],
        ["--cascade", "strict,baseline", "--tolerance", "2"],
        ["--gain", "-0.1"],
        ["--gain", "3"],
        ["--search", "--rows", "3"],
        ["--search", "--reflect", "replay"],
    ],
)
def test_what_cannot_be_meant_is_refused_before_a_call_is_paid(place, capsys, wrong):
    """98 calls were paid first; of two trials with one name the first vanished; a gain of -.1 was
    a traceback, and one of 3 "found with 67 labelled prompts"."""
    assert main([*place[:-2], *wrong]) in (2, 3)
    assert not FakeEndpoint.asked and "Traceback" not in capsys.readouterr().err


def test_a_test_that_was_read_in_another_form_is_refused_before_a_call_is_paid(place, capsys):
    """--whole paid 196 calls, and was then told of "66 of its 22 rows"."""
    assert main(place) == 0
    asked = len(FakeEndpoint.asked)
    assert main([*place, "--whole"]) == 5
    found = re.search(r"(\d+) of the parts of its (\d+) rows", capsys.readouterr().err)
    assert found and int(found[1]) == int(found[2]) > 0
    assert len(FakeEndpoint.asked) == asked

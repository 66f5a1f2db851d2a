"""One factory for notebooks, configs and the command line: every judge by its name or its settings."""

from __future__ import annotations

import pytest

from kit.__main__ import parser
from kit.cli.judge import make
from kit.errors import KitError, MissingError
from kit.judge import EndpointJudge, Escalate, Panel, judge_of

URL = "http://127.0.0.1:1/v1"


def test_a_name_and_a_mapping_name_the_same_judge():
    one = judge_of("endpoint:m")
    two = judge_of({"endpoint": "m", "how": "one", "headers": {"X": "1"}, "base_url": URL})
    assert isinstance(one, EndpointJudge) and one.model == two.model == "m" and two.how == "one"
    assert judge_of(one) is one


def test_judges_made_of_judges():
    panel = judge_of("panel:endpoint:a,endpoint:b,code")
    assert isinstance(panel, Panel) and [j.name for j in panel.judges] == ["a", "b", "code"]
    up = judge_of({"escalate": ["endpoint:a", {"endpoint": "b", "effort": "high"}], "low": 0.3})
    assert isinstance(up, Escalate) and up.low == 0.3 and up.strong.name == "b"
    votes = judge_of({"votes": {"endpoint": "m", "base_url": URL}, "n": 3})
    assert votes.share and len({j._own for j in votes.judges}) == 3
    assert all(j.params["temperature"] == 1.0 for j in votes.judges)


@pytest.mark.parametrize(
    "value, words",
    [
        ("endpiont:m", "did you mean 'endpoint'"),
        ({"endpoint": "m", "concurency": 3}, "did you mean 'concurrency'"),
        ({"panel": ["code"]}, "at least two"),
        ({"panel": ["code", "lokal"]}, "judge 2 of panel"),
        ({"escalate": ["code", "code", "code"]}, "the cheap one and the strong one"),
        ({"votes": "code"}, "n is 2 or more"),
        (7, "names no judge"),
        ({"endpoint": "m", "tries": 1.5}, "1.5: expected `int`(.|\n)*setting tries"),
        ({"endpoint": 3}, "3: expected `str(.|\n)*setting endpoint"),
        ({"endpoint": "m", "timeout": "a"}, "'a' is not a number(.|\n)*setting timeout"),
        ({"panel": ["code", "code"], "rule": 3}, "setting rule"),
        ({"endpoint": "m", "timeout": float("nan")}, "timeout is nan"),
        ({"endpoint": "m", "tries": 0}, "tries is 0"),
    ],
)
def test_what_cannot_be_meant_says_what_could(value, words):
    with pytest.raises(KitError, match=words):
        judge_of(value)


def command(*more):
    return make(parser("judge").parse_args(["judge", "t", "r", *more]))


def test_the_command_line_speaks_to_the_same_factory(monkeypatch):
    monkeypatch.setenv("MY_KEY", "s3cret")
    who = command(
        *("--judge", "endpoint:m", "--base-url", URL, "--header", "X-Key:$MY_KEY"),
        *("--extra", "top_k=20", "--extra", "stop=end", "--temperature", "0.5", "--tries", "2"),
        *("--max-tokens", "50", "--mode", "text", "--how", "3", "--price", "1,2"),
    )
    assert who.params == {"temperature": 0.5, "top_k": 20, "stop": "end"}
    assert (who.mode, who.how, who.max_tokens, who.caller.tries) == ("text", 3, 50, 2)
    assert "temperature" not in command("--judge", "endpoint:m", "--temperature", "none").params
    more = ("--base-url", URL, "--panel", "endpoint:b", "--escalate", "endpoint:c")
    made = command("--judge", "endpoint", "--model", "a", "--votes", "2", *more)
    assert isinstance(made, Escalate) and made.strong.name == "c"
    assert [j.name for j in made.cheap.judges] == ["a x2", "b"]
    assert made.strong.base_url == made.cheap.judges[1].base_url == URL


@pytest.mark.parametrize(
    "more, words",
    [
        (("--judge", "endpoint:m", "--header", "nonsense"), "no header"),
        (("--judge", "endpoint:m", "--header", "A:$NOT_SET_AT_ALL"), "is not set"),
        (("--judge", "endpoint:m", "--extra", "top_k"), "NAME=VALUE"),
        (("--judge", "endpoint:m", "--temperature", "hot"), "no temperature"),
        (("--judge", "code", "--how", "one"), "no code option 'how'"),
        (("--judge", "reply"), "did you mean 'replay'"),
    ],
)
def test_an_option_that_cannot_take_effect_is_refused(more, words):
    with pytest.raises(KitError, match=words):
        command(*more)


def test_a_replay_of_a_file_that_is_not_there_is_named():
    with pytest.raises(MissingError, match="no such"):
        command("--replay-from", "/nowhere/x.jsonl")

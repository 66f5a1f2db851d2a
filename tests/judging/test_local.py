"""The judges on this machine: their options, and a real GGUF server (slow)."""

import json
import os
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import kit
from kit import Criterion, Response, Task
from kit.errors import DataError, MissingError

TASK = Task(
    id="t",
    prompt="Name the river of Paris.",
    criteria=tuple(
        Criterion(id=f"c{i}", text="Names the Seine" + " and more" * (i % 5) + "?" * i)
        for i in range(11)
    ),
)
ANSWER = Response(task_id="t", id="r", text="The Seine runs through Paris. " * 4)


def test_options_are_checked(tmp_path):
    text = tmp_path / "prompt.txt"
    text.write_text("Say yes or no.\n")
    judge = kit.judge_of({"server": "none.gguf", "prompt": str(text)})
    assert (judge.system, judge.options.how) == ("Say yes or no.", "word")
    with pytest.raises(DataError, match="path"):
        kit.judge_of("server")
    with pytest.raises(MissingError, match="no such model file"):
        kit.judge(TASK, [ANSWER], judge=f"server:{tmp_path / 'none.gguf'}", progress=False)
    other = kit.judge_of({"server": str(tmp_path / "other.gguf"), "n_parallel": 4, "how": "all"})
    assert other.concurrency == 4 and other.options.how == "all"


GGUF = Path.home() / ".cache/rubric-kit/models/SmolLM2-135M-Instruct-GGUF"


@pytest.mark.slow
def test_a_real_server_answers_in_both_modes_and_is_closed_to_others():
    files = sorted(Path(os.environ.get("KIT_TEST_GGUF", GGUF)).glob("*.gguf"))
    if not files:
        pytest.skip("no GGUF model in the cache")
    task = Task(id="t", prompt=TASK.prompt, criteria=TASK.criteria[:2])
    server = kit.judge_of({"server": str(files[0])})
    words = kit.judge(task, [ANSWER], judge=server, progress=False)
    assert server.server.address.startswith("http://127.0.0.1:")
    # 135 million weights do not always say yes or no
    assert all(0 < v.p < 1 if v.is_known else v.failure == "parse" for v in words)
    assert words.spent.calls >= 2 and server.server.key not in repr(words)
    other = kit.judge_of({"server": str(files[0]), "how": "all"})
    reasons = kit.judge(task, [ANSWER], judge=other, progress=False)
    assert all(v.reason or v.failure for v in reasons)
    assert other.server.address == server.server.address  # one server a file
    with pytest.raises(urllib.error.HTTPError) as e:
        urllib.request.urlopen(f"{server.server.address}/chat/completions", json.dumps({}).encode())
    assert e.value.code == 401
    verdicts = kit.judge(task, [ANSWER], judge="local", progress=False)
    assert all(0 < v.p < 1 for v in verdicts) and verdicts.spent.calls == 2

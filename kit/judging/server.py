"""A GGUF model behind an OpenAI-compatible server on this machine (llama.cpp through xllamacpp).

    with LocalServer("model.gguf") as server:
        verdicts = kit.judge(tasks, answers, judge=server.judge())

One word a criterion (`how="word"`, the default) is fast and gives P(met); `how="all"`
gives reasons. Ledger keys name the model's file and not the port, so stored verdicts are
found again.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import secrets
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import DataError, JudgeDownError, MissingError
from . import prompt
from .endpoint import EndpointJudge

ENDS = 1 << 20  # bytes at either end of the file that tell one model from another


class LocalServer(contextlib.AbstractContextManager):
    """Serve a GGUF file on 127.0.0.1, with a random key. A context manager; `start` and `stop`.

    n_parallel : requests at once. With 1 the criteria of an answer share one prefix, which
        is the fastest for one-word replies. n_ctx : tokens of one request.
    n_threads : default cores - 1. gpu_layers : layers on a GPU, -1 = all that fit.

    >>> LocalServer("judge.gguf").model
    'judge'
    """

    def __init__(
        self,
        path: str | Path,
        *,
        n_parallel: int = 1,
        n_ctx: int = 8192,
        n_threads: int | None = None,
        gpu_layers: int = 0,
    ):
        self.path = Path(path).expanduser()
        self.n_parallel, self.n_ctx = n_parallel, n_ctx
        self.n_threads = n_threads or max(1, (os.cpu_count() or 2) - 1)
        self.gpu_layers, self.model = gpu_layers, self.path.stem
        self.key, self.base_url = secrets.token_urlsafe(24), ""
        self._server: Any = None

    def start(self) -> LocalServer:
        """Load the model and serve it. MissingError without the file or xllamacpp."""
        if self._server is not None:
            return self
        if not self.path.is_file():
            raise MissingError(
                "there is no such model file",
                where=str(self.path),
                fix="give a .gguf file",
            )
        try:
            import xllamacpp

            self._server = xllamacpp.Server(
                self._parameters(xllamacpp.CommonParams())
            )
        except ImportError:
            raise MissingError(
                "the local server needs xllamacpp", fix="pip install xllamacpp"
            ) from None
        except RuntimeError as e:
            raise JudgeDownError(
                f"the local server did not start: {e}",
                where=str(self.path),
                fix="is it a GGUF model, and is there memory for it?",
            ) from None
        self.base_url = f"{self._server.listening_address}/v1"
        # llama.cpp complains when the interpreter ends before its threads.
        atexit.register(self.stop)
        return self

    def _parameters(self, p: Any) -> Any:
        p.model.path, p.model_alias = str(self.path), {self.model}
        p.n_gpu_layers = self.gpu_layers
        # llama.cpp divides its context among the slots.
        p.n_parallel, p.n_ctx = self.n_parallel, self.n_ctx * self.n_parallel
        p.cpuparams.n_threads = p.cpuparams_batch.n_threads = self.n_threads
        # Only this process may use it: loopback, any free port, a key, no page.
        p.hostnames, p.port, p.api_keys, p.ui = ["127.0.0.1"], 0, [self.key], False
        p.cors_origins, p.cors_origins_explicit = "null", True
        p.endpoint_slots = p.endpoint_props = p.warmup = False
        p.verbosity = 1  # errors only: its log goes to the terminal past Python
        return p

    def stop(self) -> None:
        """Stop it. Nothing happens when it does not run."""
        self._server, self.base_url = None, ""

    def judge(self, **options: Any) -> ServedJudge:
        """A judge on this server; options as an endpoint judge takes them."""
        return ServedJudge(self, **options)

    @cached_property
    def identity(self) -> str:
        """The file's name, size and a digest of its ends; its name alone while it is absent."""
        if not self.path.is_file():
            return self.path.name
        # A digest of gigabytes takes seconds; both ends tell models apart.
        size = self.path.stat().st_size
        with self.path.open("rb") as f:
            ends = f.read(ENDS)
            f.seek(max(0, size - ENDS))
            ends += f.read(ENDS)
        return f"{self.path.name} {size} {hashlib.sha256(ends).hexdigest()[:16]}"

    def __enter__(self) -> LocalServer:
        return self.start()

    def __exit__(self, *_: Any) -> None:
        self.stop()


class ServedJudge(EndpointJudge):
    """An endpoint judge whose server starts at the first question.

    how : "word" (the default: yes or no, with P(met)), or "all", "one", k as of an endpoint.
    """

    def __init__(self, server: LocalServer, **options: Any):
        # A busy laptop may take minutes for an answer. Waiting costs nothing.
        ours = {"how": "word", "timeout": 900.0, "price": (0.0, 0.0)}
        options = {**ours, "concurrency": server.n_parallel, **options}
        if options["how"] == "word" and not options.keys() & {"system", "prompt"}:
            options["system"] = prompt.wording("yes_no")
        super().__init__(server.model, base_url="http://127.0.0.1", **options)
        self.server = server
        # The port is another one each time; the verdicts must be found again.
        self.settings["base_url"] = server.identity

    @property
    def key(self) -> str:
        """The server's own key."""
        return self.server.key

    def _client(self) -> Any:
        self.base_url = self.server.start().base_url
        return super()._client()


def served(path: str | Path | None = None, **options: Any) -> ServedJudge:
    """The judge `server:FILE`: one server per file and process, started at the first question."""
    if not path:
        raise DataError(
            "server needs a model file",
            where="judge server",
            fix="write server:FILE.gguf",
        )
    names = ("n_parallel", "n_ctx", "n_threads", "gpu_layers")
    # Other options make another judge on the same server.
    sizes = {name: options.pop(name) for name in names if name in options}
    return _server(Path(path).expanduser().absolute(), **sizes).judge(**options)


_server = functools.cache(LocalServer)


def small(**options: Any) -> ServedJudge:
    """The judge `small`: the pinned 1.5B model. MissingError says how to fetch it."""
    from ..data import judge_model

    return served(judge_model(), **options)

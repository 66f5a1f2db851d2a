"""Judges on this machine: a GGUF model behind a server that starts at the first question.

    verdicts = kit.judge(tasks, answers, judge="server:model.gguf")

The server is llama.cpp's, through xllamacpp. One word a criterion (`how="word"`, the
default) is fast and gives P(met), the probability of "yes" among "yes" and "no" as the
next token (Kadavath et al. 2022, P(true)); `how="all"` gives reasons. The criteria of an
answer share their prompt's beginning, which goes through the model once. Ledger keys name
the model's file and not the port, so stored verdicts are found again.

A model in Hugging Face's form is an endpoint too: `vllm serve FOLDER`, and how="word".
A small model is a poor judge. Measure it against labels before you use it.
"""

import atexit
import functools
import hashlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data import judge_model, small_gguf
from ..errors import JudgeDownError, MissingError
from .client import Server
from .llm import LLMJudge
from .prompt import prompt_wording


@functools.cache
def _start_server(path: Path, n_parallel: int, n_ctx: int) -> tuple[Any, str]:
    """The server of a model file, and its key; one per file and process."""
    if not path.is_file():
        raise MissingError(
            "there is no such model file", where=str(path), fix="give a .gguf file"
        )
    # OpenMP reads this when it is loaded. Threads that spin wait minutes beside a busy process.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        import xllamacpp
    except ImportError:
        raise MissingError(
            "the local server needs xllamacpp", fix="pip install xllamacpp"
        ) from None
    p, key = xllamacpp.CommonParams(), secrets.token_urlsafe(24)
    p.model.path, p.model_alias = str(path), {path.stem}
    # llama.cpp divides its context among the slots.
    p.n_parallel, p.n_ctx = n_parallel, n_ctx * n_parallel
    # Whoever asks waits for the answer, so all cores may read the prompt.
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = os.cpu_count() or 1
    # Only this process may use it: loopback, any free port, a key, no page.
    p.hostnames, p.port, p.api_keys, p.ui = ["127.0.0.1"], 0, [key], False
    p.cors_origins, p.cors_origins_explicit = "null", True
    p.endpoint_slots = p.endpoint_props = p.warmup = False
    p.verbosity = 1  # errors only: its log goes to the terminal past Python
    try:
        server = xllamacpp.Server(p)
    except RuntimeError as e:
        raise JudgeDownError(
            f"the local server did not start: {e}",
            where=str(path),
            fix="is it a GGUF model, and is there memory for it?",
        ) from None
    # llama.cpp complains when the interpreter ends before its threads.
    atexit.register(_start_server.cache_clear)
    return server, key


@dataclass(kw_only=True, unsafe_hash=True)
class LocalServer(Server):
    """The server of a GGUF file, on 127.0.0.1 with a random key. It starts at its first use.

    model : the file, requests at once, tokens of one request.
    """

    model: tuple[Path, int, int]

    @property
    def address(self) -> str:
        """The base URL, with the port that the system chose."""
        return f"{_start_server(*self.model)[0].listening_address}/v1"

    @property
    def key(self) -> str:
        """The server's own key."""
        return _start_server(*self.model)[1]


class ServedJudge(LLMJudge):
    """A GGUF file (path) behind a server on 127.0.0.1, with a random key, as an endpoint judge.

    The server starts at the first question; judges of one file share it.
    how : "word" (the default: yes or no, with P(met)), or "all", "one", k as of an endpoint.
    n_parallel : requests at once. With 1 the criteria of an answer share one prefix, which
        is the fastest for one-word replies. n_ctx : tokens of one request.

    >>> ServedJudge("judge.gguf").name
    'judge'
    """

    def __init__(
        self,
        path: str | Path,
        *,
        n_parallel: int = 1,
        n_ctx: int = 8192,
        **options: Any,
    ):
        # A busy laptop may take minutes for an answer. Waiting costs nothing.
        options = {
            "how": "word", "timeout": 900.0, "price": (0.0, 0.0),
            "concurrency": n_parallel, **options,
        }  # fmt: skip
        if options["how"] == "word" and not options.keys() & {"system", "prompt"}:
            options["system"] = prompt_wording("yes_no")
        file = Path(path).expanduser().absolute()
        super().__init__(file.stem, base_url="http://127.0.0.1", **options)
        self.server = LocalServer(
            **vars(self.server), model=(file, n_parallel, n_ctx)
        )
        # The port is another one each time; the verdicts must be found again.
        self.identity["base_url"] = describe_file(file)


def describe_file(file: Path) -> str:
    """A file's name, size and a digest of its end; its name alone while it is absent."""
    if not file.is_file():
        return file.name
    # A digest of gigabytes takes seconds; the last weights tell models apart.
    size = file.stat().st_size
    with file.open("rb") as f:
        f.seek(max(0, size - (1 << 20)))
        return f"{file.name} {size} {hashlib.sha256(f.read()).hexdigest()[:16]}"


def small(**options: Any) -> ServedJudge:
    """The judge `small`: the pinned 1.5B model. MissingError says how to fetch it."""
    return ServedJudge(judge_model(), **options)


def local(**options: Any) -> ServedJudge:
    """The judge `local`: SmolLM2-135M-Instruct, the smallest. It is quick and poor."""
    # Without a grammar this model replies in a sentence; P(met) is read before it acts.
    options.setdefault("extra", {"grammar": 'root ::= "yes" | "no"'})
    return ServedJudge(small_gguf(), **options)

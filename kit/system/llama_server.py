"""llama.cpp's server for a GGUF file, in a thread of this process, through xllamacpp."""

import atexit
import functools
import os
import secrets
from pathlib import Path
from typing import Any

from ..errors import JudgeDownError, MissingError


@functools.cache
def start_server(path: Path, n_parallel: int, n_ctx: int) -> tuple[Any, str]:
    """The server of a model file on 127.0.0.1, and its random key; one per file and process.

    n_parallel : requests at once. n_ctx : tokens of one request.
    """
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
    atexit.register(start_server.cache_clear)
    return server, key

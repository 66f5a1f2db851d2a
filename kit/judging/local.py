"""Judges on this machine: a GGUF model behind a server, and P(met) from next-token scores.

    verdicts = kit.judge(tasks, answers, judge="server:model.gguf")

The server is llama.cpp's, through xllamacpp. One word a criterion (`how="word"`, the
default) is fast and gives P(met); `how="all"` gives reasons. Ledger keys name the model's
file and not the port, so stored verdicts are found again.

`LocalJudge` needs no server. For each criterion the model reads the same beginning
(instructions, task, answer) and then the criterion. P(met) is the probability of "yes"
among "yes" and "no" (Kadavath et al. 2022, P(true)). The beginning goes through the model
once; its keys and values serve all criteria.

A small model is a poor judge. Measure it against labels before you use it.
"""

from __future__ import annotations

import atexit
import copy
import functools
import hashlib
import os
import secrets
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import DataError, JudgeDownError, MissingError
from ..records import Criterion, Response, Task
from ..system.device import choose, import_torch
from . import prompt as prompts
from .endpoint import EndpointJudge
from .factory import Judge
from .reader import Criteria, Reading, refuse

ENDS = 1 << 20  # bytes at either end of the file that tell one model from another
# Holds the criterion's place while the chat template is filled in. A judged text may
# contain it, so the last one counts: the criterion comes after the answer.
PLACE = "[[criterion]]"
# Opens the reply. It triples the share of SmolLM2's next token that is yes or no (.12 to
# .39).
CUE = "Reply (yes or no):"
WORDS = {"yes": ("yes", "Yes", "YES"), "no": ("no", "No", "NO")}


@functools.cache
def _serve(path: Path, n_parallel: int, n_ctx: int) -> tuple[Any, str]:
    """The server of a model file, and its key; one per file and process."""
    if not path.is_file():
        raise MissingError(
            "there is no such model file", where=str(path), fix="give a .gguf file"
        )
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
    threads = max(1, (os.cpu_count() or 2) - 1)
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = threads
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
    atexit.register(_serve.cache_clear)
    return server, key


class ServedJudge(EndpointJudge):
    """A GGUF file behind a server on 127.0.0.1, with a random key, as an endpoint judge.

    The server starts at the first question; judges of one file share it.
    how : "word" (the default: yes or no, with P(met)), or "all", "one", k as of an endpoint.
    n_parallel : requests at once. With 1 the criteria of an answer share one prefix, which
        is the fastest for one-word replies. n_ctx : tokens of one request.

    >>> ServedJudge("judge.gguf").name
    'judge'
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        n_parallel: int = 1,
        n_ctx: int = 8192,
        **options: Any,
    ):
        if not path:
            raise DataError(
                "server needs a model file",
                where="judge server",
                fix="write server:FILE.gguf",
            )
        # A busy laptop may take minutes for an answer. Waiting costs nothing.
        ours = {"how": "word", "timeout": 900.0, "price": (0.0, 0.0)}
        options = {**ours, "concurrency": n_parallel, **options}
        if options["how"] == "word" and not options.keys() & {"system", "prompt"}:
            options["system"] = prompts.wording("yes_no")
        file = Path(path).expanduser().absolute()
        super().__init__(file.stem, base_url="http://127.0.0.1", **options)
        self.server = file, n_parallel, n_ctx
        # The port is another one each time; the verdicts must be found again.
        self.settings["base_url"] = _identity(file)

    @property
    def key(self) -> str:
        """The server's own key."""
        return _serve(*self.server)[1]

    def _client(self) -> Any:
        self.base_url = f"{_serve(*self.server)[0].listening_address}/v1"
        return super()._client()


def _identity(file: Path) -> str:
    """A file's name, size and a digest of its ends; its name alone while it is absent."""
    if not file.is_file():
        return file.name
    # A digest of gigabytes takes seconds; both ends tell models apart.
    size = file.stat().st_size
    with file.open("rb") as f:
        ends = f.read(ENDS)
        f.seek(max(0, size - ENDS))
        ends += f.read(ENDS)
    return f"{file.name} {size} {hashlib.sha256(ends).hexdigest()[:16]}"


def small(**options: Any) -> ServedJudge:
    """The judge `small`: the pinned 1.5B model. MissingError says how to fetch it."""
    from ..data import judge_model

    return ServedJudge(judge_model(), **options)


class LocalJudge(Judge):
    """Judge binary criteria with a causal language model on this machine.

    model : a folder or hub name (default: SmolLM2-135M-Instruct), or a loaded model with its
        `tokenizer`. It is loaded at the first question.
    prompt : a file with the instructions; system : the text itself.
    least_mass : a verdict is unknown when yes and no catch less than this share of the next
        token's probability, in [0, 1].

    >>> LocalJudge("folder/of/a/model").name
    'local:model'
    """

    def __init__(
        self,
        model: Any = None,
        *,
        tokenizer: Any = None,
        prompt: str | None = None,
        system: str | None = None,
        least_mass: float = 0.25,
    ):
        if not 0 <= least_mass <= 1:
            raise DataError(
                f"least_mass is {least_mass}", where="judge local", fix="0 to 1"
            )
        self.model, self.tokenizer, self.least_mass = model, tokenizer, least_mass
        self.system = prompts.system(prompt, system, "yes_no")
        path = getattr(getattr(model, "config", None), "_name_or_path", model)
        self.name = f"local:{Path(path or 'SmolLM2-135M-Instruct').name}"
        self._lock = threading.Lock()

    @cached_property
    def _network(self) -> tuple[Any, Any]:
        """Model and tokenizer."""
        if self.tokenizer is not None:
            return self.model, self.tokenizer
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from ..data import small_model

        place, here = str(self.model or small_model()), choose()
        dtype = getattr(import_torch(), here.dtype)
        model = AutoModelForCausalLM.from_pretrained(place, dtype=dtype)
        return model.to(here.kind).eval(), AutoTokenizer.from_pretrained(place)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What shapes a verdict beside the texts: the weights (a sample of each) and the prompt."""
        # All weights would take seconds to hash; 16 of each tensor tell two trainings apart.
        digest = hashlib.sha256()
        for name, weight in sorted(self._network[0].named_parameters()):
            sample = weight.detach().reshape(-1)[:16].float().cpu().numpy()
            digest.update(
                f"{name}{tuple(weight.shape)}".encode() + sample.tobytes()
            )
        return {
            "local": digest.hexdigest(),
            "system": self.system,
            "least_mass": self.least_mass,
            "version": prompts.VERSION,
        }

    def keys(
        self, task: Task, answers: Sequence[Response], criteria: Criteria
    ) -> list[str]:
        """Ledger keys, answers x criteria."""
        rows = [prompts.keys(self.settings, task, r, criteria) for r in answers]
        return [key for row in rows for key in row]

    def readings(
        self, task: Task, response: Response, criteria: Criteria
    ) -> list[Reading]:
        """The fields of a verdict for each criterion."""
        binary = [c for c in criteria if c.scale == "binary"]
        why, readings = "a local judge reads criteria that are met or unmet", {}
        try:
            scores = self.score(task, response, binary)
            for c, score in zip(binary, scores, strict=True):
                readings[c.id] = self._reading(*score)
        except (DataError, RuntimeError) as e:  # too long, or out of memory
            why = str(e)
        return [readings.get(c.id, refuse(why, "error")) for c in criteria]

    def _reading(self, p: float, mass: float) -> Reading:
        # A model that would write something else did not judge.
        if not mass >= self.least_mass:
            reason = f"yes and no have {mass:.2f} of the next token's probability"
            return refuse(reason, "abstain")
        status = "met" if p >= 0.5 else "unmet"
        meta = {"mass": round(mass, 6)}
        return {"status": status, "p": p, "reason": f"P(met) {p:.3f}", "meta": meta}

    def score(
        self, task: Task, response: Response, criteria: Criteria
    ) -> list[tuple[float, float]]:
        """(P(met), mass of yes and no) of each criterion, both in [0, 1]."""
        model, tokenizer = self._network
        prefix, tails = self._tokens(task, response, criteria)
        room = getattr(model.config, "max_position_embeddings", None)
        longest = len(prefix) + max(map(len, tails), default=0)
        if room and longest > room:
            raise ValueError(
                f"the prompt has {longest} tokens, the model reads {room}"
            )
        words = [_spellings(tokenizer, word) for word in WORDS]
        scores = []
        # Two runs may share the judge, and each forward pass wants all cores.
        with self._lock, import_torch().inference_mode():
            cache = self._read(prefix).past_key_values
            for tail in tails:
                # The model writes into the cache that it is handed.
                logits = self._read(tail, copy.deepcopy(cache)).logits[0, -1]
                chances = logits.float().softmax(-1)
                yes, no = (float(chances[ids].sum()) for ids in words)
                mass = yes + no
                # 0 / 0 where neither word has any chance; least_mass refuses it.
                scores.append((yes / mass if mass else 0.5, min(mass, 1.0)))
        return scores

    def _read(self, ids: list[int], cache: Any = None) -> Any:
        model = self._network[0]
        tokens = import_torch().tensor([ids], device=model.device)
        return model(
            input_ids=tokens,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )

    def _tokens(
        self, task: Task, response: Response, criteria: Criteria
    ) -> tuple[Any, Any]:
        """Token ids of the shared beginning, and of each criterion with what follows it."""
        tokenizer = self._network[1]
        place = {"c1": Criterion(id="c1", text=PLACE)}
        chat = prompts.messages(
            self.system, task, {"": response}, place, form="word", call=""
        )
        fill = {"add_generation_prompt": True, "enable_thinking": False}
        text = tokenizer.apply_chat_template(chat, tokenize=False, **fill)
        head, _, end = text.rpartition(PLACE)
        texts = [head, *(prompts.neutral(c.text) + end + CUE for c in criteria)]
        prefix, *tails = (
            tokenizer.encode(t, add_special_tokens=False) for t in texts
        )
        return prefix, tails


def _spellings(tokenizer: Any, word: str) -> list[int]:
    """The ids of a word's one-token spellings, with and without a blank before it."""
    forms = [f"{blank}{form}" for form in WORDS[word] for blank in ("", " ")]
    rows = (tokenizer.encode(form, add_special_tokens=False) for form in forms)
    ids = sorted({row[0] for row in rows if len(row) == 1})
    if not ids:
        raise DataError(f"no single token of this model spells {word!r}")
    return ids

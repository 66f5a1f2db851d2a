"""A small language model as a judge: P(met) from the scores of its next token.

For each criterion the model reads the same beginning (instructions, task, answer) and
then the criterion. P(met) is the probability of "yes" among "yes" and "no" (Kadavath et
al. 2022, P(true)). The beginning goes through the model once; its keys and values serve
all criteria.

A small model is a poor judge. Measure it against labels before you use it.
"""

import asyncio
import copy
import hashlib
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..records import Criterion, Response, Task, Verdict
from ..system.device import choose, import_torch
from . import prompt as prompts
from .reader import Reading, refuse

# Holds the criterion's place while the chat template is filled in. A judged text may
# contain it, so the last one counts: the criterion comes after the answer.
PLACE = "[[criterion]]"
# Opens the reply. It triples the share of SmolLM2's next token that is yes or no (.12 to
# .39).
CUE = "Reply (yes or no):"
WORDS = {"yes": ("yes", "Yes", "YES"), "no": ("no", "No", "NO")}


class LocalJudge:
    """Judge binary criteria with a causal language model on this machine.

    model : a folder or hub name (default: SmolLM2-135M-Instruct), or a loaded model with its
        `tokenizer`. It is loaded at the first question.
    prompt : a file with the instructions; system : the text itself.
    least_mass : a verdict is unknown when yes and no catch less than this share of the next
        token's probability, in [0, 1].

    >>> LocalJudge("folder/of/a/model").name
    'local:model'
    """

    concurrency = 1

    def __init__(
        self,
        model: Any = None,
        *,
        tokenizer: Any = None,
        prompt: str | None = None,
        system: str | None = None,
        least_mass: float = 0.25,
        name: str | None = None,
    ):
        if not 0 <= least_mass <= 1:
            raise DataError(
                f"least_mass is {least_mass}", where="judge local", fix="0 to 1"
            )
        self.model, self.tokenizer, self.least_mass = model, tokenizer, least_mass
        self.system = prompts.system(prompt, system, "yes_no")
        path = getattr(getattr(model, "config", None), "_name_or_path", model)
        path = Path(path or "SmolLM2-135M-Instruct")
        self.name = name or f"local:{path.name}"
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
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[str]:
        """Ledger keys, one per criterion."""
        return prompts.keys(self.settings, task, response, criteria)

    async def verdicts(
        self,
        task: Task,
        response: Response,
        criteria: Sequence[Criterion],
        run: Any,
    ) -> list[Verdict]:
        """One verdict per criterion, in order. The model works in a thread."""
        ids = {"task_id": task.id, "response_id": response.id, "judge": self.name}
        binary = [c for c in criteria if c.scale == "binary"]
        why, readings = "a local judge reads criteria that are met or unmet", {}
        try:
            rows = await asyncio.to_thread(self.score, task, response, binary)
            readings = {
                c.id: self._reading(*row)
                for c, row in zip(binary, rows, strict=True)
            }
        except (DataError, RuntimeError) as e:  # too long, or out of memory
            why = str(e)
        other = refuse(why, "error")
        return [
            Verdict(criterion_id=c.id, **ids, **readings.get(c.id, other))
            for c in criteria
        ]

    def _reading(self, p: float, mass: float) -> Reading:
        # A model that would write something else did not judge.
        if not mass >= self.least_mass:
            reason = f"yes and no have {mass:.2f} of the next token's probability"
            return refuse(reason, "abstain")
        status = "met" if p >= 0.5 else "unmet"
        meta = {"mass": round(mass, 6)}
        return {"status": status, "p": p, "reason": f"P(met) {p:.3f}", "meta": meta}

    def score(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[tuple[float, float]]:
        """(P(met), mass of yes and no) of each criterion, both in [0, 1]."""
        torch = import_torch()
        model, tokenizer = self._network
        prefix, tails = self._tokens(task, response, criteria)
        room = getattr(model.config, "max_position_embeddings", None)
        longest = len(prefix) + max(map(len, tails), default=0)
        if room and longest > room:
            raise DataError(
                f"the prompt has {longest} tokens, the model reads {room}"
            )
        # Two runs may share the judge, and each forward pass wants all cores.
        with self._lock, torch.inference_mode():
            rows = list(self._chances(prefix, tails))
        words = [_spellings(tokenizer, w) for w in WORDS]
        pairs = [[float(row[ids].sum()) for ids in words] for row in rows]
        # 0 / 0 where the model gives neither word any chance; least_mass refuses it.
        return [
            (yes / (yes + no) if yes + no else 0.5, min(1.0, yes + no))
            for yes, no in pairs
        ]

    def _tokens(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> tuple[list[int], list[list[int]]]:
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

    def _chances(
        self, prefix: list[int], tails: Sequence[list[int]]
    ) -> Iterator[Any]:
        """Next-token probabilities (vocabulary,) after each tail, float32."""
        torch, model = import_torch(), self._network[0]

        def read(ids: list[int], cache: Any) -> Any:
            tokens = torch.tensor([ids], device=model.device)
            return model(
                input_ids=tokens,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )

        cache = read(prefix, None).past_key_values
        for tail in tails:
            # The model writes into the cache that it is handed.
            out = read(tail, copy.deepcopy(cache))
            yield out.logits[0, -1].float().softmax(-1)


def _spellings(tokenizer: Any, word: str) -> list[int]:
    """The ids of a word's one-token spellings, with and without a blank before it."""
    forms = [f"{blank}{form}" for form in WORDS[word] for blank in ("", " ")]
    rows = [tokenizer.encode(form, add_special_tokens=False) for form in forms]
    ids = sorted({row[0] for row in rows if len(row) == 1})
    if not ids:
        raise DataError(f"no single token of this model spells {word!r}")
    return ids

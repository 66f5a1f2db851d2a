"""Making one call succeed, or saying why it did not: slots, deadlines, retries, waiting, what the endpoint cannot do, and the bill.

A Caller belongs to one endpoint and model. Retries are counted here and nowhere else. A 429 waits for its own Retry-After (its
slot given back) and is repeated as long as the endpoint answers anybody; any other fault is repeated `tries` times.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import random
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import JudgeDownError
from .limiter import Limiter
from .prices import FREE, Price, is_reasoning, price
from .records import Call, Forecast
from .session import session
from .wire import Wire, WireError, is_local

log = logging.getLogger(__name__)
_COUNT, _HERE = (
    itertools.count(),
    secrets.token_hex(3),
)  # calls are numbered in time: neighbours in the ledger's index
# parameters that some servers refuse, and the words by which their refusals name them
OPTIONAL = (
    "response_format",
    "temperature",
    "logprobs",
    "top_logprobs",
    "seed",
    "reasoning_effort",
    "prompt_cache_key",
    "max_completion_tokens",
    "top_p",
    "chat_template_kwargs",
)
WORDS = {
    "response_format": ("response_format", "json_schema", "structured output", "guided", "grammar"),
    "logprobs": ("logprob",),
    "max_completion_tokens": ("max_completion_tokens",),
}


@dataclass
class Abilities:
    """What an endpoint and model were found to refuse, each with the server's own words; kept in the ledger, shown, never hidden."""

    refused: dict[str, str] = field(default_factory=dict)
    enforced: bool | None = None  # do replies obey the schema? None: not seen yet

    def note(self) -> dict[str, Any]:
        """As a JSON note."""
        return {"refused": self.refused, "enforced": self.enforced}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one call: the decoded reply and its Call record, or a failure with its reason."""

    data: Mapping[str, Any] | None = None
    call: Call | None = None
    failure: str | None = None
    reason: str | None = None


class Caller:
    """Calls one endpoint; see the module's text. `concurrency`: the most calls at once (None: 256, or 16 on this machine)."""

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        name: str,
        wire: Wire,
        concurrency: int | None = None,
        timeout: float = 120.0,
        tries: int = 5,
        patience: float = 180.0,
        prices: Price | None = None,
    ):
        self.model, self.base_url, self.name, self.wire = model, base_url, name, wire
        self.place = base_url  # by which the ledger knows the endpoint
        self.timeout, self.tries, self.patience = timeout, tries, patience
        local = is_local(base_url)
        self.price = prices or (FREE if local else price(model))
        self.limiter = Limiter(
            concurrency or (64 if local else 256),
            start=None if concurrency else (4 if local else 256),
        )
        self.abilities = Abilities()
        if is_reasoning(model):
            self.abilities.refused.update(
                {
                    "temperature": "reasoning model (models.json)",
                    "top_p": "reasoning model (models.json)",
                }
            )
        self._bad_since: float | None = None
        self._read_notes: set[int] = set()
        self.retries = 0

    # -- the call ---------------------------------------------------------------------------------------------------------
    async def call(self, path: str, body: Mapping[str, Any], forecast: Forecast) -> Outcome:
        """POST `body`; parameters that the endpoint refuses are left out (and noted). Raises BudgetError and JudgeDownError only."""
        self.recall()
        run, faults, learned, last = session(), 0, 0, "no attempt"
        while faults < self.tries:
            sent = {k: v for k, v in body.items() if k not in self.abilities.refused}
            if (
                "max_completion_tokens" in self.abilities.refused
                and "max_completion_tokens" in body
            ):
                sent["max_tokens"] = body["max_completion_tokens"]
            if "logprobs" in self.abilities.refused:
                sent.pop("top_logprobs", None)
            await self.limiter.acquire(first=last != "no attempt")
            try:
                ticket, spent = await run.budget.take(forecast) if run.budget else None, Forecast()
                try:
                    step = await self._once(path, (payload := encode(sent)).encode(), sent)
                    spent = step.spent or forecast if step.paid else Forecast()
                finally:
                    if ticket is not None:
                        run.budget.settle(ticket, spent)  # type: ignore[union-attr]
            finally:
                self.limiter.release()
            if step.data is not None:
                return Outcome(data=step.data, call=self._record(step, payload))
            if (
                step.why == "learned"
                and "response_format" in sent
                and "response_format" in self.abilities.refused
            ):
                return Outcome(failure="refit")  # the wording must change too: it asked for JSON
            if step.final:
                return Outcome(failure="transport", reason=step.why)
            last = step.why
            learned += step.why == "learned"
            faults += step.counts + (learned > 2 * len(OPTIONAL))
            if faults < self.tries and step.wait:
                self.retries += 1
                await asyncio.sleep(step.wait * (2 ** max(faults - 1, 0) if step.counts else 1))
        return Outcome(
            failure="transport", reason=f"{self.tries} attempts failed, the last with: {last}"
        )

    async def _once(self, path: str, payload: bytes, sent: Mapping[str, Any]) -> _Step:
        """One attempt: what it gave, or what to do next."""
        started = time.monotonic()
        try:
            reply = await self.wire.post(path, payload, self.limiter.hang(self.timeout))
        except WireError as e:
            if e.kind == "timeout":
                self.limiter.late()
            return self._bad(
                _Step(
                    why=str(e), counts=1, wait=random.uniform(0.25, 0.75), paid=e.kind == "timeout"
                )
            )
        if reply.status == 200:
            return self._good(reply.body, time.monotonic() - started, sent)
        text = reply.body[:2000].decode("utf-8", "replace")
        if reply.status == 429 and "insufficient_quota" not in text:
            self.limiter.limited()
            wait = reply.retry_after if reply.retry_after is not None else 1.0
            if wait > max(600.0, self.patience):
                raise JudgeDownError(
                    f"the endpoint asks to wait {wait:.0f} s",
                    where=self.base_url,
                    fix="run the same command again later",
                )
            return self._bad(
                _Step(why="HTTP 429", wait=max(wait, 0.05) * random.uniform(1.0, 1.5)), grace=wait
            )
        if reply.status in (401, 403, 404) or "insufficient_quota" in text:
            raise JudgeDownError(
                f"the endpoint refuses: HTTP {reply.status}, {said(text)}",
                where=f"{self.base_url}, model {self.model}",
                fix="look at the key (environment), the model's name, the base URL and the account",
            )
        if reply.status in (400, 422, 501) and self._learn(text, sent):
            return _Step(why="learned")
        if reply.status < 500 and reply.status not in (408, 409):
            return _Step(why=f"HTTP {reply.status}: {said(text)}", final=True)
        return self._bad(
            _Step(
                why=f"HTTP {reply.status}: {said(text)}",
                counts=1,
                wait=reply.retry_after
                if reply.retry_after is not None
                else random.uniform(0.25, 0.75),
            )
        )

    def _good(self, body: bytes, seconds: float, sent: Mapping[str, Any]) -> _Step:
        try:
            data = json.loads(body)
            if not isinstance(data, dict) or not (
                data.get("choices") or data.get("answers") or data.get("id") or data.get("data")
            ):
                raise ValueError("no choices in the reply")
        except (ValueError, RecursionError) as e:
            return self._bad(
                _Step(
                    why=f"HTTP 200 with a broken body ({e})"[:200],
                    counts=1,
                    wait=random.uniform(0.05, 0.2),
                    paid=True,
                )
            )
        self.limiter.ok(seconds)
        self._bad_since = None
        return _Step(
            data=data,
            raw=body.decode("utf-8", "replace"),
            seconds=seconds,
            paid=True,
            spent=self._bill(data),
        )

    def _bad(self, step: _Step, grace: float = 0.0) -> _Step:
        """Note a fault; JudgeDownError when nothing has gone well for longer than `patience`."""
        now = time.monotonic()
        self._bad_since = self._bad_since or now
        if now - self._bad_since > self.patience + grace:
            raise JudgeDownError(
                f"no call has succeeded for {now - self._bad_since:.0f} s; the last said: {step.why}",
                where=f"{self.base_url}, model {self.model}",
                fix="look at the server; then run the same command: the ledger continues",
            )
        return step

    # -- what the endpoint cannot do ----------------------------------------------------------------------------------------
    def _learn(self, text: str, sent: Mapping[str, Any]) -> bool:
        """From a refusal that names a parameter: leave it out from now on, note it openly. False when it names none of ours."""
        low = text.lower()
        param = _param(text)
        for name in OPTIONAL:
            if (
                name in sent
                and name not in self.abilities.refused
                and (
                    param == name
                    or (param or "").startswith(name + ".")
                    or any(w in low for w in WORDS.get(name, (name,)))
                )
            ):
                self.abilities.refused[name] = said(text)
                log.warning(
                    "%s, model %s, does not take %s (%s); asking without it",
                    self.base_url,
                    self.model,
                    name,
                    said(text),
                )
                self._note()
                return True
        return any(n in self.abilities.refused for n in sent) or (
            "max_tokens" in sent
            and "max_completion_tokens" in low
            and bool(self.abilities.refused.pop("max_completion_tokens", None))
        )

    def obeyed(self, ok: bool) -> None:
        """Whether a reply under a schema obeyed it; the first that does not is noted."""
        if self.abilities.enforced is None or (self.abilities.enforced and not ok):
            if not ok:
                log.warning(
                    "%s, model %s, answers 200 but does not enforce the schema; replies are read and validated all the same",
                    self.base_url,
                    self.model,
                )
            self.abilities.enforced = ok
            self._note()

    def _note(self) -> None:
        run = session()
        if run.ledger is not None:
            run.ledger.note(f"abilities {self.place} {self.model}", self.abilities.note())

    def recall(self) -> None:
        """What an earlier run noted of this endpoint, once per ledger."""
        book = session().ledger
        if book is not None and id(book) not in self._read_notes:
            self._read_notes.add(id(book))
            old = book.note(f"abilities {self.place} {self.model}") or {}
            for name, why in (old.get("refused") or {}).items():
                self.abilities.refused.setdefault(name, why)
            if self.abilities.enforced is None:
                self.abilities.enforced = old.get("enforced")

    # -- the bill -------------------------------------------------------------------------------------------------------------
    def _bill(self, data: Mapping[str, Any]) -> Forecast:
        tin, tout, cached = usage(data)
        return Forecast(
            calls=1,
            tokens_in=tin,
            tokens_out=tout,
            cost=self.price.cost(tin, tout, cached) if self.price else None,
        )

    def _record(self, step: _Step, payload: str) -> Call:
        tin, tout, cached = usage(step.data or {})
        bill = step.spent or Forecast()
        without = sorted(self.abilities.refused)
        return Call(
            id=f"{time.time_ns():016x}{next(_COUNT) & 0xFFFF:04x}{_HERE}",
            judge=self.name,
            model=str((step.data or {}).get("model") or self.model),
            endpoint=self.base_url,
            request=payload,
            reply=step.raw,
            tokens_in=tin,
            tokens_out=tout,
            tokens_cached=cached,
            cost=bill.cost or 0.0,
            seconds=round(step.seconds, 4),
            created=time.time(),
            meta={
                "price_known": self.price is not None,
                **({"without": without} if without else {}),
            },
        )


@dataclass(frozen=True, kw_only=True)
class _Step:
    """What one attempt gave: data, or a reason with what to do (wait, count it as a fault, give up)."""

    data: Mapping[str, Any] | None = None
    raw: str = ""
    why: str = ""
    counts: int = 0
    wait: float = 0.0
    final: bool = False
    paid: bool = False
    spent: Forecast | None = None
    seconds: float = 0.0


class Raw(str):
    """JSON text that is ready: `encode` takes it as it is (a schema is the same for thousands of calls)."""


def encode(body: Mapping[str, Any]) -> str:
    """A request body as JSON text.

    >>> encode({"a": Raw("[1,2]"), "b": None})
    '{"a":[1,2],"b":null}'
    """
    return (
        "{"
        + ",".join(f'"{k}":{v if isinstance(v, Raw) else json.dumps(v)}' for k, v in body.items())
        + "}"
    )


def usage(data: Mapping[str, Any]) -> tuple[int, int, int]:
    """(tokens in, tokens out, tokens in read from the provider's cache) of a reply, zeros where it says nothing."""
    u = data.get("usage") or {}
    details = u.get("prompt_tokens_details") or u.get("input_tokens_details") or {}
    return (
        int(u.get("prompt_tokens") or u.get("input_tokens") or 0),
        int(u.get("completion_tokens") or u.get("output_tokens") or 0),
        int(details.get("cached_tokens") or 0),
    )


def _param(text: str) -> str | None:
    try:
        return (json.loads(text).get("error") or {}).get("param")
    except (ValueError, AttributeError):
        return None


def said(text: str) -> str:
    """The server's own message, short, on one line; anything that looks like a key is cut out."""
    import re

    try:
        error = json.loads(text).get("error")
        text = error.get("message", text) if isinstance(error, dict) else str(error or text)
    except (ValueError, AttributeError):
        pass
    return re.sub(r"\b(sk|key|Bearer)[-_ ][\w*.-]{6,}", "[key]", " ".join(text.split()))[:200]

"""A model behind an OpenAI-compatible server as a judge, through the official client.

`client.post(cast_to=object)` is used instead of `chat.completions.create`: it takes half
of the time, and the reply is checked here anyway.
"""

import asyncio
import atexit
import json
import logging
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from ..errors import DataError, JudgeDownError, MissingError
from ..records import Criterion, Response, Task, Verdict, canonical
from ..system import settings
from ..system.settings import Count, NonNegative, Positive
from . import loop, prices, prompt
from .reader import Reading, is_number, read, refuse

log = logging.getLogger(__name__)
AGAIN = ("parse", "missing")  # asked once more, alone
# What some servers refuse; the kit goes on without it.
OPTIONAL = (
    "response_format", "temperature", "seed", "reasoning_effort", "logprobs",
    "top_logprobs", "max_completion_tokens",
)  # fmt: skip
# A body of bytes and few headers: the client would walk through the body and write a
# dozen headers about itself.
PLAIN: Any = {"headers": {"Content-Type": "application/json"}}
BODY_LIMIT = 8 * 2**20  # bytes of a reply
THINKING = 4000  # more tokens for a model that thinks before it replies
FILL = 3  # a reply takes about a third of the room that it has
_clients: dict[tuple[Any, ...], tuple[Any, asyncio.Semaphore]] = {}
LOCAL = re.compile(r"https?://(127\.|localhost|\[::1\])")


class Options(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Options of an endpoint judge.

    base_url : an OpenAI-compatible server; None is OpenAI's. key_env : the variable with
        its key (default: OPENAI_API_KEY for OpenAI, KIT_JUDGE_KEY for other servers).
    how : "all" criteria in one call, "one" criterion a call, k criteria a call, or
        "word": one yes or no per criterion with P(met) from its log-probabilities and
        without a reason.
    prompt : a text file with the judge's system message, as `kit tune` writes it;
        system : the text itself.
    confidence : ask for a confidence, which becomes P(met).
    concurrency : calls in flight (default 64, on this machine 8). timeout : seconds of
        one request; patience : of a call with its repetitions (default: five timeouts).
        tries : repetitions after 429, 5xx, lost connections.
    price : [input, output] in US dollars per million tokens.
    extra : more fields of the request, such as {"reasoning_effort": "low"}.
    """

    base_url: str | None = None
    key_env: str | None = None
    how: Literal["all", "one", "word"] | Count = "all"
    prompt: str | None = None
    system: str | None = None
    temperature: NonNegative | None = 0.0
    max_tokens: Count | None = None
    confidence: bool = False
    concurrency: Count | None = None
    timeout: Positive = 120.0
    patience: Positive | None = None
    tries: int = 10
    price: tuple[float, float] | None = None
    extra: dict[str, Any] = {}
    name: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reply:
    """text : of a finished reply. failure, reason : why there is none.

    call : its row for the ledger. cut : the reply was longer than its room.
    """

    text: str = ""
    failure: str | None = None
    reason: str | None = None
    call: dict[str, Any] | None = None
    cut: bool = False
    logprobs: Any = None


class EndpointJudge:
    """A judge that asks a model over HTTP.

    model : its name at the server (default: that of models.json). options : see `Options`.
    """

    def __init__(self, model: str | None = None, **options: Any):
        model = model or prices.catalog()["default"]
        where = f"judge endpoint:{model}"
        self.model, self.options = (
            model,
            settings.make(Options, options, where=where),
        )
        o = self.options
        # A URL is stored with each call, so it must not hold a secret.
        if o.base_url and "@" in o.base_url:
            raise DataError(
                "the base URL holds a password", where=where, fix="use key_env"
            )
        text = prompt.from_file(o.prompt) if o.prompt else o.system
        self.system = (text or prompt.wording("system")).strip()
        self.name = o.name or model
        local = bool(o.base_url and LOCAL.match(o.base_url))
        # Local servers queue what they cannot do at once, and never send 429.
        self.concurrency = o.concurrency or (8 if local else 64)
        self.patience = o.patience or 5 * o.timeout
        # A question may take two calls: the second asks what the first left unreadable.
        self.limit = 2 * self.patience
        self.price = o.price or ((0.0, 0.0) if local else prices.price(model))
        self.thinks = prices.reasons_first(model)
        self.parameters = dict(o.extra)
        # Models that think take no other temperature than their default.
        if o.temperature is not None and not self.thinks:
            self.parameters["temperature"] = o.temperature
        # All that shapes a verdict is part of each key. Price and limits do not.
        self.settings = {
            "model": model, "base_url": o.base_url, "how": o.how, "system": self.system,
            "parameters": self.parameters, "max_tokens": o.max_tokens,
            "confidence": o.confidence, "sample": 0, "version": prompt.VERSION,
        }  # fmt: skip
        self.refused: set[str] = set()

    # -- what to ask -----------------------------------------------------------
    def parts(self, criteria: Sequence[Criterion]) -> list[list[Criterion]]:
        """The criteria of each call."""
        sizes = {"all": len(criteria) or 1, "one": 1, "word": 1}
        size = sizes.get(self.options.how, self.options.how)
        starts = range(0, len(criteria), size)
        return [list(criteria[i : i + size]) for i in starts]

    def keys(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[str]:
        """Ledger keys. The criteria of one call shape each other's verdicts."""
        made = []
        for part in self.parts(criteria):
            together = [prompt.texts(c) for c in part] if len(part) > 1 else None
            made += prompt.keys(
                self.settings, task, response, part, together=together
            )
        return made

    async def verdicts(
        self,
        task: Task,
        response: Response,
        criteria: Sequence[Criterion],
        run: Any,
    ) -> list[Verdict]:
        """One verdict per criterion, in order; stored as soon as its reply comes."""
        calls = (
            self._part(task, response, part, run) for part in self.parts(criteria)
        )
        rows = await asyncio.gather(*calls)
        return [v for row in rows for v in row]

    async def _part(
        self, task: Task, response: Response, criteria: list[Criterion], run: Any
    ) -> list[Verdict]:
        """One call; what its reply leaves unreadable is asked once more, alone."""
        numbered = prompt.number(criteria)
        made = await self._ask(task, response, numbered, run)
        # Under the same ids: a late reply to the first call must not fit other criteria.
        again = {n: c for n, c in numbered.items() if made[n].failure in AGAIN}
        if again:
            second = await self._ask(task, response, again, run)
            # Stored only now, so that a killed run asks them again.
            rows = await run.record(list(second.values()))
            made |= dict(zip(second, rows, strict=True))
        return list(made.values())

    async def _ask(
        self,
        task: Task,
        response: Response,
        criteria: dict[str, Criterion],
        run: Any,
    ) -> dict[str, Verdict]:
        """The verdicts of one call by id. Its reply and what is certain are stored."""
        o, call, word = self.options, prompt.mark(), self.options.how == "word"
        chat = prompt.messages(
            self.system, task, prompt.answer_of(response), criteria,
            form="word" if word else "user", confidence=o.confidence, call=call,
        )  # fmt: skip
        if word:
            reply = await self.reply(chat, run, room=2, word=True)
        else:
            form = prompt.schema(criteria, confidence=o.confidence)
            room = 200 + 160 * len(criteria)
            reply = await self.reply(chat, run, schema=form, room=room)
        if reply.failure:
            rows = refuse(criteria, str(reply.reason), reply.failure)
        elif word:
            rows = [_word(reply)]
        else:
            rows = read(reply.text, criteria, call=call, confidence=o.confidence)
        made = {}
        for (name, c), reading in zip(criteria.items(), rows, strict=True):
            made[name] = self.verdict(response, c, reading, reply, len(criteria))
        # A refusal or an abstention is certain: asking again would pay for the same.
        certain = [v for v in made.values() if v.failure not in AGAIN]
        by_id = {v.criterion_id: v for v in await run.record(certain, reply.call)}
        return {name: by_id.get(v.criterion_id, v) for name, v in made.items()}

    def verdict(
        self,
        response: Response,
        c: Criterion,
        reading: Reading,
        reply: Reply,
        n: int,
        **more: Any,
    ) -> Verdict:
        """A verdict with its share (one of n) of the call's tokens and cost."""
        fields = {**reading, "criterion_id": c.id, "judge": self.name}
        fields["task_id"], fields["response_id"] = response.ids
        if reply.call:
            fields["cost"] = reply.call["cost"] / n
            for name in ("tokens_in", "tokens_out"):
                fields[name] = reply.call[name] // n
        return Verdict(**{**fields, **more})

    # -- one call --------------------------------------------------------------
    async def reply(
        self,
        messages: list[dict[str, str]],
        run: Any,
        *,
        schema: Mapping[str, Any] | None = None,
        room: int = 2000,
        word: bool = False,
    ) -> Reply:
        """One finished reply. A reply that was cut gets four times the room, once."""
        room = self.options.max_tokens or room + THINKING * self.thinks
        body = {"model": self.model, "messages": messages, **self.parameters}
        if schema:
            form = {"name": "reply", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if word:
            # 20 is the most that OpenAI gives; fewer may miss "no" beside six "yes".
            body |= {"logprobs": True, "top_logprobs": 20}
        reply = await self._call(body | {"max_completion_tokens": room}, run)
        if reply.cut and not word:
            await run.record([], reply.call)
            reply = await self._call(
                body | {"max_completion_tokens": 4 * room}, run
            )
        return reply

    async def complete(
        self,
        messages: list[dict[str, str]],
        schema: Mapping[str, Any] | None,
        run: Any,
        key: str,
    ) -> str:
        """A plain completion: the text of the reply. Stored under `key`."""
        reply = await self.reply(messages, run, schema=schema)
        if reply.call:
            await run.record(
                [], {**reply.call, "key": None if reply.failure else key}
            )
        if reply.failure:
            raise JudgeDownError(
                f"there is no usable reply: {reply.reason}",
                where=f"judge {self.name!r}",
                fix="try again",
            )
        return reply.text

    async def _call(self, body: dict[str, Any], run: Any) -> Reply:
        """Send a request when a slot and the budget allow it; read the envelope."""
        import openai

        room = body["max_completion_tokens"]
        n_in = sum(prices.tokens(m["content"]) + 4 for m in body["messages"])
        if run.dry:
            n_out = max(1, room // FILL)
            cost = prices.dollars(self.price, n_in, n_out) if self.price else None
            took = {"tokens_in": n_in, "tokens_out": n_out, "cost": cost}
            run.after_call(self, None, took)
            return Reply(failure="budget", reason="an estimate sends nothing")
        # The most that the call can cost is reserved until the true cost is there.
        most = prices.dollars(self.price, n_in, room) if self.price else None
        client, slots = self._client()
        async with slots:
            await run.before_call(self, most)
            reply = Reply(reason="")  # of a call that is cancelled
            try:
                async with asyncio.timeout(self.patience):
                    data = await self._post(client, body)
                reply = self._envelope(data, body)
            except openai.APIStatusError as e:
                reply = Reply(failure="transport", reason=f"HTTP {e.status_code}")
            except (
                Exception
            ) as e:  # whatever a server makes the libraries stumble over
                log.info("judge %s: %s", self.name, type(e).__name__)
                reply = Reply(failure="transport", reason=type(e).__name__)
            finally:
                run.after_call(self, most, reply.call, reply.reason)
        return reply

    async def _post(self, client: Any, body: dict[str, Any]) -> Any:
        """The decoded reply. What a server refuses by name is left out from then on."""
        import openai

        # A whole URL spares the client two merges of it, a tenth of its time.
        url = f"{client.base_url}chat/completions"
        while True:
            rest = {k: v for k, v in body.items() if k not in self.refused}
            raw = json.dumps(rest).encode()
            try:
                return await client.post(
                    url, content=raw, cast_to=object, options=PLAIN
                )
            except (openai.BadRequestError, openai.UnprocessableEntityError) as e:
                error = e.body if isinstance(e.body, dict) else {}
                message = str(error.get("param") or error.get("message") or e.body)
                names = [n for n in OPTIONAL if n in rest and n in message[:10_000]]
                # An echo of the whole request names every parameter; it is no refusal.
                if not names or len(message) > 400:
                    raise
                self.refused.add(names[0])
                log.warning("judge %s refuses %s: left out", self.name, names[0])

    def _client(self) -> tuple[Any, asyncio.Semaphore]:
        """The client and the slots of this server; equal settings share them."""
        import openai

        o, here = self.options, loop.get()
        # A client belongs to its loop: after a fork there is another one.
        where = (o.base_url, self.key, o.tries, o.timeout, self.concurrency)
        place = (id(here), *where)
        if place not in _clients:
            transport = openai.DefaultAioHttpClient(
                follow_redirects=False,  # a redirect would carry the key elsewhere
                trust_env=not LOCAL.match(o.base_url or ""),
                event_hooks={"response": [_limited]},
            )
            client = openai.AsyncOpenAI(
                api_key=self.key or "none",
                base_url=o.base_url,
                max_retries=o.tries,
                timeout=o.timeout,
                http_client=transport,
            )
            _clients[place] = client, asyncio.Semaphore(self.concurrency)
        return _clients[place]

    @property
    def key(self) -> str:
        """The key from the environment. OpenAI's key is never sent to another server."""
        default = "KIT_JUDGE_KEY" if self.options.base_url else "OPENAI_API_KEY"
        name = self.options.key_env or default
        value = os.environ.get(name, "")
        if not value and (self.options.key_env or not self.options.base_url):
            raise MissingError(
                "there is no key for the judge",
                where=f"judge {self.name!r}, environment variable {name}",
                fix="set the variable, or give base_url for a server of your own",
            )
        return value

    def clean(self, text: str) -> str:
        """Text without the key that is in use, and with whole characters only."""
        text = text.encode("utf-8", "replace").decode()
        return text.replace(self.key, "[key]") if len(self.key) > 4 else text

    # -- the envelope ----------------------------------------------------------
    def _envelope(self, data: Any, body: dict[str, Any]) -> Reply:
        """Exactly one finished choice of the assistant with a text, or why not."""
        data = _mapping(data)
        choices = data.get("choices")
        if data.get("error") or not isinstance(choices, list):
            return Reply(
                failure="transport", reason="the reply is no chat completion"
            )
        # Of two choices nobody knows which one the judge means.
        choice = _mapping(choices[0]) if len(choices) == 1 else {}
        message = _mapping(choice.get("message"))
        content, end = message.get("content"), choice.get("finish_reason")
        text = self.clean(content) if isinstance(content, str) else ""
        call = self._row(data, body, text)
        if message.get("refusal") or end == "content_filter":
            reason = "the model or its provider refused"
            return Reply(failure="refusal", reason=reason, call=call)
        whole = isinstance(content, str) and message.get("role") == "assistant"
        if end != "stop" or not whole:
            reason = self.clean(f"the reply is not finished: {end!a:.60}")
            return Reply(
                failure="parse", reason=reason, call=call, cut=end == "length"
            )
        return Reply(text=text, call=call, logprobs=choice.get("logprobs"))

    def _row(
        self, data: Mapping[str, Any], body: Mapping[str, Any], text: str
    ) -> dict[str, Any]:
        """The row of a call for the ledger."""
        usage = _mapping(data.get("usage"))
        details = _mapping(usage.get("prompt_tokens_details"))
        chat = [
            {**m, "content": self.clean(m["content"])} for m in body["messages"]
        ]
        size = sum(len(m["content"]) for m in chat)
        # Impossible counts could empty a budget or fill it, so they are estimated.
        n_in = _count(usage.get("prompt_tokens"), 2 * size + 10_000)
        n_in = n_in or math.ceil(size / prices.CHARACTERS_PER_TOKEN)
        most = 2 * body["max_completion_tokens"] + 10_000
        n_out = _count(usage.get("completion_tokens"), most) or prices.tokens(text)
        n_cached = _count(details.get("cached_tokens"), n_in)
        chosen = {**self.settings, "left out": sorted(self.refused)}
        return {
            "call": f"{time.time_ns():016x}{os.urandom(4).hex()}",
            "judge": self.name,
            "model": self.clean(ascii(data.get("model"))[1:-1])[:100],
            "created": time.time(),
            "tokens_in": n_in,
            "tokens_out": n_out,
            "cost": prices.dollars(self.price, n_in, n_out, n_cached),
            "settings": self.clean(canonical(chosen)),
            "request": json.dumps(chat, ensure_ascii=False),
            "reply": text,
        }


@atexit.register
def _close() -> None:
    """Close connections before the interpreter does, which would complain."""
    here = loop.get()
    for place, (client, _) in _clients.items():
        if place[0] == id(here):
            asyncio.run_coroutine_threadsafe(client.close(), here).result(2)


async def _limited(response: Any) -> None:
    """Read a body, and stop at the limit: a reply must not fill the memory."""
    parts, size = [], 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > BODY_LIMIT:
            raise ValueError("the reply is too large")
        parts.append(part)
    response._content = b"".join(parts)  # what `aread` would set


def _mapping(value: Any) -> Mapping[str, Any]:
    # Any part of a reply may be of another type than documented.
    return value if isinstance(value, dict) else {}


def _count(n: Any, most: int) -> int:
    return n if type(n) is int and 0 <= n <= most else 0


def _word(reply: Reply) -> Reading:
    """yes or no, with P(met) from the candidates of the first token."""
    word = reply.text.strip().strip(".").lower()
    if word not in ("yes", "no"):
        return refuse([""], f"neither yes nor no: {reply.text!a:.60}")[0]
    mass = {"yes": 0.0, "no": 0.0}
    try:
        for row in reply.logprobs["content"][0]["top_logprobs"]:
            # A model spreads a word over several tokens: "Yes", " yes", "YES".
            name, score = str(row["token"]).strip().lower(), row["logprob"]
            if name in mass and is_number(score) and score <= 0:
                mass[name] += math.exp(score)
    except (LookupError, TypeError):  # not in the documented form: no P(met)
        mass = {"yes": 0.0, "no": 0.0}
    total = sum(mass.values())
    p = mass["yes"] / total if total else None
    return {"status": "met" if word == "yes" else "unmet", "p": p}

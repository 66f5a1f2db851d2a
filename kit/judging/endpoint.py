"""A model behind an OpenAI-compatible server as a judge, through the official client.

`client.post(cast_to=object)` is used instead of `chat.completions.create`: it takes half
of the time, and the reply is checked here anyway.
"""

import asyncio
import atexit
import functools
import json
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from ..errors import DataError, JudgeDownError, MissingError
from ..records import Criterion, Response, Task, Verdict, canonical
from ..system import loop, models, settings
from ..system.settings import Count, NonNegative, Positive
from . import form as forms
from .factory import Judge
from .form import Criteria, Reading, is_number, read, refuse
from .ledger import COSTS, dollars, tokens, volume

AGAIN = ("parse", "missing")  # asked once more, alone
# What some servers refuse; the kit goes on without it.
OPTIONAL = (
    "response_format", "temperature", "seed", "reasoning_effort", "logprobs",
    "top_logprobs", "max_completion_tokens",
)  # fmt: skip
# The older name of a field that some servers refuse. Without it a reply has no limit.
OLDER = {"max_completion_tokens": "max_tokens"}
# A body of bytes and few headers: the client would walk through the body and write a
# dozen headers about itself.
PLAIN: Any = {"headers": {"Content-Type": "application/json"}}
# 20 is the most that OpenAI gives; fewer may miss "no" beside six "yes".
WORD: Any = {"logprobs": True, "top_logprobs": 20}
BODY_LIMIT = 8 * 2**20  # bytes of a reply
THINKING = 4000  # more tokens for a model that thinks before it replies
PATIENCE = 5  # timeouts that a call may take with its repetitions
FILL = 3  # a reply takes about a third of the room that it has
MOST_TOKENS = 10**6  # of one call; a larger count is no count
ESCAPE = re.compile(r"\\u00([0-7][0-9a-fA-F])|\\/")
LOCAL = re.compile(r"https?://(127\.|localhost|\[::1\])")


class Options(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Options of an endpoint judge.

    base_url : an OpenAI-compatible server; None is OpenAI's. key_env : the variable with
        its key (default: OPENAI_API_KEY for OpenAI, KIT_JUDGE_KEY for other servers).
    how : "all" criteria in one call, "one" criterion a call, k criteria a call, or
        "word": one yes or no per criterion with P(met) from its log-probabilities and
        without a reason. Each word has a connection of its own.
    prompt : a text file with the judge's system message, as `kit tune` writes it;
        system : the text itself.
    confidence : ask for a confidence, which becomes P(met).
    concurrency : calls in flight; timeout : seconds without a byte. Defaults 64 and 120,
        on 127.0.0.1 and localhost 2 and 600: raise `concurrency` to the server's slots.
    tries : repetitions after 429, 5xx, lost connections, in five timeouts at most.
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
    timeout: Positive | None = None
    tries: int = 10
    price: tuple[float, float] | None = None
    extra: dict[str, Any] = {}
    name: str | None = None


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The field of a request that asks for JSON of this schema."""
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": schema},
        }
    }


class Reply(msgspec.Struct, kw_only=True):
    """text : of a finished reply. failure, reason : why there is none.

    call : its row for the ledger.
    """

    text: str = ""
    failure: str | None = None
    reason: str = ""
    call: dict[str, Any] = {}
    logprobs: Any = None


class EndpointJudge(Judge):
    """A judge that asks a model over HTTP.

    model : its name at the server (default: that of system/models.json). options : see `Options`.
    """

    sends = True

    def __init__(self, model: str | None = None, **options: Any):
        model = model or models.catalog()["default"]
        where = f"judge endpoint:{model}"
        o = settings.make(Options, options, where=where)
        # A URL is stored with each call, so it must not hold a secret.
        if o.base_url and "@" in o.base_url:
            raise DataError(
                "the base URL holds a password", where=where, fix="use key_env"
            )
        self.model, self.options, self.name = model, o, o.name or model
        self.system = forms.system(o.prompt, o.system, "system")
        self.base_url, local = o.base_url, bool(LOCAL.match(o.base_url or ""))
        # Local servers queue what they cannot do at once, and never send 429.
        self.concurrency = o.concurrency or (2 if local else 64)
        self.timeout = o.timeout or (600.0 if local else 120.0)
        # A question may take two calls: the second asks what the first left unreadable.
        self.limit = 2 * PATIENCE * self.timeout
        rates = (0.0, 0.0) if local else models.entry(model).get("price")
        self.price = o.price or rates
        self.thinking = THINKING if models.reasons_first(model) else 0
        # Models that think take no other temperature than their default.
        default = o.temperature is None or self.thinking
        self.parameters = (
            o.extra if default else {**o.extra, "temperature": o.temperature}
        )
        # All that shapes a verdict is part of each key. Price and limits do not.
        self.settings = {
            "model": model, "base_url": o.base_url, "how": o.how, "system": self.system,
            "parameters": self.parameters, "max_tokens": o.max_tokens,
            "confidence": o.confidence, "sample": 0, "version": forms.VERSION,
        }  # fmt: skip
        self.form = "word" if o.how == "word" else "user"
        self.refused: set[str] = set()

    # -- what to ask -----------------------------------------------------------
    def parts(self, criteria: Criteria) -> list[Criteria]:
        """The criteria of each call."""
        sizes = {"all": len(criteria) or 1, "one": 1, "word": 1}
        size = sizes.get(self.options.how, self.options.how)
        return [criteria[i : i + size] for i in range(0, len(criteria), size)]

    def keys(
        self, task: Task, answers: Sequence[Response], criteria: Criteria
    ) -> list[str]:
        """Ledger keys. The criteria of one call shape each other's verdicts."""
        rows = []
        for r in answers:
            for part in self.parts(criteria):
                together = [forms.texts(c) for c in part] if len(part) > 1 else None
                rows += forms.keys(self.settings, task, r, part, together=together)
        return rows

    async def verdicts(
        self, task: Task, answers: Sequence[Response], criteria: Criteria, run: Any
    ) -> list[Verdict]:
        """Verdicts, answers x criteria, in order; stored as soon as their reply comes."""
        parts = [({"": r}, part) for r in answers for part in self.parts(criteria)]
        rows = await loop.every(self.ask(task, *part, run) for part in parts)
        return [v for row in rows for v in row]

    async def ask(
        self,
        task: Task,
        answers: Mapping[str, Response],
        criteria: Criteria,
        run: Any,
    ) -> list[Verdict]:
        """The verdicts of one call, answers x criteria, stored when its reply comes.

        answers : by their ids in the call. What the reply leaves unreadable is asked
        once more, alone.
        """
        # Under the same ids: a late reply to the first call must not fit other criteria.
        numbered = {f"c{n}": c for n, c in enumerate(criteria, 1)}
        verdicts = {}
        left = [(a, n) for a in answers for n in numbered]
        # A reply that was cut needs more room the second time.
        for last, more_room in ((False, 1), (True, 4)):
            again = {n: numbered[n] for _, n in left}
            reply, readings = await self._read(task, answers, again, more_room, run)
            # Whole tokens, and fractions of a dollar.
            amounts = {x: reply.call.get(x, 0) for x in COSTS}
            shares = {x: type(n)(n / len(readings)) for x, n in amounts.items()}
            for a, n in left:
                fields = {**readings[a, n], **shares}
                verdicts[a, n] = run.verdict(answers[a], numbered[n], **fields)
            # A refusal or an abstention is certain; what is unreadable is stored only
            # in the end, so that a killed run asks it again.
            new = [verdicts[place] for place in left]
            run.record(
                [v for v in new if last or v.failure not in AGAIN], reply.call
            )
            left = [p for p in left if verdicts[p].failure in AGAIN]
            if not left:
                break
        return list(verdicts.values())

    async def _read(
        self,
        task: Task,
        answers: Mapping[str, Response],
        criteria: Mapping[str, Criterion],
        more_room: int,
        run: Any,
    ) -> tuple[Reply, dict[tuple[str, str], Reading]]:
        """The reply of one call, and its readings by the ids of answer and criterion."""
        more, mark = {"confidence": self.options.confidence}, forms.mark()
        form = self.form if "" in answers else "group"
        chat = forms.messages(
            self.system, task, answers, criteria, call=mark, form=form, **more
        )
        places = [(a, name) for a in answers for name in criteria]
        fields, room = WORD, 2
        if form != "word":
            schema = forms.schema(criteria, answers=answers, **more)
            fields, room = response_format(schema), 200 + 160 * len(places)
        room = self.options.max_tokens or room + self.thinking
        reply = await self.reply(chat, run, fields, more_room * room)
        if reply.failure:
            readings = dict.fromkeys(places, refuse(reply.reason, reply.failure))
        elif form == "word":
            readings = {places[0]: _word(reply)}
        else:
            readings = read(
                reply.text, criteria, call=mark, answers=answers, **more
            )
        return reply, readings

    # -- one call --------------------------------------------------------------
    async def reply(
        self, messages: list[dict[str, str]], run: Any, form: Any, room: int
    ) -> Reply:
        """One finished reply, when a slot and the budget allow the call.

        form : fields of the request that ask for a form. room : tokens of the reply.
        """
        n_in = volume(messages)
        if run.dry:
            n_out = max(1, room // FILL)
            cost = dollars(self.price, n_in, n_out)
            run.book(tokens_in=n_in, tokens_out=n_out, cost=cost)
            return Reply(failure="budget", reason="an estimate sends nothing")
        body = {
            "model": self.model,
            "messages": messages,
            "max_completion_tokens": room,
            **self.parameters,
            **form,
        }
        # The most that the call can cost is reserved until the true cost is there. A
        # token is at least one byte; a message has some more around it.
        size = sum(
            len(m["content"].encode(errors="replace")) + 16 for m in messages
        )
        most = dollars(self.price, size, room)
        client, slots = self._client()
        async with slots:
            await run.before_call(most)
            reply = Reply()  # of a call that is cancelled
            try:
                async with asyncio.timeout(PATIENCE * self.timeout):
                    data = await self._post(client, body)
                reply = self._envelope(data, body)
            # Whatever a server makes the libraries stumble over.
            except Exception as e:
                status = getattr(e, "status_code", None)
                reason = f"HTTP {status}" if status else type(e).__name__
                reply = Reply(failure="transport", reason=reason)
            finally:
                run.after_call(most, reply.call, reply.reason)
        return reply

    async def complete(
        self,
        messages: list[dict[str, str]],
        schema: Mapping[str, Any] | None,
        run: Any,
        key: str,
    ) -> str:
        """A plain completion: the text of the reply. Stored under `key`."""
        form = response_format(schema) if schema else {}
        room = self.options.max_tokens or 4000 + self.thinking
        reply = await self.reply(messages, run, form, room)
        # Only a finished reply has a key, so another one is not used again.
        run.record([], reply.call if reply.failure else {**reply.call, "key": key})
        if reply.failure:
            raise JudgeDownError(
                f"there is no usable reply: {reply.reason}",
                where=f"judge {self.name!r}",
                fix="try again",
            )
        return reply.text

    async def _post(self, client: Any, body: dict[str, Any]) -> Any:
        """The decoded reply. What a server refuses by name is left out from then on."""
        import openai

        # A whole URL spares the client two merges of it, a tenth of its time.
        url = f"{client.base_url}chat/completions"
        while True:
            names = {k: OLDER.get(k) if k in self.refused else k for k in body}
            rest = {name: body[k] for k, name in names.items() if name}
            raw = msgspec.json.encode(rest)
            try:
                return await client.post(
                    url, content=raw, cast_to=object, options=PLAIN
                )
            except (openai.BadRequestError, openai.UnprocessableEntityError) as e:
                error = _mapping(e.body)
                message = str(error.get("param") or error.get("message") or e.body)
                new = [n for n in OPTIONAL if n in rest and n in message[:400]]
                # An echo of the whole request names every parameter; it is no refusal.
                if not new or len(message) > 400:
                    raise
                self.refused.add(new[0])

    def _client(self) -> tuple[Any, asyncio.Semaphore]:
        """The client and the slots of this server; equal settings share them."""
        # A client belongs to its loop: after a fork there is another one.
        return _connect(
            loop.get(),
            self.base_url,
            self.key,
            self.options.tries,
            self.timeout,
            self.concurrency,
            # One word carries no mark, so a late reply on a kept connection could pass
            # for the reply to the next question.
            0.0 if self.form == "word" else 5.0,
        )

    @property
    def key(self) -> str:
        """The key from the environment. OpenAI's key is never sent to another server."""
        default = "KIT_JUDGE_KEY" if self.options.base_url else "OPENAI_API_KEY"
        name = self.options.key_env or default
        value = os.environ.get(name, "").strip()
        if not value and name != "KIT_JUDGE_KEY":
            raise MissingError(
                "there is no key for the judge",
                where=f"judge {self.name!r}, environment variable {name}",
                fix="set the variable, or give base_url for a server of your own",
            )
        return value

    def clean(self, text: str) -> str:
        """Text without the key that is in use, and with whole characters only."""
        text = text.encode("utf-8", "replace").decode()
        # JSON can write the same key in many ways.
        plain = ESCAPE.sub(lambda m: chr(int(m[1] or "2f", 16)), text)
        is_leak = len(self.key) > 4 and self.key in plain
        return plain.replace(self.key, "[key]") if is_leak else text

    # -- the envelope ----------------------------------------------------------
    def _envelope(self, data: Any, body: Mapping[str, Any]) -> Reply:
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
        whole = isinstance(content, str) and message.get("role") == "assistant"
        failure, reason = None, ""
        if message.get("refusal") or end == "content_filter":
            failure, reason = "refusal", "the model or its provider refused"
        elif end != "stop" or not whole:
            end = self.clean(ascii(end))[:60]
            failure, reason = "parse", f"the reply is not finished: {end}"
        return Reply(
            text=text,
            failure=failure,
            reason=reason,
            call=self._row(data, body, text),
            logprobs=choice.get("logprobs"),
        )

    def _row(
        self, data: Mapping[str, Any], body: Mapping[str, Any], text: str
    ) -> dict[str, Any]:
        """The row of a call for the ledger."""
        chat = [
            {**m, "content": self.clean(m["content"])} for m in body["messages"]
        ]
        usage = _mapping(data.get("usage"))
        n_in = _count(usage.get("prompt_tokens")) or volume(chat)
        n_out = _count(usage.get("completion_tokens")) or tokens(text)
        chosen = {**self.settings, "left out": sorted(self.refused)}
        return {
            "call": f"{time.time_ns():016x}{os.urandom(4).hex()}",
            "judge": self.name,
            "model": self.clean(ascii(data.get("model"))[1:-1])[:100],
            "created": time.time(),
            "tokens_in": n_in,
            "tokens_out": n_out,
            "cost": dollars(self.price, n_in, n_out) or 0.0,
            "settings": self.clean(canonical(chosen)),
            "request": json.dumps(chat, ensure_ascii=False),
            "reply": text,
        }


@functools.cache
def _connect(
    here: Any,
    base_url: str | None,
    key: str,
    tries: int,
    timeout: float,
    concurrency: int,
    idle: float,
) -> tuple[Any, asyncio.Semaphore]:
    """A client of a server, and its slots. idle : seconds that a connection is kept."""
    import openai

    client = openai.AsyncOpenAI(
        api_key=key or "none",
        base_url=base_url,
        max_retries=tries,
        timeout=timeout,
        http_client=openai.DefaultAioHttpClient(
            limits=type(openai.DEFAULT_CONNECTION_LIMITS)(
                max_connections=1000,
                max_keepalive_connections=100,
                keepalive_expiry=idle,
            ),
            follow_redirects=False,  # a redirect would carry the key elsewhere
            trust_env=not LOCAL.match(base_url or ""),
            event_hooks={"response": [_limited]},
        ),
    )
    atexit.register(_close, client, here)
    return client, asyncio.Semaphore(concurrency)


def _close(client: Any, here: Any) -> None:
    """Close connections before the interpreter does, which would complain."""
    # A forked child has another loop, and no connections to close.
    if here is loop.get():
        asyncio.run_coroutine_threadsafe(client.close(), here).result(2)


async def _limited(response: Any) -> None:
    """Read a body, and stop at the limit: a reply must not fill the memory."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > BODY_LIMIT:
            raise ValueError("the reply is too large")
    response._content = bytes(body)  # what `aread` would set


def _mapping(value: Any) -> Mapping[str, Any]:
    # Any part of a reply may be of another type than documented.
    return value if isinstance(value, dict) else {}


def _count(n: Any) -> int:
    # An impossible count could empty a budget or fill it; 0 is estimated instead.
    return n if type(n) is int and 0 <= n <= MOST_TOKENS else 0


def _word(reply: Reply) -> Reading:
    """yes or no, with P(met) from the candidates of the first token."""
    word = reply.text.strip().strip(".").lower()
    if word not in ("yes", "no"):
        return refuse(f"neither yes nor no: {reply.text!a:.60}")
    mass = {"yes": 0.0, "no": 0.0}
    try:
        # A line break may stand before the word.
        tokens = (x for x in reply.logprobs["content"] if str(x["token"]).strip())
        for row in next(tokens, {})["top_logprobs"]:
            # A model spreads a word over several tokens: "Yes", " yes", "YES".
            name, score = str(row["token"]).strip().lower(), row["logprob"]
            if name in mass and is_number(score) and score <= 0:
                mass[name] += math.exp(score)
    except (LookupError, TypeError):  # not in the documented form: no P(met)
        mass = {"yes": 0.0, "no": 0.0}
    total = sum(mass.values())
    p = mass["yes"] / total if total else None
    return {"status": "met" if word == "yes" else "unmet", "p": p}

"""A server that speaks OpenAI's chat completions: one request out, one reply back. HTTP only.

`client.post(cast_to=object)` is used instead of `chat.completions.create`: it takes half
of the time, and the reply is checked here anyway.
"""

import asyncio
import functools
import os
import re
import socket
import ssl
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ..errors import JudgeDownError, MissingError
from ..records import count_of
from . import loop
from .prices import dollars, estimate_chat_tokens, estimate_tokens
from .question import Reply, Request

# What some servers refuse; the kit goes on without it. A name that is a word of English as well
# is a parameter only between quotes.
PARAMETER = re.compile(
    r"(?<!\w)(?:response_format|reasoning_effort|(?:top_)?logprobs|max(?:_completion)?_tokens)(?!\w)"
    r"|(?<=[\"'`])(?:temperature|seed)(?=[\"'`])"
)
FEWER_LOGPROBS = 5  # several servers allow no more
BUSY = (408, 409, 429)  # the client repeats these
# No repetition mends these.
HOPELESS: dict[Any, str] = {
    401: "check the key in the environment variable {key_env}",
    402: "check the balance of the account",
    404: "check the base URL (most end in /v1) and the name of the model",
    "insufficient_quota": "check the balance of the account",
}
HOPELESS_CAUSES = (
    (ConnectionRefusedError, "nothing listens there", "start the server"),
    (socket.gaierror, "unknown host ({0.strerror})", "check the base URL"),
    (ssl.SSLCertVerificationError, "{0.verify_message}", "check the certificate"),
)
FILTERED = (
    "content_filter", "content_policy_violation", "data_inspection_failed",
    "moderation_blocked",
)  # fmt: skip
# How servers say that a reply is whole.
FINISHED = (
    "stop",
    "eos",
    "eos_token",
    "stop_sequence",
    "end_turn",
    "STOP",
    "COMPLETE",
)
# Finish reasons of a text that was cut for its length.
CUT_REASONS = ("length", "max_tokens", "MAX_TOKENS")
MAX_TIMEOUTS = 5  # that a call may take with its repetitions
# Reading the system's certificates takes 50 ms, and each run has a client of its own.
_certificates = functools.cache(ssl.create_default_context)
# The variable with the key of a server that is not OpenAI's; it may be absent.
OWN_KEY = "KIT_JUDGE_KEY"
LOCAL = re.compile(r"https?://(127\.|localhost|\[::1\])")


@dataclass(kw_only=True, unsafe_hash=True)
class Server:
    """An OpenAI-compatible server. Equal ones share their connections and slots.

    base_url : None is OpenAI's. key_env : the variable with its key. timeout : seconds without
    a byte. tries : repetitions of a call, once the server has answered.
    keep_alive_s : how long an idle connection is kept.
    price : US dollars per million tokens, [input, output], None where it is not known.
    refused : how often a parameter was refused, by its name.
    """

    base_url: str | None
    # OpenAI's key is never sent to another server.
    key_env: str
    timeout: float
    tries: int
    concurrency: int
    keep_alive_s: float
    price: Sequence[float] | None = field(compare=False)
    refused: dict[str, int] = field(default_factory=dict, compare=False)
    # The loop and the key of the connections.
    place: Any = field(default=None, compare=False)

    def connect(self) -> None:
        """Open connections, at the first use on a loop. They live as long as the judge."""
        import openai

        # Each run looks anew whether anybody is there.
        self.is_answered = False
        self.address, self.key = self.address_and_key()
        # Connections belong to their loop: after a fork there is another one.
        place = asyncio.get_running_loop(), self.key
        if self.place == place:
            return
        self.place, self.slots = place, asyncio.Semaphore(self.concurrency)
        self.http = openai.AsyncOpenAI(
            api_key=self.key or "none",
            base_url=self.address,
            max_retries=self.tries,
            timeout=self.timeout,
            http_client=openai.DefaultAioHttpClient(
                limits=type(openai.DEFAULT_CONNECTION_LIMITS)(
                    max_connections=1000,
                    max_keepalive_connections=100,
                    keepalive_expiry=self.keep_alive_s,
                ),
                follow_redirects=False,  # a redirect would carry the key elsewhere
                trust_env=not LOCAL.match(self.address or ""),
                event_hooks={"response": [_read_limited]},
                verify=_certificates(),
            ),
        )
        weakref.finalize(self, loop.close_soon, self.http, place[0])

    def address_and_key(self) -> tuple[str | None, str]:
        """The base URL, and the key from the environment."""
        key = os.environ.get(self.key_env, "").strip()
        if not key and self.key_env != OWN_KEY:
            raise MissingError(
                "there is no key for the judge",
                where=f"environment variable {self.key_env}",
                fix="set the variable, or give base_url (--base-url) for a server of your own",
            )
        return self.base_url, key

    def clean(self, text: str) -> str:
        """Text without the key that is in use, and with whole characters only."""
        text = text.encode("utf-8", "replace").decode()
        if len(self.key) <= 4:
            return text
        plain = text
        # JSON can write the same key in many ways, and a reply may quote JSON inside JSON.
        for _ in range(4):
            if self.key in plain:
                text = plain = plain.replace(self.key, "[key]")
            plain = re.sub(
                r"\\(?:u00([0-7][0-9a-fA-F])|([\"\\/]))",
                lambda match: match[2] or chr(int(match[1], 16)),
                plain,
            )
        return text

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        """A body without what this server refuses."""
        body = dict(body)
        for name, times in self.refused.items():
            value = body.pop(name, 0)
            # Without a limit under its older name a reply would have none.
            if name == "max_completion_tokens":
                body["max_tokens"] = value
            elif name == "top_logprobs" and times == 1 and value > FEWER_LOGPROBS:
                body[name] = FEWER_LOGPROBS
        return body

    async def post(self, request: Request) -> Reply:
        """The reply to a request. JudgeDownError where no repetition would mend the fault."""
        body = {
            "model": request.model,
            "messages": request.messages,
            "max_completion_tokens": request.max_tokens,
            **request.fields,
        }
        try:
            async with asyncio.timeout(MAX_TIMEOUTS * self.timeout):
                data = await self._exchange_json(body)
            reply = self._read_completion(_as_mapping(data), request)
        except JudgeDownError:
            raise
        # Whatever a server makes the libraries stumble over.
        except Exception as e:
            reply = self._read_refusal(e, body)
        self.is_answered = self.is_answered or reply.failure != "transport"
        return reply

    async def _exchange_json(self, body: dict[str, Any]) -> object:
        """The decoded reply. What a server refuses by name is left out from then on."""
        import openai

        # Until the server has answered once, a call is sent once: a wrong address fails at once.
        tries = self.tries if self.is_answered else 0
        while True:
            adapted = self.adapt(body)
            try:
                # A body of bytes: the client would walk through a mapping.
                return await self.http.post(
                    # A whole URL spares the client two merges of it, a tenth of its time.
                    f"{str(self.http.base_url).rstrip('/')}/chat/completions",
                    content=msgspec.json.encode(adapted),
                    options={
                        "headers": {"Content-Type": "application/json"},
                        "max_retries": tries,
                    },
                    cast_to=object,
                )
            except openai.APIError as e:
                if not self.is_answered:
                    self._raise_hopeless(e)
                status = getattr(e, "status_code", 500)
                name = refused_parameter(e.body)
                # Without any limit a reply would be endless.
                if (
                    status in (400, 422)
                    and name in adapted
                    and name != "max_tokens"
                ):
                    # A call beside this one may have learned it in the meantime.
                    if self.adapt(body) == adapted:
                        self.refused[name] = self.refused.get(name, 0) + 1
                elif tries < self.tries and (status in BUSY or status >= 500):
                    tries = self.tries
                else:
                    raise

    def _raise_hopeless(self, e: Any) -> None:
        """JudgeDownError by the name of the fault, before the first answer."""
        code = error_fields(e.body).get("code")
        fix = HOPELESS.get(getattr(e, "status_code", 0)) or HOPELESS.get(
            str(code), ""
        )
        what = self._error_sentence(e)
        cause: BaseException | None = e
        while cause is not None:
            for kind, words, remedy in HOPELESS_CAUSES:
                if isinstance(cause, kind):
                    what, fix = words.format(cause), remedy
            cause = cause.__cause__ or cause.__context__
        if fix:
            raise JudgeDownError(
                f"the judge does not answer: {what}",
                where=self.address or "https://api.openai.com/v1",
                fix=fix.format(key_env=self.key_env),
            ) from None

    def _error_sentence(self, e: Any) -> str:
        """The status, and what the server says; the kind of error without a status."""
        status = getattr(e, "status_code", None)
        if not status:
            return type(e).__name__
        text = self.clean(str(error_fields(e.body)["message"] or "")).strip()
        return f"HTTP {status}: {text:.220}".removesuffix(": ")

    def _read_refusal(self, e: Any, body: dict[str, Any]) -> Reply:
        """What an HTTP error says of the answer: nothing (an outage), a refusal, or unknown."""
        # A fault of the connection has no status and no body.
        error = error_fields(getattr(e, "body", None))
        status = getattr(e, "status_code", 0)
        reply = Reply(failure="error", reason=self._error_sentence(e))
        codes = (
            error.get("code"),
            error.get("type"),
            _as_mapping(error.get("innererror")).get("code"),
        )
        if _as_mapping(error.get("metadata")).get("flagged_input") or any(
            map(FILTERED.__contains__, codes)
        ):
            reply.failure = "refusal"
        # The whole endpoint is at fault, not one answer.
        elif status in (401, 402, 403, 404, 407, *BUSY) or not 400 <= status < 500:
            reply.failure = "transport"
        else:
            # The model wrote something else than the schema wants: a reply out of form.
            if error.get("code") == "json_validate_failed":
                reply.failure = "parse"
            if "response_format" in self.adapt(body):
                # Short enough for the reason of a verdict.
                reply.reason += " (schema: false, --set schema=false, leaves response_format out)"
        return reply

    def _read_completion(self, data: Mapping[str, Any], request: Request) -> Reply:
        """Exactly one finished choice of the assistant with a text, or why not."""
        choices: Any = data.get("choices")
        choice = _only_choice(choices)
        fault = data.get("error") or choice.get("error")
        if fault or not isinstance(choices, list):
            reason = f"the reply is not a chat completion: {error_fields(fault)['message']!a:.200}"
            return Reply(failure="transport", reason=self.clean(reason))
        message = _as_mapping(choice.get("message"))
        content, end = message.get("content"), choice.get("finish_reason")
        text = self.clean(content) if isinstance(content, str) else ""
        thought = message.get("reasoning_content") or message.get("reasoning")
        tokens_in, tokens_out = _count_tokens(data, request, text)
        failure, reason = _find_fault(message, end, len(choices), thought)
        return Reply(
            text=text,
            failure=failure,
            reason=self.clean(reason),
            is_completion=True,
            is_cut=end in CUT_REASONS,
            logprobs=choice.get("logprobs"),
            model=self.clean(ascii(data.get("model"))[1:-1])[:100],
            thought=self.clean(thought) if isinstance(thought, str) else "",
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cost=dollars(request.server.price, tokens_in, tokens_out),
        )


def _only_choice(choices: Any) -> Mapping[str, Any]:
    # Of two choices nobody knows which one the judge means.
    is_one = isinstance(choices, list) and len(choices) == 1
    return _as_mapping(choices[0]) if is_one else {}


def _find_fault(
    message: Mapping[str, Any], end: Any, n_choices: int, thought: Any
) -> tuple[str, str]:
    """Why a choice is not a finished text, with what came and what to set; ("", "") where it is one."""
    content, role = message.get("content"), message.get("role")
    # The first that is true.
    faults = (
        (
            message.get("refusal") or end == "content_filter",
            "refusal",
            "the model or its provider refused",
        ),
        (
            n_choices != 1,
            "parse",
            "the reply has {choices} in place of one",
        ),
        (
            end in CUT_REASONS,
            "parse",
            "the reply was cut for its length: raise max_tokens (--set max_tokens=N)",
        ),
        (
            message.get("tool_calls"),
            "parse",
            "the model called a tool in place of a text",
        ),
        (
            isinstance(thought, str) and not content,
            "parse",
            "only a thought came, and no text: raise max_tokens (--set max_tokens=N)",
        ),
        (
            not isinstance(content, str),
            "parse",
            "the content is not a text but {kind} ({content!a:.60})",
        ),
        (
            role != "assistant",
            "parse",
            "the role of the reply is {role!a:.60}, not assistant",
        ),
        (
            end not in FINISHED,
            "parse",
            "the reply is not finished: finish_reason is {end!a:.60}",
        ),
    )
    _, failure, words = next((row for row in faults if row[0]), (True, "", ""))
    # Only now, because most replies have no fault.
    reason = words.format(
        choices=count_of(n_choices, "choice"),
        kind=type(content).__name__,
        content=content,
        role=role,
        end=end,
    )
    return failure, reason


def refused_parameter(body: Any) -> str:
    """The parameter that an error refuses, by its whole name; "" for another error.

    >>> refused_parameter({"message": "Unknown name 'top_logprobs'", "param": None})
    'top_logprobs'
    >>> refused_parameter({"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs"}]})
    'seed'
    """
    error = error_fields(body)
    # A name with what it belongs to: "response_format.json_schema", ["body", "seed"].
    places = re.sub(r"(\w+)", r"'\1'", f"{error.get('param')} {error.get('loc')}")
    message = str(error.get("message") or "")
    # An error that repeats the whole request names every parameter, and refuses none.
    if re.search(r"[\"']messages[\"']\s*:", message):
        message = ""
    return next(iter(PARAMETER.findall(f"{places} {message}")), "")


def error_fields(body: Any) -> Mapping[str, Any]:
    """The error in a body, whatever lists and mappings are around it.

    >>> error_fields([{"error": {"code": 400, "message": "no"}}])
    {'message': 'no', 'code': 400}
    """
    if isinstance(body, list) and body:
        return error_fields(body[0])
    if not isinstance(body, dict):
        return {"message": body}
    if inner := body.get("error") or body.get("detail"):
        return error_fields(inner)
    return {"message": body.get("msg"), **body}


async def _read_limited(response: Any) -> None:
    """Read a body, and stop at the limit: a reply must not fill the memory."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > 8 * 2**20:
            raise ValueError("the reply is too large")
    # What `aread` would set.
    response._content = bytes(body)


def _as_mapping(value: Any) -> Mapping[str, Any]:
    # Any part of a reply may be of another type than documented.
    return value if isinstance(value, dict) else {}


def _count_tokens(
    data: Mapping[str, Any], request: Request, text: str
) -> tuple[int, int]:
    """Tokens of prompt and reply; estimated where a count is absent or impossible."""
    usage = _as_mapping(data.get("usage"))
    return (
        _token_count(usage.get("prompt_tokens"))
        or estimate_chat_tokens(request.messages),
        _token_count(usage.get("completion_tokens")) or estimate_tokens(text),
    )


def _token_count(n: Any) -> int:
    # An impossible count could empty a budget or fill it; 0 is estimated instead.
    return n if type(n) is int and 0 <= n <= 10**6 else 0

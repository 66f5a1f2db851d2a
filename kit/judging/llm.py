"""A model behind an OpenAI-compatible server as a judge. Override `messages` and `parse` for your own.

On this machine, a GGUF file needs no server beside it:

    verdicts = kit.judge(tasks, answers, judge="server:model.gguf")

One word a criterion (`how="word"`, the default there) is fast and gives P(met), the probability
of "yes" among "yes" and "no" as the next token (Kadavath et al. 2022, P(true)); `how="all"` gives
reasons. The criteria of an answer share their prompt's beginning, which goes through the model
once. Ledger keys name the model's file and not the port, so stored verdicts are found again.

A model in Hugging Face's form is an endpoint too: `vllm serve FOLDER`, and how="word".
A small model is a poor judge. Measure it against labels before you use it.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..data import judge_model, small_gguf
from ..errors import DataError, JudgeDownError
from ..system import paths, settings
from ..system.llama_server import start_server
from ..system.settings import Count, NonNegative, Positive
from .client import LOCAL, MAX_TIMEOUTS, OWN_KEY, Server
from .judge import Judge
from .prices import catalog, model_entry, reasons_first
from .prompt import (
    VERSION,
    prompt_wording,
    read_one_word,
    read_reply,
    reply_schema,
    user_message,
)
from .question import Plan, Question, Reading, Reply, Request, RowPlan, unknown


class Options(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Options of an endpoint judge.

    base_url : an OpenAI-compatible server; None is OpenAI's. key_env : the variable with
        its key (default: OPENAI_API_KEY for OpenAI, KIT_JUDGE_KEY for other servers).
    how : "all" criteria in one call, "one" criterion a call, k criteria a call, or
        "word": one yes or no per criterion with P(met) from its log-probabilities, which
        decides (met from .5 on), and without a reason. The word itself decides where the
        server gives no log-probabilities. Each word has a connection of its own. A criterion with
        levels or points gets all or nothing, and the reason says so.
    prompt : a text file with the judge's system message, as `kit tune` writes it;
        system : the text itself.
    confidence : ask for a confidence, which becomes P(met).
    schema : False sends no response_format, for servers that cannot make JSON of a schema.
        The reply is read as strictly.
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
    schema: bool = True
    concurrency: Count | None = None
    timeout: Positive | None = None
    tries: int = 10
    price: tuple[float, float] | None = None
    extra: dict[str, Any] = {}
    name: str | None = None


class LLMJudge(Judge):
    """A judge that asks a model over HTTP.

    model : its name at the server (default: that of models.json). options : see `Options`.

    A subclass overrides `messages`, `parse` and, where it wants no JSON, `schema`. It raises
    `version` whenever it changes them, so that stored verdicts of the old wording stay apart.

    >>> judge = LLMJudge("my-model", base_url="http://127.0.0.1:8000/v1", how="one")
    >>> judge.name, judge.concurrency
    ('my-model', 2)
    """

    version: Any = VERSION

    def __init__(self, model: str | None = None, **options: Any):
        model = model or str(catalog()["default"])
        o = settings.make(Options, options, where=f"judge endpoint:{model}")
        self.model, self.options, self.name = model, o, o.name or model
        # A file as `kit tune` writes it, a text, or the kit's own wording.
        text = Path(o.prompt).read_text("utf-8-sig") if o.prompt else o.system
        self.system = (text or prompt_wording("system")).strip()
        self.gives_p = o.how == "word"
        self.server = _server_of(o, model)
        self.concurrency = self.server.concurrency
        # A question may take two calls: the second asks what the first left unreadable.
        self.limit = 2 * MAX_TIMEOUTS * self.server.timeout
        # Tokens: more room for a model that thinks before it replies.
        self.thinking = 4000 if reasons_first(model) else 0
        self.parameters = dict(o.extra)
        # Models that think take no other temperature than their default.
        if o.temperature is not None and not self.thinking:
            self.parameters["temperature"] = o.temperature
        # All that shapes a verdict. Price and limits do not.
        self.identity = {
            "model": model, "base_url": o.base_url, "how": o.how, "system": self.system,
            "parameters": self.parameters, "max_tokens": o.max_tokens,
            "confidence": o.confidence, "sample": 0, "version": self.version,
        }  # fmt: skip
        # Keys that are stored today have no such fields.
        if not o.schema:
            self.identity["schema"] = False
        if not type(self).__module__.startswith("kit."):
            self.identity["class"] = type(self).__qualname__

    # -- what to ask, and how to read it ------------------------------------------
    def messages(self, question: Question) -> list[dict[str, str]]:
        """The chat of one call."""
        return [
            {"role": "system", "content": self.system or ""},
            {
                "role": "user",
                "content": user_message(
                    question,
                    "word" if self.gives_p else "user",
                    confidence=self.options.confidence,
                ),
            },
        ]

    def schema(self, question: Question) -> Mapping[str, Any] | None:
        """The JSON schema of the reply; None for a reply in another form."""
        if self.gives_p:
            return None
        return reply_schema(question, confidence=self.options.confidence)

    def parse(self, reply: Reply, question: Question) -> list[Reading]:
        """A reading for each of `question.places`, out of a finished reply."""
        if self.gives_p:
            reading = read_one_word(reply)
            if question.criterion.scale != "binary" and "failure" not in reading:
                reading["reason"] = 'one word chooses no level: how="all" does'
            return [reading]
        return read_reply(reply.text, question, confidence=self.options.confidence)

    def split(self, question: Question) -> list[Question]:
        """One question a call: an answer, and as many criteria as `how` says."""
        criteria = list(question.criteria.values())
        sizes: Any = {"all": len(criteria) or 1, "one": 1, "word": 1}
        size = sizes.get(self.options.how, self.options.how)
        return [
            Question.of(question.task, [answer], criteria[start : start + size])
            for answer in question.answers.values()
            for start in range(0, len(criteria), size)
        ]

    def plan(self, question: Question) -> Plan:
        """One call."""
        # Four digits that the reply must repeat.
        question = msgspec.structs.replace(
            question, nonce=str(1000 + secrets.randbelow(9000))
        )
        reply = yield self.request(
            self.messages(question),
            schema=self.schema(question),
            room=2 if self.gives_p else 200 + 160 * len(question.places),
        )
        if reply.failure:
            return [unknown(reply.reason, reply.failure)] * len(question.places)
        return self.parse(reply, question)

    # -- requests ----------------------------------------------------------------
    def request(
        self,
        messages: list[dict[str, str]],
        *,
        schema: Mapping[str, Any] | None = None,
        room: int = 4000,
    ) -> Request:
        """A call of this judge's model. room : tokens of the reply where no max_tokens is set."""
        fields = dict(self.parameters)
        if schema and self.options.schema:
            fields["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "strict": True, "schema": schema},
            }
        if self.gives_p:
            # 20 is the most that OpenAI gives; fewer may miss "no" beside six "yes".
            fields.update(logprobs=True, top_logprobs=20)
        return Request(
            server=self.server,
            model=self.model,
            messages=messages,
            max_tokens=self.options.max_tokens or room + self.thinking,
            fields=fields,
            settings=self.identity,
        )

    def completion(
        self, messages: list[dict[str, str]], schema: Mapping[str, Any] | None
    ) -> RowPlan:
        """A plan that returns {"reply": what the model writes to a chat}."""
        reply = yield self.request(messages, schema=schema)
        if reply.failure:
            raise JudgeDownError(
                f"there is no usable reply: {reply.reason}",
                where=f"judge {self.name!r}",
                fix="try again",
            )
        return {"reply": reply.text}


def _server_of(o: Options, model: str) -> Server:
    # A URL is stored with each call, so it must not hold a secret.
    if o.base_url and "@" in o.base_url:
        raise DataError(
            "the base URL holds a password",
            where=f"judge endpoint:{model}",
            fix="use key_env (--set key_env=NAME)",
        )
    if o.base_url and not o.base_url.startswith(("http://", "https://")):
        raise DataError(
            f"the base URL {o.base_url!r} has no http:// or https://",
            where=f"judge endpoint:{model}",
            fix="write it as http://127.0.0.1:8000/v1",
        )
    # Local servers queue what they cannot do at once, never send 429, and cost nothing.
    concurrency, timeout, price = 64, 120.0, model_entry(model).get("price")
    if LOCAL.match(o.base_url or ""):
        concurrency, timeout, price = 2, 600.0, (0.0, 0.0)
    return Server(
        base_url=o.base_url,
        key_env=o.key_env or (OWN_KEY if o.base_url else "OPENAI_API_KEY"),
        timeout=o.timeout or timeout,
        tries=o.tries,
        concurrency=o.concurrency or concurrency,
        price=o.price or price,
        # One word carries no nonce, so a late reply on a kept connection could pass
        # for the reply to the next question.
        keep_alive_s=0.0 if o.how == "word" else 5.0,
    )


@dataclass(kw_only=True, unsafe_hash=True)
class LocalServer(Server):
    """The server of a GGUF file, on 127.0.0.1 with a random key. It starts at its first use.

    model : the file, requests at once, tokens of one request.
    """

    model: tuple[Path, int, int]

    def address_and_key(self) -> tuple[str, str]:
        """The base URL with the port that the system chose, and the server's own key."""
        server, key = start_server(*self.model)
        return f"{server.listening_address}/v1", key


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
        self.identity["base_url"] = paths.describe_file(file)


def small(**options: Any) -> ServedJudge:
    """The judge `small`: the pinned 1.5B model. MissingError says how to fetch it."""
    return ServedJudge(judge_model(), **options)


def local(**options: Any) -> ServedJudge:
    """The judge `local`: SmolLM2-135M-Instruct, the smallest. It is quick and poor.

    Its word is forced to "yes" or "no" in lower case; P(met) counts all spellings and decides.
    """
    # Without a grammar this model replies in a sentence; P(met) is read before it acts.
    options.setdefault("extra", {"grammar": 'root ::= "yes" | "no"'})
    return ServedJudge(small_gguf(), **options)

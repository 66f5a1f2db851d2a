"""What an endpoint cannot do, learned only from an answer that proves it.

A refusal (HTTP 400, 422, 501) that names a parameter is a suspicion. It becomes knowledge when the
same request without that parameter is answered; then it is noted with its date, and asked again
after a while, for servers are updated. A refusal that only echoes the request proves nothing.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .keys import shown

log = logging.getLogger(__name__)
OPTIONAL = (  # what some servers refuse
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
WORDS = {  # by which refusals name them
    "response_format": ("response_format", "json_schema", "structured output", "guided", "grammar"),
    "logprobs": ("logprob",),
}
LOOK = 300  # characters of a message; what is longer is an echo
FRESH = 7 * 86_400.0  # seconds until a refusal is asked for again


@dataclass
class Abilities:
    """What an endpoint and model refuse, each in the server's words and with the time it was seen.

    enforced : do replies obey the schema? None: not seen yet.
    """

    refused: dict[str, str] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)
    enforced: bool | None = None

    def note(self) -> dict[str, Any]:
        """As a JSON note."""
        return {"refused": self.refused, "since": self.since, "enforced": self.enforced}

    def recall(self, old: Mapping[str, Any]) -> None:
        """Take over what an earlier run noted, where it is dated and not too old."""
        since = old.get("since") or {}
        for name, why in (old.get("refused") or {}).items():
            if name not in self.refused and time.time() - since.get(name, 0.0) < FRESH:
                self.refused[name], self.since[name] = why, since[name]
        if self.enforced is None:
            self.enforced = old.get("enforced")

    def without(self, body: Mapping[str, Any], dropped: Mapping[str, str]) -> dict[str, Any]:
        """The body without what is refused or on trial; max_tokens for servers of the old name."""
        gone = {*self.refused, *dropped}
        sent = {k: v for k, v in body.items() if k not in gone}
        if "max_completion_tokens" in gone and "max_completion_tokens" in body:
            sent["max_tokens"] = body["max_completion_tokens"]
        if "logprobs" in gone:
            sent.pop("top_logprobs", None)
        return sent

    def learn(self, doubt: Doubt, place: str) -> bool:
        """An answer came without what is on trial: whether anything was learned from it."""
        new = {k: v for k, v in doubt.dropped.items() if k not in self.refused}
        if not new or (len(new) > 1 and not doubt.named):
            return False
        for name, why in new.items():
            self.refused[name], self.since[name] = why, time.time()
            log.warning("%s does not take %s (%s); asking without it", place, name, why)
        return True


@dataclass
class Doubt:
    """What one call leaves out on trial, after refusals that named it.

    named : every one of them was named by the refusal's own field, not only in its words.
    """

    dropped: dict[str, str] = field(default_factory=dict)
    named: bool = True
    cleared: set[str] = field(default_factory=set)  # the refusal was the same without them
    _before: str = ""
    _last: str | None = None

    def next(self, text: str, sent: Mapping[str, Any], abilities: Abilities) -> bool:
        """Choose what to leave out, or to send the same again; False when nothing is named."""
        if "max_tokens" in sent and "max_completion_tokens" in text[:LOOK]:
            return bool(abilities.refused.pop("max_completion_tokens", None))
        words, fields = _complaint(text)
        own = next((n for n in _named(fields) if n in sent and n not in self.cleared), None)
        again = words == self._before
        if own is None and not again and self._last is None and _weak(words, sent):
            self._before = words  # only in its words: is the very same request refused again?
            return True
        if again and self._last is not None and own is None:
            self.cleared.add(self._last)  # it was not that
            self.dropped.pop(self._last, None)
        name = own or next((n for n in _weak(words, sent) if n not in self.cleared), None)
        self._before, self._last = words, name
        if name is None:
            return False
        self.named = self.named and own is not None
        self.dropped[name] = shown(words or text)
        return True


def _complaint(text: str) -> tuple[str, list[str]]:
    """(the refusal's own words, the fields that it names), without what it only says back."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text[:LOOK], []
    error = data.get("error", data) if isinstance(data, Mapping) else data
    if not isinstance(error, Mapping):
        return str(error)[:LOOK], []
    detail = error.get("detail", error.get("message", ""))
    rows = [r for r in detail if isinstance(r, Mapping)] if isinstance(detail, list) else []
    words = [detail] if isinstance(detail, str) else [str(r.get("msg", "")) for r in rows]
    located = all(isinstance(r.get("loc"), list) for r in rows)
    fields = [str(f) for r in rows for f in r["loc"]] if located else []
    return " ".join(words)[:LOOK], [*fields, str(error.get("param") or "")]


def _named(fields: list[str]) -> Iterator[str]:
    for f in fields:
        yield from (n for n in OPTIONAL if f == n or f.startswith(n + "."))


def _weak(words: str, sent: Mapping[str, Any]) -> list[str]:
    low = words.casefold()
    return [n for n in OPTIONAL if n in sent and any(w in low for w in WORDS.get(n, (n,)))]

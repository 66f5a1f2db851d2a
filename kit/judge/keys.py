"""Keys: from the environment, to their own server, and out of everything that is shown or stored.

What is cut out are the very values that are in use, whatever form they have, and what looks like a
key of somebody else's.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import re
import urllib.parse
from collections.abc import Mapping
from typing import Any

OPENAI = "https://api.openai.com/v1"
SHORTEST = 8  # characters; "none" and "EMPTY" are no secrets, and occur in any text
CUT = "[key]"
_ESCAPE = re.compile(r"\\+u00((?!22|5c|5C)[2-7][0-9a-fA-F])")  # of letters; quotes stay escaped
_NAMES = re.compile(
    r"key|token|secret|auth|password|cookie|signature|credential|^(code|sig)$", re.I
)
_LOOKS = re.compile(r"\b(?:sk|gsk|hf|xai|key|Bearer)[-_ ][\w*.-]{6,}|\beyJ[\w-]{8,}\.[\w.-]+")
# what may stand between the letters of a key that somebody spells out
_BREAKS = dict.fromkeys(map(ord, " \t\r\n-\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_IN_USE: dict[str, None] = {}  # values, the longest first


def key_for(base_url: str, key_env: str | None) -> str:
    """The key: `key_env`, else KIT_JUDGE_KEY, else OPENAI_API_KEY, which goes to its own server.

    A key is never stored: it is read when a connection is made. Servers without one get "none".
    """
    for name in (key_env, "KIT_JUDGE_KEY", "OPENAI_API_KEY"):
        remember(os.environ.get(name) if name else None)
    if key_env:
        return os.environ.get(key_env) or "none"
    if os.environ.get("KIT_JUDGE_KEY"):
        return os.environ["KIT_JUDGE_KEY"]
    mine = (os.environ.get("OPENAI_BASE_URL") or OPENAI).rstrip("/")
    same_host = urllib.parse.urlsplit(mine).netloc == urllib.parse.urlsplit(base_url).netloc
    return (os.environ.get("OPENAI_API_KEY") if same_host else None) or "none"


def missing(wire: Any) -> str | None:
    """The variable that should hold the key of this connection (a Wire) and does not; else None.

    Only a variable that was named, and OpenAI's own server, are sure to need one.
    """
    named = any(secret_name(k) for k in wire.headers)
    if wire.client is not None or wire.address.auth or named or wire.address.local:
        return None
    base = wire.address.base
    if key_for(base, wire.key_env) != "none":
        return None
    if wire.key_env:
        return str(wire.key_env)
    own = urllib.parse.urlsplit(base).netloc == urllib.parse.urlsplit(OPENAI).netloc
    return "KIT_JUDGE_KEY (or OPENAI_API_KEY)" if own else None


def remember(secret: str | None) -> None:
    """Cut this value out of everything from now on, also as it is quoted in URLs and JSON."""
    if not secret or len(secret) < SHORTEST:
        return
    plain = json.dumps(secret)[1:-1]
    forms = {secret, plain, plain.replace("/", "\\/"), urllib.parse.quote(secret, safe="")}
    forms |= _encoded(secret.encode("utf-8", "replace"))
    if not forms <= _IN_USE.keys():
        _IN_USE.update(dict.fromkeys(forms))
        longest = sorted(_IN_USE, key=len, reverse=True)
        _IN_USE.clear()
        _IN_USE.update(dict.fromkeys(longest))


def _encoded(secret: bytes) -> set[str]:
    """A key as hex and in base64, wherever it begins in what was encoded (":KEY", "user:KEY").

    Of base64 that part which depends on the key alone.
    """
    out = {secret.hex(), secret.hex().upper()}
    for before in range(3):
        raw = base64.b64encode(b"\0" * before + secret).decode().rstrip("=")
        inner = raw[-(-8 * before // 6) : 8 * (before + len(secret)) // 6]
        out |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {form for form in out if len(form) >= SHORTEST}


def remember_all(values: Mapping[str, str]) -> None:
    """Remember those values whose names (of headers, of a URL's query) say that they are secret."""
    for name, value in values.items():
        if secret_name(name):
            remember(value)
            remember(value.partition(" ")[2])  # "Bearer ..."


def secret_name(name: str) -> bool:
    """True for the name of a header or a query field that holds a secret.

    >>> secret_name("X-Api-Key"), secret_name("Content-Type"), secret_name("api-version")
    (True, False, False)
    """
    return bool(_NAMES.search(name))


def redact(text: str) -> str:
    """The text without the keys that are in use."""
    if not _IN_USE:
        return text
    for secret in _IN_USE:
        if secret in text:
            text = text.replace(secret, CUT)
    joined = text.translate(_BREAKS)
    for secret in _IN_USE if len(joined) < len(text) else ():
        if secret.translate(_BREAKS) in joined:
            text = _broken(secret).sub(CUT, text)
    return text


@functools.lru_cache(maxsize=256)
def _broken(secret: str) -> re.Pattern[str]:
    """A key with blanks, dashes or characters of no width between its letters."""
    between = f"[{re.escape(''.join(map(chr, _BREAKS)))}]*"
    return re.compile(between.join(map(re.escape, secret.translate(_BREAKS))))


def unescaped(text: str) -> str:
    r"""JSON text as it is, or without keys that are spelled with escapes (\u0073k-...)."""
    if "\\u00" not in text or not _IN_USE:
        return text
    plain = _ESCAPE.sub(lambda m: chr(int(m[1], 16)), text)
    clean = redact(plain)
    return text if clean == plain else clean


def shown(text: str) -> str:
    """A server's words on one line, short, without keys of anybody."""
    return _LOOKS.sub(CUT, redact(" ".join(text.split())))[:200]

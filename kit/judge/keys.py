"""Keys: from the environment, to their own server, and out of everything that is shown or stored.

What is cut out are the very values that are in use, in any case and in the usual encodings, and what
looks like a key of somebody else's. A text is also compared in its bare form (escapes and entities
read, without what may stand between the letters): one that spells a key in another way is lost.
"""

from __future__ import annotations

import base64
import hashlib
import html
import html.entities
import json
import os
import re
import urllib.parse
from collections.abc import Mapping
from typing import Any

OPENAI = "https://api.openai.com/v1"
SHORTEST = 8  # characters; "none" and "EMPTY" are no secrets, and occur in any text
CUT = "[key]"
_NAMES = re.compile(  # "x-portkey-config" names no key
    r"(?<!port)key|token|secret|auth|passw|pwd|jwt|hmac|bearer|session|cookie|signature|credential|"
    r"(?<![a-z])(?:pass|pin|sig|sas)(?![a-z])|^code$",
    re.I,
)
_LOOKS = re.compile(r"\b(?:sk|gsk|hf|xai|key|Bearer)[-_ ][\w*.-]{6,}|\beyJ[\w-]{8,}\.[\w.-]+")
_RUN = re.compile(  # no name of a model: those are words with marks between
    r"(?=[A-Za-z]*\d)[A-Za-z\d]{20,}|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}", re.I
)
_PLAIN_BREAKS = b" \t\r\n-\\"
_BREAKS = "\u00ad\u200b\u200c\u200d\u2060\ufeff" + _PLAIN_BREAKS.decode()
_BLANK = re.compile(r"\\\\{0,7}[nrt]")
_CODED = re.compile(r"[\\%&](?:(?<=\\)u([0-9a-f]{4})|(?<=%)([0-9a-f]{2})|(?<=&)#?\w{1,9};)", re.I)
_NESTED = 4  # times that a text may be written in escapes of escapes
_IN_USE: dict[str, str] = {}  # a form of a key -> how that reads bare


def key_for(base_url: str, key_env: str | None) -> str:
    """The key: `key_env`, else KIT_JUDGE_KEY, else OPENAI_API_KEY, which goes to its own server.

    A key is never stored: it is read when a connection is made. Servers without one get "none".
    """
    for name in (key_env, "KIT_JUDGE_KEY", "OPENAI_API_KEY"):
        remember(os.environ.get(name) if name else None)
    if key_env:
        return os.environ.get(key_env, "").strip() or "none"
    if os.environ.get("KIT_JUDGE_KEY"):
        return os.environ["KIT_JUDGE_KEY"].strip()
    mine = (os.environ.get("OPENAI_BASE_URL") or OPENAI).rstrip("/")
    same_host = urllib.parse.urlsplit(mine).netloc == urllib.parse.urlsplit(base_url).netloc
    return (os.environ.get("OPENAI_API_KEY", "").strip() if same_host else None) or "none"


def missing(wire: Any) -> str | None:
    """The variable that should hold the key of this connection (a Wire) and does not; else None.

    Only a variable that was named, and OpenAI's own server, are sure to need one.
    """
    named = any(secret_name(k) for k in wire.headers)
    if wire.address.auth or named or wire.address.local:
        return None
    base = wire.address.base
    if key_for(base, wire.key_env) != "none":
        return None
    if wire.key_env:
        return str(wire.key_env)
    own = urllib.parse.urlsplit(base).netloc == urllib.parse.urlsplit(OPENAI).netloc
    return "KIT_JUDGE_KEY (or OPENAI_API_KEY)" if own else None


def remember(secret: str | None) -> None:
    """Cut this value out of everything from now on, also as it is quoted in URLs, HTML and JSON."""
    secret = (secret or "").strip()
    if len(secret) < SHORTEST or not _bare(secret):  # dashes and blanks stand in any text
        return
    forms = {secret, urllib.parse.quote(secret, safe=""), json.dumps(secret)[1:-1]}
    forms |= {html.escape(secret), secret.replace("/", "\\/"), secret.replace("/", "\\\\/")}
    forms |= _encoded(secret.encode("utf-8", "replace"))
    _IN_USE.update((form, _bare(form)) for form in forms)


def _encoded(secret: bytes) -> set[str]:
    """A key as hex and in base64, wherever it begins in what was encoded (":KEY", "user:KEY").

    Of base64 that part which depends on the key alone.
    """
    out = {secret.hex()}
    for before in range(3):
        raw = base64.b64encode(b"\0" * before + secret).decode().rstrip("=")
        inner = raw[-(-8 * before // 6) : 8 * (before + len(secret)) // 6]
        out |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {form for form in out if len(form) >= SHORTEST}


def remember_all(values: Mapping[str, str]) -> None:
    """Remember what is secret of these: by its name (of a header, in a URL's query) or its look."""
    for name, value in values.items():
        if secret_name(name):
            remember(value)
            remember(value.partition(" ")[2])  # "Bearer ..."
        for pattern in (_LOOKS, _RUN):
            for m in pattern.finditer(value):
                remember(m[0])


def secret_name(name: str) -> bool:
    """True for the name of a header or a query field that holds a secret.

    >>> secret_name("X-Api-Key"), secret_name("x-portkey-config"), secret_name("api-version")
    (True, False, False)
    """
    return bool(_NAMES.search(name))


def hidden(base: str) -> str:
    """An address without the keys in its path: what looks like one, or follows "key" or "token".

    A digest of each stays: two deployments of one server are two endpoints in the ledger.

    >>> hidden("https://host/v1/sk-12345678/chat"), hidden("https://host/gpt-4o-2024-08-06/v1")
    ('https://host/v1/[key db72]/chat', 'https://host/gpt-4o-2024-08-06/v1')
    """
    out = base.split("/")
    for i in range(3, len(out)):
        out[i] = veiled(out[i], secret_name(out[i - 1]) and len(out[i]) >= SHORTEST)
    return "/".join(out)


def veiled(part: str, named: bool = False) -> str:
    """A part of an address, or the digest of one that is named a key, or looks like one."""
    if not (named or _LOOKS.search(part) or _RUN.search(part)):
        return part
    remember(part)
    return f"[key {hashlib.sha256(part.encode()).hexdigest()[:4]}]"


def redact(text: str) -> str:
    """The text without the keys that are in use; nothing of it where one is spelled otherwise."""
    if not _IN_USE:
        return text
    bare = _bare(text)
    found = [(form, plain) for form, plain in _IN_USE.items() if plain in bare]
    for form, _ in sorted(found, key=lambda pair: -len(pair[0])):
        text = re.sub(re.escape(form), CUT, text, flags=re.I)
    left = _bare(text) if found else ""
    return CUT if any(plain in left for _, plain in found) else text


def _bare(text: str) -> str:
    """A text as it is compared.

    >>> _bare("SK-a\\/b&#43;c")
    'ska/b+c'
    """
    text = _BLANK.sub("", text) if "\\" in text else text
    for _ in range(_NESTED if "%" in text or "&" in text or "\\u" in text else 0):
        before, text = text, _CODED.sub(_letter, text)
        if text == before:
            break
    if text.isascii():  # five times as fast
        return text.encode().translate(None, _PLAIN_BREAKS).decode().casefold()
    for blank in _BREAKS:
        text = text.replace(blank, "")
    return text.casefold()


def _letter(m: re.Match[str]) -> str:
    return html.unescape(m[0]) if m[0][0] == "&" else chr(int(m[1] or m[2], 16))


def shown(text: str) -> str:
    """A server's words on one line, short, without keys of anybody."""
    return _LOOKS.sub(CUT, redact(" ".join(text.split())))[:200]


def plain(text: Any) -> str:
    """A server's word as text that can be stored: short, without halves of surrogate pairs."""
    return text[:200].encode("utf-8", "replace").decode() if isinstance(text, str) else ""


def said(text: str) -> str:
    """The server's own message, short, on one line; keys are cut out."""
    try:
        error = json.loads(text).get("error")
        text = error.get("message", text) if isinstance(error, dict) else str(error or text)
    except (ValueError, AttributeError, RecursionError):
        pass
    return plain(shown(str(text)))

"""Keys: from the environment, to their own server, and out of everything that is shown or stored.

What is cut out are the very values that are in use, in any case and in the usual encodings, and
what looks like a key of somebody else's. A text is also compared in its bare form (escapes and
entities read, letters and digits only): one that spells a key in another way is lost. A key that is
a word ("not-needed") is cut out as it is written only. Replies are read before anything is cut out.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import html
import html.entities
import ipaddress
import json
import os
import re
import socket
import unicodedata
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import KitError

OPENAI = "https://api.openai.com/v1"
SHORTEST = 8  # characters; "none" and "EMPTY" are no secrets, and occur in any text
RANDOM = 20  # letters, from which on they are no word, and known without the first and the last
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
_LETTERS = re.compile(r"[^\W_]+")
_MARKS = bytes(i for i in range(128) if not chr(i).isalnum())
_BLANK = re.compile(r"\\\\{0,7}[nrt]|</?\w{1,9}>")
_CODED = re.compile(
    r"[\\%&](?:(?<=\\)(?:(?-i:U)([0-9a-f]{8})|u\{([0-9a-f]{1,6})\}|u([0-9a-f]{4})|x([0-9a-f]{2})"
    r"|([0-3][0-7]{2}))|(?<=%)([0-9a-f]{2})|(?<=&)#?\w{1,9};)",
    re.I,
)
_OCTAL = 5  # the group above
_SIGNS = ("%", "&", *(f"\\{c}" for c in "uUx0123"))  # of such escapes
_NESTED = 4  # times that a text may be written in escapes of escapes
_IN_USE: dict[str, str] = {}  # a form of a key -> how that reads bare


def key_for(base_url: str, key_env: str | None) -> str:
    """The key: `key_env`, else KIT_JUDGE_KEY, else OPENAI_API_KEY, which goes to its own server.

    A key is never stored: it is read when a connection is made. Servers without one get "none".
    """
    for name in (key_env, "KIT_JUDGE_KEY", "OPENAI_API_KEY"):
        remember(os.environ.get(name) if name else None)
    own = "KIT_JUDGE_KEY" if os.environ.get("KIT_JUDGE_KEY") else None
    if named := key_env or own:
        return _sendable(named)
    mine = (os.environ.get("OPENAI_BASE_URL") or OPENAI).rstrip("/")
    same_host = urllib.parse.urlsplit(mine).netloc == urllib.parse.urlsplit(base_url).netloc
    return _sendable("OPENAI_API_KEY") if same_host else "none"


def _sendable(name: str) -> str:
    """The key in a variable, "none" where there is none; KitError where no header can hold it."""
    key = os.environ.get(name, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise KitError(
            "this key cannot be sent",
            where=f"environment variable {name}",
            fix="export it again; it is one line of plain letters, digits and marks",
        )
    return key or "none"


def missing(wire: Any) -> str | None:
    """The variable that should hold the key of this connection (a Wire) and does not; else None.

    Only a variable that was named, and OpenAI's own server, are sure to need one.
    """
    named = any(secret_name(k) for k in wire.headers)
    if wire.address.auth or named or (wire.address.local and not wire.key_env):
        return None
    base = wire.address.base
    if key_for(base, wire.key_env) != "none":
        return None
    if wire.key_env:
        return str(wire.key_env)
    own = urllib.parse.urlsplit(base).netloc == urllib.parse.urlsplit(OPENAI).netloc
    return "KIT_JUDGE_KEY (or OPENAI_API_KEY)" if own else None


def remember(secret: str | None, shortest: int = SHORTEST) -> None:
    """Cut this value out of everything from now on, also as it is quoted in URLs, HTML and JSON."""
    secret = (secret or "").strip()
    if len(secret) < shortest or not _bare(secret):  # dashes and blanks stand in any text
        return
    raw = secret.encode("utf-8", "replace")
    forms = {
        *(secret, urllib.parse.quote(raw, safe=""), json.dumps(secret)[1:-1]),
        *(html.escape(secret), secret.replace("/", "\\/"), secret.replace("/", "\\\\/")),
        *_encoded(raw),
    }
    _IN_USE.update((form, _telling(form)) for form in forms)


def _telling(form: str) -> str:
    """What gives a form of a key away in a bare text; "" for a word, which may stand anywhere."""
    plain = _bare(form)
    if len(plain) >= RANDOM:
        return plain[1:-1]
    return "" if plain.isalpha() or len(plain) < SHORTEST else plain


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
    return CUT if any(plain and plain in left for _, plain in found) else text


def _bare(text: str) -> str:
    """A text as it is compared.

    >>> _bare("SK-a\\/\\x62&#99;<b>1</b>")
    'skabc1'
    """
    text = _BLANK.sub("", text) if "\\" in text or "</" in text else text
    for _ in range(_NESTED if any(sign in text for sign in _SIGNS) else 0):
        before, text = text, _CODED.sub(_letter, text)
        if text == before:
            break
    if not text.isascii():  # two escapes may be one letter
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        text = unicodedata.normalize("NFKC", text)
    return letters(text)


def _letter(m: re.Match[str]) -> str:
    if m.lastindex is None:
        return html.unescape(m[0])
    return chr(int(m[m.lastindex], 8 if m.lastindex == _OCTAL else 16) % 0x110000)


def letters(text: str) -> str:
    """The letters and digits of a text, small."""
    if text.isascii():  # twenty times as fast
        return text.encode().translate(None, _MARKS).decode().casefold()
    return "".join(_LETTERS.findall(text)).casefold()


def shown(text: str) -> str:
    """A server's words on one line, short, without keys of anybody."""
    return _LOOKS.sub(CUT, redact(" ".join(text.split())))[:200]


def plain(text: Any) -> str:
    """A server's word as text that can be stored: short, without halves of surrogate pairs."""
    return text[:200].encode("utf-8", "replace").decode() if isinstance(text, str) else ""


def said(text: str) -> str:
    """The server's own message, short, on one line; keys are cut out."""
    with contextlib.suppress(ValueError, AttributeError, RecursionError):
        error = json.loads(text).get("error")
        text = error.get("message", text) if isinstance(error, dict) else str(error or text)
    return plain(shown(str(text)))


SHORT = 4  # characters of a password that is cut out as it is written
PATH = "/chat/completions"  # users leave it in a base URL


@dataclass(frozen=True, kw_only=True)
class Address:
    """base : without user, password and query; query : as it is sent; auth : from user:password.

    shown : the address without secrets, by which the ledger knows the endpoint.

    >>> a = Address.of("https://u:secret-pass@host/v1/?api-version=1&key=0123456789")
    >>> a.shown, a.auth is None
    ('https://host/v1?api-version=1&key=[key]', False)
    >>> Address.of("https://host/v1?api-version=1").url("/chat/completions")
    'https://host/v1/chat/completions?api-version=1'
    """

    base: str
    shown: str
    query: str = field(default="", repr=False)
    auth: str | None = field(default=None, repr=False)
    local: bool = False

    @classmethod
    def of(cls, text: str) -> Address:
        """Read a base URL; KitError when it is none."""
        try:
            parts = urllib.parse.urlsplit(text)
            host = parts.hostname if parts.port != 0 else None  # reading the port checks it
        except ValueError:
            host, parts = None, urllib.parse.urlsplit("")
        if parts.scheme not in ("http", "https") or not host:
            raise KitError(
                f"{veiled(text.rpartition('@')[2].partition('?')[0])!r} is no address of a server",
                where="base_url",
                fix="write it whole, for example http://127.0.0.1:8000/v1",
            )
        place = parts.netloc.rpartition("@")[2]
        base = f"{parts.scheme}://{place}" + parts.path.rstrip("/").removesuffix(PATH)
        pairs = urllib.parse.parse_qsl(parts.query, keep_blank_values=True)
        remember_all(dict(pairs))
        open_ = "&".join(f"{k}={CUT if secret_name(k) else veiled(v)}" for k, v in pairs)
        return cls(
            base=base,
            query=parts.query,
            shown=hidden(base) + (f"?{open_}" if open_ else ""),
            auth=_basic(parts.username, parts.password),
            local=_local(host),
        )

    def url(self, path: str) -> str:
        """Where a path is called; the query stays behind it (Azure: ?api-version=...)."""
        return self.base + path + (f"?{self.query}" if self.query else "")

    @property
    def proxy(self) -> str | None:
        """The proxy that the environment names for it; this machine is called directly."""
        parts = urllib.parse.urlsplit(self.base)
        if self.local or urllib.request.proxy_bypass(parts.netloc):
            return None
        named = urllib.request.getproxies()
        found = named.get(parts.scheme) or named.get("all")
        if not found:
            return None
        found = found if "://" in found else f"http://{found}"  # as curl reads it
        try:
            at = urllib.parse.urlsplit(found)
            if at.scheme not in ("http", "https"):
                raise ValueError(f"{at.scheme} is not spoken here")
            _basic(at.username, at.password if at.port != 0 else None)  # reading the port checks it
        except ValueError as e:
            raise KitError(
                f"this is no address of a proxy ({e})",
                where=f"environment variable {parts.scheme}_proxy or all_proxy",
                fix="write it as http://HOST:PORT, or unset it",
            ) from None
        return found


def _basic(user: str | None, password: str | None) -> str | None:
    if user is None:
        return None
    user = urllib.parse.unquote(user)
    password = urllib.parse.unquote(password or "")
    coded = base64.b64encode(f"{user}:{password}".encode()).decode()
    for secret in (user, password, coded):  # a token may be the user
        remember(secret, SHORT if secret is password else SHORTEST)
    return f"Basic {coded}"


def _local(host: str) -> bool:
    """True for this machine ("127.example.com" is another)."""
    host = host.rstrip(".")
    with contextlib.suppress(OSError, ValueError):  # 127.1 and 0x7f000001, as they are resolved
        host = socket.inet_ntoa(socket.inet_aton(host))
    try:
        address = ipaddress.ip_address(host.removeprefix("::ffff:"))
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified

"""One HTTP POST to an OpenAI-compatible server: the `openai` client's address and headers on a plain aiohttp connection.

Why not the client's own transport: at 256 calls in flight it adds 0.5-1 ms of CPU a call (half of it copying parameters) and
finishes 1.4-2.0 times later than the server would allow; aiohttp alone stays near 1.05. The client still decides base URL,
organisation, project and authorisation. A client made elsewhere (Azure, a proxy's own transport) is used as it is, through its
public `post`. No retries here: the judge counts them, once.
"""

from __future__ import annotations

import asyncio
import json
import os
import urllib.parse
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import loop as loops

OPENAI = "https://api.openai.com/v1"
LOCAL = ("127.", "localhost", "[::1]", "::1", "0.0.0.0")


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An HTTP reply: status, body, and the seconds to wait that the server named (None when it named none)."""

    status: int
    body: bytes
    retry_after: float | None = None


class WireError(Exception):
    """No whole reply came. kind : "timeout" or "connection"."""

    def __init__(self, kind: str, what: str):
        super().__init__(what)
        self.kind = kind


def is_local(base_url: str) -> bool:
    """True for a server on this machine."""
    return (urllib.parse.urlsplit(base_url).hostname or "").startswith(LOCAL)


def key_for(base_url: str, key_env: str | None) -> str:
    """The key from the environment: `key_env`, else KIT_JUDGE_KEY, else OPENAI_API_KEY, which goes to its own server only.

    A key is never stored: it is read when a connection is made. Servers without one get the word "none".
    """
    if key_env:
        return os.environ.get(key_env) or "none"
    if os.environ.get("KIT_JUDGE_KEY"):
        return os.environ["KIT_JUDGE_KEY"]
    mine = (os.environ.get("OPENAI_BASE_URL") or OPENAI).rstrip("/")
    same_host = urllib.parse.urlsplit(mine).netloc == urllib.parse.urlsplit(base_url).netloc
    return (os.environ.get("OPENAI_API_KEY") if same_host else None) or "none"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from `retry-after-ms`, or `Retry-After` as seconds or as a date; None when absent or unreadable.

    >>> retry_after({"Retry-After": "1.5"}), retry_after({"retry-after-ms": "250"}), retry_after({"Retry-After": "soon"})
    (1.5, 0.25, None)
    """
    low = {k.lower(): v for k, v in headers.items() if k.lower().startswith("retry-after")}
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(low[name]) / scale
            if 0 <= seconds < 1e7:
                return seconds
        except (KeyError, ValueError):
            pass
    return _date(low.get("retry-after"))


def _date(text: str | None) -> float | None:
    import email.utils
    import time

    try:
        return (
            max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
            if text
            else None
        )
    except (TypeError, ValueError):
        return None


@dataclass(eq=False)
class Wire:
    """A connection pool to one endpoint, on the kit's loop; made at the first call, made again after a fork."""

    base_url: str
    key_env: str | None = None
    client: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    _session: Any = None
    _loop: Any = None
    _fixed: dict[str, str] = field(default_factory=dict)

    async def post(self, path: str, body: bytes, timeout: float) -> Reply:
        """POST a JSON body; a Reply of any status, or WireError. The deadline counts from now."""
        if self.client is not None:
            return await self._by_client(path, body, timeout)
        import aiohttp

        session = self._open()
        try:
            async with asyncio.timeout(timeout):
                async with session.post(self.base_url + path, data=body, headers=self._fixed) as r:
                    return Reply(
                        status=r.status,
                        body=await r.read(),
                        retry_after=retry_after(r.headers) if r.status >= 400 else None,
                    )
        except TimeoutError:
            raise WireError("timeout", f"no whole reply within {timeout:.0f} s") from None
        except (aiohttp.ClientError, ConnectionError, OSError) as e:
            raise WireError("connection", f"{type(e).__name__}: {e}"[:200]) from None

    async def get(self, path: str, timeout: float) -> bytes:
        """GET the raw bytes of a path (batch files)."""
        session = self._open()
        async with asyncio.timeout(timeout):
            async with session.get(
                self.base_url + path,
                headers={k: v for k, v in self._fixed.items() if k != "Content-Type"},
            ) as r:
                if r.status >= 400:
                    raise WireError("connection", f"HTTP {r.status} for {path}")
                return await r.read()

    def _open(self) -> Any:
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            proxied = any(
                os.environ.get(n)
                for n in (
                    "HTTP_PROXY",
                    "HTTPS_PROXY",
                    "ALL_PROXY",
                    "http_proxy",
                    "https_proxy",
                    "all_proxy",
                )
            )
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300, keepalive_timeout=30),
                trust_env=proxied,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=20),
                auto_decompress=True,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
            self._loop, self._fixed = loop, self._heads()
            loops.at_exit(self.close)
            weakref.finalize(self, _shut, self._session, loop).atexit = False
        return self._session

    def _heads(self) -> dict[str, str]:
        """The headers that the `openai` client would send."""
        key, own = key_for(self.base_url, self.key_env), {}
        if self.base_url.startswith(
            "https://api.openai.com"
        ):  # elsewhere its import (a second) buys nothing
            import openai

            client = openai.AsyncOpenAI(base_url=self.base_url, api_key=key, max_retries=0)
            names = ("openai-organization", "openai-project", "user-agent")
            own = {
                k: str(v)
                for k, v in client.default_headers.items()
                if k.lower() in names and isinstance(v, str)
            }
        return {
            **own,
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            **self.headers,
        }

    async def _by_client(self, path: str, body: bytes, timeout: float) -> Reply:
        """The same through a given `openai` client, its retries off."""
        import openai

        try:
            raw = await self.client.with_options(max_retries=0, timeout=timeout).post(
                path,
                cast_to=dict,
                body=json.loads(body),
                options={"headers": {"X-Stainless-Raw-Response": "true"}},
            )
            return Reply(status=raw.status_code, body=raw.content)
        except openai.APIStatusError as e:
            return Reply(
                status=e.status_code,
                body=e.response.content,
                retry_after=retry_after(e.response.headers),
            )
        except openai.APITimeoutError:
            raise WireError("timeout", f"no whole reply within {timeout:.0f} s") from None
        except openai.APIError as e:
            raise WireError("connection", f"{type(e).__name__}: {e}"[:200]) from None

    async def close(self) -> None:
        """Close the connections."""
        if (
            self._session is not None
            and not self._session.closed
            and self._loop is asyncio.get_running_loop()
        ):
            await self._session.close()
        self._session = None


def _shut(session: Any, loop: asyncio.AbstractEventLoop) -> None:
    """Close the connections of a judge that nobody holds any more."""
    if not session.closed and not loop.is_closed():
        loop.call_soon_threadsafe(lambda: loop.create_task(session.close()))

"""The head of a request to an HTTP proxy: its destination, and how to forward it. No I/O.

CONNECT requests a tunnel. Other methods carry a whole URL; they are forwarded in the form a server expects, one
request per connection (`Connection: close`), so that each request reaches the server it names.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import urlsplit

MAX_HEAD_BYTES = 64 * 1024
_HOP_BY_HOP = ("connection", "proxy-connection", "keep-alive", "proxy-authorization")


class BadRequest(Exception):
    """Not something a proxy can serve; the text is for the client."""


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """What a client requested from its proxy."""

    method: str
    host: str
    port: int
    path: str  # '' for a tunnel
    headers: tuple[tuple[str, str], ...]

    @property
    def is_tunnel(self) -> bool:
        return self.method == "CONNECT"

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{self.path}"

    def for_server(self) -> bytes:
        return self._head(self.path)

    def for_proxy(self, *authorization: tuple[str, str]) -> bytes:
        return self._head(self.url, *authorization)

    def _head(self, target: str, *more: tuple[str, str]) -> bytes:
        kept = [(name, value) for name, value in self.headers if name.lower() not in _HOP_BY_HOP]
        lines = [f"{self.method} {target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in (*kept, *more, ("Connection", "close"))]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


def parse(head: bytes) -> ProxyRequest:
    first, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequest("this is an HTTP/1.1 proxy, and that was no HTTP/1.1 request")
    method, target, _ = parts
    headers = []
    for line in rest:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequest(f"a header without a colon: {line[:80]}")
        headers.append((name, value.strip()))
    is_tunnel = method == "CONNECT"
    mistake = f"CONNECT wants host:port, not {target[:80]}" if is_tunnel else f"not a URL: {target[:80]}"
    try:
        split = urlsplit(f"//{target}" if is_tunnel else target)
        host, port = split.hostname, split.port
    except ValueError as error:
        raise BadRequest(mistake) from error
    if is_tunnel:
        if not host or port is None:
            raise BadRequest(mistake)
        return ProxyRequest(method, host, port, "", tuple(headers))
    if split.scheme != "http" or not host:
        raise BadRequest(f"a proxy is asked for http://host/path or CONNECT host:port, not {target[:80]}")
    path = (split.path or "/") + (f"?{split.query}" if split.query else "")
    return ProxyRequest(method, host, port or 80, path, tuple(headers))


def error_response(status: int, reason: str, text: str) -> bytes:
    """A whole response with the reason for a refusal."""
    body = (text + "\n").encode()
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


async def read_head(reader: asyncio.StreamReader) -> bytes:
    """Up to and with the empty line; BadRequest where it is too long or missing."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise BadRequest(f"the head of the request is over {MAX_HEAD_BYTES} bytes") from error
    except asyncio.IncompleteReadError as error:
        raise BadRequest("the head of the request ends too early") from error

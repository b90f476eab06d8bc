"""An ASGI application called in place: whole requests, streams that a test reads event by event, websockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import urlencode


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    def all_of(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


class Stream:
    """A response in progress. Leaving the `async with` is the client going away."""

    def __init__(self, app: Any, scope: dict[str, Any], body: bytes) -> None:
        self._gone = asyncio.Event()
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._body: list[bytes] = [body]
        self._buffer = b""
        self._ended = False
        self._task = asyncio.ensure_future(app(scope, self._receive, self._sent.put))
        self._task.add_done_callback(self._note_failure)

    def _note_failure(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._sent.put_nowait({"failure": failure})

    async def _next(self) -> dict[str, Any]:
        """What the application sends next; raises what it failed with."""
        message = await self._sent.get()
        if "failure" in message:
            raise message["failure"]
        return message

    async def _receive(self) -> dict[str, Any]:
        if self._body:
            return {"type": "http.request", "body": self._body.pop(), "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def start(self) -> Answer:
        """Status and headers."""
        message = await self._next()
        headers = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in message["headers"]]
        return Answer(message["status"], headers, b"")

    async def write(self) -> bytes:
        """The next piece the application wrote that is not empty; b'' at the end."""
        while not self._ended:
            message = await self._next()
            self._ended = not message.get("more_body", False)
            if message["body"]:
                body: bytes = message["body"]
                return body
        return b""

    async def event(self) -> Any:
        """The next line, decoded."""
        while b"\n" not in self._buffer:
            piece = await self.write()
            if not piece:
                return None
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    async def rest(self) -> bytes:
        pieces = []
        while piece := await self.write():
            pieces.append(piece)
        return b"".join(pieces)

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._gone.set()
        await self._task


class Asgi:
    def __init__(self, app: Any, token: str) -> None:
        self.app = app
        self._token = token

    def _scope(
        self, kind: str, method: str, path: str, headers: Mapping[str, str] | None, query: dict[str, Any]
    ) -> Any:
        sent = {"authorization": f"Bearer {self._token}", **(headers or {})}
        return {
            "type": kind,
            "method": method,
            "path": path,
            "query_string": urlencode(query, doseq=True).encode(),
            "headers": [(k.lower().encode(), v.encode()) for k, v in sent.items() if v],
            "extensions": {"websocket.http.response": {}},
        }

    def stream(
        self, method: str, path: str, body: Any = b"", headers: Mapping[str, str] | None = None, **query: Any
    ) -> Stream:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Stream(self.app, self._scope("http", method, path, headers, query), data)

    async def __call__(
        self, method: str, path: str, body: Any = b"", headers: Mapping[str, str] | None = None, **query: Any
    ) -> Answer:
        async with self.stream(method, path, body, headers, **query) as stream:
            start = await stream.start()
            return Answer(start.status, start.headers, await stream.rest())

    def socket(self, path: str, protocols: list[str], headers: Mapping[str, str] | None = None, **query: Any) -> Socket:
        scope = self._scope("websocket", "GET", path, headers, query)
        del scope["method"]
        return Socket(self.app, {**scope, "subprotocols": protocols})


class Socket:
    """A websocket in progress: `send` and `next` are the client's side."""

    def __init__(self, app: Any, scope: dict[str, Any]) -> None:
        self._from_client: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._from_app: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._from_client.put_nowait({"type": "websocket.connect"})
        self.task = asyncio.ensure_future(app(scope, self._from_client.get, self._from_app.put))

    async def send(self, data: bytes) -> None:
        await self._from_client.put({"type": "websocket.receive", "bytes": data})

    async def next(self) -> dict[str, Any]:
        return await self._from_app.get()

    async def __aenter__(self) -> Socket:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self._from_client.put({"type": "websocket.disconnect", "code": 1006})
        await self.task

"""An API server that is older than the newest things a client may ask for, made of one that knows them.

It says it is Kubernetes 1.28, refuses lists that stream in the words of that version, and speaks version 4 of the
protocol for commands. What it was asked for in vain is kept.
"""

from __future__ import annotations

import json
from typing import Any

from shoal.cluster.exec_streams import V5

VERSION = {"major": "1", "minor": "28", "gitVersion": "v1.28.15"}
_FIELD = "sendInitialEvents"
_WHY = f"Forbidden: {_FIELD} is forbidden for watch unless the WatchList feature gate is enabled"
REFUSAL = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": f'ListOptions.meta.k8s.io "" is invalid: {_FIELD}: {_WHY}',
    "reason": "Invalid",
    "details": {
        "group": "meta.k8s.io",
        "kind": "ListOptions",
        "causes": [{"reason": "FieldValueForbidden", "message": _WHY, "field": _FIELD}],
    },
    "code": 422,
}


class Older:
    """Wraps an ASGI application."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.refused: list[str] = []  # paths of lists that should have streamed
        self.offered: list[list[str]] = []  # protocols, by conversation

    def end_streams(self) -> None:
        self._app.end_streams()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and f"{_FIELD}=true" in scope["query_string"].decode():
            self.refused.append(scope["path"])
            await _answer(send, 422, REFUSAL)
        elif scope["type"] == "http" and scope["path"] == "/version":
            await _answer(send, 200, VERSION)
        elif scope["type"] == "websocket":
            self.offered.append(list(scope["subprotocols"]))
            known = [each for each in scope["subprotocols"] if each != V5]
            await self._app({**scope, "subprotocols": known}, receive, send)
        else:
            await self._app(scope, receive, send)


async def _answer(send: Any, code: int, content: Any) -> None:
    body = json.dumps(content).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})

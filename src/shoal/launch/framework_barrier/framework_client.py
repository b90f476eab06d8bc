"""Reading one Framework, and watching its changes.

A watch reports a change at once; where the server does not allow one, or the connection breaks, the caller's interval
decides when to read again. Every step of a request (to connect, to send, to receive) is bounded by the time that is
left.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from shoal.dialects.framework.names import API_VERSION
from shoal.kube.objects import Obj
from shoal.launch.framework_barrier.connection import ConnectionConfig

_REQUEST_SECONDS = 30
_MIN_SECONDS = 0.001  # a socket with no time at all would not wait but fail


class FrameworkNotFound(Exception):
    """The server has no such Framework."""


class ReadFailed(Exception):
    """The Framework could not be read now; the message has the reason."""


@dataclass(frozen=True, slots=True)
class FrameworkReader:
    connection: ConnectionConfig
    namespace: str
    name: str

    def read(self, seconds: float = _REQUEST_SECONDS) -> Obj:
        """The Framework as it is now, if it can be had within so long. Raises FrameworkNotFound or ReadFailed."""
        path = f"{self._collection()}/{self.name}"
        try:
            with _closing(self._request(path, seconds=min(seconds, _REQUEST_SECONDS))) as answer:
                body = answer.read()
                if answer.status == 404:
                    raise FrameworkNotFound(f"there is no Framework {self.namespace}/{self.name}")
                if answer.status != 200:
                    raise ReadFailed(f"the API server answered {answer.status}: {_message(body)}")
                framework: Obj = json.loads(body)
                return framework
        except (OSError, http.client.HTTPException, ValueError) as problem:
            raise ReadFailed(f"the API server at {self.connection.url} cannot be reached: {problem!r}") from None

    def changes(self, framework: Obj | None, seconds: float) -> Iterator[Obj]:
        """The Framework after each change since `framework`, for so long; without a watch, just the wait.

        Ends early where reading again is worth it: after a deletion, or when a watch that delivered something breaks.
        """
        deadline = time.monotonic() + seconds
        had_event = False
        if framework is not None:
            # Where it breaks, the next read raises what is wrong, if anything still is.
            with suppress(OSError, http.client.HTTPException, ValueError):
                for changed in self._watched(framework, seconds):
                    had_event = True
                    if changed is None:
                        return
                    yield changed
        if not had_event:
            threading.Event().wait(max(deadline - time.monotonic(), 0))

    def _watched(self, framework: Obj, seconds: float) -> Iterator[Obj | None]:
        """Every change; None: it was deleted. Raises ValueError where the server refuses or breaks off."""
        wanted = {
            "watch": "1",
            "fieldSelector": f"metadata.name={self.name}",
            "resourceVersion": framework["metadata"].get("resourceVersion", ""),
            "timeoutSeconds": str(max(int(seconds), 1)),
        }
        path = f"{self._collection()}?{urlencode(wanted)}"
        with _closing(self._request(path, seconds=seconds + 1)) as answer:
            if answer.status != 200:
                raise ValueError(f"no watch: {answer.status}")
            for line in answer:
                event = json.loads(line)
                if event.get("type") == "ERROR":
                    raise ValueError("the watch ended with an error")
                yield None if event.get("type") == "DELETED" else event["object"]

    def _request(self, path: str, *, seconds: float) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        parts = urlsplit(self.connection.url)
        shown = self.connection.request_credentials()
        if parts.scheme == "https":
            line: http.client.HTTPConnection = http.client.HTTPSConnection(
                parts.netloc, timeout=seconds, context=shown.ssl_context
            )
        else:
            line = http.client.HTTPConnection(parts.netloc, timeout=seconds)
        deadline = time.monotonic() + seconds
        try:
            line.connect()
            _set_deadline(line.sock, deadline)
            line.request("GET", parts.path.rstrip("/") + path, headers=dict(shown.headers))
            sock = line.sock
            answer = line.getresponse()
            _set_deadline(sock, deadline)
            return line, answer
        except BaseException:
            line.close()
            raise

    def _collection(self) -> str:
        return f"/apis/{API_VERSION}/namespaces/{self.namespace}/frameworks"


def _set_deadline(sock: socket.socket, deadline: float) -> None:
    """Let the next step take no longer than until then."""
    sock.settimeout(max(deadline - time.monotonic(), _MIN_SECONDS))


class _closing:  # noqa: N801 - reads as the standard library's own
    """The answer, and both ends closed afterwards."""

    def __init__(self, made: tuple[http.client.HTTPConnection, http.client.HTTPResponse]) -> None:
        self._line, self._answer = made

    def __enter__(self) -> http.client.HTTPResponse:
        return self._answer

    def __exit__(self, *_: object) -> None:
        self._answer.close()
        self._line.close()


def _message(body: bytes) -> str:
    try:
        message = json.loads(body).get("message")
    except (ValueError, AttributeError):
        message = None
    return str(message) if message else body[:200].decode(errors="replace")

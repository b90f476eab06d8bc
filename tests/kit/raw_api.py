"""The Kubernetes API as bytes on a wire: what a test sends and what comes back, with no client between.

A client library repairs, retries and hides; these tests compare what two servers say, so they send requests
by hand. `Api` speaks to one server, `Space` to one namespace of it, `Watch` reads a stream of events. Every
read has a deadline far beyond what a server needs, so a test that waits in vain fails instead of hanging.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any

Obj = dict[str, Any]
DEADLINE_SECONDS = 60.0

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @cached_property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def warnings(self) -> list[str]:
        return self.headers.get_all("Warning") or []

    @property
    def content_type(self) -> str:
        return self.headers.get("Content-Type") or ""

    def ok(self) -> Obj:
        """The object of a request that had to succeed."""
        assert 200 <= self.status < 300, f"{self.status} {self.body.decode()}"
        obj: Obj = self.json
        return obj

    def failure(self) -> Obj:
        """The Status of a request that had to be refused; the code of the line and of the body agree."""
        assert self.status >= 400, f"{self.status} {self.body.decode()}"
        status: Obj = self.json
        assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
        assert status["code"] == self.status
        return status


@dataclass(frozen=True)
class Api:
    """One server. Each call is one request on a connection that is kept between calls."""

    url: str
    token: str
    ca_file: str = ""
    is_embedded: bool = False
    _idle: list[http.client.HTTPConnection] = field(default_factory=list, compare=False)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        type: str = JSON,  # noqa: A002 - the header's own word
        accept: str = JSON,
        headers: Mapping[str, str | None] | None = None,
        **query: Any,
    ) -> Answer:
        """Send it and read the whole answer. `body` is bytes as they are, or anything JSON can say;
        a header of None is left out. Query parameters follow as keywords."""
        sent = self._headers(body, type, accept, headers)
        connection = self._idle.pop() if self._idle else self.connect()
        try:
            connection.request(method, target(path, query), encode(body), sent)
            response = connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            connection.close()  # the server had closed the idle connection; once more on a new one
            connection = self.connect()
            connection.request(method, target(path, query), encode(body), sent)
            response = connection.getresponse()
        answer = Answer(response.status, response.headers, response.read())
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return answer

    def get(self, path: str, **more: Any) -> Answer:
        return self.call("GET", path, **more)

    def post(self, path: str, body: Any, **more: Any) -> Answer:
        return self.call("POST", path, body, **more)

    def put(self, path: str, body: Any, **more: Any) -> Answer:
        return self.call("PUT", path, body, **more)

    def patch(self, path: str, body: Any, type: str = MERGE_PATCH, **more: Any) -> Answer:  # noqa: A002
        return self.call("PATCH", path, body, type=type, **more)

    def apply(self, path: str, body: Any, *, manager: str = "tester", **more: Any) -> Answer:
        return self.call("PATCH", path, body, type=APPLY_PATCH, fieldManager=manager, **more)

    def delete(self, path: str, options: Any = None, **more: Any) -> Answer:
        return self.call("DELETE", path, options, **more)

    def watch(self, path: str, *, accept: str = JSON, **query: Any) -> Watch:
        """Open a watch. A refusal comes as an `Answer` inside `Watch.refused`."""
        connection = self.connect()
        query.setdefault("watch", "true")
        connection.request("GET", target(path, query), None, self._headers(None, JSON, accept, None))
        return Watch(connection, connection.getresponse())

    def connect(self) -> http.client.HTTPConnection:
        parts = urllib.parse.urlsplit(self.url)
        assert parts.hostname is not None
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.hostname, parts.port, timeout=DEADLINE_SECONDS)
        ssl_context = ssl.create_default_context(cafile=self.ca_file)
        ssl_context.check_hostname = False  # the certificate is for the address the server chose to announce
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=DEADLINE_SECONDS, context=ssl_context)

    def _headers(
        self, body: Any, content_type: str, accept: str, more: Mapping[str, str | None] | None
    ) -> dict[str, str]:
        sent: dict[str, str | None] = {"Authorization": f"Bearer {self.token}", "Accept": accept}
        if body is not None:
            sent["Content-Type"] = content_type
        sent.update(more or {})
        return {name: value for name, value in sent.items() if value is not None}


def encode(body: Any) -> bytes | None:
    return body if body is None or isinstance(body, bytes) else json.dumps(body).encode()


def target(path: str, query: Mapping[str, Any]) -> str:
    """Keywords become parameters: True is `true`, None is left out, a list is repeated."""
    pairs = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
    text = urllib.parse.urlencode({name: value for name, value in pairs.items() if value is not None}, doseq=True)
    return f"{path}?{text}" if text else path


class Watch:
    """Events of an open watch, one JSON document per line. Use it in a `with`."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self.connection = connection
        self.response = response
        self.status = response.status
        self.headers = response.headers

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        # Shut the socket first: closing a response reads what is left, and a watch has no end.
        if self.connection.sock is not None:
            with contextlib.suppress(OSError):
                self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.response.close()
        self.connection.close()

    def refused(self) -> Answer:
        return Answer(self.response.status, self.response.headers, self.response.read())

    def __iter__(self) -> Iterator[Obj]:
        assert self.status == 200, self.refused()
        for line in self.response:
            yield json.loads(line)

    def take(self, count: int) -> list[Obj]:
        """The next `count` events, without bookmarks nobody asked the moment of."""
        found: list[Obj] = []
        for event in self:
            found.append(event)
            if len(found) == count:
                return found
        raise AssertionError(f"the watch ended after {len(found)} of {count} events: {found}")

    def until(self, arrived: Callable[[Obj], bool]) -> list[Obj]:
        """Events up to and including the first for which `arrived` is true."""
        found: list[Obj] = []
        for event in self:
            found.append(event)
            if arrived(event):
                return found
        raise AssertionError(f"the watch ended before the awaited event: {found}")


@dataclass(frozen=True)
class Space:
    """One namespace of a server; paths such as `pods/a/status` below it, groups such as `apps/v1` named."""

    api: Api
    name: str

    def own_words(self, refused: Obj, *, embedded: str) -> str:
        """The message, where each server has its own: exact for the embedded one, of a real one whatever it says."""
        message: str = refused["message"]
        return embedded if self.api.is_embedded else message

    def path(self, resource: str, group: str = "") -> str:
        root = f"/apis/{group}" if group else "/api/v1"
        return f"{root}/namespaces/{self.name}/{resource}"

    def get(self, resource: str, *, group: str = "", **more: Any) -> Answer:
        return self.api.get(self.path(resource, group), **more)

    def post(self, resource: str, body: Any, *, group: str = "", **more: Any) -> Answer:
        return self.api.post(self.path(resource, group), body, **more)

    def put(self, resource: str, body: Any, *, group: str = "", **more: Any) -> Answer:
        return self.api.put(self.path(resource, group), body, **more)

    def patch(self, resource: str, body: Any, type: str = MERGE_PATCH, *, group: str = "", **more: Any) -> Answer:  # noqa: A002
        return self.api.patch(self.path(resource, group), body, type, **more)

    def apply(self, resource: str, body: Any, *, group: str = "", **more: Any) -> Answer:
        return self.api.apply(self.path(resource, group), body, **more)

    def delete(self, resource: str, options: Any = None, *, group: str = "", **more: Any) -> Answer:
        return self.api.delete(self.path(resource, group), options, **more)

    def watch(self, resource: str, *, group: str = "", **more: Any) -> Watch:
        return self.api.watch(self.path(resource, group), **more)

    def wait_gone(self, resource: str, *, group: str = "") -> None:
        """Return when the object is no longer there, told by a watch and not by asking again and again."""
        plural, _, name = resource.rpartition("/")
        listed = self.get(plural, group=group, fieldSelector=f"metadata.name={name}").ok()
        if not listed["items"]:
            return
        version = listed["metadata"]["resourceVersion"]
        with self.watch(plural, group=group, fieldSelector=f"metadata.name={name}", resourceVersion=version) as watch:
            watch.until(lambda event: event["type"] == "DELETED")

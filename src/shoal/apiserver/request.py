"""One request as the rest of the server sees it: nothing is parsed before it is used."""

from __future__ import annotations

from shoal.apiserver import negotiation, query, request_body
from shoal.apiserver.negotiation import ResponseForm
from shoal.apiserver.query import Query
from shoal.apiserver.responses import Receive, Scope


class Request:
    __slots__ = ("headers", "method", "path", "query_string", "receive")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope.get("method", "GET")
        self.path: str = scope["path"]
        self.query_string: bytes = scope["query_string"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.receive = receive

    @property
    def query(self) -> Query:
        return query.read(self.query_string) if self.query_string else {}

    @property
    def user_agent(self) -> bytes:
        return self.headers.get(b"user-agent", b"")

    @property
    def content_type(self) -> bytes:
        return self.headers.get(b"content-type", b"")

    def form(self, *, streaming: bool = False) -> ResponseForm:
        """The response form the client requests; raises 406."""
        return negotiation.read(self.headers.get(b"accept", b""), streaming=streaming)

    async def body(self) -> bytes:
        return await request_body.read(self.receive)

    def wants_pretty(self) -> bool:
        wants: dict[str, list[str]] = self.query if b"pretty" in self.query_string else {}
        return negotiation.wants_pretty(wants, self.user_agent)

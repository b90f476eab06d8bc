"""A way to an API server, and the credentials for it.

What never changes (a token written in the kubeconfig, a certificate) is stored in the `ConnectionConfig`. What does
change is supplied by `Credentials`: cached as long as it is valid, and fetched again when it has expired or was
rejected. Fetching may read a file or run a program, so it may block; a client with a loop calls it in a thread.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class ConnectionConfigError(ConnectionError):
    """There is no way to an API server; the message states what is wrong, where, and what would be right."""


@dataclass(frozen=True, slots=True)
class RequestCredentials:
    """What a request carries besides what every request does; `ssl_context` replaces the connection's own."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # not in the repr: they hold the token
    ssl_context: ssl.SSLContext | None = None


class Credentials(Protocol):
    def cached(self) -> RequestCredentials | None:
        """What is good now, without waiting; None where it has to be fetched."""
        ...

    def fetch(self) -> RequestCredentials:
        """Fetch it again, even if some is at hand. May block; raises ConnectionConfigError if none can be obtained."""
        ...


class StaticCredentials:
    """Credentials that are all in the connection's own headers and certificate."""

    def cached(self) -> RequestCredentials:
        return _NO_CREDENTIALS

    def fetch(self) -> RequestCredentials:
        return _NO_CREDENTIALS


_NO_CREDENTIALS = RequestCredentials()
STATIC_CREDENTIALS = StaticCredentials()


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """The server's address, the credentials sent, and how it is verified. `ssl_context` is None for plain HTTP."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ssl_context: ssl.SSLContext | None = None
    namespace: str = "default"
    credentials: Credentials = field(default=STATIC_CREDENTIALS, compare=False)
    proxy: str = field(default="", repr=False)  # may hold a password
    server_name: str = ""  # the name to look for in the server's certificate, where it is not the address
    compression: bool = field(default=False, compare=False)  # long answers, which is worth it over slow lines only
    user_description: str = field(default="", compare=False)  # for messages: the user and the file that names it
    name: str = field(default="", compare=False)  # the context, for messages
    certificate: bytes = field(default=b"", compare=False, repr=False)  # shown to the server, where that is one
    files: tuple[Path, ...] = field(default=(), compare=False)  # that hold the credentials

    def request_credentials(self) -> RequestCredentials:
        """Headers and trust for a request made now. May block, see `Credentials.fetch`."""
        return self.with_connection_defaults(self.credentials.cached() or self.credentials.fetch())

    def with_connection_defaults(self, request_credentials: RequestCredentials) -> RequestCredentials:
        return RequestCredentials(
            {**self.headers, **request_credentials.headers}, request_credentials.ssl_context or self.ssl_context
        )

"""A way to an API server, and what is shown there to be let in.

What never changes (a token written in the kubeconfig, a certificate) is part of the `Connection`. What does change
comes from `Credentials`: at hand as long as it is good, and fetched anew when it has run out or was not accepted.
Fetching may read a file or run a program, so it may block; a client with a loop calls it in a thread.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class NoConnection(ConnectionError):
    """There is no way to an API server; the message says what is wrong, where, and what would be right."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a request carries besides what every request does; `trust` stands in for the connection's own."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # a token is nobody's business
    trust: ssl.SSLContext | None = None


class Credentials(Protocol):
    def at_hand(self) -> Shown | None:
        """What is good now, without waiting; None where it has to be fetched."""
        ...

    def fetch(self) -> Shown:
        """Fetch it anew, even if some is at hand. May block; raises NoConnection where there is none to be had."""
        ...


class Fixed:
    """Credentials that are all in the connection's own headers and certificate."""

    def at_hand(self) -> Shown:
        return _NOTHING

    def fetch(self) -> Shown:
        return _NOTHING


_NOTHING = Shown()
FIXED = Fixed()


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the server is, what to show it, and how to know it. `trust` is None for plain HTTP."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    trust: ssl.SSLContext | None = None
    namespace: str = "default"
    credentials: Credentials = field(default=FIXED, compare=False)
    proxy: str = field(default="", repr=False)  # may hold a password
    server_name: str = ""  # the name to look for in the server's certificate, where it is not the address
    compresses: bool = field(default=False, compare=False)  # long answers, which is worth it over slow lines only
    who: str = field(default="", compare=False)  # for sentences: the user and the file that names it
    name: str = field(default="", compare=False)  # the context, for sentences
    certificate: bytes = field(default=b"", compare=False, repr=False)  # shown to the server, where that is one
    files: tuple[Path, ...] = field(default=(), compare=False)  # that hold the credentials

    def shown(self) -> Shown:
        """Headers and trust for a request made now. May block, see `Credentials.fetch`."""
        return self.completed(self.credentials.at_hand() or self.credentials.fetch())

    def completed(self, shown: Shown) -> Shown:
        return Shown({**self.headers, **shown.headers}, shown.trust or self.trust)

"""How many connections the network process holds open, per pod and in all.

One pod cannot take all descriptors: what is over its limit is reset at once, while other pods go on. The limit of all
together follows from the descriptors this process may have.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from shoal.node.sandbox.fault_log import FaultLog, fault_of
from shoal.node.sandbox.relay import abort

CONNECTIONS_PER_POD = 1024
_MAX_CONNECTIONS = 16384
_DESCRIPTORS_PER_CONNECTION = 2  # the pod's side and the other
_OTHER_DESCRIPTORS = 512  # listening sockets, agents, and some to spare

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class LimitExceeded(Exception):
    """One more connection would be over a limit."""


def raise_descriptor_limit() -> None:
    """As many descriptors as this process may have at all."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def max_connections() -> int:
    """Of all pods together."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MAX_CONNECTIONS
    return min(max(soft - _OTHER_DESCRIPTORS, soft // 2) // _DESCRIPTORS_PER_CONNECTION, _MAX_CONNECTIONS)


class ConnectionLimits:
    """Counts the connections that are open, by the address they come from."""

    def __init__(self, faults: FaultLog, *, total: int, per_source: int | None) -> None:
        self._faults = faults
        self._total = total
        self._per_source = per_source  # None: addresses do not identify pods (the machine's own network)
        self._open: Counter[str] = Counter()

    @contextmanager
    def connection(self, source: str) -> Iterator[None]:
        """For as long as a connection is open; LimitExceeded where it may not be."""
        if self._open.total() >= self._total:
            self._faults.note(f"all pods together have {self._total} connections open; more are reset")
            raise LimitExceeded
        if self._per_source is not None and self._open[source] >= self._per_source:
            self._faults.note(f"the pod {source} has {self._per_source} connections open; more are reset")
            raise LimitExceeded
        self._open[source] += 1
        try:
            yield
        finally:
            self._open[source] -= 1
            if not self._open[source]:
                del self._open[source]

    def limited(self, handle: Handler) -> Handler:
        """`handle` for each connection within the limits; whatever it fails with is one line and a reset."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peer = writer.get_extra_info("peername")
            try:
                with self.connection(peer[0] if peer else ""):
                    await handle(reader, writer)
            except LimitExceeded:
                abort((reader, writer))
            except Exception as error:
                self._faults.note(fault_of("a connection of a pod ended", error))
                abort((reader, writer))

        return serve

"""Addresses for pods: each node allocates from its own share of the cluster's pod range.

Pure. The range is a /16 (10.77.0.0/16, or 127.77.0.0/16 where pods share the machine's network); node number n has the
/24 with third octet n + 1, and 0 is left to the bridge. Addresses are given in turn rather than the lowest first, so
that a name which still points at a pod that just ended does not reach another.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from functools import lru_cache

from shoal.kube.messages import Message
from shoal.node.messages import MessageError

ISOLATED_RANGE = "10.77.0.0/16"
LOOPBACK_RANGE = "127.77.0.0/16"
MAX_NODES = 254


class NoAddressLeft(MessageError):
    """The node's share of the pod range is used up."""


def node_range(pod_range: str, node_index: int) -> ipaddress.IPv4Network:
    if not 0 <= node_index < MAX_NODES:
        raise ValueError(f"node number {node_index} has no part of the pod range; at most {MAX_NODES} nodes fit")
    whole = ipaddress.IPv4Network(pod_range)
    return ipaddress.IPv4Network((int(whole.network_address) + ((node_index + 1) << 8), 24))


@lru_cache(maxsize=MAX_NODES)
def _hosts(part: ipaddress.IPv4Network) -> tuple[str, ...]:
    return tuple(str(address) for address in part.hosts())


def next_address(part: ipaddress.IPv4Network, used: Collection[str], after: str = "") -> str:
    """The next free address of the range behind `after`, wrapping around."""
    hosts = _hosts(part)
    start = hosts.index(after) + 1 if after in hosts else 0
    for number in range(start, start + len(hosts)):
        if (address := hosts[number % len(hosts)]) not in used:
            return address
    raise NoAddressLeft(Message("Rejected.Addresses", {"count": len(hosts), "range": str(part)}))

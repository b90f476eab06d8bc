"""torch's etcd rendezvous with deregistration: a member that leaves deletes its key.

Members of a group keep a key alive in etcd. In torch's own rendezvous a member that leaves only stops renewing it; the
others detect that when the key expires, ten seconds later, and then wait thirty more for new members. Here a member
deletes its key when it leaves the group, to join the next one or for good. The other members check the keys in each
monitor interval of torchrun and join the next group together, even if their workers hang in a collective with a lost
peer. The expiry remains for lost machines.

"Last call" is how long a group that could start waits for more members. The first group of a job waits long: all
workers are starting, and the call ends when the last one has joined. Later groups consist of survivors, which detect
the change within a monitor interval, and of new members, which have registered before.
"""

from __future__ import annotations

import contextlib
from typing import Any

import etcd
from torch.distributed.elastic.rendezvous import RendezvousInfo, RendezvousParameters
from torch.distributed.elastic.rendezvous.etcd_rendezvous import EtcdRendezvous, EtcdRendezvousHandler
from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint

from torchelastic.distributed.flags import BACKEND
from torchelastic.stopping import Stopping

FIRST_CALL_SECONDS = 30
LAST_CALL_SECONDS = 2
JOIN_SECONDS = 600
FIRST_VERSION = "1"


class PromptRendezvous(EtcdRendezvous):
    """torch's rendezvous; `version` is the group of this member, `key` the key it keeps alive."""

    def __init__(self, stopping: Stopping, *, first_call_seconds: int, last_call_seconds: int, **rest: Any) -> None:
        self.stopping = stopping
        self.version = ""
        self.key = ""
        self._call_seconds = (first_call_seconds, last_call_seconds)
        super().__init__(last_call_timeout=last_call_seconds, **rest)

    def rendezvous_barrier(self) -> tuple[str, int, int]:
        self.leave()
        version, rank, world = super().rendezvous_barrier()
        self.version = version
        return version, rank, world

    def init_phase(self) -> tuple[str, int, int]:
        self.stopping.check()
        return super().init_phase()  # type: ignore[no-any-return]

    def join_phase(self, expected_version: str) -> tuple[str, int, int]:
        first, later = self._call_seconds
        self._last_call_timeout = first if expected_version == FIRST_VERSION else later
        return super().join_phase(expected_version)  # type: ignore[no-any-return]

    def confirm_membership(self, expected_version: str, this_rank: int) -> Any:
        self.key = self.get_path(f"/rdzv/v_{expected_version}/rank_{this_rank}")
        return super().confirm_membership(expected_version, this_rank)

    def create_path_if_not_exists(self, full_path: str, ttl: int | None = None) -> None:  # noqa: ARG002 - torch's
        # No directory expires here. torch sets a TTL of two hours on the job's and intends to renew it, but python-etcd
        # cannot renew a directory, and a longer training would lose its rendezvous. This etcd is deleted with its job.
        super().create_path_if_not_exists(full_path)

    def setup_lease_renewal(self, full_path: str, ttl: int) -> Any:
        return None if full_path == self.get_path("") else super().setup_lease_renewal(full_path, ttl)

    def leave(self) -> None:
        """Deregister this member from the group. Idempotent."""
        if not self.key:
            return
        if self._lease_this_rank_stop is not None:
            self._lease_this_rank_stop.set()
        with contextlib.suppress(etcd.EtcdException):  # the key is already deleted, or etcd is not reachable
            self.client.delete(self.key)
        self.key = self.version = ""

    def changes(self) -> int:
        """The number of reasons for a new rendezvous: new members, lost members, or a next group being formed."""
        try:
            _, state = self.get_rdzv_state()
            if state["status"] == "closed":
                return 0  # the job is complete; running workers may finish
            if state["status"] != "final" or state["version"] != self.version:
                return 1
            return int(state["num_workers_waiting"]) + len(set(state["keep_alives"]) - self._alive())
        except etcd.EtcdKeyNotFound:
            return 1

    def _alive(self) -> set[str]:
        return {child.key for child in self.client.get(self.get_path(f"/rdzv/v_{self.version}")).children}


class PromptHandler(EtcdRendezvousHandler):
    """The rendezvous handler of torchrun's agent."""

    def __init__(self, rendezvous: PromptRendezvous, local_addr: str | None) -> None:
        super().__init__(rendezvous, local_addr)
        self.rendezvous = rendezvous
        self.has_met = False

    def get_backend(self) -> str:
        return BACKEND

    def next_rendezvous(self) -> RendezvousInfo:
        info = super().next_rendezvous()
        self.has_met = True
        return info

    def num_nodes_waiting(self) -> int:
        # The agent only checks this value; above zero it stops its workers and joins a new rendezvous.
        self.rendezvous.stopping.check()
        return self.rendezvous.changes()


def create(params: RendezvousParameters, stopping: Stopping) -> PromptHandler:
    """Like torch's own creator, with the same settings in --rdzv-conf and additionally `first_call_timeout`."""
    host, port = parse_rendezvous_endpoint(params.endpoint, default_port=2379)
    cert = params.get("cert")
    client = etcd.Client(
        host,
        port,
        protocol=params.get("protocol", "http"),
        cert=(cert, params.get("key")) if cert and params.get("key") else cert,
        ca_cert=params.get("cacert"),
        allow_reconnect=True,
    )
    rendezvous = PromptRendezvous(
        stopping,
        client=client,
        prefix=params.get("etcd_prefix", "/torchelastic/p2p"),
        run_id=params.run_id,
        num_min_workers=params.min_nodes,
        num_max_workers=params.max_nodes,
        timeout=params.get_as_int("timeout", JOIN_SECONDS),
        first_call_seconds=params.get_as_int("first_call_timeout", FIRST_CALL_SECONDS),
        last_call_seconds=params.get_as_int("last_call_timeout", LAST_CALL_SECONDS),
    )
    return PromptHandler(rendezvous, params.local_addr)

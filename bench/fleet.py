"""The cluster that `kubernetes` measures on, each part a process of its own: a real control plane, fifty hollow nodes
and the operator, whose processor time, memory and requests are therefore its own.

The scheduler and the controllers may ask as often as they like: their usual limits (50 and 20 requests a second) would
be all that is measured. Nodes are hollow (`kit.hollow_nodes`): pods run nothing, for as long as they say.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import urllib.request
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypedDict

import psutil
from prometheus_client.parser import text_string_to_metric_families

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from kit import control_plane
from kit.audited_control_plane import OperatedKeeper
from kit.control_plane import ControlPlane
from kit.hollow_nodes import HollowNodes
from kit.operator_namespace import until
from kit.operator_process import OperatorProcess, operator
from shoal.cluster.informer import Change, Informer
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client
from shoal.cluster.kubernetes.field_decoders import WithoutManagedFields
from shoal.dialects.framework import DIALECT
from shoal.kube.kinds import NAMESPACE, POD, SERVICE_ACCOUNT, Kind
from shoal.kube.objects import Obj

NODES = 50
JOBS, BARE = "jobs", "bare"
FRAMEWORK = DIALECT.kind
PROGRAMS = ("kube-controller-manager", "kube-scheduler")
UNLIMITED = ("--kube-api-qps=10000", "--kube-api-burst=10000")
WRITES = ("create", "patch", "delete")


class QuickKeeper(OperatedKeeper):
    def more_flags(self, program: str) -> Sequence[str]:
        if program == "kube-controller-manager":
            self.define()
            return (*UNLIMITED, "--concurrent-gc-syncs=20")  # as many as it has by default
        return UNLIMITED if program == "kube-scheduler" else ()


@contextmanager
def plane(folder: Path) -> Iterator[ControlPlane]:
    with control_plane.shared(folder, programs=PROGRAMS, keeper=__file__) as started:
        yield started


@contextmanager
def hollow_nodes(kubeconfig: str) -> Iterator[psutil.Process]:
    command = [sys.executable, __file__, "hollow", kubeconfig]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=control_plane.die_with_parent
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError("the hollow nodes did not start")
        yield psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait()


async def be_hollow(kubeconfig: str) -> None:
    async with (
        open_client(from_kubeconfig(Path(kubeconfig)), shapes={POD: WithoutManagedFields}) as cluster,
        HollowNodes(cluster, NODES, places=False).running(),
    ):
        print("ready", flush=True)
        await asyncio.Event().wait()


class Servers:
    """The programs of the control plane, and what they cost."""

    def __init__(self, folder: Path) -> None:
        names = ("etcd", "kube-apiserver", *PROGRAMS)
        found = [each for each in psutil.process_iter(["name", "cmdline"]) if each.info["name"] in names]
        self._processes = [each for each in found if any(str(folder) in word for word in each.info["cmdline"] or ())]

    def processor_seconds(self) -> float:
        return sum(times.user + times.system for times in (each.cpu_times() for each in self._processes))


# --- the operator --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """What the operator and the control plane have used so far, or between two moments."""

    processor_seconds: float
    servers_seconds: float
    requests: Counter[tuple[str, str]]  # by verb and resource, without those for its Lease

    def since(self, before: Cost) -> Cost:
        return Cost(
            self.processor_seconds - before.processor_seconds,
            self.servers_seconds - before.servers_seconds,
            self.requests - before.requests,
        )

    def asked(self, *verbs: str) -> int:
        return sum(count for (verb, _), count in self.requests.items() if verb in verbs)

    @property
    def writes(self) -> int:
        return self.asked(*WRITES)


class Operated:
    def __init__(self, running: OperatorProcess, page: str) -> None:
        self.process = psutil.Process(running.process.pid)
        self._page = page

    async def cost(self, servers_seconds: float = 0.0) -> Cost:
        text = await asyncio.to_thread(lambda: urllib.request.urlopen(self._page, timeout=60).read().decode())
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        requests = Counter(
            {
                (sample.labels["verb"], sample.labels["resource"]): int(sample.value)
                for sample in samples
                if sample.name == "shoal_requests_total" and sample.labels["resource"] != "leases"
            }
        )
        times = self.process.cpu_times()
        return Cost(times.user + times.system, servers_seconds, requests)

    @property
    def memory_megabytes(self) -> float:
        return float(self.process.memory_info().rss / 1e6)


@asynccontextmanager
async def operated(kubeconfig: str) -> AsyncIterator[Operated]:
    """`shoal operator` as people start it, for one namespace, so that what runs beside it is not its business."""
    async with operator(kubeconfig, "--namespace", JOBS, "--dialects", "framework") as running:
        await running.says("leading")
        yield Operated(running, f"http://127.0.0.1:{await running.port('metrics')}/metrics")


# --- looking on ----------------------------------------------------------------------------------------------------


class _Named(TypedDict, total=False):
    name: str
    namespace: str
    uid: str
    resourceVersion: str


class _State(TypedDict, total=False):
    phase: str
    state: str


class Glance(TypedDict, total=False):
    """Whoever looks on shall not be what is measured."""

    metadata: _Named
    status: _State


class Following(ABC):
    """Whoever looks on at the objects of a kind, and can wait for what they come to."""

    def __init__(self, cluster: KubernetesCluster, kind: Kind, namespace: str) -> None:
        self._news = asyncio.Event()
        self._copy = Informer(cluster, kind, namespace, on_change=self._changed)

    @asynccontextmanager
    async def following(self) -> AsyncIterator[Self]:
        task = asyncio.create_task(self._copy.run())
        try:
            await self._copy.synced.wait()
            yield self
        finally:
            task.cancel()

    async def until(self, holds: Callable[[Self], bool]) -> None:
        while not holds(self):
            self._news.clear()
            await self._news.wait()

    @abstractmethod
    def _changed(self, change: Change) -> None: ...


class Tally(Following):
    """How many objects of a kind there are in each state."""

    def __init__(self, cluster: KubernetesCluster, kind: Kind, namespace: str) -> None:
        super().__init__(cluster, kind, namespace)
        self.states: Counter[str] = Counter()
        self._field = "phase" if kind == POD else "state"

    @property
    def total(self) -> int:
        return self.states.total()

    def _changed(self, change: Change) -> None:
        for obj, step in ((change.old, -1), (change.new, 1)):
            if obj is not None:
                self.states[self._state(obj)] += step
        self._news.set()

    def _state(self, obj: Obj) -> str:
        return str((obj.get("status") or {}).get(self._field) or "")


def looking_on(kubeconfig: str) -> Any:
    return open_client(from_kubeconfig(Path(kubeconfig)), shapes={POD: Glance, FRAMEWORK: Glance})


async def make_namespaces(cluster: KubernetesCluster) -> None:
    for name in (JOBS, BARE):
        await cluster.create(NAMESPACE, {"metadata": {"name": name}})
        # No pod is accepted before.
        await until(cluster, SERVICE_ACCOUNT, "default", name, lambda account: account is not None)


if __name__ == "__main__":
    if sys.argv[1] == "hollow":
        asyncio.run(be_hollow(sys.argv[2]))
    else:
        control_plane.keep(QuickKeeper, Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])

"""A gang handed to Kueue (29, on the simulated cluster): each size is a Workload of its own, one takes over from the
other, and quota is taken back; whatever the operator loses meanwhile, one Workload is left, and none at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Self

from kit.fault_matrix import Worlds
from kit.fault_matrix import scenario as any_scenario
from kit.pod_behavior import runs
from kit.scenario import NAMESPACE
from kit.third_party_gang_crds import defined
from kit.third_party_schedulers import Admitter, Copies, conditions
from kit.volcano_jobs import policy, task, vcjob
from kit.volcano_world import SimulatedVolcano
from shoal.cluster.fault_injection import Faults
from shoal.dialects.gang_backends import backend, kueue
from shoal.dialects.gang_backends.delegate import with_backend
from shoal.dialects.volcano import DIALECT
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, POD
from shoal.kube.objects import Obj, annotations_of, uid_of

KUEUE = backend("kueue")
WORKLOAD, FLAVOR = kueue.workload("v1beta2"), kueue.flavor("v1beta2")


class SimulatedKueue(SimulatedVolcano):
    """Kueue is never disturbed, because it is not the one under test."""

    dialect = with_backend(DIALECT, KUEUE)

    def __init__(
        self, seed: int = 0, *, plan: Callable[[int], Faults] | None = None, config: Obj | None = None
    ) -> None:
        super().__init__(seed, plan=plan, config=config)
        for kind in (WORKLOAD, FLAVOR):
            self.cluster.machinery.create(CUSTOM_RESOURCE_DEFINITION, "", defined(kind))
        self.cluster.machinery.settle()
        self._tables[WORKLOAD.resource] = self.groups
        copies = Copies(self.gate, NAMESPACE, WORKLOAD, clock=self.cluster.clock)
        self.copies, self.admitter = copies, Admitter(self.gate, KUEUE, copies)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self.copies.__aenter__()
        self.admitter.set_open(True)
        self._tasks.append(asyncio.create_task(self.admitter.run()))
        return self

    async def __aexit__(self, *why: Any) -> None:
        await self.copies.__aexit__(*why)
        await super().__aexit__(*why)

    async def scale(self, trainers: int) -> None:
        changes = {"/spec/tasks/1/replicas": trainers, "/spec/tasks/1/minAvailable": trainers}
        changes["/spec/minAvailable"] = 2 + trainers
        await self.patch("ctr", *({"op": "replace", "path": p, "value": value} for p, value in changes.items()))

    def sizes(self) -> list[list[int]]:
        """Of the Workloads there are."""
        return [[pods["count"] for pods in group["spec"]["podSets"]] for group in self.groups.values()]


def scenario(thorough: bool) -> Any:
    worlds = Worlds(SimulatedKueue, kubernetes=None, watched=(DIALECT.kind, POD, WORKLOAD))
    return any_scenario(real=False, worlds=worlds, thorough=thorough)


def ctr() -> Obj:
    lost = [policy("PodEvicted", "RestartJob")]
    return vcjob("ctr", task("pserver", 2, fate=runs()), task("trainer", 2, fate=runs()), minAvailable=4, policies=lost)


@scenario(thorough=False)
async def test_29_sizes_take_over_from_each_other(world: SimulatedKueue) -> None:
    await world.submit(ctr())
    await world.up("ctr", 4)
    first = world.uids_of("ctr")
    await world.scale(3)
    await world.up("ctr", 5)
    await world.until(lambda: world.sizes() == [[2, 3]])
    await world.scale(2)
    await world.until(lambda: world.sizes() == [[2, 2]] and len(world.pods_of("ctr")) == 4)
    assert world.uids_of("ctr") == first
    await world.command("ctr", "CompleteJob")
    await world.in_phase("ctr", "Completed")
    await world.rest(10)
    assert (world.sizes(), world.status("ctr").get("retryCount", 0)) == ([], 0)


@scenario(thorough=False)
async def test_29_a_size_without_quota_touches_nobody(world: SimulatedKueue) -> None:
    await world.submit(ctr())
    await world.up("ctr", 4)
    first = world.uids_of("ctr")
    world.admitter.set_open(False)
    await world.scale(3)
    await world.until(lambda: sorted(world.sizes()) == [[2, 2], [2, 3]])
    await world.rest(30)
    assert (world.uids_of("ctr"), sorted(world.sizes())) == (first, [[2, 2], [2, 3]])
    named = [annotations_of(group).get(kueue.TAKES_OVER, "").rpartition("/")[2] for group in world.groups.values()]
    assert set(named) - {""} <= set(world.groups)
    await world.command("ctr", "TerminateJob")
    await world.in_phase("ctr", "Terminated")
    await world.rest(10)
    assert world.sizes() == []


@scenario(thorough=False)
async def test_29_quota_that_is_taken_back_ends_the_run(world: SimulatedKueue) -> None:
    await world.submit(ctr())
    await world.up("ctr", 4)
    first = set(world.uids_of("ctr").values())
    (group,) = world.copies.of(WORKLOAD)
    await world.admitter.tell(group, conditions(Admitted=True, Evicted=True))
    await world.until(lambda: uid_of(group) not in {uid_of(each) for each in world.groups.values()})
    await world.up("ctr", 4)
    assert not first & set(world.uids_of("ctr").values())
    assert (world.status("ctr")["version"], world.status("ctr").get("retryCount", 0)) == (1, 0)

"""A job somebody waits for on the simulated cluster, and what may keep a person from hearing of it."""

from __future__ import annotations

from typing import Any

from kit.framework_notation import fw, role
from kit.pod_behavior import runs
from kit.scenario import FRAMEWORK, NAMESPACE, SimulatedWorld
from shoal.cluster.client import PatchType
from shoal.kube.errors import ApiError, forbidden
from shoal.kube.kinds import Kind


async def running(world: SimulatedWorld) -> None:
    """The Framework `one`, whose only task runs."""
    await world.submit(fw("one", role("worker", fate=runs())))
    await world.running("one", 1)


async def spoil(world: SimulatedWorld) -> None:
    """Somebody writes a status that no controller would write."""
    await world.kill_operator()
    world.look_away()
    await world.user.patch(
        FRAMEWORK, "one", NAMESPACE, subresource="status", patch_type=PatchType.MERGE,
        patch={"status": {"attemptStatus": {"taskRoleStatuses": None, "taskRoleStatusesCompressed": "AAAA"}}},
    )  # fmt: skip


class Unwatchable:
    """A cluster that may refuse to be watched."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.world = world
        self._refused: dict[Kind, ApiError] = {}

    def refuses(self, kind: Kind) -> ApiError:
        return self._refused.setdefault(kind, forbidden(kind, "", "you cannot watch it"))

    def watch(self, kind: Kind, *place: Any, **how: Any) -> Any:
        if kind in self._refused:
            raise self._refused[kind]
        return self.world.user.watch(kind, *place, **how)

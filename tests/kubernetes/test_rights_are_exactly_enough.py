"""The rights that `shoal install` grants: the operator uses every one of them, and misses each that is taken away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy

import pytest
from prometheus_client import CollectorRegistry

from kit import audited_control_plane
from kit.eventually import answer_becomes
from kit.framework_notation import fw, role
from kit.hollow_nodes import HollowNodes
from kit.operator_namespace import FRAMEWORK, Ground, until
from kit.operator_process import rights_without, user_of
from kit.pod_behavior import exits, runs
from kit.recording_cluster import Call, Noting, first
from shoal.cluster.client import PatchType
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import open_client
from shoal.controller_runtime.identity import ProcessIdentity
from shoal.controller_runtime.metrics import Metrics
from shoal.controller_runtime.rights import Permission, lease_permissions
from shoal.dialects.framework import DIALECT, settings
from shoal.install.manifests import render
from shoal.kube.kinds import EVENT, POD, Kind
from shoal.kube.objects import Obj
from shoal.operator.manager import Operator, OperatorConfig
from shoal.operator.rbac import job_rights

pytestmark = pytest.mark.kubernetes

RIGHTS = [*job_rights([DIALECT]), *lease_permissions(["shoal-0"])]
ROLES = {
    kind: Kind("rbac.authorization.k8s.io", "v1", kind, plural, kind == "Role")
    for kind, plural in (("Role", "roles"), ("ClusterRole", "clusterroles"))
}


def call_of(right: Permission) -> Call:
    return right.verb, right.resource


class Play:
    """An operator that does everything it ever does: runs, scales, repairs, complains twice, and forgets jobs."""

    def __init__(self, ground: Ground, cluster: Noting) -> None:
        self.ground = ground
        # The fate of the first pod and of the first ledger stays unknown: both have to be looked at.
        cluster.loses = {("create", "pods"), ("patch", "frameworks/status")}
        duties = OperatorConfig(
            {"framework": DIALECT}, ground.options.name, ground.jobs,
            settings={"framework": settings({"frameworkCompletedRetainSec": 0})},
        )  # fmt: skip
        self.operator = Operator(
            cluster,
            duties,
            ProcessIdentity("player", ground.own),
            metrics=Metrics(CollectorRegistry()),
            history=lambda _: None,
        )  # type: ignore[arg-type]

    async def to_the_end(self) -> None:
        async with HollowNodes(self.ground.admin, namespace=self.ground.jobs).running():
            await first(self.operator.run(), self.everything())

    async def everything(self) -> None:
        await asyncio.gather(
            self.completes_and_is_forgotten(),
            self.is_scaled_down(),
            self.is_stopped_before_it_starts(),
            self.asks_for_impossible_pods(),
            self.is_complained_about_twice(),
        )

    async def completes_and_is_forgotten(self) -> None:
        job = await self.ground.submit(fw("ends", role(number=1, fate=exits(0, after=0.05))))
        await self.ground.becomes(job, lambda found: found is None)

    async def is_scaled_down(self) -> None:
        job = await self.ground.submit(fw("shrinks", role(number=2, fate=runs())))
        await until(self.ground.admin, POD, "shrinks-worker-1", self.ground.jobs, _runs)
        fewer = [{"op": "replace", "path": "/spec/taskRoles/0/taskNumber", "value": 1}]
        await self.ground.admin.patch(
            FRAMEWORK, job["metadata"]["name"], self.ground.jobs, patch=fewer, patch_type=PatchType.JSON
        )
        await until(self.ground.admin, POD, "shrinks-worker-1", self.ground.jobs, lambda pod: pod is None)

    async def is_stopped_before_it_starts(self) -> None:
        """A live look has to show that there is nothing of it."""
        job = await self.ground.submit(fw("stops", role(fate=runs()), start="Stop"))
        await self.ground.becomes(job, lambda found: found is None)

    async def asks_for_impossible_pods(self) -> None:
        """Its attempt ends without a pod ever being seen, and a live look has to show that there is none."""
        impossible = role()
        impossible["task"]["pod"]["spec"]["containers"][0]["name"] = "No Name"
        job = await self.ground.submit(fw("refused", impossible))
        await self.ground.becomes(job, lambda found: found is None)

    async def is_complained_about_twice(self) -> None:
        """A definition takes fields of a pod that it does not know as they are; the operator looks at their types."""
        wrong = fw("wrong", role())
        wrong["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["nodeSelector"] = "none"
        await self.ground.submit(wrong)
        event = await self._complaint(count=1)
        await self.ground.admin.patch(
            FRAMEWORK, "wrong", self.ground.jobs, patch={"metadata": {"labels": {"again": "1"}}}
        )
        await until(self.ground.admin, EVENT, event, self.ground.jobs, lambda found: (found or {}).get("count") == 2)

    async def _complaint(self, *, count: int) -> str:
        chosen = "involvedObject.name=wrong,reason=InvalidManifest"
        async for told in self.ground.admin.watch(EVENT, self.ground.jobs, fields=chosen, initial_events=True):
            if told.object.get("count") == count:
                return str(told.object["metadata"]["name"])
        raise AssertionError("the watch ended")


def _runs(pod: Obj | None) -> bool:
    return ((pod or {}).get("status") or {}).get("phase") == "Running"


@asynccontextmanager
async def account(ground: Ground) -> AsyncIterator[Noting]:
    async with open_client(from_kubeconfig(ground.kubeconfig())) as cluster:
        yield Noting(cluster)


async def test_the_operator_uses_every_right_and_needs_no_other(ground: Ground) -> None:
    await ground.install()
    async with account(ground) as cluster:
        await Play(ground, cluster).to_the_end()
    needed = {call_of(right) for right in RIGHTS}
    watches = {call for call in needed if call[0] == "watch"}

    async def recorded() -> list[Obj]:
        return audited_control_plane.requests(ground.plane, user_of(ground.options.name, ground.own))

    # A watch is recorded when the server has noticed that nobody listens any more.
    asked = await answer_becomes(recorded, lambda asked: watches <= _used(asked))
    forbidden = [entry["requestURI"] for entry in asked if entry["responseStatus"]["code"] == 403]
    owned = {
        ("update", f"{plural}/finalizers") for plural in ("frameworks", "configmaps")
    }  # asked by the server itself
    assert (cluster.refused, forbidden) == ([], [])
    assert _used(asked) | owned == needed


REVIEWS = ("selfsubjectaccessreviews",)


def _used(asked: list[Obj]) -> set[Call]:
    return {_call(entry) for entry in asked if "objectRef" in entry and entry["objectRef"]["resource"] not in REVIEWS}


def _call(entry: Obj) -> Call:
    target = entry["objectRef"]
    below = target.get("subresource")
    return entry["verb"], f"{target['resource']}/{below}" if below else target["resource"]


@pytest.mark.parametrize("right", RIGHTS, ids=str)
async def test_the_operator_misses_each_right_that_is_taken_away(ground: Ground, right: Permission) -> None:
    await ground.install()
    await take_away(ground, right)
    missed = asyncio.Event()
    async with account(ground) as cluster:
        cluster.on_refusal = lambda call: missed.set() if call == call_of(right) else None
        await first(Play(ground, cluster).to_the_end(), missed.wait())
        assert call_of(right) in [call for call, _ in cluster.refused]


async def take_away(ground: Ground, right: Permission) -> None:
    wanted = (right.group, right.resource, right.verb)
    objects = rights_without(render(ground.options), lambda *found: found == wanted)
    for obj in objects:
        if obj["kind"] in ROLES:
            kind, place = ROLES[obj["kind"]], obj["metadata"].get("namespace", "")
            await ground.admin.patch(kind, obj["metadata"]["name"], place, patch={"rules": deepcopy(obj["rules"])})
    await ground.is_denied(right)

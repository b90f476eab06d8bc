"""Two operators: the leader is paused past its Lease and resumed. It finds that it leads no more, and writes nothing.

Both have the same rights; the server's record tells them apart by the tokens they show.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from kit import audited_control_plane
from kit.framework_notation import fw, role
from kit.hollow_nodes import HollowNodes
from kit.operator_namespace import FRAMEWORK, Ground, until
from kit.operator_process import operator, user_of
from kit.pod_behavior import runs
from shoal.cluster.client import PatchType
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import open_client
from shoal.kube.kinds import POD, Kind
from shoal.kube.objects import Obj

pytestmark = pytest.mark.kubernetes

SELF_REVIEW = Kind("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", False)
CREDENTIAL = "authentication.kubernetes.io/credential-id"
READS = ("get", "list", "watch")


async def test_a_leader_that_was_paused_past_its_lease_writes_nothing_more(ground: Ground) -> None:
    await ground.install()
    first_file, second_file = kubeconfigs(ground)
    async with (
        HollowNodes(ground.admin, namespace=ground.jobs).running() as nodes,
        operator(first_file, *ground.flags, "--lease-duration", "3") as first,
    ):
        await first.says("leading")
        job = await ground.submit(fw("survives", role(number=2, fate=runs())))
        await ground.becomes(job, lambda found: running_tasks(found) == 2)  # and it is written down
        # The second waits for as long as the first wrote into the Lease. Its own is long: it must not lose it again.
        async with operator(second_file, *ground.flags, "--lease-duration", "60") as second:
            await second.says("prepared")
            first.signal(signal.SIGSTOP)
            await resize(ground, 4)  # the paused one will hear of it, late
            await second.says("leading")
            await until(ground.admin, POD, "survives-worker-3", ground.jobs, is_running)
            first.signal(signal.SIGCONT)
            await first.says("no longer leading")
            await resize(ground, 3)
            await until(ground.admin, POD, "survives-worker-3", ground.jobs, lambda pod: pod is None)
            await ground.admin.delete(FRAMEWORK, job["metadata"]["name"], ground.jobs)
            await until(ground.admin, POD, "survives-worker-0", ground.jobs, lambda pod: pod is None)
            assert (await first.stop(), await second.stop()) == (0, 0)
    mine, others = [await credential(file) for file in (first_file, second_file)]
    writes = [entry for entry in record(ground) if entry["verb"] not in READS and about_jobs(entry)]
    begins = next(index for index, entry in enumerate(writes) if shown(entry) == others)
    assert {shown(entry) for entry in writes[:begins]} == {mine}
    assert {shown(entry) for entry in writes[begins:]} == {others}
    created = [entry["objectRef"].get("name") for entry in writes if made_a_pod(entry)]
    assert sorted(created) == sorted(set(created))
    assert len(nodes.lived) == 4  # no pod ran twice


def kubeconfigs(ground: Ground) -> tuple[Path, Path]:
    first = ground.kubeconfig()
    second = first.with_name("second")
    first.rename(second)
    return ground.kubeconfig(), second


def is_running(pod: Obj | None) -> bool:
    return ((pod or {}).get("status") or {}).get("phase") == "Running"


def running_tasks(framework: Obj | None) -> int:
    attempt = ((framework or {}).get("status") or {}).get("attemptStatus") or {}
    tasks = [task for role in attempt.get("taskRoleStatuses") or () for task in role["taskStatuses"]]
    return sum(task["state"] == "AttemptRunning" for task in tasks)


async def resize(ground: Ground, number: int) -> None:
    patch = [{"op": "replace", "path": "/spec/taskRoles/0/taskNumber", "value": number}]
    await ground.admin.patch(FRAMEWORK, "survives", ground.jobs, patch=patch, patch_type=PatchType.JSON)


async def credential(kubeconfig: Path) -> str:
    async with open_client(from_kubeconfig(kubeconfig)) as cluster:
        told = await cluster.create(SELF_REVIEW, {"metadata": {}})
    return str(told["status"]["userInfo"]["extra"][CREDENTIAL][0])


def record(ground: Ground) -> list[dict[str, Any]]:
    return audited_control_plane.requests(ground.plane, user_of(ground.options.name, ground.own))


def shown(entry: dict[str, Any]) -> str:
    return str(entry["user"]["extra"][CREDENTIAL][0])


def about_jobs(entry: dict[str, Any]) -> bool:
    """Not the Lease itself, which everybody may try for, nor questions about oneself."""
    return entry.get("objectRef", {}).get("resource") in ("pods", "configmaps", "frameworks", "events")


def made_a_pod(entry: dict[str, Any]) -> bool:
    return (entry["verb"], entry["objectRef"]["resource"]) == ("create", "pods")

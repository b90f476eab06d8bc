"""Acceptance scenario 29 of gang scheduling: `shoal operator` hands the same job to each gang scheduler there is.

On a real control plane, with the rights that `shoal install` gives for that scheduler. The scheduler of Kubernetes
itself places its gangs for real; the others are played by what they write. What the operator made was recorded, looked
at and kept beside this file.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from kit import audited_control_plane, gang_control_plane
from kit.control_plane import ControlPlane
from kit.hollow_nodes import HollowNodes
from kit.operator_namespace import Ground
from kit.operator_process import OperatorProcess, operator, user_of
from kit.pod_behavior import runs
from kit.run_folder import folder_of_the_run, needs_a_control_plane
from kit.third_party_gang_crds import define
from kit.third_party_schedulers import FULL, Admitter, Copies, conditions
from kit.volcano_jobs import policy, task, vcjob
from shoal.cli.commands.describe import load_context
from shoal.cli.describe_page import describe_job
from shoal.cli.job_lookup import find_job
from shoal.cluster.client import PatchType
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client
from shoal.dialects.gang_backends import NAMES, backend, coscheduling, kueue
from shoal.dialects.gang_backends.backend import Backend
from shoal.dialects.gang_backends.delegate import with_backend
from shoal.dialects.volcano import DIALECT, settings
from shoal.engine.policies import GroupGate, Opens
from shoal.kube.conditions import is_true
from shoal.kube.kinds import NODE, POD, PRIORITY_CLASS
from shoal.kube.objects import Obj, annotations_of, is_terminating, name_of, uid_of

pytestmark = pytest.mark.kubernetes

RECORDED = Path(__file__).parent / "recorded_gangs"
JOB = DIALECT.kind
NATIVE = "v1alpha2"  # what the Kubernetes of these tests serves
PLAYED = ("shoal", "volcano", "coscheduling", "kueue")
PLACED_BY_TEST = ("shoal", "volcano", "coscheduling")  # the cluster's own scheduler leaves their pods alone
LOOSE = ("coscheduling", "none")  # one whose pods the test places as they come, and nobody
WAITING = {"coscheduling": "its pods wait for each other", "native": ""}


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    needs_a_control_plane()
    with gang_control_plane.shared(folder_of_the_run(tmp_path_factory, "gangs")) as found:
        yield found


@pytest.fixture
async def admin(plane: ControlPlane) -> AsyncIterator[KubernetesCluster]:
    async with open_client(from_kubeconfig(Path(plane.kubeconfig))) as cluster:
        yield cluster


@pytest.fixture
async def ground(plane: ControlPlane, admin: KubernetesCluster, tmp_path: Path) -> AsyncIterator[Ground]:
    await define(admin, kueue.workload("v1beta2"), kueue.flavor("v1beta2"), coscheduling.POD_GROUP)
    made = Ground(plane, admin, tmp_path, secrets.token_hex(4))
    await made.make()
    yield made
    await made.clear()


class Play:
    """One job on one ground, placed by one scheduler."""

    def __init__(self, ground: Ground, placer: Backend, copies: Copies, admitter: Admitter) -> None:
        self.ground = ground
        self.placer = placer
        self.copies = copies
        self.admitter = admitter
        self._digests: list[str] = []

    @property
    def node(self) -> str:
        return f"{self.ground.jobs}-0"

    def pods(self) -> dict[str, str]:
        """Names and phases of those that stay."""
        there = [pod for pod in self.copies.of(POD) if not is_terminating(pod)]
        return {name_of(pod): str((pod.get("status") or {}).get("phase") or "Pending") for pod in there}

    def groups(self) -> list[Obj]:
        if self.placer.kind is None:
            return []
        return [group for group in self.copies.of(self.placer.kind) if not is_terminating(group)]

    def job(self) -> Obj:
        return self.copies.of(JOB)[0]

    def phase(self) -> str:
        return str(((self.job().get("status") or {}).get("state") or {}).get("phase") or "")

    async def submit(self, **more: Any) -> Obj:
        """The 2+2 job of the story: servers that never end, trainers whose end completes the job."""
        here = {"nodeSelector": {"kubernetes.io/hostname": self.node}}
        job = vcjob(
            "ctr",
            task("pserver", 2, fate=runs(), requests={"cpu": "1"}, pod=here),
            task(
                "trainer",
                2,
                fate=runs(),
                requests={"cpu": "1"},
                pod=here,
                policies=[policy("TaskCompleted", "CompleteJob")],
            ),
            minAvailable=4,
            policies=[policy("PodEvicted", "RestartJob"), policy("PodFailed", "RestartJob")],
            **more,
        )
        made = await self.ground.admin.create(JOB, DIALECT.default(job), self.ground.jobs)
        await self.copies.until(lambda: bool(self.copies.of(JOB)))
        return made

    async def scale(self, trainers: int) -> None:
        changes: dict[str, Any] = {
            "/spec/tasks/1/replicas": trainers,
            "/spec/tasks/1/minAvailable": trainers,
            "/spec/minAvailable": 2 + trainers,
        }
        patch = [{"op": "replace", "path": path, "value": value} for path, value in changes.items()]
        await self.ground.admin.patch(JOB, "ctr", self.ground.jobs, patch=patch, patch_type=PatchType.JSON)

    async def all_run(self, trainers: int) -> None:
        names = [*(f"ctr-pserver-{n}" for n in range(2)), *(f"ctr-trainer-{n}" for n in range(trainers))]
        await self.copies.until(lambda: self.pods() == dict.fromkeys(names, "Running"))
        await self.copies.until(lambda: self.phase() == "Running")

    def is_told(self) -> bool:
        """Whether the gang's object, and no other, shows what the job asks for now."""
        if self.placer.kind is None or not self.placer.follows:
            return True
        job = with_backend(DIALECT, self.placer).to_job(self.job(), settings())
        assert job is not None
        (gate,) = [gate for gate in job.policies.gates if isinstance(gate, GroupGate)]
        shown = [annotations_of(group)["shoal.dev/setting"] for group in self.groups()]
        return shown == [plan.digest for plan in gate.groups]

    async def trainers_end(self) -> None:
        for name in [name for name in self.pods() if "trainer" in name]:
            await self.ground.admin.patch(
                POD, name, self.ground.jobs, patch={"status": {"phase": "Succeeded"}}, subresource="status"
            )

    async def describe(self) -> str:
        found = await find_job(self.ground.admin, "ctr", self.ground.jobs)
        return describe_job(found, await load_context(self.ground.admin, found))

    async def waits_for_room(self) -> None:
        """Not one pod runs before there is room for all, and the job says what it waits for."""
        await self.has_room(3)
        await self.submit()
        if self.placer.kind is not None:
            await self.copies.until(lambda: any(group.get("status") for group in self.groups()))
            (group,) = self.groups()
            why = WAITING.get(self.placer.name, FULL)
            assert f"  {group['kind']} {name_of(group)} waits: {why}" in await self.describe()
        if self.placer.opens_when is Opens.ADMITTED:
            assert self.pods() == {}
        assert not [pod for pod in self.copies.of(POD) if pod["spec"].get("nodeName")] or self.placer.name in LOOSE
        await self.has_room(100)

    async def has_room(self, cores: int) -> None:
        """For the schedulers that are played a door; for that of Kubernetes the node itself."""
        if self.placer.name in PLAYED:
            self.admitter.set_open(cores >= 4)
            return
        room = {"cpu": str(cores), "memory": "1Ti", "pods": "100"}
        status = {"capacity": room, "allocatable": room}
        await self.ground.admin.patch(NODE, self.node, patch={"status": status}, subresource="status")

    def picture(self) -> Obj:
        """The gang as it is told to its scheduler: the group, and what links a pod to it."""
        trainer = next(pod for pod in self.copies.of(POD) if name_of(pod) == "ctr-trainer-0")
        spec = trainer["spec"]
        link = {key: spec[key] for key in ("schedulerName", "schedulingGroup", "schedulingGates") if key in spec}
        meta = trainer["metadata"]
        labels = {key: value for key, value in meta.get("labels", {}).items() if _is_of_a_scheduler(key)}
        notes = {key: value for key, value in annotations_of(trainer).items() if _is_of_a_scheduler(key)}
        seen = {"groups": [_bare(group) for group in self.groups()], "pod": {**link, "labels": labels, "notes": notes}}
        self._shorten(seen["groups"])
        masked = json.dumps(seen).replace(uid_of(self.job()), "UID").replace(self.ground.jobs, "NAMESPACE")
        for number, digest in enumerate(self._digests):
            masked = masked.replace(digest, f"SETTING-{number}").replace(digest[:8], f"SETTING-{number}")
        made: Obj = json.loads(masked)
        return made

    def _shorten(self, groups: list[Obj]) -> None:
        """What is as it stands in the job, and what is made of it, by a word."""
        templates = [each["template"] for each in self.job()["spec"]["tasks"]]
        for group in groups:
            digest = group["metadata"]["annotations"]["shoal.dev/setting"]
            self._digests += [digest] if digest not in self._digests else []
            for pods in group["spec"].get("podSets", ()):
                pods["template"] = "the task's" if pods["template"] in templates else pods["template"]


def _is_of_a_scheduler(key: str) -> bool:
    return any(part in key for part in ("k8s.io/", "x-k8s.io/"))


def _bare(group: Obj) -> Obj:
    meta = {key: group["metadata"][key] for key in ("name", "labels", "annotations", "ownerReferences")}
    whole = {"apiVersion": group["apiVersion"], "kind": group["kind"], "metadata": meta, "spec": group["spec"]}
    copied: Obj = deepcopy(whole)
    return copied


@asynccontextmanager
async def played(ground: Ground, name: str, **hollow: Any) -> AsyncIterator[tuple[Play, OperatorProcess]]:
    placer = backend(name, version=NATIVE if name == "native" else "")
    await ground.install(dialects=("framework", "volcano"), gangScheduler=name)
    kinds = (JOB, POD, *([placer.kind] if placer.kind is not None else []))
    async with AsyncExitStack() as stack:
        nodes = HollowNodes(
            ground.admin, places=name in PLACED_BY_TEST, prefix=ground.jobs, namespace=ground.jobs, **hollow
        )
        await stack.enter_async_context(nodes.running())
        copies = await stack.enter_async_context(Copies(ground.admin, ground.jobs, *kinds))
        admitter = Admitter(ground.admin, placer, copies)
        if name in PLAYED:
            task = asyncio.create_task(admitter.run())
            stack.callback(task.cancel)
        flags = [*ground.flags, "--dialects", "volcano", "--gang-scheduler", name]
        running = await stack.enter_async_context(operator(ground.kubeconfig(), *flags))
        assert (await running.says("gang scheduler"))["name"] == name
        yield Play(ground, placer, copies, admitter), running
        assert await running.stop() == 0
        asked = audited_control_plane.requests(ground.plane, user_of(ground.options.name, ground.own))
        forbidden = {each["objectRef"]["resource"] for each in asked if each["responseStatus"]["code"] == 403}
        assert forbidden == {"customresourcedefinitions"}  # it asks, and what the server says it serves has to do


async def test_what_is_installed_is_for_whom_the_cluster_has(ground: Ground) -> None:
    told = await ground.install(dialects=("framework", "volcano"), gangScheduler="auto")
    assert [str(line) for line in told if line.kind == "gang scheduler"] == [
        "gang scheduler kueue chosen: gangs go to Kueue: this cluster serves kueue.x-k8s.io/v1beta2. It serves "
        "scheduling.x-k8s.io/v1alpha1 (coscheduling), scheduling.k8s.io/v1alpha2 (native) too, and --gang-scheduler "
        "chooses"
    ]
    async with operator(ground.kubeconfig(), *ground.flags, "--dialects", "volcano") as running:
        assert (await running.says("gang scheduler"))["name"] == "kueue"
        await running.says("prepared")
        assert await running.stop() == 0


@pytest.mark.parametrize("name", NAMES)
async def test_29_one_job_starts_whole_scales_and_finishes_with_each_scheduler(ground: Ground, name: str) -> None:
    recorded = json.loads((RECORDED / f"{name}.json").read_text())
    async with played(ground, name) as (play, _):
        await play.waits_for_room()
        await play.all_run(2)
        seen = [play.picture()]
        before = {name_of(pod): uid_of(pod) for pod in play.copies.of(POD)}
        for trainers in (3, 2):
            await play.scale(trainers)
            await play.all_run(trainers)
            await play.copies.until(play.is_told)
            seen.append(play.picture())
        assert seen == recorded
        assert {name_of(pod): uid_of(pod) for pod in play.copies.of(POD) if not is_terminating(pod)} == before
        await play.trainers_end()
        await play.copies.until(lambda: play.phase() == "Completed" and not play.groups())
        ended = {"ctr-trainer-0": "Succeeded", "ctr-trainer-1": "Succeeded"}
        await play.copies.until(lambda: play.pods() == ended)  # another watch tells of pods than of the job


async def test_quota_that_is_taken_back_ends_the_run_at_no_cost(ground: Ground) -> None:
    async with played(ground, "kueue") as (play, _):
        play.admitter.set_open(True)
        await play.submit()
        await play.all_run(2)
        (first,) = play.groups()
        before = {uid_of(pod) for pod in play.copies.of(POD)}
        play.admitter.set_open(False)
        await play.admitter.tell(first, conditions(Admitted=True, Evicted=True))
        await play.copies.until(lambda: [uid_of(group) for group in play.groups()] not in ([], [uid_of(first)]))
        await play.copies.until(lambda: not play.copies.of(POD))
        play.admitter.set_open(True)
        await play.all_run(2)
        assert not before & {uid_of(pod) for pod in play.copies.of(POD)}
        status = play.job()["status"]
        assert (status["version"], status.get("retryCount", 0)) == (1, 0)


async def test_pods_go_to_the_flavor_that_was_granted_and_the_gang_has_the_number_of_its_class(ground: Ground) -> None:
    spot, tier, taint = f"spot-{ground.jobs}", {"shoal.dev/tier": "spot"}, {"key": "spot", "operator": "Exists"}
    flavor = {"metadata": {"name": spot}, "spec": {"nodeLabels": tier, "tolerations": [taint]}}
    await ground.admin.create(kueue.flavor("v1beta2"), flavor)
    await ground.admin.create(PRIORITY_CLASS, {"metadata": {"name": spot}, "value": 1000})
    granted = [{"name": role, "flavors": {"cpu": spot}, "count": 2} for role in ("pserver", "trainer")]
    async with played(ground, "kueue") as (play, _):
        await ground.admin.patch(NODE, play.node, patch={"metadata": {"labels": tier}})
        play.admitter.more = {"admission": {"clusterQueue": "any", "podSetAssignments": granted}}
        play.admitter.set_open(True)
        await play.submit(priorityClassName=spot)
        await play.all_run(2)
        assert [group["spec"]["priority"] for group in play.groups()] == [1000]
        await play.copies.until(lambda: all(is_true(group, "PodsReady") for group in play.groups()))
        assert [is_true(group, "Admitted") for group in play.groups()] == [True]
        for pod in play.copies.of(POD):
            assert pod["spec"]["nodeSelector"] == {"kubernetes.io/hostname": play.node, **tier}
            assert taint in pod["spec"]["tolerations"]

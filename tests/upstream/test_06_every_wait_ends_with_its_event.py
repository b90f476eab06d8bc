"""A pod starts with the event that ends its wait, and a group with the moment it was promised: nothing else has to
happen in the cluster. The table of causes is in test_10."""

from __future__ import annotations

from typing import Any

import pytest

from kit.planner_board import Board, cores, key
from kit.scheduled_cluster import NS, Scheduled, scheduled
from kit.volcano_jobs import task, vcjob
from shoal.dialects.volcano.children import gangs_of
from shoal.kube.kinds import POD
from shoal.scheduler.planner.from_objects import group_from
from shoal.scheduler.planner.gang_types import PodGroupPhase

HOST = "kubernetes.io/hostname"
BESIDE = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TOGETHER = {"podAffinity": {REQUIRED: [BESIDE]}}
SLA = pytest.mark.parametrize("annotation", ["sla-waiting-time", "volcano.sh/sla-waiting-time"])


async def web(it: Scheduled, **labels: str) -> None:
    container = {"name": "main", "image": "x"}
    metadata = {"name": "web", "labels": labels}
    await it.cluster.create(POD, {"metadata": metadata, "spec": {"containers": [container]}}, NS)
    await it.rest()


async def test_06_required_affinity_ends_with_the_bind_of_the_match() -> None:
    async with scheduled() as it:
        await it.node("a", labels={HOST: "a"})
        await it.pod("waits", affinity=TOGETHER)
        await it.rest()
        await web(it, app="web")
        assert await it.placed() == ["waits", "web"]


async def test_06_required_affinity_ends_with_a_label_of_a_running_pod() -> None:
    async with scheduled() as it:
        await it.node("a", labels={HOST: "a"})
        await web(it)
        await it.pod("waits", affinity=TOGETHER)
        await it.rest()
        assert await it.placed() == ["web"]
        await it.cluster.patch(POD, "web", NS, patch={"metadata": {"labels": {"app": "web"}}})
        await it.rest()
        assert await it.placed() == ["waits", "web"]


async def test_06_required_affinity_ends_however_many_pods_wait_for_one_another() -> None:
    """Each plan binds one of them: those that waited longest wait for those that came last."""
    async with scheduled() as it:
        await it.node("a", cpu=40, labels={HOST: "a"})
        for number in reversed(range(20)):
            affinity = {"podAffinity": {REQUIRED: [{**BESIDE, "labelSelector": {"matchLabels": {"n": str(number)}}}]}}
            spec = {"containers": [{"name": "main", "image": "x"}], "affinity": affinity}
            metadata = {"name": f"waits-{number:02}", "labels": {"n": str(number + 1)}}
            await it.cluster.create(POD, {"metadata": metadata, "spec": spec}, NS)
            await it.rest(1)
        await web(it, n="0")
        assert len(await it.placed()) == 21


async def test_06_strict_order_ends_when_the_waiting_pod_at_the_head_is_deleted() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.node("b", cpu=4)
        await it.pod("filler", cpu=4)
        await it.queue("line", dequeueStrategy="fifo")
        await it.rest()
        head = {"scheduling.volcano.sh/queue-name": "line"}
        await it.pod("small", cpu=1)
        await it.rest(1)
        await it.pod("head", cpu=4, notes=head)
        await it.rest(1)
        await it.pod("next", cpu=1, notes=head)
        await it.rest(1)
        assert "next" not in await it.placed()
        await it.cluster.delete(POD, "head", NS)
        await it.rest()
        assert "next" in await it.placed()


@SLA
async def test_06_the_deadline_itself_admits_a_group_although_the_cluster_is_full(annotation: str) -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.gang("old", 4)
        await it.group("promised", 4, notes={annotation: "3m"}, minResources={"cpu": "4"})
        await it.rest(170)
        assert await it.phase("promised") == "Pending"
        await it.rest(20)
        assert await it.phase("promised") == "Inqueue"


def test_06_no_promise_admits_a_group_that_an_empty_cluster_cannot_hold() -> None:
    """It could not start, and would keep everybody else out for as long as it may be in the queue."""
    board = Board(overcommit=1.0)
    board.node("n", cpu=4)
    board.group("giant", min_member=9, min_resources=cores(cpu=9), phase=PodGroupPhase.PENDING, sla_seconds=60.0)
    assert board.cycle().wake_at is None
    board.cycle(later=61)
    board.group("small", min_member=4, min_resources=cores(cpu=4), phase=PodGroupPhase.PENDING)
    board.cycle()
    phases = [board.view.groups[key(name)].group.phase for name in ("giant", "small")]
    assert phases == [PodGroupPhase.PENDING, PodGroupPhase.INQUEUE]


@SLA
def test_06_the_annotation_is_read_with_and_without_its_prefix(annotation: str) -> None:
    metadata: dict[str, Any] = {"name": "g", "namespace": NS, "annotations": {annotation: "1h"}}
    assert group_from({"metadata": metadata}).sla_seconds == 3600.0


@SLA
def test_06_the_annotation_of_a_job_is_passed_on_with_and_without_its_prefix(annotation: str) -> None:
    job = vcjob("a", task(), annotations={annotation: "90s"}, minAvailable=1)
    job["metadata"] |= {"namespace": NS, "uid": "u"}
    assert [gang.schedule_timeout_seconds for gang in gangs_of(job).values()] == [90]


def test_06_the_shorter_promise_goes_first() -> None:
    board = Board()
    board.node("n", cpu=4)
    board.running("old", 4, ["n"])
    for name, promise in (("slow", 3600.0), ("fast", 1800.0)):
        board.group(name, 4, min_resources=cores(cpu=4), phase=PodGroupPhase.PENDING, sla_seconds=promise)
    board.cycle()
    board.finishes("old")
    board.cycle()
    assert (len(board.on_nodes("fast")), len(board.on_nodes("slow"))) == (4, 0)


def test_06_nodes_that_a_reservation_leaves_are_open_at_once() -> None:
    board = Board(starving_seconds=60.0)
    board.node("n", cpu=8)
    board.running("old", 4, ["n"])
    board.group("big", 6)
    assert board.cycle(later=60).reservations == ((key("big"), ("n",)),)
    board.group("small", 1)
    board.cycle()
    board.finishes("old")
    made = board.cycle()
    assert (len(board.on_nodes("big")), made.again) == (6, True)
    board.cycle()
    assert len(board.on_nodes("small")) == 1

"""The status of a queue counts groups that are Inqueue or Unknown also where they are so for a moment only, as
queue_job_status.go of Volcano's end-to-end suite waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.local_cluster import LocalCluster
from kit.raw_api import Api
from kit.scheduled_cluster import NS, Scheduled, scheduled
from shoal.dialects.volcano import DIALECT
from shoal.kube.kinds import POD
from shoal.scheduler.api.pod_groups import QUEUE

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"


async def counted(it: Scheduled) -> dict[str, Any]:
    status = (await it.cluster.get(QUEUE, "team"))["status"]
    return {word: status[word] for word in ("inqueue", "running", "unknown") if status.get(word)}


async def test_22_a_short_phase_is_counted_at_once_and_stays_for_a_second() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.queue("team")
        await it.rest(5)
        await it.group("job", 2, queue="team")
        assert await counted(it) == {"inqueue": 1}
        await it.pods("job", 2)
        assert await counted(it) == {"inqueue": 1}
        await it.rest(1)
        assert await counted(it) == {"running": 1}
        await it.rest(5)
        await it.cluster.delete(POD, "job-0", NS)
        await it.pods("job", 1, first=2)
        assert await counted(it) == {"unknown": 1}
        await it.rest(1)
        assert await counted(it) == {"running": 1}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    cluster = LocalCluster(tmp_path, "--capacity", "cpu=4", "--capacity", "memory=8Gi")
    yield cluster.start()
    cluster.stop()


def until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.1)  # as often as Volcano's suite looks


@pytest.mark.processes
def test_22_a_client_that_polls_sees_them_on_embedded(api: Api) -> None:
    queue = {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "metadata": {"name": "team"}, "spec": {}}
    api.post(QUEUES, queue).ok()
    container = {"name": "main", "image": "x", "command": ["sh", "-c", "exec sleep 100000"]}
    template = {"spec": {"restartPolicy": "OnFailure", "containers": [container]}}
    tasks = [{"name": "worker", "replicas": 4, "template": template}]
    job = {"apiVersion": DIALECT.kind.api_version, "kind": DIALECT.kind.kind, "metadata": {"name": "job"}}
    api.post(JOBS, {**job, "spec": {"queue": "team", "tasks": tasks}}).ok()

    def count(word: str) -> int:
        return int(api.get(f"{QUEUES}/team").ok().get("status", {}).get(word, 0))

    until(lambda: count("inqueue"))
    until(lambda: count("running"))
    until(lambda: all(pod["status"].get("phase") == "Running" for pod in api.get(PODS).ok()["items"]))
    for number in range(2):
        api.call("DELETE", f"{PODS}/job-worker-{number}").ok()
    until(lambda: count("unknown"))
    until(lambda: count("running"))

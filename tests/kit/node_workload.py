"""A small day in the life of a node: six pods with different fates, and where they must all have come in the end."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path

from kit.fake_sandbox import FakeSandboxes
from kit.pods import container, is_gone, phase_is, pod, wait_for_pod
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj, name_of

PODS = {
    "succeeds": pod("succeeds", container("main", "exit", "0"), restartPolicy="Never"),
    "fails": pod("fails", container("main", "exit", "3"), restartPolicy="Never"),
    "tries-again": pod("tries-again", container("main", "exits", "1,0"), restartPolicy="OnFailure"),
    "prepares": pod(
        "prepares",
        container("main", "exit", "0"),
        inits=(container("first", "exit", "0"), container("second", "exit", "0")),
        restartPolicy="Never",
    ),
    "stays": pod("stays", container("main"), container("other")),
    "leaves": pod("leaves"),
}

EXPECTED = {
    "succeeds": ("Succeeded", {"main": 0}),
    "fails": ("Failed", {"main": 0}),
    "tries-again": ("Succeeded", {"main": 1}),
    "prepares": ("Succeeded", {"first": 0, "second": 0, "main": 0}),
    "stays": ("Running", {"main": 0, "other": 0}),
}

STARTED = Counter(
    {
        ("succeeds", "main.0"): 1,
        ("fails", "main.0"): 1,
        ("tries-again", "main.0"): 1,
        ("tries-again", "main.1"): 1,
        ("prepares", "first.0"): 1,
        ("prepares", "second.0"): 1,
        ("prepares", "main.0"): 1,
        ("stays", "main.0"): 1,
        ("stays", "other.0"): 1,
        ("leaves", "main.0"): 1,
    }
)


def told(obj: Obj) -> tuple[str, dict[str, int]]:
    status = obj["status"]
    listed = [*(status.get("initContainerStatuses") or ()), *status["containerStatuses"]]
    return status["phase"], {c["name"]: c["restartCount"] for c in listed}


async def the_day(cluster: EmbeddedCluster) -> None:
    """Everything is applied, one pod is deleted once it runs, and all come to where they belong."""
    await wait_for_pod(
        cluster, "leaves", lambda p: p is None or phase_is("Running")(p) or "deletionTimestamp" in p["metadata"]
    )
    with suppress(ApiError):  # it may be gone already, by the hand of the life before
        await cluster.delete(POD, "leaves", "default")
    await wait_for_pod(cluster, "leaves", is_gone)
    for name, (phase, _) in EXPECTED.items():
        await wait_for_pod(cluster, name, phase_is(phase))


async def begin(cluster: EmbeddedCluster) -> dict[str, str]:
    """Apply the pods; their names by uid."""
    made = [await cluster.create(POD, obj, "default") for obj in PODS.values()]
    return {obj["metadata"]["uid"]: name_of(obj) for obj in made}


async def check(
    cluster: EmbeddedCluster, sandboxes: FakeSandboxes, data: Path, names: dict[str, str], where: str
) -> None:
    """Every pod is where it belongs, every process was started once, nothing is left behind."""
    pods = {name_of(p): told(p) for p in (await cluster.list(POD, "default")).items}
    started = Counter((names[uid], process) for uid, process in sandboxes.started)
    left = {names[uid] for uid in sandboxes.sandboxes}
    folders = {names[path.name] for path in (data / "nodes" / "n1" / "pods").iterdir()}
    assert (pods, started, left, folders) == (EXPECTED, STARTED, {"stays"}, set(EXPECTED)), where

"""A whole node in a process of its own, to be killed with -9: `python node_process.py <data folder>`.

The store, the sandboxes and the agent live in the data folder, as in `shoal up`. The first life makes the pods;
every life deletes the pods named `leaves-*` it finds running, once they have noted their start. It says `ready` and
then runs until it is killed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from kit.pods import config, container, pod
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj, name_of
from shoal.node.agent import Agent
from shoal.node.config import NodeConfig
from shoal.node.inotify import FolderWatch
from shoal.node.sandbox.sandbox_manager import SandboxManager

COUNT = 3
NOTE = 'echo "$HOSTNAME" >> /notes/started; '


def sh(script: str) -> Obj:
    return container("main", "sh", "-c", NOTE + script, volumeMounts=[{"name": "n", "mountPath": "/notes"}])


def pods(data: Path) -> list[Obj]:
    """Some that end, some that fail once, some that stay, some that are deleted."""
    kinds = {
        "ends": ("exit 0", "Never"),
        "again": ('test $(grep -c "^$HOSTNAME$" /notes/started) -ge 2', "OnFailure"),
        "stays": ("exec sleep 1000", "Always"),
        "leaves": ("exec sleep 1000", "Always"),
    }
    notes = {"name": "n", "hostPath": {"path": str(data / "notes")}}
    return [
        pod(f"{kind}-{number}", sh(script), restartPolicy=policy, volumes=[notes])
        for number in range(COUNT)
        for kind, (script, policy) in kinds.items()
    ]


def settings(data: Path) -> NodeConfig:
    return config(data, working_dir="/", caller_env={"PATH": "/bin:/usr/bin"})


async def noted(data: Path, *names: str) -> None:
    """Until each of these pods has noted a start: who runs has not done anything yet, and may be stopped before."""
    started = data / "notes" / "started"
    with FolderWatch(started.parent) as watch:
        while not started.exists() or not set(names) <= set(started.read_text().split()):
            await watch.changed()


async def delete_leavers(cluster: EmbeddedCluster, data: Path) -> None:
    async for event in cluster.watch(POD, "default", initial_events=True):
        running = (event.object.get("status") or {}).get("phase") == "Running"
        leaving = "deletionTimestamp" in event.object["metadata"]
        if name_of(event.object).startswith("leaves") and running and not leaving:
            await noted(data, name_of(event.object))
            await cluster.delete(POD, name_of(event.object), "default")


async def main(data: Path) -> None:
    (data / "notes").mkdir(parents=True, exist_ok=True)
    is_first = not (data / "state.db").exists()
    cluster = await EmbeddedCluster.open(data / "state.db")
    sandboxes = await SandboxManager.open(data / "sandboxes")
    if is_first:
        for obj in pods(data):
            await cluster.create(POD, obj, "default")
    async with asyncio.TaskGroup() as group:
        group.create_task(Agent(cluster, sandboxes, settings(data)).run())
        group.create_task(delete_leavers(cluster, data))
        print("ready", flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))

"""Pods of a killed cluster: their processes run until it is started again or they are stopped.

Stopping them is what a node does in an orderly end: TERM, the grace period, KILL, and how each process ended is
recorded, so that the next start of the cluster decides by the restart policies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from shoal.node import container_record_recovery
from shoal.node.checkpoint import PodFolder
from shoal.node.container_manager import stop_all
from shoal.node.sandbox.interface import Sandbox, ShimLost
from shoal.node.sandbox.sandbox_manager import SandboxManager


async def stop_orphans(data: Path, sandboxes: Path, grace_of: Callable[[str], float]) -> int:
    """Stop every pod of a data folder that no cluster uses; how many there were. `grace_of` takes the uid of a pod."""
    found = await SandboxManager.open(sandboxes)
    try:
        kept, _ = await found.adopt()
        await asyncio.gather(*(stop_orphan(data, each, grace_of(each.spec.id)) for each in kept))
    finally:
        await found.close()
    return len(kept)


async def stop_orphan(data: Path, sandbox: Sandbox, grace_seconds: float) -> None:
    """Stop one pod and put the ends of its processes on record."""
    with suppress(ShimLost):
        await stop_all(sandbox, grace_seconds)
        _record_ends(data, sandbox)
        await sandbox.close()


def _record_ends(data: Path, sandbox: Sandbox) -> None:
    for path in data.glob(f"nodes/*/pods/{sandbox.spec.id}"):
        folder = PodFolder(path)
        if (record := folder.load()) is not None:
            container_record_recovery.recover_from_sandbox(record, sandbox.processes())
            folder.save(record)

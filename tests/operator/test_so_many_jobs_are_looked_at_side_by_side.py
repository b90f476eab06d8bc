"""How many jobs one operator looks at side by side is a setting of their language."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kit.framework_notation import fw, role
from kit.pod_behavior import exits
from kit.scenario import SimulatedWorld
from shoal.kube.kinds import Kind


@pytest.mark.parametrize("workers", [1, 3])
async def test_no_more_passes_run_at_once_than_there_are_workers(workers: int) -> None:
    most = running = 0
    async with SimulatedWorld(0, config={"workerNumber": workers}) as world:
        timed = world.metrics.time_reconcile

        @contextmanager
        def counted(kind: Kind) -> Iterator[None]:
            nonlocal most, running
            running += 1
            most = max(most, running)
            with timed(kind):
                yield
            running -= 1

        world.metrics.time_reconcile = counted  # type: ignore[method-assign]
        for number in range(6):
            await world.submit(fw(f"job{number}", role("worker", fate=exits(0))))
        for number in range(6):
            await world.completed(f"job{number}")
    assert most == workers

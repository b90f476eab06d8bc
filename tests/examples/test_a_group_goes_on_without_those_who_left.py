"""Real torchrun, real etcd: workers that leave at bad moments do not keep the others waiting.

Each test would hang, until the time limit of the suite, if the survivor waited for the lost one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.elastic_group import DATA, Group

pytestmark = [pytest.mark.processes, pytest.mark.timeout(1800), pytest.mark.usefixtures("torch_environment")]


def few_images(folder: Path) -> Path:
    """Two classes of the data set: four steps an epoch."""
    for split in ("train", "val"):
        (folder / split).mkdir(parents=True)
        for name in sorted(path.name for path in (DATA / split).iterdir())[:2]:
            (folder / split / name).symlink_to(DATA / split / name)
    return folder


def arguments(tmp_path: Path, *, epochs: int = 1) -> tuple[str, ...]:
    return (
        "--arch=resnet10",
        f"--epochs={epochs}",
        "--global-batch=128",
        "--print-freq=1",
        str(few_images(tmp_path / "data")),
    )


async def test_a_worker_stopped_while_it_starts_is_not_waited_for(tmp_path: Path) -> None:
    async with Group(tmp_path, max_nodes=2) as group:
        learn = arguments(tmp_path)
        first = await group.start("worker-0", *learn)
        second = await group.start("worker-1", *learn)
        # They have met and each expects the other, but the second's worker has not even imported torch.
        await second.writes(r"Starting worker group")
        second.terminate()
        line = await first.writes(r"Rendezvous version 2 is complete")
        await first.writes(r"^=> rank 0 of world size 1$", after=line)
        assert [await second.ends(), await first.ends()] == [128 + 15, 0]


async def test_a_worker_that_is_killed_is_not_waited_for_either(tmp_path: Path) -> None:
    async with Group(tmp_path, max_nodes=2) as group:
        learn = arguments(tmp_path, epochs=4)
        first = await group.start("worker-0", *learn)
        second = await group.start("worker-1", *learn)
        line = await first.writes(r"^=> saved checkpoint for epoch 0")
        second.kill()
        line = await first.writes(r"^=> using checkpoint from rank: 0, max_epoch: [012]$", after=line)
        await first.writes(r"^=> start_epoch: [123], best_acc1: ", after=line)
        assert [await second.ends(), await first.ends()] == [-9, 0]


async def test_a_worker_that_comes_when_all_is_done_succeeds_at_once(tmp_path: Path) -> None:
    async with Group(tmp_path, max_nodes=1) as group:
        learn = arguments(tmp_path)
        first = await group.start("worker-0", *learn)
        assert await first.ends() == 0
        late = await group.start("worker-1", *learn)
        assert await late.ends() == 0
        assert late.lines[-1] == "=> the training is over, nothing is left to do"

"""Shards and classes: every job is served by one operator, whoever is there."""

from __future__ import annotations

import asyncio
import urllib.request

import pytest

from kit.eventually import answer_becomes
from kit.framework_notation import fw, role
from kit.hollow_nodes import HollowNodes
from kit.operator_namespace import Ground, state_of, until
from kit.operator_process import OperatorProcess, operator
from kit.pod_behavior import exits
from shoal.kube.kinds import LEASE
from shoal.kube.objects import Key, Obj
from shoal.operator.sharding import shard_of

pytestmark = pytest.mark.kubernetes


def short(name: str) -> Obj:
    return fw(name, role(fate=exits(0, after=0.05)))


def named_for(shard: int, namespace: str) -> str:
    """A name whose job belongs to that shard of two."""
    return next(name for name in (f"job{number}" for number in range(99)) if shard_of(Key(namespace, name), 2) == shard)


def is_held(lease: Obj | None) -> bool:
    return bool(((lease or {}).get("spec") or {}).get("holderIdentity"))


async def metric(running: OperatorProcess, name: str) -> str:
    page = f"http://127.0.0.1:{await running.port('metrics')}/metrics"

    def read() -> str:
        with urllib.request.urlopen(page, timeout=30) as answer:
            text: str = answer.read().decode()
        return next((line.split()[-1] for line in text.splitlines() if line.startswith(name)), "")

    return await asyncio.to_thread(read)


async def test_two_replicas_serve_every_shard_and_one_takes_over_what_the_other_had(ground: Ground) -> None:
    await ground.install(shards=2)
    words = [*ground.flags, "--shards", "2", "--lease-duration", "3"]
    leases = [f"{ground.options.name}-{shard}" for shard in range(2)]
    async with (
        HollowNodes(ground.admin, namespace=ground.jobs).running(),
        operator(ground.kubeconfig(), *words) as first,
        operator(ground.kubeconfig(), *words) as second,
    ):
        for name in leases:
            await until(ground.admin, LEASE, name, ground.own, is_held)
        first_jobs = [named_for(shard, ground.jobs) for shard in range(2)]
        for name in first_jobs:
            await ground.submit(short(name))
        for name in first_jobs:
            await ground.ends({"metadata": {"name": name}})
        assert await first.stop() == 0
        for lease in leases:
            await second.says("leading", lease=lease)
        await asyncio.gather(*(self_ends(ground, f"later{number}") for number in range(4)))

        async def leads() -> list[str]:
            return [await metric(second, f'shoal_leading{{shard="{shard}"}}') for shard in range(2)]

        # On a busy machine a renewal may come too late for so short a Lease, and then it leads again.
        await answer_becomes(leads, lambda told: told == ["1.0", "1.0"])


async def self_ends(ground: Ground, name: str) -> None:
    await ground.submit(short(name))
    await ground.ends({"metadata": {"name": name}})


async def test_an_operator_serves_its_class_and_no_other(ground: Ground) -> None:
    await ground.install()
    async with HollowNodes(ground.admin, namespace=ground.jobs).running():
        marked = short("marked")
        marked["metadata"]["labels"] = {"shoal.dev/class": "fast"}
        await ground.submit(marked)
        async with operator(ground.kubeconfig(), *ground.flags):
            await self_ends(ground, "plain")
            untouched = await ground.becomes(marked, lambda found: found is not None)
            assert state_of(untouched or {}) == ""
            await ground.submit(short("other"))
            await ground.ends({"metadata": {"name": "other"}})
        async with operator(ground.kubeconfig(), *ground.flags, "--class", "fast"):
            await ground.submit(short("unmarked"))
            await ground.ends(marked)
            assert state_of(await ground.becomes({"metadata": {"name": "unmarked"}}, bool) or {}) == ""

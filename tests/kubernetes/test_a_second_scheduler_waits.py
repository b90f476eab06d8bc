"""`shoal scheduler` of two installations on a real control plane: the second waits for the first, and takes over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from kit.operator_namespace import Ground, until
from kit.operator_process import OperatorProcess, kubeconfig_of, operator
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import open_client
from shoal.controller_runtime.preflight import PreflightError, check_permissions
from shoal.controller_runtime.rights import lease_permissions
from shoal.install.apply import install
from shoal.install.scheduler_deployment import SCHEDULER_LEASE
from shoal.kube.kinds import LEASE, NAMESPACE
from shoal.kube.objects import Obj, annotations_of
from shoal.scheduler.api.pod_groups import POD_GROUP, QUEUE
from shoal.scheduler.rbac import conflict_rights, scheduler_rights
from shoal.scheduler.scheduler_conflicts import ANSWERS_FOR

pytestmark = pytest.mark.kubernetes


async def installed(ground: Ground, word: str) -> Path:
    """The kubeconfig of the scheduler of another installation, in a namespace of its own, once it may do its work."""
    place = f"{ground.own}-{word}"
    options = replace(ground.options, name=f"{ground.options.name}-{word}", namespace=place, scheduler=True)
    await install(ground.admin, options, lambda _: None)
    known = kubeconfig_of(ground.plane, ground.folder, f"{options.name}-scheduler", place)
    wanted = [("", right) for right in (*scheduler_rights(POD_GROUP, QUEUE), *conflict_rights([SCHEDULER_LEASE]))]
    wanted += [(place, right) for right in lease_permissions([SCHEDULER_LEASE])]
    async with open_client(from_kubeconfig(known)) as account:
        while True:  # the server learns of roles a moment after they are written, and tells nobody when
            try:
                await check_permissions(account, wanted)
            except PreflightError:
                continue
            return known


def answers(lease: Obj | None) -> bool:
    return ANSWERS_FOR in annotations_of(lease or {"metadata": {}})


async def readiness(process: OperatorProcess) -> str:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{await process.port('health')}/readyz") as answer,
    ):
        return f"{answer.status} {await answer.text()}"


async def test_the_second_waits_and_leads_when_the_first_has_stopped(ground: Ground) -> None:
    flags = ["--scheduler-name", f"shoal-{ground.jobs}", "--namespace", ground.jobs, "--volcano", "no"]
    first, second = [await installed(ground, word) for word in ("b", "a")]
    try:
        async with operator(first, *flags, program="scheduler") as one:
            await until(ground.admin, LEASE, SCHEDULER_LEASE, f"{ground.own}-b", answers)
            async with operator(second, *flags, program="scheduler") as other:
                told = await other.says("waits")
                why = f"the scheduler in namespace {ground.own}-b answers for the same pods; "
                why += "let one remain and remove the other"
                assert (told["why"], await readiness(other)) == (why, f"200 scheduler: waits: {why}\n")
                await one.stop()
                await other.says("no other scheduler serves the same pods")
    finally:
        for word in ("a", "b"):
            await ground.admin.delete(NAMESPACE, f"{ground.own}-{word}")

"""An operator on a real control plane whose webhook the API server calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kit.framework_notation import fw, role
from kit.operator_namespace import FRAMEWORK, Ground, until
from kit.operator_process import OperatorProcess, operator
from shoal.cluster.client import PatchType
from shoal.kube.errors import ApiError
from shoal.kube.objects import Obj
from shoal.operator.rbac import MUTATING, VALIDATING


def impossible(name: str) -> Obj:
    """The definition knows the outline of a pod template; only the language knows all of it."""
    made = fw(name, role())
    made["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["tolerations"] = "none"
    return made


@asynccontextmanager
async def webhook(
    ground: Ground, *, labels: Mapping[str, str] | None = None, **options: Any
) -> AsyncIterator[OperatorProcess]:
    """No Service leads to it here, so the server calls its address. `labels`: of the gangs and queues it is asked
    about, where it is: others use the same server."""
    await ground.install(webhook=True, **options)
    words = [*ground.flags, "--webhook-address", "127.0.0.1:0"]
    async with operator(ground.kubeconfig(), *words) as running:
        url = f"https://127.0.0.1:{await running.port('webhook')}"
        await running.says("certificate served")
        for kind, path in ((VALIDATING, "/validate"), (MUTATING, "/mutate")):
            await _lead(ground, kind, url + path, labels or {})
        try:
            await is_heard(ground)
            yield running
        finally:
            for kind in (VALIDATING, MUTATING):
                await ground.admin.delete(kind, ground.options.name)


async def _lead(ground: Ground, kind: Any, url: str, labels: Mapping[str, str]) -> None:
    name = ground.options.name
    entries = (await ground.admin.get(kind, name))["webhooks"]
    client = [
        {"op": "replace", "path": f"/webhooks/{place}/clientConfig", "value": {"url": url}}
        for place in range(len(entries))
    ]
    if len(entries) > 1:
        client.append({"op": "add", "path": "/webhooks/1/objectSelector", "value": {"matchLabels": dict(labels)}})
    await ground.admin.patch(kind, name, patch=client, patch_type=PatchType.JSON)
    await until(ground.admin, kind, name, None, is_trusted)


def is_trusted(configuration: Obj | None) -> bool:
    return all("caBundle" in entry["clientConfig"] for entry in (configuration or {}).get("webhooks") or ())


async def is_heard(ground: Ground) -> None:
    """Until the server calls the webhook: it says to nobody when it has read its configuration."""
    while True:
        try:
            await ground.admin.create(FRAMEWORK, impossible("probe"), ground.jobs, dry_run=True)
        except ApiError:
            return

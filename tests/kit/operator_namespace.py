"""Ground for operators of one test: a namespace with jobs, one for the operator, and waiting for what jobs become.

Tests share the control plane, so the operators of each serve that test's namespace of jobs alone.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from kit.control_plane import ControlPlane
from kit.operator_process import kubeconfig_of
from shoal.cluster.client import WatchEvent, WatchEventType
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client
from shoal.controller_runtime.preflight import PreflightError, check_permissions
from shoal.controller_runtime.rights import Permission, lease_permissions
from shoal.dialects.framework import DIALECT
from shoal.install.apply import ApplyResult, install
from shoal.install.options import InstallOptions
from shoal.kube.errors import ApiError
from shoal.kube.kinds import NAMESPACE, SERVICE_ACCOUNT, Kind
from shoal.kube.objects import Obj, name_of
from shoal.operator.rbac import job_rights

FRAMEWORK = DIALECT.kind


class Ground:
    def __init__(self, plane: ControlPlane, admin: KubernetesCluster, folder: Path, word: str) -> None:
        self.plane = plane
        self.admin = admin
        self.folder = folder
        self.jobs = f"jobs-{word}"
        self.own = f"own-{word}"
        self.options = InstallOptions(name=f"shoal-{word}", namespace=self.own, watchNamespace=self.jobs)

    async def make(self) -> None:
        await self.admin.create(NAMESPACE, {"metadata": {"name": self.jobs}})
        await until(self.admin, SERVICE_ACCOUNT, "default", self.jobs, lambda account: account is not None)

    async def clear(self) -> None:
        for name in (self.jobs, self.own):
            try:
                await self.admin.delete(NAMESPACE, name)
            except ApiError as refused:
                if refused.code != 404:
                    raise

    async def install(self, **more: Any) -> list[ApplyResult]:
        self.options = replace(self.options, **more)
        told: list[ApplyResult] = []
        await install(self.admin, self.options, told.append)
        await self.are_granted(self.options)
        return told

    async def are_granted(self, options: InstallOptions) -> None:
        """The server learns of roles a moment after they are written, and tells nobody when."""
        wanted = [(self.jobs, right) for right in job_rights([DIALECT])]
        wanted += [(self.own, right) for right in lease_permissions([f"{options.name}-0"])]
        async with open_client(from_kubeconfig(self.kubeconfig())) as account:
            while True:
                with suppress(PreflightError):
                    return await check_permissions(account, wanted)

    async def is_denied(self, right: Permission) -> None:
        """The same the other way round."""
        place = self.own if right.resource == "leases" else self.jobs
        right = replace(right, names=(f"{self.options.name}-0",) if right.names else ())
        async with open_client(from_kubeconfig(self.kubeconfig())) as account:
            while True:
                try:
                    await check_permissions(account, [(place, right)])
                except PreflightError:
                    return

    def kubeconfig(self) -> Path:
        """Of the account that was installed."""
        return kubeconfig_of(self.plane, self.folder, self.options.name, self.own)

    @property
    def flags(self) -> list[str]:
        return ["--name", self.options.name, "--namespace", self.jobs]

    async def submit(self, framework: Obj) -> Obj:
        return await self.admin.create(FRAMEWORK, framework, self.jobs)

    async def ends(self, framework: Obj) -> Obj:
        """The Framework once it has completed."""
        found = await self.becomes(framework, lambda fw: fw is not None and state_of(fw) == "Completed")
        assert found is not None
        return found

    async def becomes(self, framework: Obj, wanted: Callable[[Obj | None], bool]) -> Obj | None:
        return await until(self.admin, FRAMEWORK, name_of(framework), self.jobs, wanted)


def state_of(framework: Obj) -> str:
    return str((framework.get("status") or {}).get("state") or "")


async def until(
    cluster: KubernetesCluster, kind: Kind, name: str, namespace: str | None, wanted: Callable[[Obj | None], bool]
) -> Obj | None:
    """Follow one object until it is as wanted; None stands for its absence."""
    while True:
        now: Obj | None = None
        events = cluster.watch(kind, namespace, fields=f"metadata.name={name}", initial_events=True)
        async with aclosing(cast(AsyncGenerator[WatchEvent, None], events)) as told:
            is_listed = False
            async for event in told:
                if event.type is WatchEventType.BOOKMARK:
                    is_listed = is_listed or event.ends_initial_list
                else:
                    now = None if event.type is WatchEventType.DELETED else event.object
                if is_listed and wanted(now):
                    return now

"""Every namespace has the service account `default`, as programs that read it expect."""

from __future__ import annotations

import asyncio

from shoal.cluster.client import Cluster
from shoal.cluster.informer import Change, Informer
from shoal.controller_runtime.workqueue import WorkQueue
from shoal.kube.errors import ApiError
from shoal.kube.kinds import NAMESPACE, SERVICE_ACCOUNT
from shoal.kube.objects import Key, is_terminating


class ServiceAccountController:
    name = "accounts"

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._work = WorkQueue(self.name, self.reconcile)
        self._namespaces = Informer(cluster, NAMESPACE, on_change=lambda change: self._work.add(change.key))
        self._accounts = Informer(
            cluster, SERVICE_ACCOUNT, fields="metadata.name=default",
            on_change=self.on_account_change,
        )  # fmt: skip

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._accounts.run())
                group.create_task(self._namespaces.run())
        finally:
            await self._work.close()

    def on_account_change(self, change: Change) -> None:
        if change.new is None:
            self._work.add(Key("", change.key.namespace))

    async def reconcile(self, key: Key) -> None:
        await self._accounts.synced.wait()
        namespace = self._namespaces.objects.get(key)
        if namespace is None or is_terminating(namespace) or Key(key.name, "default") in self._accounts.objects:
            return
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        try:
            await self._cluster.create(SERVICE_ACCOUNT, account, key.name)
        except ApiError as refused:
            if refused.code not in (403, 404, 409):  # leaving, gone, or there already
                raise

"""Which objects of a kind each controller owns, and which have no controller: kept up to date by their changes."""

from __future__ import annotations

from collections.abc import Collection

from shoal.cluster.informer import Change
from shoal.kube.objects import Key
from shoal.kube.owners import controller_of


class OwnerIndex:
    def __init__(self) -> None:
        self._owned: dict[str, dict[Key, None]] = {}  # by the uid of the controller
        self._orphans: dict[str, dict[Key, None]] = {}  # by namespace

    def owned_by(self, uid: str) -> Collection[Key]:
        return self._owned.get(uid, {})

    def orphans_in(self, namespace: str) -> Collection[Key]:
        return self._orphans.get(namespace, {})

    def update(self, change: Change) -> None:
        key = change.key
        for obj, exists in ((change.old, False), (change.new, True)):
            if obj is None:
                continue
            controller = controller_of(obj)
            index = self._orphans if controller is None else self._owned
            index_key = key.namespace if controller is None else str(controller.get("uid"))
            keys = index.setdefault(index_key, {})
            if exists:
                keys[key] = None
            else:
                keys.pop(key, None)
            if not keys:
                del index[index_key]

"""Which objects of a kind each controller owns, and which have no controller: kept up to date by their changes."""

from __future__ import annotations

from collections.abc import Collection

from shoal.cluster.informer import Change
from shoal.kube.objects import Key, Obj
from shoal.kube.owners import controller_of


class OwnerIndex:
    def __init__(self) -> None:
        self._owned: dict[str, dict[Key, None]] = {}  # by the uid of the controller
        self._orphans: dict[str, dict[Key, None]] = {}  # by namespace

    def owned_by(self, uid: str) -> Collection[Key]:
        return self._owned.get(uid, {})

    def orphans_in(self, namespace: str) -> Collection[Key]:
        return self._orphans.get(namespace, {})

    def note(self, change: Change) -> None:
        for obj, is_there in ((change.old, False), (change.new, True)):
            if obj is not None:
                self._note(change.key, obj, is_there)

    def _note(self, key: Key, obj: Obj, is_there: bool) -> None:
        controller = controller_of(obj)
        index = self._orphans if controller is None else self._owned
        place = key.namespace if controller is None else str(controller.get("uid"))
        keys = index.setdefault(place, {})
        if is_there:
            keys[key] = None
        else:
            keys.pop(key, None)
        if not keys:
            del index[place]

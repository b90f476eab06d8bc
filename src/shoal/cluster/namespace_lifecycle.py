"""Namespaces and definitions hold other objects: they go when the last of those has gone.

Looked at by the collector whenever one of them is leaving and whenever something it held went away.
"""

from __future__ import annotations

from bisect import bisect_left

from shoal.cluster.client import DeleteOptions, Propagation
from shoal.cluster.delete import Remover
from shoal.cluster.registry import Core, Resource
from shoal.cluster.store import Table
from shoal.cluster.store.tables import key_at
from shoal.cluster.strategies import custom_resource_definitions
from shoal.cluster.types import Stored
from shoal.kube import kinds
from shoal.kube.conditions import is_true, with_condition
from shoal.kube.objects import Key, Obj

SLICE = 200
_KUBERNETES = "kubernetes"
_IN_BACKGROUND = DeleteOptions(propagation=Propagation.BACKGROUND)


class Emptier:
    def __init__(self, core: Core, remover: Remover) -> None:
        self._core = core
        self._remover = remover

    def empty(self, resource: Resource, stored: Stored) -> bool:
        """True where there is more to delete at once; what lingers brings us back when it goes."""
        if resource.kind == kinds.NAMESPACE:
            return self._empty_namespace(resource, stored)
        if stored.leaving:
            return self._empty_definition(resource, stored)
        self._judge_again(resource, stored)
        return False

    # Namespaces

    def _empty_namespace(self, resource: Resource, stored: Stored) -> bool:
        name = stored.key.name
        left: list[Stored] = []
        for home in self._core.homes():
            if home.kind.namespaced:
                left += self._delete_all(home, _keys_in(home.table, name))
            if len(left) >= SLICE:
                return True
        if any(not item.leaving for item in left):
            return True
        if left:
            self._say_what_is_left(resource, stored, left)
            return False
        self._finish_namespace(resource, stored)
        return False

    def _delete_all(self, home: Resource, keys: list[Key]) -> list[Stored]:
        """Ask each of them to go; those still there afterwards."""
        left = []
        for key in keys[:SLICE]:
            item = home.table.objects[key]
            if not item.leaving:
                self._remover.delete(home, key, _IN_BACKGROUND)
            still = home.table.objects.get(key)
            if still is not None:
                left.append(still)
        return left + [home.table.objects[key] for key in keys[SLICE:]]

    def _say_what_is_left(self, resource: Resource, stored: Stored, left: list[Stored]) -> None:
        namespace = stored.obj()
        status = namespace.setdefault("status", {})
        counted: dict[str, int] = {}
        finalizers: dict[str, int] = {}
        for item in left:
            counted[item.kind.resource] = counted.get(item.kind.resource, 0) + 1
            for name in item.finalizers:
                finalizers[name] = finalizers.get(name, 0) + 1
        what = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(counted.items()))
        message = f"Some resources are remaining: {what}"
        self._say(status, "NamespaceContentRemaining", "SomeResourcesRemain", message)
        if finalizers:
            which = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
            message = f"Some content in the namespace has finalizers remaining: {which}"
            self._say(status, "NamespaceFinalizersRemaining", "SomeFinalizersRemain", message)
        if namespace != stored.obj():
            self._core.put(resource, namespace, stored)

    def _say(self, status: Obj, claim: str, reason: str, message: str) -> None:
        status["conditions"] = with_condition(
            status.get("conditions"), claim, True, now=self._core.now(), reason=reason, message=message
        )

    def _finish_namespace(self, resource: Resource, stored: Stored) -> None:
        namespace = stored.obj()
        held = [name for name in namespace["spec"].get("finalizers") or () if name != _KUBERNETES]
        if not held and not stored.finalizers:
            self._core.remove(resource, stored.key)
        elif held != namespace["spec"].get("finalizers"):
            namespace["spec"]["finalizers"] = held
            self._core.put(resource, namespace, stored)

    # Definitions

    def _empty_definition(self, resource: Resource, stored: Stored) -> bool:
        home = self._core.home(self._core.store.table(stored.key.name))
        if home is not None:
            left = self._delete_all(home, list(home.table.objects))
            if any(not item.leaving for item in left):
                return True
            if left:
                return False
        if custom_resource_definitions.CLEANUP not in stored.finalizers:
            return False
        obj = stored.obj()
        obj["metadata"]["finalizers"] = [f for f in stored.finalizers if f != custom_resource_definitions.CLEANUP]
        if obj["metadata"]["finalizers"]:
            self._core.put(resource, obj, stored)
        else:
            self._core.remove(resource, stored.key)
        return False

    def _judge_again(self, resource: Resource, stored: Stored) -> None:
        definition = stored.obj()
        if is_true(definition, "NamesAccepted"):
            return
        custom_resource_definitions.judge(self._core, definition)
        if _claims(definition) != _claims(stored.obj()):
            self._core.put(resource, definition, stored)


def _keys_in(table: Table, namespace: str) -> list[Key]:
    first, last = bisect_left(table.order, f"{namespace}/"), bisect_left(table.order, f"{namespace}0")
    return [key_at(order) for order in table.order[first:last]]


def _claims(definition: Obj) -> list[tuple[str, str]]:
    return [(c["type"], c["status"]) for c in definition["status"].get("conditions") or ()]

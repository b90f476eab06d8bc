"""Namespaces and definitions hold other objects: they go when the last of those has gone.

Looked at by the collector whenever one of them is leaving and whenever something it held went away.
"""

from __future__ import annotations

from bisect import bisect_left

from shoal.cluster.client import DeleteOptions, DeletionPropagation
from shoal.cluster.delete import Deleter
from shoal.cluster.registry import Core, Resource
from shoal.cluster.store.tables import key_at
from shoal.cluster.strategies import custom_resource_definitions
from shoal.cluster.types import Stored
from shoal.kube import kinds
from shoal.kube.conditions import is_true, with_condition
from shoal.kube.objects import Key, Obj

BATCH = 200  # deletions per pass: a large namespace must not hold up the event loop
_KUBERNETES = "kubernetes"
_IN_BACKGROUND = DeleteOptions(propagation=DeletionPropagation.BACKGROUND)


class NamespaceLifecycle:
    def __init__(self, core: Core, deleter: Deleter) -> None:
        self._core = core
        self._deleter = deleter

    def empty(self, resource: Resource, stored: Stored) -> bool:
        """True if there is more to delete at once; what lingers triggers another pass when it is deleted."""
        if resource.kind == kinds.NAMESPACE:
            return self._empty_namespace(resource, stored)
        if stored.terminating:
            return self._empty_definition(resource, stored)
        definition = stored.obj()
        if not is_true(definition, "NamesAccepted"):  # another definition may have released the names it wants
            custom_resource_definitions.update_conditions(self._core, definition)
            if _condition_states(definition) != _condition_states(stored.obj()):
                self._core.put(resource, definition, stored)
        return False

    # Namespaces

    def _empty_namespace(self, resource: Resource, stored: Stored) -> bool:
        name = stored.key.name
        remaining: list[Stored] = []
        for storage_resource in self._core.storage_resources():
            if storage_resource.kind.namespaced:
                order = storage_resource.table.order
                first, last = bisect_left(order, f"{name}/"), bisect_left(order, f"{name}0")  # '0' is right after '/'
                remaining += self._delete_all(storage_resource, [key_at(each) for each in order[first:last]])
            if len(remaining) >= BATCH:
                return True
        if any(not item.terminating for item in remaining):
            return True
        if remaining:
            self._set_remaining_conditions(resource, stored, remaining)
            return False
        namespace = stored.obj()
        other_finalizers = [name for name in namespace["spec"].get("finalizers") or () if name != _KUBERNETES]
        if not other_finalizers and not stored.finalizers:
            self._core.remove(resource, stored.key)
        elif other_finalizers != namespace["spec"].get("finalizers"):
            namespace["spec"]["finalizers"] = other_finalizers
            self._core.put(resource, namespace, stored)
        return False

    def _delete_all(self, storage_resource: Resource, keys: list[Key]) -> list[Stored]:
        """Deletes each of them; returns those that still exist afterwards."""
        remaining = []
        for key in keys[:BATCH]:
            item = storage_resource.table.objects[key]
            if not item.terminating:
                self._deleter.delete(storage_resource, key, _IN_BACKGROUND)
            still = storage_resource.table.objects.get(key)
            if still is not None:
                remaining.append(still)
        return remaining + [storage_resource.table.objects[key] for key in keys[BATCH:]]

    def _set_remaining_conditions(self, resource: Resource, stored: Stored, remaining: list[Stored]) -> None:
        namespace = stored.obj()
        status = namespace.setdefault("status", {})
        counts: dict[str, int] = {}
        finalizers: dict[str, int] = {}
        for item in remaining:
            counts[item.kind.resource] = counts.get(item.kind.resource, 0) + 1
            for name in item.finalizers:
                finalizers[name] = finalizers.get(name, 0) + 1
        what = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(counts.items()))
        message = f"Some resources are remaining: {what}"
        self._set_condition(status, "NamespaceContentRemaining", "SomeResourcesRemain", message)
        if finalizers:
            which = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
            message = f"Some content in the namespace has finalizers remaining: {which}"
            self._set_condition(status, "NamespaceFinalizersRemaining", "SomeFinalizersRemain", message)
        if namespace != stored.obj():
            self._core.put(resource, namespace, stored)

    def _set_condition(self, status: Obj, type_: str, reason: str, message: str) -> None:
        status["conditions"] = with_condition(
            status.get("conditions"), type_, True, now=self._core.now(), reason=reason, message=message
        )

    # Definitions

    def _empty_definition(self, resource: Resource, stored: Stored) -> bool:
        storage_resource = self._core.storage_resource(self._core.store.table(stored.key.name))
        if storage_resource is not None:
            remaining = self._delete_all(storage_resource, list(storage_resource.table.objects))
            if any(not item.terminating for item in remaining):
                return True
            if remaining:
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


def _condition_states(definition: Obj) -> list[tuple[str, str]]:
    return [(c["type"], c["status"]) for c in definition["status"].get("conditions") or ()]

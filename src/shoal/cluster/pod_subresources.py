"""Binding and eviction: the two things a scheduler does to pods."""

from __future__ import annotations

from shoal.cluster import disruption_budget
from shoal.cluster.client import DeleteOptions, DeletionPropagation, Preconditions
from shoal.cluster.delete import Deleter, check_preconditions
from shoal.cluster.registry import Core
from shoal.cluster.types import DeleteResult, Stored
from shoal.kube import kinds
from shoal.kube.conditions import with_condition
from shoal.kube.defaults import pod_defaults
from shoal.kube.errors import ApiError, bad_request, conflict, invalid
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj, at_path
from shoal.kube.validation import validate_binding

_BINDING = Kind("", "v1", "Binding", "bindings")
_POD_BINDING = Kind("", "v1", "Pod", "pods/binding")


class PodSubresources:
    def __init__(self, core: Core) -> None:
        self._core = core

    def bind(self, key: Key, binding: Obj, *, dry_run: bool) -> Stored:
        resource = self._core.pods
        name = at_path(binding, "metadata", "name", default="")
        if name and name != key.name:
            raise bad_request("name in URL does not match name in Binding object")
        if causes := validate_binding(binding):
            raise invalid(_BINDING, key.name, causes)
        stored = self._core.stored(resource, key)
        meta = binding.get("metadata") or {}
        if meta.get("uid") and meta["uid"] != stored.uid:
            why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {stored.uid}"
            raise conflict(kinds.POD, key.name, why)
        version = meta.get("resourceVersion")
        if version and version != str(stored.revision):
            raise conflict(
                kinds.POD, key.name,
                f"Precondition failed: ResourceVersion in precondition: {version}, "
                f"ResourceVersion in object meta: {stored.revision}",
            )  # fmt: skip
        pod = stored.obj()
        _check_free(pod, key.name)
        pod["spec"]["nodeName"] = str(binding["target"]["name"])
        pod_meta = pod["metadata"]
        if pod_meta.get("generation"):
            pod_meta["generation"] += 1
        for field in ("annotations", "labels"):
            if meta.get(field):
                pod_meta[field] = {**(pod_meta.get(field) or {}), **meta[field]}
        status = pod.setdefault("status", {})
        status.pop("nominatedNodeName", None)
        status["conditions"] = with_condition(status.get("conditions"), "PodScheduled", True, now=self._core.now())
        pod_defaults.conditions(status)
        if dry_run:
            return self._core.build_stored(resource, pod, 0, stored)
        return self._core.put(resource, pod, stored)

    def evict(self, deleter: Deleter, key: Key, eviction: Obj, *, dry_run: bool) -> DeleteResult:
        name = (eviction.get("metadata") or {}).get("name")
        if name and name != key.name:
            raise bad_request("name in URL does not match name in Eviction object")
        delete_options = eviction.get("deleteOptions") or {}
        preconditions = delete_options.get("preconditions") or {}
        policy = delete_options.get("propagationPolicy")
        if policy is not None and policy not in list(DeletionPropagation):
            raise bad_request(f"propagationPolicy {policy!r} is none of Foreground, Background, Orphan")
        options = DeleteOptions(
            grace_seconds=delete_options.get("gracePeriodSeconds"),
            propagation=DeletionPropagation(policy) if policy else None,
            preconditions=Preconditions(preconditions.get("uid"), preconditions.get("resourceVersion")),
            dry_run=dry_run or bool(delete_options.get("dryRun")),
        )
        pod = self._core.stored(self._core.pods, key)
        check_preconditions(self._core.pods, pod, options)  # what is refused must not be taken from a budget
        disruption_budget.check_and_decrement(self._core, pod.obj(), dry_run=options.dry_run)
        return deleter.evict(key, options)


def _check_free(pod: Obj, name: str) -> None:
    if pod["metadata"].get("deletionTimestamp"):
        raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    node = pod["spec"].get("nodeName")
    if node:
        raise _conflict(name, f'pod {name} is already assigned to node "{node}"')
    if pod["spec"].get("schedulingGates"):
        raise _conflict(name, f"pod {name} has non-empty .spec.schedulingGates")


def _conflict(name: str, why: str) -> ApiError:
    return conflict(_POD_BINDING, name, why)

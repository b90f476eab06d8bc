"""Whether an object is valid: every error at once, with the messages of Kubernetes.

`validate_create` and `validate_update` take an object whose types were checked and whose defaults are filled in, and
return the causes for a 422 response, in the order a real API server gives them; an empty list means the object may be
stored. Each family of kinds has a module; the rules are generators that yield `Cause`s. Custom kinds get the metadata
rules here and their schema's rules from `shoal.kube.structural_schema`; a CustomResourceDefinition's own rules are
there too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from shoal.kube import kinds
from shoal.kube.errors import Cause, bounded
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj
from shoal.kube.validation import (
    cluster,
    config,
    endpoints,
    events,
    metadata,
    pod_updates,
    pods,
    policy,
    services,
    storage,
    workloads,
)

Create = Callable[[Obj], Iterator[Cause]]
Update = Callable[[Obj, Obj], Iterator[Cause]]


def _place(kind: Kind) -> tuple[str, str]:
    return kind.group, kind.plural


_CREATE: dict[tuple[str, str], Create] = {
    _place(kind): rule
    for kind, rule in {
        kinds.POD: pods.on_create,
        kinds.SERVICE: services.on_create,
        kinds.CONFIG_MAP: config.config_map_on_create,
        kinds.SECRET: config.secret_on_create,
        kinds.NAMESPACE: cluster.namespace_on_create,
        kinds.NODE: cluster.node_on_create,
        kinds.PRIORITY_CLASS: cluster.priority_class_on_create,
        kinds.LEASE: cluster.lease_on_create,
        kinds.PERSISTENT_VOLUME: storage.volume_on_create,
        kinds.PERSISTENT_VOLUME_CLAIM: storage.claim_on_create,
        kinds.RESOURCE_QUOTA: policy.quota_on_create,
        kinds.POD_DISRUPTION_BUDGET: policy.budget_on_create,
        kinds.STORAGE_CLASS: policy.storage_class_on_create,
        kinds.EVENT: events.on_create,
        kinds.EVENT_V1: events.v1_on_create,
        kinds.REPLICA_SET: workloads.replica_set_on_create,
        kinds.REPLICA_SET_V1BETA1: workloads.replica_set_on_create,
        kinds.DEPLOYMENT: workloads.deployment_on_create,
        kinds.JOB: workloads.job_on_create,
    }.items()
}
_UPDATE: dict[tuple[str, str], Update] = {
    _place(kind): rule
    for kind, rule in {
        kinds.POD: pod_updates.on_update,
        kinds.SERVICE: services.on_update,
        kinds.CONFIG_MAP: config.config_map_on_update,
        kinds.SECRET: config.secret_on_update,
        kinds.NAMESPACE: cluster.namespace_on_update,
        kinds.NODE: cluster.node_on_update,
        kinds.PRIORITY_CLASS: cluster.priority_class_on_update,
        kinds.LEASE: cluster.lease_on_update,
        kinds.PERSISTENT_VOLUME: storage.volume_on_update,
        kinds.PERSISTENT_VOLUME_CLAIM: storage.claim_on_update,
        kinds.RESOURCE_QUOTA: policy.quota_on_update,
        kinds.POD_DISRUPTION_BUDGET: policy.budget_on_update,
        kinds.STORAGE_CLASS: policy.storage_class_on_update,
        kinds.EVENT: events.on_update,
        kinds.EVENT_V1: events.v1_on_update,
        kinds.REPLICA_SET: workloads.replica_set_on_update,
        kinds.REPLICA_SET_V1BETA1: workloads.replica_set_on_update,
        kinds.DEPLOYMENT: workloads.deployment_on_update,
        kinds.JOB: workloads.job_on_update,
    }.items()
}
_SUBRESOURCE: dict[tuple[str, str, str], Update] = {
    (*_place(kind), subresource): rule
    for (kind, subresource), rule in {
        (kinds.POD, "status"): pod_updates.on_status,
        (kinds.NODE, "status"): cluster.node_on_update,
        (kinds.NAMESPACE, "status"): cluster.namespace_on_status,
        (kinds.NAMESPACE, "finalize"): cluster.namespace_on_finalize,
        (kinds.PERSISTENT_VOLUME_CLAIM, "status"): storage.claim_on_status,
        (kinds.RESOURCE_QUOTA, "status"): policy.quota_on_status,
    }.items()
}
_ENDPOINTS, _SLICES = _place(kinds.ENDPOINTS), _place(kinds.ENDPOINT_SLICE)


def validate_create(kind: Kind, obj: Obj, *, allow_loopback: bool = False) -> list[Cause]:
    """The errors in a new object. `allow_loopback` permits endpoints at 127.x.y.z."""
    place = _place(kind)
    if place == _ENDPOINTS:
        return bounded(endpoints.endpoints_on_create(obj, allow_loopback=allow_loopback))
    if place == _SLICES:
        return bounded(endpoints.slice_on_create(obj, allow_loopback=allow_loopback))
    rule = _CREATE.get(place) or partial(metadata.on_create, kind)
    return bounded(rule(obj))


def validate_update(
    kind: Kind, new: Obj, old: Obj, subresource: str = "", *, allow_loopback: bool = False
) -> list[Cause]:
    """What is wrong with a change. `old` is the object as it is stored; both have their defaults."""
    place = _place(kind)
    if place == _ENDPOINTS:
        return bounded(endpoints.endpoints_on_update(new, old, allow_loopback=allow_loopback))
    if place == _SLICES:
        return bounded(endpoints.slice_on_update(new, old, allow_loopback=allow_loopback))
    rule = _SUBRESOURCE.get((*place, subresource)) if subresource else _UPDATE.get(place)
    return list(dict.fromkeys(bounded((rule or partial(metadata.on_update, kind))(new, old))))


def validate_addresses(service: Obj) -> list[Cause]:
    """The errors in the addresses that a new Service requests; to be checked before one is allocated."""
    return list(services.addresses(service.get("spec") or {}, []))


def validate_binding(binding: Obj) -> list[Cause]:
    """What is wrong with a Binding, the request that places a pod."""
    return list(pod_updates.binding(binding))

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
    cluster_rules,
    config_rules,
    endpoint_rules,
    event_rules,
    metadata_rules,
    pod_rules,
    pod_update_rules,
    policy_rules,
    service_rules,
    storage_rules,
    workload_rules,
)

Create = Callable[[Obj], Iterator[Cause]]
Update = Callable[[Obj, Obj], Iterator[Cause]]


def _place(kind: Kind) -> tuple[str, str]:
    return kind.group, kind.plural


_CREATE: dict[tuple[str, str], Create] = {
    _place(kind): rule
    for kind, rule in {
        kinds.POD: pod_rules.on_create,
        kinds.SERVICE: service_rules.on_create,
        kinds.CONFIG_MAP: config_rules.config_map_on_create,
        kinds.SECRET: config_rules.secret_on_create,
        kinds.NAMESPACE: cluster_rules.namespace_on_create,
        kinds.NODE: cluster_rules.node_on_create,
        kinds.PRIORITY_CLASS: cluster_rules.priority_class_on_create,
        kinds.LEASE: cluster_rules.lease_on_create,
        kinds.PERSISTENT_VOLUME: storage_rules.volume_on_create,
        kinds.PERSISTENT_VOLUME_CLAIM: storage_rules.claim_on_create,
        kinds.RESOURCE_QUOTA: policy_rules.quota_on_create,
        kinds.POD_DISRUPTION_BUDGET: policy_rules.budget_on_create,
        kinds.STORAGE_CLASS: policy_rules.storage_class_on_create,
        kinds.EVENT: event_rules.on_create,
        kinds.EVENT_V1: event_rules.v1_on_create,
        kinds.REPLICA_SET: workload_rules.replica_set_on_create,
        kinds.REPLICA_SET_V1BETA1: workload_rules.replica_set_on_create,
        kinds.DEPLOYMENT: workload_rules.deployment_on_create,
        kinds.JOB: workload_rules.job_on_create,
    }.items()
}
_UPDATE: dict[tuple[str, str], Update] = {
    _place(kind): rule
    for kind, rule in {
        kinds.POD: pod_update_rules.on_update,
        kinds.SERVICE: service_rules.on_update,
        kinds.CONFIG_MAP: config_rules.config_map_on_update,
        kinds.SECRET: config_rules.secret_on_update,
        kinds.NAMESPACE: cluster_rules.namespace_on_update,
        kinds.NODE: cluster_rules.node_on_update,
        kinds.PRIORITY_CLASS: cluster_rules.priority_class_on_update,
        kinds.LEASE: cluster_rules.lease_on_update,
        kinds.PERSISTENT_VOLUME: storage_rules.volume_on_update,
        kinds.PERSISTENT_VOLUME_CLAIM: storage_rules.claim_on_update,
        kinds.RESOURCE_QUOTA: policy_rules.quota_on_update,
        kinds.POD_DISRUPTION_BUDGET: policy_rules.budget_on_update,
        kinds.STORAGE_CLASS: policy_rules.storage_class_on_update,
        kinds.EVENT: event_rules.on_update,
        kinds.EVENT_V1: event_rules.v1_on_update,
        kinds.REPLICA_SET: workload_rules.replica_set_on_update,
        kinds.REPLICA_SET_V1BETA1: workload_rules.replica_set_on_update,
        kinds.DEPLOYMENT: workload_rules.deployment_on_update,
        kinds.JOB: workload_rules.job_on_update,
    }.items()
}
_SUBRESOURCE: dict[tuple[str, str, str], Update] = {
    (*_place(kind), subresource): rule
    for (kind, subresource), rule in {
        (kinds.POD, "status"): pod_update_rules.on_status,
        (kinds.NODE, "status"): cluster_rules.node_on_update,
        (kinds.NAMESPACE, "status"): cluster_rules.namespace_on_status,
        (kinds.NAMESPACE, "finalize"): cluster_rules.namespace_on_finalize,
        (kinds.PERSISTENT_VOLUME_CLAIM, "status"): storage_rules.claim_on_status,
        (kinds.RESOURCE_QUOTA, "status"): policy_rules.quota_on_status,
    }.items()
}
_ENDPOINTS, _SLICES = _place(kinds.ENDPOINTS), _place(kinds.ENDPOINT_SLICE)


def validate_create(kind: Kind, obj: Obj, *, allow_loopback: bool = False) -> list[Cause]:
    """The errors in a new object. `allow_loopback` permits endpoints at 127.x.y.z."""
    place = _place(kind)
    if place == _ENDPOINTS:
        return bounded(endpoint_rules.endpoints_on_create(obj, allow_loopback=allow_loopback))
    if place == _SLICES:
        return bounded(endpoint_rules.slice_on_create(obj, allow_loopback=allow_loopback))
    rule = _CREATE.get(place) or partial(metadata_rules.on_create, kind)
    return bounded(rule(obj))


def validate_update(
    kind: Kind, new: Obj, old: Obj, subresource: str = "", *, allow_loopback: bool = False
) -> list[Cause]:
    """The errors in a change. `old` is the object as it is stored; both have their defaults."""
    place = _place(kind)
    if place == _ENDPOINTS:
        return bounded(endpoint_rules.endpoints_on_update(new, old, allow_loopback=allow_loopback))
    if place == _SLICES:
        return bounded(endpoint_rules.slice_on_update(new, old, allow_loopback=allow_loopback))
    rule = _SUBRESOURCE.get((*place, subresource)) if subresource else _UPDATE.get(place)
    return list(dict.fromkeys(bounded((rule or partial(metadata_rules.on_update, kind))(new, old))))


def validate_addresses(service: Obj) -> list[Cause]:
    """The errors in the addresses that a new Service requests; to be checked before one is allocated."""
    return list(service_rules.addresses(service.get("spec") or {}, []))


def validate_binding(binding: Obj) -> list[Cause]:
    """The errors in a Binding, the request that places a pod."""
    return list(pod_update_rules.binding(binding))

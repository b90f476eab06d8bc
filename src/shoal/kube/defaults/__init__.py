"""What an API server fills in before it stores an object of a built-in kind.

`apply_defaults` changes the object in place and may be called again at any time: a second call changes
nothing. It expects an object whose types have been checked. What needs more than the object itself (a
cluster IP, the value of a PriorityClass, uid and timestamps, the first status) is added by `shoal.cluster`; the
defaults of custom resources are in `shoal.kube.structural_schema`.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.kube import kinds
from shoal.kube.defaults import (
    core_defaults,
    crd_defaults,
    pod_defaults,
    policy_defaults,
    service_defaults,
    storage_defaults,
    workload_defaults,
)
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

_RULES: dict[Kind, Callable[[Obj], None]] = {
    kinds.POD: pod_defaults.apply,
    kinds.SERVICE: service_defaults.service,
    kinds.ENDPOINTS: service_defaults.endpoints,
    kinds.ENDPOINT_SLICE: service_defaults.endpoint_slice,
    kinds.NAMESPACE: core_defaults.namespace,
    kinds.NODE: core_defaults.node,
    kinds.SECRET: core_defaults.secret,
    kinds.EVENT: core_defaults.event,
    kinds.EVENT_V1: core_defaults.event_v1,
    kinds.PRIORITY_CLASS: core_defaults.priority_class,
    kinds.LEASE: core_defaults.lease,
    kinds.PERSISTENT_VOLUME: storage_defaults.volume,
    kinds.PERSISTENT_VOLUME_CLAIM: storage_defaults.claim,
    kinds.RESOURCE_QUOTA: policy_defaults.quota,
    kinds.POD_DISRUPTION_BUDGET: policy_defaults.budget,
    kinds.STORAGE_CLASS: policy_defaults.storage_class,
    kinds.REPLICA_SET: workload_defaults.replica_set,
    kinds.REPLICA_SET_V1BETA1: workload_defaults.early_replica_set,
    kinds.DEPLOYMENT: workload_defaults.deployment,
    kinds.JOB: workload_defaults.job,
    kinds.CUSTOM_RESOURCE_DEFINITION: crd_defaults.definition,
}
_BY_RESOURCE = {(kind.group, kind.plural): rule for kind, rule in _RULES.items()}


def apply_defaults(kind: Kind, obj: Obj) -> None:
    """Fill in missing fields, in place. Kinds without defaults are left as they are."""
    rule = _BY_RESOURCE.get((kind.group, kind.plural))
    if rule is not None:
        rule(obj)

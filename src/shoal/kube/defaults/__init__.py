"""What an API server fills in before it stores an object of a built-in kind.

`apply_defaults` changes the object in place and may be called again at any time: a second call changes
nothing. It expects an object whose types have been checked. What needs more than the object itself (a
cluster IP, the value of a PriorityClass, uid and timestamps, the first status) is the machinery's; the
defaults of custom resources are in `shoal.kube.structural_schema`.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.kube import kinds
from shoal.kube.defaults import core, crd, pods, policy, services, storage, workloads
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

_RULES: dict[Kind, Callable[[Obj], None]] = {
    kinds.POD: pods.apply,
    kinds.SERVICE: services.service,
    kinds.ENDPOINTS: services.endpoints,
    kinds.ENDPOINT_SLICE: services.endpoint_slice,
    kinds.NAMESPACE: core.namespace,
    kinds.NODE: core.node,
    kinds.SECRET: core.secret,
    kinds.EVENT: core.event,
    kinds.EVENT_V1: core.event_v1,
    kinds.PRIORITY_CLASS: core.priority_class,
    kinds.LEASE: core.lease,
    kinds.PERSISTENT_VOLUME: storage.volume,
    kinds.PERSISTENT_VOLUME_CLAIM: storage.claim,
    kinds.RESOURCE_QUOTA: policy.quota,
    kinds.POD_DISRUPTION_BUDGET: policy.budget,
    kinds.STORAGE_CLASS: policy.storage_class,
    kinds.REPLICA_SET: workloads.replica_set,
    kinds.REPLICA_SET_V1BETA1: workloads.early_replica_set,
    kinds.DEPLOYMENT: workloads.deployment,
    kinds.JOB: workloads.job,
    kinds.CUSTOM_RESOURCE_DEFINITION: crd.definition,
}
_BY_RESOURCE = {(kind.group, kind.plural): rule for kind, rule in _RULES.items()}


def apply_defaults(kind: Kind, obj: Obj) -> None:
    """Fill in what the person left out, in place. Kinds without defaults are left as they are."""
    rule = _BY_RESOURCE.get((kind.group, kind.plural))
    if rule is not None:
        rule(obj)

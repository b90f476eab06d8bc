"""A policy per kind: what its writes fill in, keep and count. Everything else is the same for all kinds."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.cluster.strategies import definitions, pods, services, small, workloads
from shoal.cluster.strategies.base import Generation, Rules, carry, counts
from shoal.kube import kinds
from shoal.kube.kinds import Kind

_RULES: Mapping[str, Rules] = {
    kinds.POD.resource: pods.RULES,
    kinds.SERVICE.resource: services.RULES,
    kinds.NAMESPACE.resource: small.NAMESPACE,
    kinds.NODE.resource: small.NODE,
    kinds.PERSISTENT_VOLUME.resource: small.VOLUME,
    kinds.PERSISTENT_VOLUME_CLAIM.resource: small.CLAIM,
    kinds.PRIORITY_CLASS.resource: small.PRIORITY_CLASS,
    kinds.POD_DISRUPTION_BUDGET.resource: small.BUDGET,
    kinds.ENDPOINT_SLICE.resource: small.ENDPOINT_SLICE,
    kinds.ENDPOINTS.resource: small.ENDPOINTS,
    kinds.EVENT.resource: small.EVENT,
    kinds.EVENT_V1.resource: small.EVENT,
    kinds.LEASE.resource: small.LEASE,
    kinds.REPLICA_SET.resource: workloads.REPLICA_SET,
    kinds.REPLICA_SET_V1BETA1.resource: workloads.REPLICA_SET,
    kinds.DEPLOYMENT.resource: workloads.DEPLOYMENT,
    kinds.JOB.resource: workloads.JOB,
    kinds.CUSTOM_RESOURCE_DEFINITION.resource: definitions.RULES,
}
_PLAIN = Rules()


def rules_of(kind: Kind) -> Rules:
    if kind.custom:
        return definitions.CUSTOM_WITH_STATUS if "status" in kind.subresources else definitions.CUSTOM
    return _RULES.get(kind.resource, _PLAIN)


__all__ = ["Generation", "Rules", "carry", "counts", "rules_of"]

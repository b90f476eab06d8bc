"""A policy per kind: what its writes fill in, keep and count. Everything else is the same for all kinds."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.cluster.strategies import custom_resource_definitions, misc, pods, services, workloads
from shoal.cluster.strategies.base import Generation, Strategy, bumps_generation, keep_field
from shoal.kube import kinds
from shoal.kube.kinds import Kind

_STRATEGIES: Mapping[str, Strategy] = {
    kinds.POD.resource: pods.STRATEGY,
    kinds.SERVICE.resource: services.STRATEGY,
    kinds.NAMESPACE.resource: misc.NAMESPACE,
    kinds.NODE.resource: misc.NODE,
    kinds.PERSISTENT_VOLUME.resource: misc.VOLUME,
    kinds.PERSISTENT_VOLUME_CLAIM.resource: misc.CLAIM,
    kinds.PRIORITY_CLASS.resource: misc.PRIORITY_CLASS,
    kinds.POD_DISRUPTION_BUDGET.resource: misc.BUDGET,
    kinds.ENDPOINT_SLICE.resource: misc.ENDPOINT_SLICE,
    kinds.ENDPOINTS.resource: misc.ENDPOINTS,
    kinds.EVENT.resource: misc.EVENT,
    kinds.EVENT_V1.resource: misc.EVENT,
    kinds.LEASE.resource: misc.LEASE,
    kinds.REPLICA_SET.resource: workloads.REPLICA_SET,
    kinds.REPLICA_SET_V1BETA1.resource: workloads.REPLICA_SET,
    kinds.DEPLOYMENT.resource: workloads.DEPLOYMENT,
    kinds.JOB.resource: workloads.JOB,
    kinds.CUSTOM_RESOURCE_DEFINITION.resource: custom_resource_definitions.STRATEGY,
}
_PLAIN = Strategy()


def strategy_of(kind: Kind) -> Strategy:
    if kind.custom:
        return (
            custom_resource_definitions.CUSTOM_WITH_STATUS
            if "status" in kind.subresources
            else custom_resource_definitions.CUSTOM
        )
    return _STRATEGIES.get(kind.resource, _PLAIN)


__all__ = ["Generation", "Strategy", "bumps_generation", "keep_field", "strategy_of"]

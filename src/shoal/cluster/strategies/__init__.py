"""A policy per kind: what its writes fill in, keep and count. Everything else is the same for all kinds."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.cluster.strategies import builtin_strategies, custom_resource_definitions, pod_strategy, service_strategy
from shoal.cluster.strategies.strategy import Generation, Strategy, bumps_generation, keep_field
from shoal.kube import kinds
from shoal.kube.kinds import Kind

_STRATEGIES: Mapping[str, Strategy] = {
    kinds.POD.resource: pod_strategy.STRATEGY,
    kinds.SERVICE.resource: service_strategy.STRATEGY,
    kinds.NAMESPACE.resource: builtin_strategies.NAMESPACE,
    kinds.NODE.resource: builtin_strategies.NODE,
    kinds.PERSISTENT_VOLUME.resource: builtin_strategies.VOLUME,
    kinds.PERSISTENT_VOLUME_CLAIM.resource: builtin_strategies.CLAIM,
    kinds.PRIORITY_CLASS.resource: builtin_strategies.PRIORITY_CLASS,
    kinds.POD_DISRUPTION_BUDGET.resource: builtin_strategies.BUDGET,
    kinds.ENDPOINT_SLICE.resource: builtin_strategies.ENDPOINT_SLICE,
    kinds.ENDPOINTS.resource: builtin_strategies.ENDPOINTS,
    kinds.EVENT.resource: builtin_strategies.EVENT,
    kinds.EVENT_V1.resource: builtin_strategies.EVENT,
    kinds.LEASE.resource: builtin_strategies.LEASE,
    kinds.REPLICA_SET.resource: builtin_strategies.REPLICA_SET,
    kinds.REPLICA_SET_V1BETA1.resource: builtin_strategies.REPLICA_SET,
    kinds.DEPLOYMENT.resource: builtin_strategies.DEPLOYMENT,
    kinds.JOB.resource: builtin_strategies.JOB,
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

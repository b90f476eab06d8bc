"""Rules between the fields of a training job, in CEL, for the definitions of the languages.

An API server estimates the cost of a rule before it accepts it, so that maps and lists are bounded.
"""

from __future__ import annotations

from shoal.kube.objects import Obj

MOST_ROLES = 4
_ROLES = "self.pytorchReplicaSpecs"


def rule(text: str, message: str, *, at: str = "", reason: str = "FieldValueInvalid") -> Obj:
    made = {"rule": text, "message": message, "reason": reason}
    return {**made, "fieldPath": f".{at}"} if at else made


def of_role(role: str, condition: str, *, otherwise: str = "true") -> str:
    """A condition on `{r}`, the replicas of the role, in whatever case its key is written."""
    return (
        f"{_ROLES}.exists(k, k.lowerAscii() == '{role}') ? "
        f"{_ROLES}.all(k, k.lowerAscii() != '{role}' || {condition.format(r=f'{_ROLES}[k]')}) : {otherwise}"
    )


def of_roles() -> list[Obj]:
    """Which roles there may be, and that a Master is one pod."""
    return [
        rule(
            f"{_ROLES}.all(k, k.lowerAscii() in ['master', 'worker'])",
            "the roles are Master and Worker; others are not served",
            at="pytorchReplicaSpecs",
            reason="FieldValueForbidden",
        ),
        rule(
            f"{_ROLES}.all(k, {_ROLES}.exists_one(j, j.lowerAscii() == k.lowerAscii()))",
            "a role is written twice, in different case",
            at="pytorchReplicaSpecs",
            reason="FieldValueDuplicate",
        ),
        rule(
            of_role("master", "!has({r}.replicas) || {r}.replicas == 1"),
            "there is one Master",
            at="pytorchReplicaSpecs",
        ),
    ]


def of_bounds() -> list[Obj]:
    """Of an elastic policy."""
    return [
        rule(
            "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
            "minReplicas is more than maxReplicas",
            at="maxReplicas",
        )
    ]


def workers_within(policy: str) -> Obj:
    """That the number of workers is within the bounds of the policy, where it has both."""
    size = f"({_ROLES}[k].?replicas.orValue(1))"
    within = f"{policy}.minReplicas <= {size} && {size} <= {policy}.maxReplicas"
    return rule(
        f"!has({policy}) || !has({policy}.minReplicas) || !has({policy}.maxReplicas) || "
        f"{_ROLES}.all(k, k.lowerAscii() != 'worker' || ({within}))",
        "the number of Workers is not between minReplicas and maxReplicas of the elasticPolicy",
        at="pytorchReplicaSpecs",
    )

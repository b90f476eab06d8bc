"""Policies 16 and 17: other children of a job, and the group its members form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shoal.engine.policies.gates import Lifetime
from shoal.engine.policies.retry import BudgetScope


@dataclass(frozen=True, slots=True)
class OwnedObject:
    """Any other child. `digest` names its setting; it is applied where the object shows another one."""

    name: str
    scope: BudgetScope = BudgetScope.JOB
    lifetime: Lifetime = Lifetime.UNTIL_END
    digest: str = ""
    roles: frozenset[str] = frozenset()  # for scope ROLE and TASK; empty: all
    behind_gate: bool = False  # of a role or task: created only where the role may create pods
    write_back: bool = False  # its name is stored in the spec


@dataclass(frozen=True, slots=True)
class Rendezvous:
    published: bool = False  # the members and their round are in the job state
    frozen: Mapping[str, int] = field(default_factory=dict)  # values of the spec fixed when the first run opens

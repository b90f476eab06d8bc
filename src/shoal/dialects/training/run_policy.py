"""How long a job may run, how often it may fail, and what is deleted when it ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shoal.engine.policies import (
    BudgetScope,
    BudgetUnit,
    KeepPods,
    Propagation,
    RetryBudget,
    Teardown,
    Timeouts,
    WhenEmpty,
)
from shoal.engine.types import FailureClass, Outcome

CREATION_SECONDS = 300  # a pod that was created and is not observed for so long is lost

BACKOFF_LIMIT = Outcome(FailureClass.UNKNOWN, code=1, phrase="BackoffLimitExceeded", text="No retry is left")
DEADLINE = Outcome(FailureClass.UNKNOWN, code=1, phrase="DeadlineExceeded", text="The deadline is over")

_KEPT = {"All": KeepPods.NONE, "Running": KeepPods.FINISHED, "None": KeepPods.ALL}


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of one job. None: there is no such limit."""

    deadline_seconds: int | None = None
    ttl_seconds: int | None = None
    backoff_limit: int | None = None
    clean_pod_policy: str = "None"
    stops_on_failure: bool = False  # running pods of a failed job are deleted although the policy says None

    def timeouts(self) -> Timeouts:
        return Timeouts(
            deadline_seconds=self.deadline_seconds,
            deadline_outcome=DEADLINE,
            ttl_seconds=self.ttl_seconds,
            propagation=Propagation.BACKGROUND,
            creation_seconds=CREATION_SECONDS,
        )

    def teardown(self) -> Teardown:
        kept = _KEPT[self.clean_pod_policy]
        after_failure = KeepPods.FINISHED if self.stops_on_failure and kept is KeepPods.ALL else None
        return Teardown(at_retry=KeepPods.NONE, at_end=kept, at_failed_end=after_failure)

    def budgets(self, restarted_in_place: Iterable[str]) -> tuple[RetryBudget, ...]:
        """Pods that are created again are counted even where nothing limits them. Restarts in place have a budget of
        their own, one smaller: the limit fails the job when it is reached, not when it is exceeded."""
        limit = self.backoff_limit
        pods = RetryBudget(BudgetUnit.PODS, BudgetScope.JOB, limit, when_empty=WhenEmpty.FAIL, outcome=BACKOFF_LIMIT)
        roles = frozenset(restarted_in_place)
        if limit is None or not roles:
            return (pods,)
        containers = RetryBudget(
            BudgetUnit.CONTAINERS, BudgetScope.JOB, max(limit - 1, 0),
            when_empty=WhenEmpty.FAIL, outcome=BACKOFF_LIMIT, roles=roles,
        )  # fmt: skip
        return (pods, containers)

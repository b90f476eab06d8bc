"""Disruption budgets: how many pods of a kind may be evicted before others of it are back.

Only pods that run are counted: a pod that waits for its first process may be evicted at any time. A pod under two
budgets is never evicted, because no server would allow it.

A budget's own figure and what was taken of it stay separate: an evicted pod takes a share at once, and returns it if
the eviction fails. A budget that has just rejected an eviction, whatever its figure, allows nothing as long as the pod
that it kept is left alone. Its next figure ends both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from shoal.kube.messages import Message
from shoal.kube.objects import Key
from shoal.kube.selectors import LabelSelector
from shoal.scheduler.planner.node_and_pod_types import Pod, PodState

MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    selector: LabelSelector
    allowed: int


class DisruptionBudgets:
    def __init__(self) -> None:
        self._of: dict[str, dict[Key, DisruptionBudget]] = {}  # by namespace
        self._taken: dict[Key, set[Key]] = {}  # pods evicted since the figure was received, by budget
        self._refused: dict[Key, set[Key]] = {}  # pods that it kept since then

    def __bool__(self) -> bool:
        return bool(self._of)

    def has_budgets(self, namespace: str) -> bool:
        return namespace in self._of

    def get(self, key: Key) -> DisruptionBudget | None:
        """With what is left of it."""
        found = self._of.get(key.namespace, {}).get(key)
        return None if found is None else replace(found, allowed=self.left(key))

    def left(self, key: Key) -> int:
        found = self._of.get(key.namespace, {}).get(key)
        if found is None or key in self._refused:
            return 0
        return max(found.allowed - len(self._taken.get(key, ())), 0)

    def set(self, key: Key, budget: DisruptionBudget) -> None:
        self._of.setdefault(key.namespace, {})[key] = budget
        self._begin_anew(key)

    def remove(self, key: Key) -> None:
        found = self._of.get(key.namespace, {})
        found.pop(key, None)
        if not found:
            self._of.pop(key.namespace, None)
        self._begin_anew(key)

    def _begin_anew(self, key: Key) -> None:
        self._taken.pop(key, None)
        self._refused.pop(key, None)

    def covering(self, pod: Pod) -> list[Key]:
        return self.matching(pod) if pod.state is PodState.RUNNING else []

    def matching(self, pod: Pod) -> list[Key]:
        """Whatever becomes of it."""
        found = self._of.get(pod.key.namespace, {})
        return [key for key, budget in found.items() if budget.selector.matches(pod.labels)]

    def spend(self, pod: Pod) -> None:
        """Its eviction was requested."""
        for key in self.covering(pod):
            self._taken.setdefault(key, set()).add(pod.key)

    def exhaust(self, pod: Pod) -> None:
        """The server reports that nothing is left of what covers it; this holds until the pod's share is returned."""
        for key in self.covering(pod):
            self._refused.setdefault(key, set()).add(pod.key)

    def release(self, pod: Key) -> None:
        """Return the shares of a pod that stays, is gone, or may be evicted again."""
        for shares in (self._taken, self._refused):
            for key in [key for key, pods in shares.items() if pod in pods]:
                shares[key].discard(pod)
                if not shares[key]:
                    del shares[key]


class BudgetAllowance:
    """What one plan, or one search within it, may still take of the budgets."""

    def __init__(self, budgets: DisruptionBudgets, spent: Counter[Key] | None = None) -> None:
        self._budgets = budgets
        self._is_free = not budgets  # read for every pod that could go
        self._spent: Counter[Key] = Counter() if spent is None else Counter(spent)

    def trial(self) -> BudgetAllowance:
        """To try something with: what it takes is not taken from this one."""
        return self if self._is_free else BudgetAllowance(self._budgets, self._spent)

    def is_protected(self, pod: Pod) -> bool:
        """Whether the pod stays whatever else is left alone."""
        if self._is_free:
            return False
        covering = self._budgets.covering(pod)  # runs for every pod of a namespace with budgets, so without counting
        if len(covering) != 1:
            return bool(covering)
        return self._spent[covering[0]] >= self._budgets.left(covering[0])

    def take(self, pods: Iterable[Pod]) -> bool:
        """All of them, or none where they are too many."""
        if self._is_free:
            return True
        pods = tuple(pods)
        if not self._permits(pods):
            return False
        self._spent.update(key for pod in pods for key in self._budgets.covering(pod))
        return True

    def blocking_budgets(self, pods: Iterable[Pod]) -> Message | None:
        """Which budgets do not allow all of these to leave; None where they do."""
        wanted: Counter[Key] = Counter()
        found: set[Key] = set()
        for pod in pods:
            covering = self._budgets.covering(pod)
            found.update(covering if len(covering) > 1 else ())
            wanted.update(covering)
        found |= {key for key, count in wanted.items() if self._spent[key] + count > self._budgets.left(key)}
        named = [
            Message("Budget.Name", {"budget": k.name, "namespace": k.namespace}) for k in sorted(found)[:MOST_NAMED]
        ]
        if not named:
            return None
        if len(named) == 1:
            return Message("Budget.Blocks", {"budget": named[0]})
        if len(found) > MOST_NAMED:
            return Message("Budget.MoreBlock", {"budgets": named, "more": len(found) - MOST_NAMED})
        return Message("Budget.Block", {"budgets": named})

    def _permits(self, pods: Iterable[Pod]) -> bool:
        wanted: Counter[Key] = Counter()
        for pod in pods:
            covering = self._budgets.covering(pod)
            if len(covering) > 1:
                return False
            wanted.update(covering)
        return all(self._spent[key] + count <= self._budgets.left(key) for key, count in wanted.items())

"""Disruption budgets: how many pods of a kind may be sent away before others of it have come back.

Only pods that run are counted: whoever waits for its first process may go at any time. A pod under two budgets never
goes, because no server would let it. What a plan takes is counted down here at once, and set right when the budget's
own figure comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from shoal.kube.objects import Key
from shoal.kube.selectors import LabelSelector
from shoal.scheduling.snapshot import Pod, State


@dataclass(frozen=True, slots=True)
class Budget:
    selector: LabelSelector
    allowed: int


class Budgets:
    def __init__(self) -> None:
        self._of: dict[str, dict[Key, Budget]] = {}  # by namespace

    def __bool__(self) -> bool:
        return bool(self._of)

    def get(self, key: Key) -> Budget | None:
        return self._of.get(key.namespace, {}).get(key)

    def set(self, key: Key, budget: Budget) -> None:
        self._of.setdefault(key.namespace, {})[key] = budget

    def remove(self, key: Key) -> None:
        found = self._of.get(key.namespace, {})
        found.pop(key, None)
        if not found:
            self._of.pop(key.namespace, None)

    def covering(self, pod: Pod) -> list[Key]:
        return self.choosing(pod) if pod.state is State.RUNNING else []

    def choosing(self, pod: Pod) -> list[Key]:
        """Whatever becomes of it."""
        found = self._of.get(pod.key.namespace, {})
        return [key for key, budget in found.items() if budget.selector.matches(pod.labels)]

    def spend(self, pod: Pod) -> None:
        """It was told to go."""
        for key in self.covering(pod):
            budget = self._of[key.namespace][key]
            self.set(key, replace(budget, allowed=max(budget.allowed - 1, 0)))

    def exhaust(self, pod: Pod) -> None:
        """The server says that nothing is left of what covers it."""
        for key in self.covering(pod):
            self.set(key, replace(self._of[key.namespace][key], allowed=0))


class Allowance:
    """What one plan, or one search within it, may still take of the budgets."""

    def __init__(self, budgets: Budgets, spent: Counter[Key] | None = None) -> None:
        self._budgets = budgets
        self._is_free = not budgets  # asked for every pod that could go
        self._spent: Counter[Key] = Counter() if spent is None else Counter(spent)

    def trial(self) -> Allowance:
        """To try something with: what it takes is not taken from this one."""
        return self if self._is_free else Allowance(self._budgets, self._spent)

    def spares(self, pod: Pod) -> bool:
        """Whether the pod stays whatever else is left alone."""
        return not self._is_free and not self._permits((pod,))

    def take(self, pods: Iterable[Pod]) -> bool:
        """All of them, or none where they are too many."""
        if self._is_free:
            return True
        pods = tuple(pods)
        if not self._permits(pods):
            return False
        self._spent.update(key for pod in pods for key in self._budgets.covering(pod))
        return True

    def _permits(self, pods: Iterable[Pod]) -> bool:
        wanted: Counter[Key] = Counter()
        for pod in pods:
            covering = self._budgets.covering(pod)
            if len(covering) > 1:
                return False
            wanted.update(covering)
        return all(self._spent[key] + count <= self._left(key) for key, count in wanted.items())

    def _left(self, key: Key) -> int:
        found = self._budgets.get(key)
        return 0 if found is None else found.allowed

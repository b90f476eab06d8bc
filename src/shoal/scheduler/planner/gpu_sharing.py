"""Accelerators one by one, for clusters where pods share them: how much of each device is left.

Whole devices are counted like any resource and need nothing of this. While some pod requests a share of a device the
sum does not show what fits: two halves of two devices hold no pod that needs a whole one. For so long the free
thousandths of every device are kept, and every placement names its devices. Pods from before that name none; they are
assigned what the others leave, in the order of their names, so that only the present pods decide.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shoal.kube.objects import Key
from shoal.scheduler.planner.node_and_pod_types import Pod, PodState
from shoal.scheduler.planner.node_resources import NodeResources
from shoal.scheduler.planner.resource_vectors import Ints, Rows

WHOLE = 1000
MOST_DEVICES = 16


class SharedDevices:
    def __init__(self, resources: NodeResources, accelerators: tuple[str, ...]) -> None:
        self.are_shared = False
        self.most = 1  # devices on any one node
        self.free: Ints = np.zeros((0, MOST_DEVICES), dtype=np.int64)
        self.coming: Ints = np.zeros_like(self.free)  # held by pods on their way out
        self._room = resources
        self._accelerators = accelerators
        self._on: dict[int, dict[Key, Pod]] = {}
        self._seats: dict[Key, tuple[int, ...]] = {}

    def begin(self, placed: Iterable[tuple[int, Pod]]) -> None:
        """Count every device from here on; `placed` are all pods on nodes."""
        self.are_shared = True
        self.free = np.zeros((len(self._room), MOST_DEVICES), dtype=np.int64)
        self.coming = np.zeros_like(self.free)
        for row, pod in placed:
            if self._asked(pod):
                self._on.setdefault(row, {})[pod.key] = pod
        for row in self._room.rows.values():
            self._deal(row)

    def end(self) -> None:
        """No pod requests a share of a device any more."""
        self.are_shared = False
        self._on.clear()
        self._seats.clear()

    def reset(self, row: int) -> None:
        """The node is new, deleted, or has other devices: no pod is known to use them."""
        if row >= len(self.free):
            more = len(self._room) - len(self.free)
            self.free, self.coming = (np.pad(array, ((0, more), (0, 0))) for array in (self.free, self.coming))
        for key in self._on.pop(row, ()):
            del self._seats[key]
        self._deal(row)

    def slots(self, rows: Rows, count: int, milli: int, *, later: bool = False) -> Ints:
        free = self.free[rows] + self.coming[rows] if later else self.free[rows]
        if milli:
            return np.asarray((np.maximum(free, 0) // milli).sum(axis=1), dtype=np.int64)
        return np.asarray((free == WHOLE).sum(axis=1) // count, dtype=np.int64)

    def choose(self, row: int, count: int, milli: int, *, later: bool = False) -> tuple[int, ...]:
        """The devices to use: for a share the fullest one that still holds it, for whole ones the first free."""
        free = self.free[row] + self.coming[row] if later else self.free[row]
        if milli:
            fitting = np.flatnonzero(free >= milli)
            return (int(fitting[np.argmin(free[fitting])]),) if len(fitting) else ()
        return tuple(int(device) for device in np.flatnonzero(free == WHOLE)[:count])

    def take(self, row: int, devices: tuple[int, ...], milli: int, sign: int = 1) -> None:
        self.free[row, list(devices)] -= sign * (milli or WHOLE)

    def seat(self, pod: Pod, row: int, sign: int) -> None:
        """A pod sits on the node, or (sign -1) has left it."""
        if not self._asked(pod):
            return
        on = self._on.setdefault(row, {})
        if sign > 0:
            on[pod.key] = pod
        else:
            del on[pod.key]
            del self._seats[pod.key]
        self._deal(row)

    def _deal(self, row: int) -> None:
        """Work the row out from who sits there: those that name their devices first, then the others by name."""
        node = self._room.nodes[row]
        count = 0
        if node is not None:
            count = max((node.allocatable.get(name, 0) for name in self._accelerators), default=0) // WHOLE
        self.most = max(self.most, min(count, MOST_DEVICES))
        self.free[row], self.coming[row] = 0, 0
        self.free[row, : min(count, MOST_DEVICES)] = WHOLE
        for pod in sorted(self._on.get(row, {}).values(), key=lambda pod: (not pod.devices, pod.key)):
            seats = pod.devices or self.choose(row, self._asked(pod) // WHOLE, pod.gpu_milli)
            self._seats[pod.key] = seats
            self.take(row, seats, pod.gpu_milli)
            if pod.state is PodState.RELEASING:
                self.coming[row, list(seats)] += pod.gpu_milli or WHOLE

    def _asked(self, pod: Pod) -> int:
        return sum(pod.requests.get(name, 0) for name in self._accelerators)

    def seats(self, pod: Pod) -> tuple[int, ...]:
        """The devices of a pod on a node."""
        return self._seats.get(pod.key, ())

    def assume_evicted(self, row: int, devices: tuple[int, ...], milli: int, sign: int = 1) -> None:
        """Suppose that a pod there leaves, or (sign -1) that it stays after all."""
        self.coming[row, list(devices)] += sign * (milli or WHOLE)

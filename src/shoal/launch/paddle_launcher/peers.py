"""Who is there, in an order everybody agrees on, and what each process is told of it. Pure.

A member counts once its pod runs and nobody has told it to go, and a trainer that has done its part still does: nobody
comes in its place, and the others may not have seen it run. Failures count for as long as their pods stay. Members are
numbered by the names of their pods sorted as text (trainer-10 before trainer-2), as Paddle's own start script numbers
them, so that members agree also where some of them run that script. Servers have addresses that differ in their ports
too, so that two of them may share a host.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shoal.kube.objects import Obj, is_terminating, labels_of, name_of
from shoal.launch.paddle_launcher.environment import PSERVER, Orders


class TooManyFailed(Exception):
    """Nobody starts among so many that failed."""


@dataclass(frozen=True, slots=True)
class Gathering:
    """What is there of those that are awaited: a line per label that changed is worth saying."""

    counts: tuple[tuple[str, int, int], ...]  # label, there, wanted
    ended: tuple[str, ...] = ()  # pods that are awaited and will never count

    @property
    def is_complete(self) -> bool:
        return all(there >= wanted for _, there, wanted in self.counts)


def gathered(orders: Orders, pods: Iterable[Obj]) -> Gathering:
    """Raises TooManyFailed as soon as that is seen: those who failed may never come to be counted."""
    known = list(pods)
    _refuse_failed(orders, known)
    there = {orders.server_label: servers(orders, known), orders.trainer_label: trainers(orders, known)}
    counts = tuple((label, len(there[label]), wanted) for label, wanted in orders.awaited)
    lost = {orders.server_label: ("Succeeded", "Failed"), orders.trainer_label: ("Failed",)}
    ended = [name_of(pod) for label, _ in orders.awaited for pod in _in_order(known, label, *lost[label])]
    return Gathering(counts, tuple(ended))


def servers(orders: Orders, pods: Iterable[Obj]) -> list[Obj]:
    """Those that run, in the order everybody agrees on."""
    return _in_order(pods, orders.server_label, "Running")


def trainers(orders: Orders, pods: Iterable[Obj]) -> list[Obj]:
    """Those that run or have done so to a good end, in the order everybody agrees on."""
    return _in_order(pods, orders.trainer_label, "Running", "Succeeded")


def _in_order(pods: Iterable[Obj], label: str, *phases: str) -> list[Obj]:
    found = [pod for pod in pods if _wears(pod, label) and _stays_in(pod, *phases)]
    return sorted(found, key=name_of)


def settings(orders: Orders, pods: Iterable[Obj]) -> dict[str, str]:
    """The variables of the program. Raises TooManyFailed, and LookupError where this pod itself is not there yet."""
    known = list(pods)
    _refuse_failed(orders, known)
    serving, training = servers(orders, known), trainers(orders, known)
    own = [name_of(pod) for pod in (serving if orders.role == PSERVER else training)]
    if orders.pod not in own:
        raise LookupError(orders.pod)
    place = own.index(orders.pod)
    endpoints = [f"{_address(pod)}:{orders.port + number}" for number, pod in enumerate(serving[: orders.servers])]
    made = {
        "PADDLE_PSERVERS": ",".join(endpoints),
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(endpoints),
        "PADDLE_TRAINER_IPS": ",".join(_address(pod) for pod in training),
        "PADDLE_TRAINER_ID": str(place),
        "PADDLE_PSERVER_ID": str(place),
        "TRAINING_ROLE": orders.role,
    }
    if orders.role == PSERVER:
        made["PADDLE_PORT"] = str(orders.port + place)
        made["POD_IP"] = _address(serving[place])
    return made


def _refuse_failed(orders: Orders, pods: Iterable[Obj]) -> None:
    failed = sum(_wears(pod, orders.trainer_label) and _stays_in(pod, "Failed") for pod in pods)
    if orders.role != PSERVER and failed > orders.most_failed:
        raise TooManyFailed(f"{failed} trainers of {orders.job} have failed, {orders.most_failed} may: not starting")


def _wears(pod: Obj, label: str) -> bool:
    key, _, value = label.partition("=")
    return labels_of(pod).get(key) == value


def _stays_in(pod: Obj, *phases: str) -> bool:
    """Whoever was told to go belongs to a run that is over, and counts for nothing."""
    return not is_terminating(pod) and (pod.get("status") or {}).get("phase") in phases


def _address(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("podIP") or "")

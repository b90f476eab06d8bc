"""The peers that are there, in an order all members agree on, and the settings of each process. Pure.

A member counts once its pod runs and is not being deleted, and a trainer that has succeeded still does: it is not
replaced, and the others may not have observed it running. Failures count for as long as their pods stay. Members are
numbered by the names of their pods sorted as text (trainer-10 before trainer-2), as Paddle's own start script numbers
them, so that members agree also where some of them run that script. Servers have addresses that differ in their ports
too, so that two of them may share a host.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shoal.kube.objects import Obj, is_terminating, labels_of, name_of
from shoal.launch.paddle_launcher.environment import PSERVER, LauncherConfig


class TooManyFailed(Exception):
    """No member starts among so many that failed."""


@dataclass(frozen=True, slots=True)
class PeerStatus:
    """What is there of those that are awaited: a line per label that changed is worth saying."""

    counts: tuple[tuple[str, int, int], ...]  # label, there, wanted
    ended: tuple[str, ...] = ()  # pods that are awaited and will never count

    @property
    def is_complete(self) -> bool:
        return all(there >= wanted for _, there, wanted in self.counts)


def peer_status(config: LauncherConfig, pods: Iterable[Obj]) -> PeerStatus:
    """Raises TooManyFailed as soon as that is seen: those who failed may never come to be counted."""
    known = list(pods)
    _check_failed(config, known)
    there = {config.server_label: servers(config, known), config.trainer_label: trainers(config, known)}
    counts = tuple((label, len(there[label]), wanted) for label, wanted in config.required_peers)
    lost = {config.server_label: ("Succeeded", "Failed"), config.trainer_label: ("Failed",)}
    ended = [name_of(pod) for label, _ in config.required_peers for pod in _sorted_pods(known, label, *lost[label])]
    return PeerStatus(counts, tuple(ended))


def servers(config: LauncherConfig, pods: Iterable[Obj]) -> list[Obj]:
    """The servers that run, in the order all members agree on."""
    return _sorted_pods(pods, config.server_label, "Running")


def trainers(config: LauncherConfig, pods: Iterable[Obj]) -> list[Obj]:
    """The trainers that run or have succeeded, in the order all members agree on."""
    return _sorted_pods(pods, config.trainer_label, "Running", "Succeeded")


def _sorted_pods(pods: Iterable[Obj], label: str, *phases: str) -> list[Obj]:
    found = [pod for pod in pods if _has_label(pod, label) and _is_in_phase(pod, *phases)]
    return sorted(found, key=name_of)


def training_env(config: LauncherConfig, pods: Iterable[Obj]) -> dict[str, str]:
    """The variables of the program. Raises TooManyFailed, and LookupError where this pod itself is not there yet."""
    known = list(pods)
    _check_failed(config, known)
    serving, training = servers(config, known), trainers(config, known)
    own = [name_of(pod) for pod in (serving if config.role == PSERVER else training)]
    if config.pod not in own:
        raise LookupError(config.pod)
    position = own.index(config.pod)
    endpoints = [f"{_address(pod)}:{config.port + number}" for number, pod in enumerate(serving[: config.servers])]
    env = {
        "PADDLE_PSERVERS": ",".join(endpoints),
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(endpoints),
        "PADDLE_TRAINER_IPS": ",".join(_address(pod) for pod in training),
        "PADDLE_TRAINER_ID": str(position),
        "PADDLE_PSERVER_ID": str(position),
        "TRAINING_ROLE": config.role,
    }
    if config.role == PSERVER:
        env["PADDLE_PORT"] = str(config.port + position)
        env["POD_IP"] = _address(serving[position])
    return env


def _check_failed(config: LauncherConfig, pods: Iterable[Obj]) -> None:
    failed = sum(_has_label(pod, config.trainer_label) and _is_in_phase(pod, "Failed") for pod in pods)
    if config.role != PSERVER and failed > config.max_failed:
        raise TooManyFailed(f"{failed} trainers of {config.job} have failed, {config.max_failed} may: not starting")


def _has_label(pod: Obj, label: str) -> bool:
    key, _, value = label.partition("=")
    return labels_of(pod).get(key) == value


def _is_in_phase(pod: Obj, *phases: str) -> bool:
    """A pod that is being deleted belongs to a run that is over, and does not count."""
    return not is_terminating(pod) and (pod.get("status") or {}).get("phase") in phases


def _address(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("podIP") or "")

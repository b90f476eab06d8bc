"""The barrier's settings, from its container's environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shoal.dialects.framework.names import FRAMEWORK_NAME, FRAMEWORK_NAMESPACE

INTERVAL = "BARRIER_CHECK_INTERVAL_SEC"
TIMEOUT = "BARRIER_CHECK_TIMEOUT_SEC"
SERVER = "KUBE_APISERVER_ADDRESS"
KUBECONFIG = "KUBECONFIG"


class BarrierEnvironmentInvalid(ValueError):
    """The variables are wrong; the message lists every mistake, one per line."""


@dataclass(frozen=True, slots=True)
class Environment:
    namespace: str
    framework: str
    interval_seconds: int = 10
    timeout_seconds: int = 600
    server: str = ""
    kubeconfig: str = ""


def read(variables: Mapping[str, str]) -> Environment:
    mistakes = [
        f"{name} is not set; the controller gives it to every container of a Framework's pod"
        for name in (FRAMEWORK_NAMESPACE, FRAMEWORK_NAME)
        if not variables.get(name)
    ]
    interval = _seconds(variables, INTERVAL, default=10, low=5, high=None, mistakes=mistakes)
    timeout = _seconds(variables, TIMEOUT, default=600, low=60, high=1200, mistakes=mistakes)
    if mistakes:
        raise BarrierEnvironmentInvalid("\n".join(mistakes))
    return Environment(
        variables[FRAMEWORK_NAMESPACE],
        variables[FRAMEWORK_NAME],
        interval,
        timeout,
        variables.get(SERVER, ""),
        variables.get(KUBECONFIG, ""),
    )


def _seconds(
    variables: Mapping[str, str], name: str, *, default: int, low: int, high: int | None, mistakes: list[str]
) -> int:
    written = variables.get(name) or str(default)
    limits = f"{low} or more" if high is None else f"from {low} to {high}"
    try:
        seconds = int(written)
    except ValueError:
        seconds = low - 1
    if seconds < low or (high is not None and seconds > high):
        mistakes.append(f"{name} is {written!r}; it must be a whole number of seconds, {limits}")
    return seconds

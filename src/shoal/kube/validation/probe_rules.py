"""Probes and lifecycle hooks: exactly one handler each, and valid times."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.kube.validation.errors import NEGATIVE, forbidden, invalid, not_supported, required
from shoal.kube.validation.value_rules import at_most_one, port

_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_SCHEMES = ("HTTP", "HTTPS")
_SIGNALS = frozenset(
    f"SIG{name}"
    for name in (
        "ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT", "KILL", "PIPE", "POLL",
        "PROF", "PWR", "QUIT", "RTMAX", "RTMIN", "SEGV", "STKFLT", "STOP", "SYS", "TERM", "TRAP", "TSTP", "TTIN",
        "TTOU", "URG", "USR1", "USR2", "VTALRM", "WINCH", "XCPU", "XFSZ",
        *(f"RTMIN+{n}" for n in range(1, 16)), *(f"RTMAX-{n}" for n in range(1, 15)),
    )
)  # fmt: skip


def probes(container: Obj, path: str) -> Iterator[Cause]:
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is None:
            continue
        here = f"{path}.{name}"
        yield from _handler(probe, _PROBE_HANDLERS, None, here)
        for count in _COUNTS:
            if (probe.get(count) or 0) < 0:
                yield invalid(f"{here}.{count}", probe[count], NEGATIVE)
        grace = probe.get("terminationGracePeriodSeconds")
        if grace is not None and grace <= 0:
            yield invalid(f"{here}.terminationGracePeriodSeconds", grace, "must be greater than 0")
        if name == "readinessProbe":
            if grace is not None:
                yield invalid(f"{here}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
        elif probe.get("successThreshold") != 1:
            yield invalid(f"{here}.successThreshold", probe.get("successThreshold") or 0, "must be 1")


def lifecycle(hooks: Obj, spec: Obj, path: str) -> Iterator[Cause]:
    grace = spec.get("terminationGracePeriodSeconds")
    for name in ("postStart", "preStop"):
        if hooks.get(name) is not None:
            yield from _handler(hooks[name], _HOOK_HANDLERS, grace, f"{path}.{name}")
    signal = hooks.get("stopSignal")
    if signal is None:
        return
    system = (spec.get("os") or {}).get("name")
    if not system:
        yield forbidden(f"{path}.stopSignal", "may not be set for containers with empty `spec.os.name`")
    elif system == "linux" and signal not in _SIGNALS:
        yield not_supported(f"{path}.stopSignal", signal, sorted(_SIGNALS))


def _handler(handler: Obj, choices: tuple[str, ...], grace: int | None, path: str) -> Iterator[Cause]:
    present = [name for name in choices if handler.get(name) is not None]
    if not present:
        yield required(path, "must specify a handler type")
        return
    name, action, here = present[0], handler[present[0]], f"{path}.{present[0]}"
    if name == "exec":
        if not action.get("command"):
            yield required(f"{here}.command")
    elif name == "httpGet":
        if not action.get("path"):
            yield required(f"{here}.path")
        yield from port(action.get("port"), f"{here}.port")
        if action.get("scheme") not in _SCHEMES:
            yield not_supported(f"{here}.scheme", action.get("scheme") or "", _SCHEMES)
        for header in action.get("httpHeaders") or ():
            header_name = (header or {}).get("name") or ""
            for problem in names.http_header_name(header_name):
                yield invalid(f"{here}.httpHeaders", header_name, problem)
    elif name == "sleep":
        seconds = action.get("seconds") or 0
        if grace is not None and not 0 <= seconds <= grace:
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            yield invalid(here, seconds, detail)
    else:
        yield from port(action.get("port"), f"{here}.port")
    yield from at_most_one(path, present, "handler type")

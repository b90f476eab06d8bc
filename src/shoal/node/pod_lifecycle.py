"""What to do next for one pod: a pure function of its manifest, what is on record, and the time.

`decide` contains all the rules. It never acts: it returns the actions to take now, whether the pod is finished, and the
next moment at which time alone changes the result. The worker takes the actions, stores their results in the record,
and calls it again at every event. `status` formats the same facts for the API.

The rules are the kubelet's: init containers one after another, sidecars among them kept alive until the others have
ended, restarts by policy with a growing back-off (the first restart is at once, then 10 s doubled up to 5 minutes,
reset after 10 minutes of running), and termination as preStop, SIGTERM, grace, SIGKILL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.kube.messages import Message
from shoal.kube.objects import Obj, is_terminating
from shoal.node.checkpoint import ContainerRecord, ContainerRun, PodRecord

DEFAULT_GRACE_SECONDS = 30.0
GRACE_AFTER_HOOK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class BackOff:
    """How long a container that keeps ending waits; scaled down where people try things out."""

    initial_seconds: float = 10.0
    max_seconds: float = 300.0
    reset_after_seconds: float = 600.0

    def next(self, before: float, ran_seconds: float) -> float:
        """The pause after the run that begins now, given the pause before it and how long the last run lasted."""
        if before <= 0.0 or ran_seconds >= self.reset_after_seconds:
            return self.initial_seconds
        return min(before * 2, self.max_seconds)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a container has not been started: the reason and the message in its status."""

    reason: str
    message: Message | str = ""


@dataclass(frozen=True, slots=True)
class RuntimeState:
    """What holds besides the record: containers that cannot be started yet, and those that failed a probe."""

    blocked: Mapping[str, Waiting] = field(default_factory=dict)
    pod_blocked: Waiting | None = None  # nothing can be started: a volume is missing
    unhealthy: Mapping[str, Message] = field(default_factory=dict)  # container -> why it is to be killed


@dataclass(frozen=True, slots=True)
class Start:
    container: str


@dataclass(frozen=True, slots=True)
class BeginStop:
    """Note that the container is to end, why, and how long it may take."""

    container: str
    grace_seconds: float
    message: Message


@dataclass(frozen=True, slots=True)
class RunPreStop:
    container: str


@dataclass(frozen=True, slots=True)
class Terminate:
    container: str


@dataclass(frozen=True, slots=True)
class Kill:
    container: str


@dataclass(frozen=True, slots=True)
class FailPod:
    """The pod as a whole has failed, whatever its containers do."""

    message: Message


Action = Start | BeginStop | RunPreStop | Terminate | Kill | FailPod


@dataclass(frozen=True, slots=True)
class Decision:
    actions: tuple[Action, ...] = ()
    wake_at: float | None = None
    is_finished: bool = False  # nothing runs and nothing will: close the sandbox


def decide(pod: Obj, record: PodRecord, runtime: RuntimeState, *, now: float, backoff: BackOff) -> Decision:
    """The next step for the pod. Called again after the actions were taken, it returns the step after."""
    deadline = deadline_at(pod, record)
    if (
        deadline is not None
        and now >= deadline
        and record.outcome is None
        and not main_containers_are_over(pod, record)
    ):
        return Decision((FailPod(Message("DeadlineExceeded")),))
    grace = stop_grace(pod, record)
    if grace is None and main_containers_are_over(pod, record):
        grace = spec_grace(pod)
    if grace is not None:
        return plan_shutdown(pod, record, grace, now)
    steps = [plan_starts(pod, record, runtime, now, backoff), _plan_stops(pod, record, now)]
    return Decision(
        tuple(action for step in steps for action in step.actions),
        _earliest([deadline, *(step.wake_at for step in steps)]),
    )


# The pod as a whole


def deadline_at(pod: Obj, record: PodRecord) -> float | None:
    seconds = pod["spec"].get("activeDeadlineSeconds")
    return None if seconds is None else record.accepted_at + float(seconds)


def spec_grace(pod: Obj) -> float:
    seconds = pod["spec"].get("terminationGracePeriodSeconds")
    return DEFAULT_GRACE_SECONDS if seconds is None else float(seconds)


def stop_grace(pod: Obj, record: PodRecord) -> float | None:
    """How long the pod's containers have to end, or None where the pod is to go on."""
    if is_terminating(pod):
        seconds = pod["metadata"].get("deletionGracePeriodSeconds")
        return spec_grace(pod) if seconds is None else float(seconds)
    return spec_grace(pod) if record.outcome is not None else None


def is_sidecar(container: Mapping[str, Any]) -> bool:
    return container.get("restartPolicy") == "Always"


def init_containers(pod: Obj) -> list[Obj]:
    return pod["spec"].get("initContainers") or []


def containers(pod: Obj) -> list[Obj]:
    return pod["spec"].get("containers") or []


def all_containers(pod: Obj) -> list[Obj]:
    return [*init_containers(pod), *containers(pod)]


def find_container(pod: Obj, name: str) -> Obj | None:
    return next((c for c in all_containers(pod) if c["name"] == name), None)


def restart_policy(pod: Obj) -> str:
    return str(pod["spec"].get("restartPolicy") or "Always")


def restarts(policy: str, run: ContainerRun) -> bool:
    """Whether a run that ended is to be followed by another."""
    assert run.ended is not None
    return policy == "Always" or (policy == "OnFailure" and run.ended.exit_code != 0)


def will_restart(pod: Obj, record: PodRecord, name: str) -> bool:
    """Whether a container that has ended is to run again, now or after a pause."""
    container, known = find_container(pod, name), record.containers.get(name)
    if container is None or known is None or known.run is None or known.run.ended is None:
        return False
    if stop_grace(pod, record) is not None or main_containers_are_over(pod, record):
        return False
    if any(c is container for c in init_containers(pod)) and not is_sidecar(container):
        return known.run.ended.exit_code != 0 and restart_policy(pod) != "Never"
    return restarts("Always" if is_sidecar(container) else restart_policy(pod), known.run)


def init_failed_for_good(pod: Obj, record: PodRecord) -> bool:
    return restart_policy(pod) == "Never" and any(
        run is not None and run.ended is not None and run.ended.exit_code != 0
        for run in (_run(record, c) for c in init_containers(pod) if not is_sidecar(c))
    )


def main_containers_are_over(pod: Obj, record: PodRecord) -> bool:
    """Whether the pod has done all it ever will: then its sidecars go too and the pod is finished."""
    if record.finished or init_failed_for_good(pod, record):
        return True
    runs = [_run(record, c) for c in containers(pod)]
    policy = restart_policy(pod)
    return all(run is not None and run.is_over and not restarts(policy, run) for run in runs)


def is_initialized(pod: Obj, record: PodRecord) -> bool:
    """A sidecar that falls over later does not take the pod back to its beginnings; a new sandbox does."""
    begun = _has_begun(pod, record)
    return all(init_is_done(c, _run(record, c)) or (begun and is_sidecar(c)) for c in init_containers(pod))


def _has_begun(pod: Obj, record: PodRecord) -> bool:
    runs = [_run(record, c) for c in containers(pod)]
    return any(run is not None and run.intended_at >= record.sandboxed_at for run in runs)


def init_is_done(container: Obj, run: ContainerRun | None) -> bool:
    """A plain init container is done when it succeeded, a sidecar once it has started."""
    if run is None:
        return False
    if is_sidecar(container):
        return has_started(container, run)
    return run.ended is not None and run.ended.exit_code == 0


def has_started(container: Obj, run: ContainerRun) -> bool:
    """Running, its postStart hook done, its startup probe passed."""
    if not run.is_running or (_hook(container, "postStart") and run.hook != "done"):
        return False
    return run.passed_startup or not container.get("startupProbe")


def is_ready(container: Obj, run: ContainerRun | None) -> bool:
    if run is None or not has_started(container, run) or run.stopping is not None:
        return False
    return run.ready or not container.get("readinessProbe")


# Starting


def plan_starts(pod: Obj, record: PodRecord, runtime: RuntimeState, now: float, backoff: BackOff) -> Decision:
    """Which containers to start now, and when the next one that waits may be."""
    if runtime.pod_blocked is not None:
        return Decision()
    begun = _has_begun(pod, record)
    found: list[Decision] = []
    for container in init_containers(pod):
        done = init_is_done(container, _run(record, container))
        if not done or is_sidecar(container):
            found.append(_start(pod, container, record, runtime, now, backoff))
        if not done and not (begun and is_sidecar(container)):
            break
    else:
        found += [_start(pod, c, record, runtime, now, backoff) for c in containers(pod)]
    actions = tuple(action for step in found for action in step.actions)
    return Decision(actions, _earliest(step.wake_at for step in found))


def _start(
    pod: Obj, container: Obj, record: PodRecord, runtime: RuntimeState, now: float, backoff: BackOff
) -> Decision:
    name = container["name"]
    known = record.containers.get(name) or ContainerRecord()
    if known.run is not None and known.run.is_running:
        message = runtime.unhealthy.get(name)
        if message is None or known.run.stopping is not None:
            return Decision()
        starting = container.get("startupProbe") and not known.run.passed_startup
        probe = container.get("startupProbe" if starting else "livenessProbe") or {}
        override = probe.get("terminationGracePeriodSeconds")
        grace = spec_grace(pod) if override is None else float(override)
        return Decision((BeginStop(name, grace, message),))
    if name in runtime.blocked:
        return Decision()
    if known.run is None or not known.run.is_over:  # a start that was intended and never confirmed is repeated
        return Decision((Start(name),))
    if not restarts("Always" if is_sidecar(container) else restart_policy(pod), known.run):
        return Decision()
    at = restart_at(known, backoff)
    return Decision((Start(name),)) if at <= now else Decision(wake_at=at)


def restart_at(known: ContainerRecord, backoff: BackOff) -> float:
    """When the container may run again; a long run wipes out the pause."""
    assert known.run is not None
    assert known.run.ended is not None
    if run_seconds(known.run) >= backoff.reset_after_seconds:
        return known.run.ended.at
    return known.run.ended.at + known.backoff_seconds


def next_backoff(known: ContainerRecord, backoff: BackOff) -> float:
    """The pause that will follow the run which is about to begin; none for the first."""
    if known.run is None or not known.run.is_over:
        return known.backoff_seconds
    return backoff.next(known.backoff_seconds, run_seconds(known.run))


def run_seconds(run: ContainerRun) -> float:
    if run.started_at is None or run.ended is None:
        return 0.0
    return run.ended.at - run.started_at


# Stopping


def plan_shutdown(pod: Obj, record: PodRecord, grace: float, now: float) -> Decision:
    """Everything ends: first what does the work, then the sidecars, the last one first."""
    sidecars = [c["name"] for c in init_containers(pod) if is_sidecar(c)]
    running = record.running()
    workers = [name for name in running if name not in sidecars]
    helpers = [name for name in reversed(sidecars) if name in running]
    if not running:
        return Decision(is_finished=True)
    begun = []
    for name in workers or helpers[:1]:
        run = _running(record, name)
        stopping = run.stopping if run is not None else None
        if stopping is None or now + grace < stopping.at + stopping.grace_seconds:
            begun.append(BeginStop(name, grace, Message("Killing", {"container": name})))
    if begun:
        return Decision(tuple(begun))
    return _plan_stops(pod, record, now)


def _plan_stops(pod: Obj, record: PodRecord, now: float) -> Decision:
    """The next step for every container that is being stopped."""
    steps = []
    for container in all_containers(pod):
        run = _running(record, container["name"])
        if run is not None and run.stopping is not None:
            steps.append(_stop_step(container, run, now))
    actions = tuple(action for step in steps for action in step.actions)
    return Decision(actions, _earliest(step.wake_at for step in steps))


def _stop_step(container: Obj, run: ContainerRun, now: float) -> Decision:
    stopping, name = run.stopping, container["name"]
    assert stopping is not None
    if stopping.killed:
        return Decision()
    over = stopping.at + stopping.grace_seconds
    has_hook = _hook(container, "preStop") is not None and stopping.grace_seconds > 0
    if stopping.termed_at is None:
        if has_hook and not stopping.hook:
            return Decision((RunPreStop(name),))
        if has_hook and stopping.hook == "running" and now < over:
            return Decision(wake_at=over)
        return Decision((Terminate(name),))
    over = max(over, stopping.termed_at + (GRACE_AFTER_HOOK_SECONDS if has_hook else 0.0))
    return Decision((Kill(name),)) if now >= over else Decision(wake_at=over)


def _hook(container: Obj, which: str) -> Obj | None:
    hook: Obj | None = (container.get("lifecycle") or {}).get(which)
    return hook


def _run(record: PodRecord, container: Obj) -> ContainerRun | None:
    known = record.containers.get(container["name"])
    return None if known is None else known.run


def _running(record: PodRecord, name: str) -> ContainerRun | None:
    known = record.containers.get(name)
    return known.run if known is not None and known.run is not None and known.run.is_running else None


def _earliest(moments: Iterable[float | None]) -> float | None:
    return min((m for m in moments if m is not None), default=None)

"""What must hold after every single write, however the operator is treated.

At most one live process per task; an attempt whose process ran does not run again in another pod; an attempt is
complete only when its object is gone; a completion never changes once it is set; counters never count twice; a
completed Framework stays completed. And, after every step of the engine, its own promises
(`shoal.engine.invariants`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from shoal.engine import Create, Job, JobState, Observed, Step, TaskRef, Write
from shoal.engine.advance import advance
from shoal.engine.invariants import StepHistory, check
from shoal.kube.objects import Obj, annotations_of, uid_of

if TYPE_CHECKING:
    from kit.scenario import World
    from shoal.operator.embedded import JobReconciler

OVER = ("AttemptCompleted", "Completed")


class Broken(AssertionError):
    """A promise did not hold."""


class Promises:
    def __init__(self, world: World) -> None:
        self._world = world
        self._histories: dict[str, StepHistory] = {}  # by job
        self._steps: dict[str, tuple[JobState, StepHistory]] = {}  # the last step of each job, stored or not
        self._spent: dict[str, tuple[str, int, int]] = {}  # uid of a pod -> the attempt that has it
        self._ran: dict[tuple[str, ...], str] = {}  # an attempt -> uid of the pod whose process ran
        self.removed_by_user: set[str] = set()  # uids of pods that a scenario deletes, which may stay unrecorded
        self.broken: list[str] = []
        self.count = 0

    def raise_broken(self) -> None:
        if self.broken:
            raise Broken("\n".join(self.broken))

    # After every step of the engine

    def watch_steps(self, loop: JobReconciler) -> None:
        """Look at every step of this operator. Its predecessor is dead."""
        for history in (*self._histories.values(), *(trial for _, trial in self._steps.values())):
            history.restarted()
        loop.advance = self._advance
        loop._executor.carry_out = self._sending(loop._executor.carry_out)  # type: ignore[method-assign]

    def _advance(self, job: Job, state: JobState, observed: Observed, now: datetime) -> Step:
        step = advance(job, state, observed, now)
        history = self._history(job, state)
        trial = history.copy()
        self.broken += check(job, state, step, observed, trial, now=now)
        self._histories[job.uid] = history
        self._steps[job.uid] = (step.state, trial)
        trial.sent -= _bodies(step.writes) - history.sent
        self.count += 1
        self._world._changed()  # who waits for the operator to rest hears of its passes
        return step

    def _sending(self, carry_out: Any) -> Any:
        """What a step asks for counts as sent when it is sent: not where its ledger failed, nor during a pause."""

        async def sending(manifest: Obj, writes: Iterable[Write], **more: Any) -> Any:
            listed = list(writes)
            if uid_of(manifest) not in self._steps:
                return await carry_out(manifest, listed, **more)
            _, history = self._steps[uid_of(manifest)]
            history.sent |= _bodies(listed)
            carried = await carry_out(manifest, listed, **more)
            history.sent.difference_update(carried.withheld)
            return carried

        return sending

    def _history(self, job: Job, state: JobState) -> StepHistory:
        """What happened up to this ledger: a step whose ledger was not stored has not happened."""
        stored, trial = self._steps.pop(job.uid, (None, None))
        if trial is not None and stored == state:
            return trial
        return self._histories.get(job.uid) or StepHistory()

    # After every write

    def after_write(self, resource: str, name: str, before: Obj | None, after: Obj | None) -> None:
        is_new = after is not None and (before is None or uid_of(before) != uid_of(after))
        if not resource.startswith("frameworks."):
            if is_new:
                self.broken += self._of_birth(after)
            if resource == "pods":
                self.broken += self._of_processes(name)
                if after is not None:
                    self.broken += self._of_runs(name, after)
        elif after is not None:
            old, new = (before or {}).get("status"), after.get("status")
            if new:
                self.broken += self._of_objects(name, uid_of(after), new)
                self.broken += self._of_spending(new)
            if old and new and before is not None and uid_of(before) == uid_of(after):
                self.broken += self._of_change(name, old, new)

    def _of_processes(self, name: str) -> Iterator[str]:
        kubelet = getattr(self._world, "kubelet", None)
        if kubelet is not None:
            for pod, count in Counter(kubelet.running.values()).items():
                if count > 1 and pod == name:
                    yield f"{count} live processes of {pod}"

    def _of_runs(self, name: str, pod: Obj) -> Iterator[str]:
        """A second run of an attempt is a retry that no counter shows."""
        stamps = annotations_of(pod)
        if "FC_TASK_UID" not in stamps or (pod.get("status") or {}).get("phase", "Pending") == "Pending":
            return
        attempt = tuple(stamps[f"FC_{part}"] for part in ("FRAMEWORK_ATTEMPT_ID", "TASK_UID", "TASK_ATTEMPT_ID"))
        first = self._ran.setdefault(attempt, uid_of(pod))
        if first not in (uid_of(pod), *self.removed_by_user):
            yield f"{name} ran in pod {first} and again in {uid_of(pod)}, in one attempt: {attempt}"

    def _of_birth(self, child: Obj) -> Iterator[str]:
        """A completed Framework never starts again."""
        name = annotations_of(child).get("FC_FRAMEWORK_NAME")
        framework = self._world.frameworks.get(name or "")
        if framework is None or uid_of(framework) != annotations_of(child)["FC_FRAMEWORK_UID"]:
            return
        if (framework.get("status") or {}).get("state") == "Completed":
            yield f"{name} is Completed and gets {child['metadata']['name']}"

    def _of_objects(self, name: str, uid: str, status: Obj) -> Iterator[str]:
        """An attempt is over only when its object is gone: the one that was recorded, or any other with its stamp."""
        attempt = status["attemptStatus"]
        anchor = self._world.config_maps.get(f"{name}-attempt")
        mine = {"FC_FRAMEWORK_UID": uid, "FC_FRAMEWORK_ATTEMPT_ID": str(attempt["id"])}
        if status["state"] in OVER and anchor is not None and _carries(anchor, mine):
            yield f"{name} is {status['state']} and its ConfigMap is there"
        for task in _tasks(status):
            pod = self._world.pods.get(task["attemptStatus"]["podName"])
            stamps = {"FC_TASK_UID": task["instanceUID"], "FC_TASK_ATTEMPT_ID": str(task["attemptStatus"]["id"])}
            if task["state"] in OVER and pod is not None and _carries(pod, {**mine, **stamps}):
                yield f"{task['attemptStatus']['podName']} is {task['state']} and its pod is there"

    def _of_spending(self, status: Obj) -> Iterator[str]:
        """One pod is one attempt: nothing that happened to it is counted for another."""
        for task in _tasks(status):
            attempt = task["attemptStatus"]
            mine = (task["instanceUID"], status["attemptStatus"]["id"], attempt["id"])
            if attempt["podUID"] is not None and self._spent.setdefault(attempt["podUID"], mine) != mine:
                yield f"{attempt['podName']} {attempt['podUID']} was {self._spent[attempt['podUID']]} and is {mine}"

    def _of_change(self, name: str, old: Obj, new: Obj) -> Iterator[str]:
        if old["state"] == "Completed" and new != old:
            yield f"{name} was Completed and changed"
        yield from _of_attempts(name, old, new)
        before = {task["instanceUID"]: task for task in _tasks(old)}
        for task in _tasks(new):
            if task["instanceUID"] in before and old["attemptStatus"]["id"] == new["attemptStatus"]["id"]:
                yield from _of_attempts(task["attemptStatus"]["podName"], before[task["instanceUID"]], task)


def _carries(obj: Obj, stamps: dict[str, str]) -> bool:
    return stamps.items() <= annotations_of(obj).items()


def _bodies(writes: Iterable[Write]) -> set[TaskRef]:
    return {write.target for write in writes if isinstance(write, Create) and isinstance(write.target, TaskRef)}


def _of_attempts(name: str, old: Obj, new: Obj) -> Iterator[str]:
    """The same rules for a Framework and for a task."""
    was, now = old["attemptStatus"], new["attemptStatus"]
    counted, counts = old["retryPolicyStatus"], new["retryPolicyStatus"]
    steps = now["id"] - was["id"]
    if steps not in (0, 1):
        yield f"{name} went from attempt {was['id']} to {now['id']}"
    if steps == 0 and was["completionStatus"] and now["completionStatus"] != was["completionStatus"]:
        yield f"{name} had a completion that changed: {was['completionStatus']} -> {now['completionStatus']}"
    if counts["totalRetriedCount"] != now["id"]:
        yield f"{name} counts {counts['totalRetriedCount']} retries in attempt {now['id']}"
    if not 0 <= counts["accountableRetriedCount"] - counted["accountableRetriedCount"] <= steps:
        yield f"{name} charged {counted['accountableRetriedCount']} -> {counts['accountableRetriedCount']} in {steps}"
    uid = "podUID" if "podUID" in now else "configMapUID"
    if steps == 0 and was[uid] is not None and now[uid] != was[uid]:
        yield f"{name} changed its {uid} within attempt {now['id']}"


def _tasks(status: Obj) -> list[Any]:
    roles = status["attemptStatus"]["taskRoleStatuses"] or []
    return [task for role in roles for task in role["taskStatuses"]]

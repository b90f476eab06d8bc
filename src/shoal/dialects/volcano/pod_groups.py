"""The gangs of a Job: how many pods, of which tasks, with how many resources, must be placeable together.

One gang per stage of dependsOn; most jobs have one stage. The first stage requests the resources of the whole job, so
that a job is admitted only where its later stages will fit too; those then request none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from shoal.dialects.gang_backends.gang import GangRole, GangSpec, GangTopology
from shoal.dialects.volcano import names
from shoal.dialects.volcano.depends_on import stages
from shoal.dialects.volcano.spec import JobSpec, TaskSpec
from shoal.dialects.volcano.spec import TopologySpec as WrittenTopology
from shoal.kube.objects import Obj
from shoal.kube.quantity import Quantity

Gangs = Mapping[str, GangSpec]
Labels = Mapping[str, str]
_NONE: Labels = {}


def stage_keys(spec: JobSpec) -> dict[str, tuple[TaskSpec, ...]]:
    """The stages by key: '' for the first, then 1, 2, ..."""
    return {str(number) if number else "": tasks for number, tasks in enumerate(stages(spec))}


def stage_of(spec: JobSpec, task: str) -> str:
    """Return the key of the stage a task belongs to."""
    return next(key for key, tasks in stage_keys(spec).items() if any(each.name == task for each in tasks))


def gangs(
    spec: JobSpec, *, job: str, uid: str, schedule_timeout_seconds: int | None = None, labels: Labels = _NONE
) -> Gangs:
    """What each stage needs placed together, by its key."""
    return {
        key: GangSpec(
            names.group_name(job, uid, key),
            _least_members(spec, key),
            tuple(_part(task) for task in tasks),
            queue=spec.queue,
            priority_class=spec.priority_class_name,
            min_resources=None if key else min_resources(spec),
            min_limits={} if key else min_limits(spec),
            schedule_timeout_seconds=schedule_timeout_seconds,
            topology=_near(spec.network_topology),
            labels=labels,
        )
        for key, tasks in stage_keys(spec).items()
    }


def _part(task: TaskSpec) -> GangRole:
    cut = task.partition_policy
    if cut is None:
        return GangRole(task.name, task.replicas, task.minimum, task.template)
    return GangRole(
        task.name,
        task.replicas,
        task.minimum,
        task.template,
        partition_size=cut.partition_size,
        min_partitions=cut.min_partitions,
        partition_topology=_near(cut.network_topology),
    )


def _near(wanted: WrittenTopology | None) -> GangTopology | None:
    if wanted is None:
        return None
    return GangTopology(wanted.mode == "hard", wanted.highest_tier_allowed, wanted.highest_tier_name)


def _least_members(spec: JobSpec, key: str) -> int:
    """The job's minimum; with several stages each has its tasks' minima, as long as the job's lasts."""
    staged = stage_keys(spec)
    if len(staged) == 1:
        return spec.min_available
    left = spec.min_available
    for each, tasks in staged.items():
        wanted = sum(task.minimum for task in tasks)
        if each == key:
            return min(wanted, max(left, 0))
        left -= wanted
    return 0


def min_resources(spec: JobSpec) -> Obj:
    """What the smallest set of pods that may run together requests, its pods counted as well."""
    return _sum_over_least_pods(spec, lambda pod: {**_requested(pod), "pods": Quantity.of(1)})


def min_limits(spec: JobSpec) -> Obj:
    """The limits of the same pods, as far as their containers have any."""
    return _sum_over_least_pods(spec, lambda pod: _pod_total(pod, _limits))


def _sum_over_least_pods(spec: JobSpec, amounts_of: Callable[[Obj], Mapping[str, Quantity]]) -> Obj:
    total: dict[str, Quantity] = {}
    for task, count in _least_pods(spec):
        for name, amount in amounts_of(task.template.get("spec") or {}).items():
            total[name] = total[name] + amount * count if name in total else amount * count
    return {name: str(total[name]) for name in sorted(total)}


def _least_pods(spec: JobSpec) -> Iterator[tuple[TaskSpec, int]]:
    """Every task's minimum and then more, up to the job's; where the job requires fewer, the first so many pods."""
    left = spec.min_available
    if left < spec.minima:
        for task in spec.tasks:
            count = min(task.minimum, left)
            left -= count
            if count:
                yield task, count
        return
    left -= spec.minima
    for task in spec.tasks:
        more = min(task.replicas - task.minimum, left)
        left -= more
        if task.minimum + more:
            yield task, task.minimum + more


def _requested(pod: Obj) -> dict[str, Quantity]:
    """Of one pod, its overhead included."""
    together = _pod_total(pod, _requests)
    for name, written in (pod.get("overhead") or {}).items():
        amount = Quantity.parse(written)
        together[name] = together[name] + amount if name in together else amount
    return together


def _pod_total(pod: Obj, of_container: Callable[[Obj], Obj]) -> dict[str, Quantity]:
    """The containers together, or the largest init container where that is more."""
    together: dict[str, Quantity] = {}
    for container in pod.get("containers") or ():
        for name, amount in _parsed(of_container(container)).items():
            together[name] = together[name] + amount if name in together else amount
    for container in pod.get("initContainers") or ():
        for name, amount in _parsed(of_container(container)).items():
            if name not in together or amount.milli() > together[name].milli():
                together[name] = amount
    return together


def _limits(container: Obj) -> Obj:
    return (container.get("resources") or {}).get("limits") or {}


def _requests(container: Obj) -> Obj:
    """A limit without a request is a request."""
    return {**_limits(container), **((container.get("resources") or {}).get("requests") or {})}


def _parsed(written: Obj) -> dict[str, Quantity]:
    return {name: Quantity.parse(amount) for name, amount in written.items()}

"""dependsOn: which tasks wait for which, and the stages that follow from it.

A stage is what may start together: a task is one stage behind the latest of those it waits for. Each stage is a gang of
its own, because a gang that counts pods that must not be created yet would never start.
"""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from shoal.dialects.volcano.spec import JobSpec, TaskSpec


class InvalidDependencies(ValueError):
    """The tasks wait for each other in a circle, or for one that does not exist."""


def stages(spec: JobSpec) -> tuple[tuple[TaskSpec, ...], ...]:
    """All tasks, first stage first; a job without dependsOn has one. Raises NoOrder."""
    depth: dict[str, int] = {}
    for name in _sorted(spec.tasks):
        task = spec.task(name)
        assert task is not None
        depth[name] = max((depth[each] + 1 for each in dependencies(task)), default=0)
    count = max(depth.values(), default=0) + 1
    return tuple(tuple(task for task in spec.tasks if depth[task.name] == number) for number in range(count))


def dependencies(task: TaskSpec) -> list[str]:
    return list(task.depends_on.name) if task.depends_on is not None else []


def _sorted(tasks: Sequence[TaskSpec]) -> list[str]:
    names = {task.name for task in tasks}
    for task in tasks:
        unknown = [name for name in dependencies(task) if name not in names]
        if unknown:
            raise InvalidDependencies(f"task {task.name} depends on {unknown[0]}, which is no task of this job")
    try:
        return list(TopologicalSorter({task.name: dependencies(task) for task in tasks}).static_order())
    except CycleError as circle:
        raise InvalidDependencies(f"the tasks wait for each other: {' -> '.join(circle.args[1])}") from None

"""What people do to a running Framework, as the patch that does it: scale, stop, start; and what to warn them of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shoal.dialects.framework import templates
from shoal.dialects.framework.manifest import tasks_of
from shoal.kube.objects import Obj, at_path

_POLICY = "frameworkAttemptCompletionPolicy"
_BARRIER = "frameworkbarrier"


def scale_patch(manifest: Obj, sizes: Mapping[str, int]) -> list[Obj]:
    """One patch for all roles, so that the new sizes and the counts that depend on them arrive together.

    A completion count that asked for all tasks of the role keeps asking for all of them. A failure count of 1 means
    "any", also in a role of one task, and stays. Raises LookupError for a role the Framework does not have.
    """
    roles = (manifest.get("spec") or {}).get("taskRoles") or []
    known = {role.get("name"): index for index, role in enumerate(roles)}
    operations: list[Obj] = []
    for name, size in sizes.items():
        if name not in known:
            listed = ", ".join(str(role) for role in known) or "none"
            raise LookupError(f"there is no role {name!r}; the roles are: {listed}")
        operations += _scaled(roles[known[name]], f"/spec/taskRoles/{known[name]}", name, size)
    return operations


def _scaled(role: Obj, path: str, name: str, size: int) -> Iterator[Obj]:
    yield {"op": "test", "path": f"{path}/name", "value": name}
    yield _set(role, "taskNumber", path, size)
    policy, before = role.get(_POLICY) or {}, role.get("taskNumber") or 0
    for count, smallest in (("minFailedTaskCount", 2), ("minSucceededTaskCount", 1)):
        if policy.get(count) == before and before >= smallest:
            yield _set(policy, count, f"{path}/{_POLICY}", max(size, 1))


def _set(holder: Mapping[str, Any], name: str, path: str, value: Any) -> Obj:
    return {"op": "replace" if name in holder else "add", "path": f"{path}/{name}", "value": value}


def stop_patch(manifest: Obj) -> list[Obj]:
    """Ends the Framework for good; the object stays."""
    return [_set(manifest.get("spec") or {}, "executionType", "/spec", "Stop")]


def start_patch(manifest: Obj) -> list[Obj]:
    """Starts a Framework that was only created."""
    return [_set(manifest.get("spec") or {}, "executionType", "/spec", "Start")]


# --- warnings ------------------------------------------------------------------------------------------------------


def warn(manifest: Obj, old: Obj | None = None) -> list[str]:
    """What is accepted and probably not meant. Knows nothing of a manifest that `admit` refuses, and bears with it."""
    found = list(_transition(manifest, old))
    for index, task in tasks_of(manifest):
        pod, path = task.get("pod"), f"spec.taskRoles[{index}].task.pod"
        if not pod:
            found.append(f"{path}: the role has no template; its pods will be refused")
        elif isinstance(pod, dict):
            found += [f"{path}.{odd}: read as {proper}" for odd, proper in templates.odd_names(pod)]
            found += _barrier(templates.canonical(pod), path)
    return found


def _transition(manifest: Obj, old: Obj | None) -> Iterator[str]:
    if old is None:
        return
    before, after = (at_path(obj, "spec", "executionType", default="Start") for obj in (old, manifest))
    if before == "Stop" and after != "Stop":
        yield "spec.executionType: a Framework that was stopped stays stopped; create it again to run it again"
    elif before == "Start" and after == "Create":
        yield "spec.executionType: a Framework that was started keeps running; Stop ends it"


def _barrier(pod: Obj, path: str) -> Iterator[str]:
    """A restarted init container never tells the controller that the barrier timed out."""
    policy, first = at_path(pod, "spec", "restartPolicy", default="Always"), at_path(pod, "spec", "initContainers")
    waits = isinstance(first, list) and any(_is_barrier(container) for container in first)
    if waits and policy != "Never":
        yield (
            f"{path}.spec.restartPolicy: {policy} restarts the barrier in place, so its time-out can never free the "
            f"other pods; use Never"
        )


def _is_barrier(container: Any) -> bool:
    if not isinstance(container, dict):
        return False
    command = container.get("command")
    words = [str(container.get("image")), *(map(str, command) if isinstance(command, list) else ())]
    return any(_BARRIER in word for word in words) or [w.rpartition("/")[2] for w in words[1:3]] == ["shoal", "barrier"]

"""What people do to a running Framework, as the patch that does it: scale, stop, start; and what to warn them of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from shoal.dialects.framework import template_fields
from shoal.dialects.framework.pod_preview import preview_pods
from shoal.dialects.framework.spec import roles_of, tasks_of
from shoal.kube.objects import Obj, annotations_of, at_path
from shoal.kube.schema_errors import FieldWarning, find_unknown_fields
from shoal.kube.schemas import named

_POLICY = "frameworkAttemptCompletionPolicy"
_COUNTS = (("minFailedTaskCount", 2), ("minSucceededTaskCount", 1))  # with the least size at which one can mean all
_BARRIER = "frameworkbarrier"
# What counts mean that do not say it themselves at the size a role was scaled to, as JSON: by role, the shape the note
# holds for and the counts that mean all tasks. A role that was changed otherwise since is taken literally.
MEANING = "shoal.dev/counts-of-all"


def scale_patch(manifest: Obj, sizes: Mapping[str, int]) -> list[Obj]:
    """One patch for all roles, so that sizes and the counts that depend on them change together.

    Empty where every role has that size already. A completion count that required all tasks of the role keeps requiring
    all of them, also through sizes where the number alone is ambiguous: an annotation records it. A role without tasks
    completes nothing, and its counts are unchanged. A failure count of 1 means "any", also in a role of one task, and
    is unchanged. Raises LookupError for a role the Framework does not have.
    """
    roles = (manifest.get("spec") or {}).get("taskRoles") or []
    known = {role.get("name"): index for index, role in enumerate(roles)}
    remembered = _read_notes(manifest)
    notes = dict(remembered)
    operations: list[Obj] = []
    for name, size in sizes.items():
        if name not in known:
            listed = ", ".join(str(role) for role in known) or "none"
            raise LookupError(f"there is no role {name!r}; the roles are: {listed}")
        role = roles[known[name]]
        if (role.get("taskNumber") or 0) == size:
            continue
        asked = _counts_of_all(role, notes.pop(name, None))
        path, policy = f"/spec/taskRoles/{known[name]}", role.get(_POLICY) or {}
        counts = asked if size else []
        operations += [
            {"op": "test", "path": f"{path}/name", "value": role["name"]},
            _set(role, "taskNumber", path, size),
            *(_set(policy, count, f"{path}/{_POLICY}", size) for count in counts),
        ]
        after = {**role, "taskNumber": size, _POLICY: {**policy, **dict.fromkeys(counts, size)}}
        if _counts_of_all(after) != asked:
            notes[name] = {"shape": _shape(after), "all": asked}
    return operations + (_write_notes(manifest, notes) if notes != remembered else [])


def _counts_of_all(role: Obj, note: Any = None) -> list[str]:
    """The counts that stand for all tasks of the role: by the note, where it is about this shape, else by equality."""
    if isinstance(note, dict) and note.get("shape") == _shape(role) and isinstance(note.get("all"), list):
        return [count for count, _ in _COUNTS if count in note["all"]]
    policy, size = role.get(_POLICY) or {}, role.get("taskNumber") or 0
    return [count for count, smallest in _COUNTS if size >= smallest and policy.get(count) == size]


def _shape(role: Obj) -> list[Any]:
    policy = role.get(_POLICY) or {}
    return [role.get("taskNumber") or 0, *(policy.get(count) for count, _ in _COUNTS)]


def _read_notes(manifest: Obj) -> dict[str, Any]:
    try:
        notes = json.loads(annotations_of(manifest).get(MEANING) or "{}")
    except ValueError:  # not written by Shoal: the counts alone decide
        return {}
    return notes if isinstance(notes, dict) else {}


def _write_notes(manifest: Obj, notes: Mapping[str, Any]) -> list[Obj]:
    """The annotation with these notes, or gone with the last of them."""
    path, written = f"/metadata/annotations/{MEANING.replace('/', '~1')}", json.dumps(notes, separators=(",", ":"))
    if not annotations_of(manifest):
        return [{"op": "add", "path": "/metadata/annotations", "value": {MEANING: written}}]
    return [{"op": "add", "path": path, "value": written} if notes else {"op": "remove", "path": path}]


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
    """What is accepted and probably not meant. Tolerates a manifest that `admit` refuses."""
    found = [] if old is not None else list(_waits(manifest))
    for index, task in tasks_of(manifest):
        pod, path = task.get("pod"), f"spec.taskRoles[{index}].task.pod"
        if isinstance(pod, dict):
            odd_fields = template_fields.misspelled_fields(pod)
            found += [FieldWarning(f"{path}.{odd}", f"read as {proper}") for odd, proper in odd_fields]
            found += find_unknown_fields(named("PodTemplateSpec"), template_fields.canonical(pod), path)
            found += _barrier(template_fields.canonical(pod), path)
    for cause in preview_pods(manifest):
        text = f"{cause.message}; the role's pods will be refused"
        found.append(FieldWarning(cause.field, text) if cause.field else text)
    return found


def _waits(manifest: Obj) -> Iterator[str]:
    """A Framework without tasks is a legal way to pause it, and often a slip of the pen."""
    roles = [role for _, role in roles_of(manifest)]
    if any(role.get("taskNumber") for role in roles):
        return
    if roles:
        first = roles[0].get("name")
        yield FieldWarning("spec.taskRoles", f"no role has tasks: it waits until `shoal scale` gives {first} some")
    else:
        yield FieldWarning("spec.taskRoles", "there are no roles, so there are no tasks: it waits until there are some")


def _barrier(pod: Obj, path: str) -> Iterator[str]:
    """A restarted init container never reports the barrier time-out to the controller."""
    policy, first = at_path(pod, "spec", "restartPolicy", default="Always"), at_path(pod, "spec", "initContainers")
    waits = False
    for container in first if isinstance(first, list) else ():
        if isinstance(container, dict):
            command = container.get("command")
            words = [str(container.get("image")), *(map(str, command) if isinstance(command, list) else ())]
            starts_shoal = [word.rpartition("/")[2] for word in words[1:3]] == ["shoal", "barrier"]
            waits = waits or starts_shoal or any(_BARRIER in word for word in words)
    if waits and policy != "Never":
        yield FieldWarning(
            f"{path}.spec.restartPolicy",
            f"{policy} restarts the barrier in place, so its time-out can never free the other pods; use Never",
        )

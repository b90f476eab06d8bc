"""What people do to a running Job, as the patch that does it, and what to warn them of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from shoal.dialects.template_validation import unknown_fields
from shoal.dialects.volcano import plugins
from shoal.dialects.volcano.children import plugin_job_of
from shoal.dialects.volcano.min_available import MinAvailableNotes
from shoal.dialects.volcano.plugins.svc import fits_a_variable
from shoal.dialects.volcano.spec import JobSpec, LifecyclePolicy, default, spec_of
from shoal.dialects.volcano.validation import admit
from shoal.kube.objects import Obj, at_path
from shoal.kube.schema_errors import FieldWarning


def scale_patch(manifest: Obj, sizes: Mapping[str, int]) -> list[Obj]:
    """One patch for all tasks; empty where every task has that size.

    Minima equal to the number of all pods, or to the sum of the tasks' minima, stay equal to it. Others are kept as far
    as there are enough pods, and are restored when there are: an annotation records the intended value. Raises
    LookupError for a task the Job does not have.
    """
    spec = default(manifest)["spec"]
    tasks: list[Obj] = spec.get("tasks") or []
    known = {task["name"]: place for place, task in enumerate(tasks)}
    for name in sizes:
        if name not in known:
            raise LookupError(f"there is no task {name!r}; the tasks are: {', '.join(known)}")
    wanted = [sizes.get(task["name"], task["replicas"]) for task in tasks]
    if wanted == [task["replicas"] for task in tasks]:
        return []
    notes = MinAvailableNotes(manifest)
    minima = [
        notes.kept(task["name"], task["minAvailable"], task["replicas"], size)
        for task, size in zip(tasks, wanted, strict=True)
    ]
    operations = [each for name in sizes for each in _scaled(tasks[known[name]], known[name], sizes[name], minima)]
    least = notes.kept_of_all(spec["minAvailable"], tasks, minima, wanted)
    return [*operations, {"op": "add", "path": "/spec/minAvailable", "value": least}, *notes.written()]


def _scaled(task: Obj, place: int, size: int, minima: list[int]) -> Iterator[Obj]:
    path = f"/spec/tasks/{place}"
    yield {"op": "test", "path": f"{path}/name", "value": task["name"]}
    yield {"op": "add", "path": f"{path}/replicas", "value": size}
    yield {"op": "add", "path": f"{path}/minAvailable", "value": minima[place]}
    if cut := task.get("partitionPolicy"):
        whole = size // int(cut["partitionSize"])
        yield {"op": "add", "path": f"{path}/partitionPolicy/totalPartitions", "value": whole}


# --- warnings ------------------------------------------------------------------------------------------------------


def warn(manifest: Obj, old: Obj | None = None) -> list[str]:
    """What is accepted and probably not intended. Empty for a manifest that `admit` rejects."""
    if old is not None or admit(manifest):
        return []
    try:
        spec = spec_of(manifest)
    except ValidationError:
        return []
    found = [*_ineffective_policies(spec), *plugins.ignored_arguments(spec)]
    for place, task in enumerate(spec.tasks):
        found += unknown_fields(task.template, f"spec.tasks[{place}].template")
    return [*found, *_unmatched_events(spec), *_long_lists(manifest, spec)]


def _ineffective_policies(spec: JobSpec) -> Iterator[str]:
    """Pods whose containers are restarted in place never fail."""
    for place, task in enumerate(spec.tasks):
        policy = at_path(task.template, "spec", "restartPolicy", default="Always")
        policies = [*task.policies, *spec.policies]
        if policy == "Never" or not any("PodFailed" in p.named or p.exit_code is not None for p in policies):
            continue
        yield FieldWarning(
            f"spec.tasks[{place}].template.spec.restartPolicy",
            f"{policy} restarts containers in place, so the pods of {task.name} hardly ever fail and policies for "
            f"PodFailed or an exit code stay silent; use Never, or the event TaskFailed",
        )


def _unmatched_events(spec: JobSpec) -> Iterator[str]:
    lists: list[tuple[str, list[LifecyclePolicy]]] = [("spec.policies", spec.policies)]
    lists += [(f"spec.tasks[{place}].policies", task.policies) for place, task in enumerate(spec.tasks)]
    for path, policies in lists:
        for place, policy in enumerate(policies):
            if "JobUpdated" in policy.named:
                yield FieldWarning(f"{path}[{place}].event", "JobUpdated is never raised")
            if "PodPending" in policy.named and not policy.timeout:
                text = "PodPending needs one: every pod is pending for a moment"
                yield FieldWarning(f"{path}[{place}].timeout", text)


def _long_lists(manifest: Obj, spec: JobSpec) -> Iterator[str]:
    if "svc" not in spec.plugins:
        return
    scene = plugin_job_of(manifest, spec)
    for task in spec.tasks:
        if not fits_a_variable(scene, task):
            yield FieldWarning(
                "spec.plugins[svc]",
                f"the list of {task.name}'s hosts is too long for a variable: it is in /etc/volcano alone, and "
                f"VC_{task.name.upper().replace('-', '_')}_HOSTS is not set",
            )

"""What is rejected, and with which messages: every mistake at once.

Rules between fields are those of the CRD (`cel_rules`); here is what CEL cannot express, because it needs the pod
templates, which the CRD leaves open, or a program. Rules that need other objects (the queue) are in
`validate_in_cluster`, called where those objects are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from shoal.dialects.capabilities import Lookup
from shoal.dialects.job_limits import LARGEST_JOB
from shoal.dialects.template_validation import template_errors
from shoal.dialects.volcano import crd, names, plugins
from shoal.dialects.volcano.cel_rules import MUTABLE, UNCHANGED
from shoal.dialects.volcano.depends_on import InvalidDependencies, stages
from shoal.dialects.volcano.partial_validation import breaks_consequentially, is_consequential, validate_partially
from shoal.dialects.volcano.spec import DEFAULT_QUEUE, JobSpec, TaskSpec, default
from shoal.kube import names as kube_names
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj, at_path, name_of
from shoal.kube.quantity import BadQuantity, Quantity
from shoal.kube.structural_schema import broken_rules
from shoal.kube.validation.errors import duplicate, forbidden, invalid
from shoal.scheduler.api.pod_groups import QUEUE

LONGEST_POD_NAME = 63
ROOT_QUEUE = "root"
_MADE_CLAIM = re.compile(r".+-pvc-[0-9a-z]{12}", re.ASCII)
_EXPECTED = {
    "replicas": f"a task has from 0 to {LARGEST_JOB} pods",
    "maxRetry": "how many runs there may be, or for a task how many restarts of containers",
    "ttlSecondsAfterFinished": "seconds after the end, or null for never",
}


def admit(manifest: Obj, old: Obj | None = None) -> list[Cause]:
    """Return every mistake, with its path and what would be valid; an empty list admits the manifest.

    With `old`, also what may not become of a stored Job: sizes and minima may change, everything else stays.
    """
    filled = _filled(manifest)
    written = filled["spec"]
    wrong: list[Cause] = []
    try:
        spec = JobSpec.model_validate(written)
    except ValidationError:
        spec, written, wrong = validate_partially(written, _EXPECTED)
    broken = broken_rules(crd.kind(), {**filled, "spec": written}, _filled(old) if old is not None else None)
    job = name_of(manifest)
    found = [
        *wrong,
        *(each for each in broken if not breaks_consequentially(each, wrong)),
        *(each for each in _errors(spec, job) if not is_consequential(each, wrong)),
    ]
    if old is not None and manifest.get("spec") != old.get("spec"):
        found += _changed(filled, _filled(old))
    return list(dict.fromkeys(found))


def _filled(manifest: Obj) -> Obj:
    return default({**manifest, "spec": manifest.get("spec") or {}})


def _errors(spec: JobSpec, job: str) -> Iterator[Cause]:
    for name, value, longest in (
        ("queue", spec.queue, 253),
        ("schedulerName", spec.scheduler_name, 63),
        ("priorityClassName", spec.priority_class_name, 253),
    ):
        wrong = kube_names.dns_subdomain(value) if value else []
        if len(value) > longest:
            wrong = [f"must be no more than {longest} characters"]
        yield from (invalid(f"spec.{name}", value, words) for words in wrong)
    for place, task in enumerate(spec.tasks):
        path = f"spec.tasks[{place}]"
        wrong = kube_names.dns_label(task.name)
        yield from (invalid(f"{path}.name", task.name, words) for words in wrong)
        if job and not wrong:
            longest_name = names.pod_name(job, task.name, max(task.replicas - 1, 0))
            for words in kube_names.dns_label(longest_name):
                why = (
                    f"the pod {longest_name} would have no valid name: {words} (at most {LONGEST_POD_NAME} characters)"
                )
                yield Cause("FieldValueInvalid", why, "metadata.name")
        if task.topology_policy not in ("", "none"):
            yield from _of_whole_cores(task, path)
        yield from template_errors(task.template, f"{path}.template")
    yield from plugins.find_errors(spec)
    yield from _of_volumes(spec)
    try:
        stages(spec)
    except InvalidDependencies as wrong_order:
        words = f"job has dependencies between tasks, but they form no DAG: {wrong_order}"
        yield Cause("FieldValueInvalid", words, "spec")


def _of_whole_cores(task: TaskSpec, path: str) -> Iterator[Cause]:
    for place, container in _objects(at_path(task.template, "spec", "containers")):
        requested = at_path(container, "resources", "requests", "cpu")
        try:
            cores = Quantity.parse(requested) if requested is not None else None
        except BadQuantity:
            continue  # reported at its path
        if cores is None or not cores or cores.milli() % 1000:
            where = f"{path}.template.spec.containers[{place}].resources.requests.cpu"
            yield invalid(where, requested, f"topologyPolicy {task.topology_policy} needs whole cores")


def _objects(several: Any) -> Iterator[tuple[int, Obj]]:
    """The objects of a list with their indexes; an item of another type is reported at its own path."""
    for place, each in enumerate(several if isinstance(several, list) else ()):
        if isinstance(each, dict):
            yield place, each


def _of_volumes(spec: JobSpec) -> Iterator[Cause]:
    mounted: set[str] = set()
    for place, volume in enumerate(spec.volumes):
        path = f"spec.volumes[{place}]"
        if ":" in volume.mount_path:
            yield invalid(f"{path}.mountPath", volume.mount_path, "must not contain ':'")
        elif volume.mount_path in mounted:
            yield duplicate(f"{path}.mountPath", volume.mount_path, "duplicated mountPath")
        if volume.mount_path:
            mounted.add(volume.mount_path)
        named = volume.volume_claim_name
        # Where a claim was made, the controller wrote its name there.
        if volume.volume_claim is not None and named and not _MADE_CLAIM.fullmatch(named):
            words = "conflict: if you want to use an existing claim, leave volumeClaim out"
            yield Cause("FieldValueInvalid", words, path)
        yield from (invalid(f"{path}.volumeClaimName", named, w) for w in kube_names.dns_subdomain(named) if named)


# --- changes -------------------------------------------------------------------------------------------------------


def _changed(new: Obj, old: Obj) -> list[Cause]:
    """Changes that rules do not see, such as those of templates and plugins."""
    before = {str(task.get("name")): task for task in _tasks(old)}
    after = {str(task.get("name")): task for task in _tasks(new)}
    same_tasks = all(
        _immutable_task(after[name]) == _immutable_task(before[name]) for name in after.keys() & before.keys()
    )
    if same_tasks and _immutable_fields(new) == _immutable_fields(old):
        return []
    return [forbidden("spec", MUTABLE)]


def _tasks(manifest: Obj) -> list[Obj]:
    return [task for _, task in _objects(at_path(manifest, "spec", "tasks"))]


def _immutable_fields(manifest: Obj) -> Any:
    spec = manifest["spec"]
    if not isinstance(spec, dict):
        return spec
    reported = ("tasks", *UNCHANGED)  # by rules
    kept = {key: value for key, value in spec.items() if key not in ("minAvailable", "priorityClassName", *reported)}
    kept["volumes"] = [
        {key: value for key, value in volume.items() if key != "volumeClaimName" or "volumeClaim" not in volume}
        for _, volume in _objects(spec.get("volumes"))
    ]
    return kept


def _immutable_task(task: Obj) -> Obj:
    kept = {key: value for key, value in task.items() if key not in ("replicas", "minAvailable")}
    if isinstance(kept.get("partitionPolicy"), dict):
        kept["partitionPolicy"] = {k: v for k, v in kept["partitionPolicy"].items() if k != "totalPartitions"}
    return kept


# --- the queue -----------------------------------------------------------------------------------------------------


def validate_in_cluster(manifest: Obj, lookup: Lookup) -> list[Cause]:
    """Whether a new Job may enter its queue: it must be there, open, a leaf, and not the root of all."""
    name = at_path(manifest, "spec", "queue") or DEFAULT_QUEUE
    if not isinstance(name, str):
        return []  # not a queue name; `admit` reports it
    queues = {name_of(queue): queue for queue in lookup(QUEUE)}
    if name == ROOT_QUEUE:
        return [invalid("spec.queue", name, "can not submit job to root queue: choose a leaf")]
    if name not in queues:
        words = "unable to find job queue: there is no such queue; create it or name another"
        return [invalid("spec.queue", name, words)] if queues else []
    state = at_path(queues[name], "status", "state") or "Open"
    if state != "Open":
        words = f"can only submit job to queue with state `Open`, it is `{state}`"
        way_out = "open it with a Command whose action is OpenQueue, or name another"
        return [invalid("spec.queue", name, f"{words}; {way_out}")]
    children = sorted(each for each, queue in queues.items() if at_path(queue, "spec", "parent") == name)
    if children:
        words = f"can only submit job to leaf queue, this one has children: {', '.join(children)}"
        return [invalid("spec.queue", name, words)]
    return []

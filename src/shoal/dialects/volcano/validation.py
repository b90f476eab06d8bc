"""What is rejected, and with which messages: every mistake at once.

Rules that need other objects (the queue) are in `validate_in_cluster`, called where those objects are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from shoal.dialects.capabilities import Lookup
from shoal.dialects.job_limits import LARGEST_JOB
from shoal.dialects.template_validation import template_errors
from shoal.dialects.volcano import lifecycle_policies, names, plugins
from shoal.dialects.volcano.cel_rules import MUTABLE, NO_TASK, SAME_TASKS
from shoal.dialects.volcano.depends_on import InvalidDependencies, stages
from shoal.dialects.volcano.partial_validation import is_consequential, validate_partially
from shoal.dialects.volcano.spec import DEFAULT_QUEUE, JobSpec, TaskSpec, TopologySpec, default, spec_of
from shoal.kube import names as kube_names
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj, at_path, name_of
from shoal.kube.quantity import BadQuantity, Quantity
from shoal.kube.validation.errors import duplicate, forbidden, invalid, required
from shoal.scheduler.api.pod_groups import QUEUE

LONGEST_POD_NAME = 63
ROOT_QUEUE = "root"
_MADE_CLAIM = re.compile(r".+-pvc-[0-9a-z]{12}", re.ASCII)
_EXPECTED = {
    "replicas": f"a task has from 0 to {LARGEST_JOB} pods",
    "maxRetry": "how many runs there may be, or for a task how many restarts of containers",
    "ttlSecondsAfterFinished": "seconds after the end, or null for never",
}


def admit(manifest: Obj) -> list[Cause]:
    """Return every mistake, with its path and what would be valid; an empty list admits the manifest."""
    spec = manifest.get("spec") or {}
    if isinstance(spec, dict) and (spec.get("tasks") is None or spec["tasks"] == []):
        return [Cause("FieldValueRequired", NO_TASK, "spec.tasks")]
    try:
        return list(_errors(spec_of(manifest), name_of(manifest)))
    except ValidationError:
        rest, told = validate_partially(manifest, _EXPECTED)
        return [*told, *(each for each in _errors(rest, name_of(manifest)) if not is_consequential(each, told))]


def _errors(spec: JobSpec, job: str) -> Iterator[Cause]:
    yield from _of_job(spec)
    for place, task in enumerate(spec.tasks):
        yield from _of_task(task, place, job)
    yield from _of_names(spec, job)
    yield from lifecycle_policies.find_errors(spec.policies, "spec.policies")
    yield from plugins.find_errors(spec)
    yield from _of_volumes(spec)
    try:
        stages(spec)
    except InvalidDependencies as wrong:
        yield Cause("FieldValueInvalid", f"job has dependencies between tasks, but they form no DAG: {wrong}", "spec")


def _of_job(spec: JobSpec) -> Iterator[Cause]:
    if spec.min_available > spec.total:
        words = f"job 'minAvailable' is greater than total replicas: {spec.min_available} > {spec.total}"
        yield Cause("FieldValueInvalid", words, "spec.minAvailable")
    for name, longest in (("queue", 253), ("schedulerName", 63), ("priorityClassName", 253)):
        value = {"queue": spec.queue, "schedulerName": spec.scheduler_name}.get(name, spec.priority_class_name)
        wrong = kube_names.dns_subdomain(value) if value else []
        if len(value) > longest:
            wrong = [f"must be no more than {longest} characters"]
        yield from (invalid(f"spec.{name}", value, words) for words in wrong)
    yield from _of_topology(spec.network_topology, "spec.networkTopology")


def _of_topology(wanted: TopologySpec | None, path: str) -> Iterator[Cause]:
    if wanted is not None and wanted.highest_tier_allowed is not None and wanted.highest_tier_name:
        words = "highestTierAllowed and highestTierName exclude each other: say one of them"
        yield Cause("FieldValueInvalid", words, path)


def _of_task(task: TaskSpec, place: int, job: str) -> Iterator[Cause]:
    path = f"spec.tasks[{place}]"
    if task.minimum > task.replicas:
        words = f"'minAvailable' is greater than 'replicas' in task: {task.name}, job: {job}"
        numbers = f"{task.minimum} > {task.replicas}; lower minAvailable or raise replicas"
        yield Cause("FieldValueInvalid", f"{words}: {numbers}", f"{path}.minAvailable")
    yield from (invalid(f"{path}.name", task.name, words) for words in kube_names.dns_label(task.name))
    yield from lifecycle_policies.find_errors(task.policies, f"{path}.policies")
    yield from _of_partitions(task, path)
    if task.topology_policy not in ("", "none"):
        yield from _of_whole_cores(task, path)
    yield from template_errors(task.template, f"{path}.template")


def _of_partitions(task: TaskSpec, path: str) -> Iterator[Cause]:
    cut = task.partition_policy
    if cut is None:
        return
    if cut.total_partitions * cut.partition_size != task.replicas:
        words = f"totalPartitions x partitionSize must be the task's replicas, which are {task.replicas}"
        yield Cause("FieldValueInvalid", words, f"{path}.partitionPolicy")
    if cut.min_partitions > cut.total_partitions:
        yield invalid(f"{path}.partitionPolicy.minPartitions", cut.min_partitions, "is more than totalPartitions")
    yield from _of_topology(cut.network_topology, f"{path}.partitionPolicy.networkTopology")


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


def _of_names(spec: JobSpec, job: str) -> Iterator[Cause]:
    """Twins, and pods whose names would be no host names."""
    seen: set[str] = set()
    for place, task in enumerate(spec.tasks):
        if task.name in seen:
            path = f"spec.tasks[{place}].name"
            yield duplicate(path, task.name, f"duplicated task name {task.name}: give every task its own")
        seen.add(task.name)
        longest = names.pod_name(job, task.name, max(task.replicas - 1, 0))
        if job and not kube_names.dns_label(task.name):
            for words in kube_names.dns_label(longest):
                why = f"the pod {longest} would have no valid name: {words} (at most {LONGEST_POD_NAME} characters)"
                yield Cause("FieldValueInvalid", why, "metadata.name")


def _of_volumes(spec: JobSpec) -> Iterator[Cause]:
    mounted: set[str] = set()
    for place, volume in enumerate(spec.volumes):
        path = f"spec.volumes[{place}]"
        if not volume.mount_path:
            yield required(f"{path}.mountPath", "say where the volume is mounted")
        elif ":" in volume.mount_path:
            yield invalid(f"{path}.mountPath", volume.mount_path, "must not contain ':'")
        elif volume.mount_path in mounted:
            yield duplicate(f"{path}.mountPath", volume.mount_path, "duplicated mountPath")
        mounted.add(volume.mount_path)
        named, made = volume.volume_claim_name, volume.volume_claim is not None
        if made and named and not _MADE_CLAIM.fullmatch(named):  # else we wrote its name there ourselves
            words = "conflict: if you want to use an existing claim, leave volumeClaim out"
            yield Cause("FieldValueInvalid", words, path)
        if not made and not named:
            yield required(path, "either volumeClaim or volumeClaimName must be specified")
        yield from (invalid(f"{path}.volumeClaimName", named, w) for w in kube_names.dns_subdomain(named) if named)


# --- changes -------------------------------------------------------------------------------------------------------


def admit_change(new: Obj, old: Obj) -> list[Cause]:
    """What may not become of a stored Job; sizes and minima may change, everything else stays."""
    if new.get("spec") == old.get("spec"):
        return []
    after, before = ([task.get("name") for task in _tasks(each)] for each in (new, old))
    if after != before:
        return [forbidden("spec.tasks", SAME_TASKS)]
    return [forbidden("spec", MUTABLE)] if _immutable_spec(new) != _immutable_spec(old) else []


def _tasks(manifest: Obj) -> list[Obj]:
    return [task for _, task in _objects(at_path(default(manifest), "spec", "tasks"))]


def _immutable_spec(manifest: Obj) -> Any:
    """The fields of a spec that are immutable."""
    spec = at_path(default(manifest), "spec", default={})
    if not isinstance(spec, dict):
        return spec
    for name in ("minAvailable", "priorityClassName"):
        spec.pop(name, None)
    spec["volumes"] = [
        {key: value for key, value in volume.items() if key != "volumeClaimName" or "volumeClaim" not in volume}
        for _, volume in _objects(spec.get("volumes"))
    ]
    spec["tasks"] = [_immutable_task(task) for task in _tasks(manifest)]
    return spec


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

"""The manifest a person writes: models of a Job's `spec`, and its defaults.

The models are the one source of the definition (`crd`), with the rules between fields (`cel_rules`). What neither can
say is in `validation`. Pod templates are kept as they are.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Annotated, Any, Literal

import msgspec
from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from shoal.dialects.job_limits import LARGEST_JOB
from shoal.dialects.validation_errors import Model
from shoal.dialects.volcano import cel_rules
from shoal.dialects.volcano.cel_rules import Action, Event
from shoal.kube.crd_schema import PRESERVED
from shoal.kube.objects import Obj, at_path
from shoal.kube.patching.json_values import clone

MAX_RETRY = 3
DEFAULT_QUEUE = "default"
DEFAULT_SCHEDULER = "volcano"
NEEDS_SVC = ("tensorflow", "mpi", "pytorch", "ray")

Int32: dict[str, Any] = {"format": "int32"}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_DURATIONS = re.compile(rf"(?:{_DURATION.pattern})+")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds_of(text: str) -> float:
    """A length of time such as 1m30s. Raises ValueError for anything else."""
    body = text.removeprefix("+")
    if body == "0":
        return 0.0
    if not _DURATIONS.fullmatch(body):  # before the search, which would restart at every digit of a number alone
        raise ValueError("must be a length of time, for example 10s or 1m30s")
    return sum(float(part[1]) * _SECONDS[part[2]] for part in _DURATION.finditer(body))


def _is_duration(text: str) -> str:
    seconds_of(text)
    return text


Duration = Annotated[str, AfterValidator(_is_duration), Field(description="A length of time: 10s, 1m30s")]


def _schema_rules(asked: list[Obj], **more: Any) -> dict[str, Any]:
    """Of a schema: what its rules are."""
    return {"x-kubernetes-validations": asked, **more}


def _number(description: str, *, low: int = 0, high: int = 2**31 - 1) -> Any:
    return Field(ge=low, le=high, json_schema_extra=Int32, description=description)


class LifecyclePolicy(Model):
    """What happens when something happens."""

    model_config = ConfigDict(json_schema_extra=_schema_rules(cel_rules.of_policy()))

    action: Annotated[Literal["", Action], Field(description="AbortJob, RestartJob, RestartTask, RestartPod, ...")] = ""
    event: Annotated[Literal["", Event], Field(description="PodFailed, PodEvicted, TaskCompleted, ... or *")] = ""
    events: Annotated[list[Event], Field(description="Several events with the same action")] = Field(
        default_factory=list, max_length=cel_rules.MOST_EVENTS
    )
    exit_code: Annotated[
        int | None,
        Field(json_schema_extra=Int32, description="Instead of events: of the first container of a failed pod"),
    ] = None
    timeout: Annotated[Duration | None, Field(description="The action waits that long after the event")] = None

    @property
    def named(self) -> list[str]:
        """All events it names."""
        return [*([self.event] if self.event else []), *self.events]


class TopologySpec(Model):
    """How near to each other the pods must be."""

    model_config = ConfigDict(json_schema_extra=_schema_rules(cel_rules.of_topology()))

    mode: Annotated[Literal["hard", "soft"], Field(description="Whether it must be, or should")] = "hard"
    highest_tier_allowed: Annotated[int | None, _number("The widest tier, counted from 1")] = None
    highest_tier_name: Annotated[str, Field(description="The widest tier by its name")] = ""


class PartitionPolicy(Model):
    """A task cut into groups of equal size that are placed whole."""

    model_config = ConfigDict(json_schema_extra=_schema_rules(cel_rules.of_partitions()))

    total_partitions: Annotated[int, _number("How many groups", low=1)]
    partition_size: Annotated[int, _number("Pods in a group", low=1)]
    min_partitions: Annotated[int, _number("How many must be whole before any starts")] = 0
    network_topology: Annotated[TopologySpec | None, Field(description="How near the pods of one group must be")] = None


class DependsOn(Model):
    """Tasks that have to be ready before this one gets pods."""

    name: Annotated[list[str], Field(description="Names of tasks")] = Field(default_factory=list)
    iteration: Annotated[Literal["any", "all"] | None, Field(description="Whether one of them is enough")] = None


class TaskSpec(Model):
    """A group of like pods."""

    model_config = ConfigDict(json_schema_extra=_schema_rules(cel_rules.of_task()))

    name: Annotated[
        str, Field(description="Part of the names of its pods", json_schema_extra={"maxLength": cel_rules.LONGEST_NAME})
    ] = ""
    replicas: Annotated[int, _number("How many pods; may change at any time", high=LARGEST_JOB)] = 0
    min_available: Annotated[int | None, _number("How many must be placeable together; all by default")] = None
    template: Annotated[dict[str, Any], Field(description="The pod"), WithJsonSchema(dict(PRESERVED))] = Field(
        default_factory=dict
    )
    policies: Annotated[list[LifecyclePolicy], Field(description="Asked before the job's own")] = Field(
        default_factory=list,
        max_length=cel_rules.MOST_POLICIES,
        json_schema_extra=_schema_rules(cel_rules.of_policies()),
    )
    max_retry: Annotated[int, _number("Container restarts of all its pods before TaskFailed; -1: never", low=-1)] = (
        MAX_RETRY
    )
    depends_on: Annotated[DependsOn | None, Field(description="What has to be ready first")] = None
    topology_policy: Annotated[
        Literal["none", "best-effort", "restricted", "single-numa-node", ""], Field(description="NUMA placement")
    ] = ""
    partition_policy: Annotated[PartitionPolicy | None, Field(description="Groups that are placed whole")] = None

    @property
    def minimum(self) -> int:
        if self.min_available is not None:
            return self.min_available
        cut = self.partition_policy
        return cut.min_partitions * cut.partition_size if cut and cut.min_partitions else self.replicas


class Volume(Model):
    """A claim mounted into every container."""

    model_config = ConfigDict(json_schema_extra=_schema_rules(cel_rules.of_volume()))

    mount_path: Annotated[str, Field(description="Where")] = ""
    volume_claim_name: Annotated[str, Field(description="A claim that is there")] = ""
    volume_claim: Annotated[
        dict[str, Any] | None, Field(description="A claim to be made: its spec"), WithJsonSchema(dict(PRESERVED))
    ] = None


class JobSpec(Model):
    """What the user specifies."""

    model_config = ConfigDict(json_schema_extra=_schema_rules(cel_rules.of_job()))

    scheduler_name: Annotated[str, Field(description="Who places the pods")] = DEFAULT_SCHEDULER
    min_available: Annotated[int, _number("Pods that must be placeable together; 0: the sum over the tasks")] = 0
    tasks: list[TaskSpec] = Field(
        default_factory=list,
        max_length=cel_rules.MOST_TASKS,
        description=f"The groups of pods, of at most {LARGEST_JOB} in all",
        json_schema_extra=_schema_rules(cel_rules.of_tasks()),
    )
    policies: Annotated[list[LifecyclePolicy], Field(description="What happens when something happens")] = Field(
        default_factory=list,
        max_length=cel_rules.MOST_POLICIES,
        json_schema_extra=_schema_rules(cel_rules.of_policies()),
    )
    plugins: Annotated[dict[str, list[str] | None], Field(description="Plugins with their arguments")] = Field(
        default_factory=dict
    )
    queue: Annotated[str, Field(description="The queue whose share it uses")] = DEFAULT_QUEUE
    max_retry: Annotated[int, _number("How many runs there may be; 0: 3")] = MAX_RETRY
    ttl_seconds_after_finished: Annotated[int | None, _number("Deleted that long after its end")] = None
    priority_class_name: Annotated[str, Field(description="Its priority, also for pods that name none")] = ""
    min_success: Annotated[int | None, _number("Complete as soon as so many pods succeeded", low=1)] = None
    volumes: Annotated[list[Volume], Field(description="Claims mounted into every container")] = Field(
        default_factory=list
    )
    network_topology: Annotated[TopologySpec | None, Field(description="How near to each other the pods must be")] = (
        None
    )
    running_estimate: Annotated[Duration | None, Field(description="How long it will run")] = None

    @property
    def total(self) -> int:
        return sum(task.replicas for task in self.tasks)

    @property
    def minima(self) -> int:
        return sum(task.minimum for task in self.tasks)

    def task(self, name: str) -> TaskSpec | None:
        return next((task for task in self.tasks if task.name == name), None)


def spec_of(manifest: Obj) -> JobSpec:
    """The spec as a model, whether its defaults were filled in or not; raises ValidationError.

    Models are cached by the digest of their spec: every pod of a job is built from the same one.
    """
    digest = blake2b(msgspec.json.encode(manifest.get("spec")), digest_size=16).digest()
    known = _known.get(digest)
    if known is None:
        known = JobSpec.model_validate(default(manifest).get("spec") or {})
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[digest] = known
    return known


_MOST_KNOWN = 1_000
_known: dict[bytes, JobSpec] = {}


def default(manifest: Obj) -> Obj:
    """The manifest with everything the language fills in. Bears with any shape; filling in twice changes nothing."""
    made: Obj = clone(manifest)
    spec = made.get("spec")
    if not isinstance(spec, dict):
        return made
    _fill(spec, schedulerName=DEFAULT_SCHEDULER, queue=DEFAULT_QUEUE, maxRetry=MAX_RETRY)
    _fill_plugins(spec)
    written = spec.get("tasks")
    tasks = written if isinstance(written, list) else []
    for ordinal, task in enumerate(tasks):
        if isinstance(task, dict):
            _fill_task(task, ordinal)
    if not spec.get("minAvailable"):
        spec["minAvailable"] = sum(_count(task.get("minAvailable")) for task in tasks if isinstance(task, dict))
    return made


def _fill(holder: Obj, **values: Any) -> None:
    """Absent, null, empty and 0 are the same to this language."""
    for name, value in values.items():
        if not holder.get(name):
            holder[name] = value


def _fill_task(task: Obj, ordinal: int) -> None:
    _fill(task, name=f"default{ordinal}", maxRetry=MAX_RETRY)
    if task.get("replicas") is None:
        task["replicas"] = 0
    if task.get("minAvailable") is None:
        cut = task.get("partitionPolicy")
        least = _count(at_path(task, "partitionPolicy", "minPartitions")) if isinstance(cut, dict) else 0
        size = _count(at_path(task, "partitionPolicy", "partitionSize")) if isinstance(cut, dict) else 0
        task["minAvailable"] = least * size or _count(task["replicas"])
    pod = at_path(task, "template", "spec")
    if isinstance(pod, dict) and pod.get("hostNetwork") is True and not pod.get("dnsPolicy"):
        pod["dnsPolicy"] = "ClusterFirstWithHostNet"


def _fill_plugins(spec: Obj) -> None:
    plugins = spec.get("plugins")
    if not isinstance(plugins, dict):
        return
    needed = (["ssh"] if "mpi" in plugins else []) + (["svc"] if any(name in plugins for name in NEEDS_SVC) else [])
    for name in needed:
        plugins.setdefault(name, [])


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0

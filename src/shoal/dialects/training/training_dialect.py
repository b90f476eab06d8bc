"""The base of a language for training jobs: roles of replicas, of which a container of a known name decides.

A subclass says how its manifest reads as a `TrainingSpec`, and what is its own: labels, the environment of a pod,
success, the words of its conditions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from pydantic import ValidationError

from shoal.dialects.base_settings import BaseSettings
from shoal.dialects.capabilities import ManifestWarnings, Scaling, StatusProgress
from shoal.dialects.children import content_digest
from shoal.dialects.dialect import ManifestInvalid, StatusReport
from shoal.dialects.displayed_state import complete_state
from shoal.dialects.gang_backends.gang import GangRole, GangSpec
from shoal.dialects.indexed_dialect import LONGEST_POD_NAME, IndexedDialect, TemplatedRole
from shoal.dialects.pod_resources import sum_of_pods
from shoal.dialects.training import conditions as cond
from shoal.dialects.training.conditions import Conditions, ConditionTexts
from shoal.dialects.training.container_edits import find_container, open_port
from shoal.dialects.training.manifest_warnings import of_templates, without_effect
from shoal.dialects.training.owned_objects import SERVICE_OBJECT, ReplicaObjects, group_plans
from shoal.dialects.training.replica_status import ACTIVE, FAILED, RESTARTS, count_replicas
from shoal.dialects.training.replicas import MASTER, PORT, PORT_NAME, WORKER, Replicas, TrainingSpec
from shoal.dialects.training.restart_rules import RestartRules, pod_restart_policy, restarts_in_place
from shoal.dialects.validation_errors import Model
from shoal.engine import Create, Intent, Job, JobState, Observed, Policies, Role, TaskRef
from shoal.engine.policies import (
    ALL,
    BAD,
    After,
    BudgetScope,
    Completion,
    CompletionRule,
    CountCondition,
    DecisionSource,
    DecisiveContainer,
    ExternalDeletion,
    Finish,
    GroupGate,
    Hold,
    Lifetime,
    Memory,
    Opens,
    OwnedObject,
    PodEndPolicy,
    PodPolicy,
    Ready,
    Tally,
)
from shoal.kube.errors import Cause
from shoal.kube.kinds import Kind
from shoal.kube.names import dns_1035_label
from shoal.kube.objects import Obj, at_path, labels_of, name_of
from shoal.kube.times import rfc3339
from shoal.kube.validation.errors import invalid, required

S = TypeVar("S", bound=Model)

RESTARTS_SO_FAR = "shoal.dev/restarts"  # on a pod: how often its task was charged for a failure before
DELETED_LATE_SECONDS = 300  # beyond its grace period, after which a pod on a lost node is deleted by force
DEFAULT_GRACE_SECONDS = 30
_FAILED_TASK = CompletionRule(
    (CountCondition(Tally.BAD, ALL, 1),), BAD, Finish.AT_ONCE, names_trigger=True, takes_code=True,
    trigger_text="{who} failed",
)  # fmt: skip


class TrainingDialect(IndexedDialect[S]):
    """Set `container`, `rules`, `texts` and what `IndexedDialect` needs; implement the abstract methods."""

    container: ClassVar[str]  # whose end is that of the pod
    rules: ClassVar[RestartRules]
    texts: ClassVar[ConditionTexts]
    replicas_field: ClassVar[str]  # of the spec: the roles by key
    roles_attribute: ClassVar[str] = "pytorch_replica_specs"  # the same in the model
    decides_while_running: ClassVar[bool]  # the end of that container counts although others of the pod run
    external_deletion: ClassVar[ExternalDeletion]
    starts_in_order: ClassVar[bool]  # workers are created when all masters run
    leaving_counts_as: ClassVar[str] = ACTIVE
    without_effect: ClassVar[Mapping[str, str]] = {}  # fields of the spec that are accepted, and why they do nothing

    def __init__(self) -> None:
        super().__init__()
        others = tuple(each for each in self.capabilities if not isinstance(each, StatusProgress))
        self._last: tuple[Obj, Any] = ({}, None)
        self.capabilities = (
            *others,
            _Objects(self),
            _TrainingWarnings(self),
            _WorkerScaling(self),
            _ReplicaProgress(self),
        )

    # For subclasses

    @abstractmethod
    def training_spec(self, spec: S) -> TrainingSpec:
        """The job in the terms all training languages share, defaults filled in."""

    @abstractmethod
    def success(self, job: TrainingSpec) -> tuple[CompletionRule, ...]:
        """When the job has succeeded."""

    @abstractmethod
    def labels(self, manifest: Obj, ref: TaskRef | None) -> dict[str, str]:
        """The labels of a task's pod and Service; None: of what belongs to the whole job."""

    @abstractmethod
    def selector(self) -> str:
        """A label selector for whatever may belong to a job of the kind."""

    @abstractmethod
    def has_service(self, job: TrainingSpec, role: str) -> bool:
        """Whether each replica of the role gets a Service."""

    @abstractmethod
    def gangs(self, job: TrainingSpec, manifest: Obj) -> Mapping[str, GangSpec]:
        """What has to start together, by key."""

    @abstractmethod
    def set_up_pod(self, pod: Obj, manifest: Obj, job: TrainingSpec, create: Create) -> None:
        """Variables and arguments of a new pod."""

    def warnings(self, spec: S, job: TrainingSpec) -> Iterable[str]:
        """Remarks on a manifest that the language has for itself."""
        del spec, job
        return ()

    # Reading

    def spec_errors(self, spec: S) -> Sequence[Cause]:
        """Roles without the container that decides."""
        return [
            required(
                f"spec.{self.replicas_field}.{key}.template.spec.containers", f"a container named {self.container}"
            )
            for key, each in getattr(spec, self.roles_attribute).items()
            if find_container(each.template.get("spec") or {}, self.container) is None
        ]

    def validate(self, new: Obj, old: Obj | None = None) -> list[Cause]:
        found = super().validate(new, old)
        # The name is part of those of the Services.
        name = name_of(new)
        found += (invalid("metadata.name", name, why) for why in (dns_1035_label(name) if name else ()))
        for each in () if found else self.read_spec(new).replicas:
            longest = f"{name}-{each.role}-{max(each.maximum or 0, 1) - 1}"
            if len(longest) > LONGEST_POD_NAME:
                why = f"the name of its pod {longest} would be longer than {LONGEST_POD_NAME} characters"
                found.append(invalid("metadata.name", name, why))
        return found

    def default(self, manifest: Obj) -> Obj:
        """The manifest itself: a stored object keeps the spelling its author used."""
        return manifest

    def read_spec(self, manifest: Obj) -> TrainingSpec:
        return self.read(manifest)[1]

    def read(self, manifest: Obj) -> tuple[S, TrainingSpec]:
        """The spec as it is written, and in common terms. Kept of the last manifest: hundreds of pods in a row are
        built from one and the same, which is never changed."""
        if manifest is not self._last[0]:
            spec = self._spec_of(manifest)
            self._last = (manifest, (spec, self.training_spec(spec)))
        found: tuple[S, TrainingSpec] = self._last[1]
        return found

    def roles(self, spec: S) -> Sequence[TemplatedRole]:
        job = self.training_spec(spec)
        return tuple(self._role(each, job) for each in job.replicas)

    def _role(self, each: Replicas, job: TrainingSpec) -> TemplatedRole:
        grace = at_path(each.template, "spec", "terminationGracePeriodSeconds")
        waits = self.starts_in_order and each.role != MASTER and job.find(MASTER) is not None
        role = Role(
            each.role,
            each.size,
            minimum=each.minimum,
            retry=self.rules.retry(each.restart_policy),
            after=After((MASTER,)) if waits else None,
            force_after_seconds=(DEFAULT_GRACE_SECONDS if grace is None else grace) + DELETED_LATE_SECONDS,
        )
        return TemplatedRole(role, each.template, f"spec.{self.replicas_field}.{each.written_key}.template")

    def policies(self, spec: S) -> Policies:
        job = self.training_spec(spec)
        with_services = frozenset(each.role for each in job.replicas if self.has_service(job, each.role))
        first = MASTER if job.find(MASTER) is not None else WORKER
        return Policies(
            pod_policy=PodPolicy(memory=Memory.LEVEL),
            pod_end=PodEndPolicy(
                decisive_container=DecisiveContainer.NAMED,
                container=self.container,
                while_running=self.decides_while_running,
                external_deletion=self.external_deletion,
            ),
            classify=self.rules.classify(),
            budgets=job.limits.budgets(each.role for each in job.replicas if restarts_in_place(each.restart_policy)),
            completion=Completion(
                (*self.success(job), _FAILED_TASK),
                order=(DecisionSource.LIMITS, DecisionSource.COMPLETION, DecisionSource.HOLD),
            ),
            ready=Ready((CountCondition(Tally.UP, first, 1),), sticky=False),
            gates=self._gates(job),
            hold=Hold(requested=job.is_suspended, owned_objects=frozenset({SERVICE_OBJECT})),
            clock=job.limits.timeouts(),
            teardown=job.limits.teardown(),
            owned_objects=(
                OwnedObject(
                    SERVICE_OBJECT,
                    BudgetScope.TASK,
                    Lifetime.TASK,
                    content_digest([job.port(role, self.container) for role in sorted(with_services)]),
                    with_services,
                    behind_gate=True,
                ),
            ),
        )

    def _gates(self, job: TrainingSpec) -> tuple[GroupGate, ...]:
        plans = group_plans(self.gangs(job, {"metadata": {"name": ""}}))
        gate = GroupGate(plans, Opens.ADMITTED, follows=True, reason="PodGroupPending")
        return (gate,) if plans else ()

    def to_job(self, manifest: Obj, settings: BaseSettings) -> Job | None:
        made, job = super().to_job(manifest, settings), self.read_spec(manifest)
        lead = TaskRef(MASTER, 0) if job.find(MASTER) is not None else None
        return replace(made, lead=lead, minimum=job.minimum) if made is not None else None

    def service_spec(self, manifest: Obj, ref: TaskRef) -> Obj:
        """The Service of a replica, without its selector."""
        number = self.read_spec(manifest).port(ref.role, self.container)
        return {"clusterIP": "None", "ports": [{"name": PORT_NAME, "port": number, "protocol": "TCP"}]}

    def gang_of(self, name: str, replicas: Sequence[Replicas], job: TrainingSpec, manifest: Obj) -> GangSpec:
        """These roles together. Surplus workers of an elastic job are placed one by one."""
        wishes = job.scheduling
        size = sum(each.size for each in replicas)
        least = [(each, each.size if each.minimum is None else min(each.minimum, each.size)) for each in replicas]
        return GangSpec(
            name,
            min(wishes.min_available or sum(count for _, count in least), size),
            tuple(GangRole(each.role, each.size, count, each.template) for each, count in least),
            queue=wishes.queue or "default",
            priority_class=wishes.priority_class,
            min_resources=wishes.min_resources or sum_of_pods((each.template, count) for each, count in least),
            schedule_timeout_seconds=wishes.timeout_seconds,
            labels=labels_of(manifest),
        )

    # Pods

    def complete_pod(self, pod: Obj, manifest: Obj, create: Create) -> None:
        ref = create.target
        assert isinstance(ref, TaskRef)
        job = self.read_spec(manifest)
        replicas = job.find(ref.role)
        assert replicas is not None, "only roles of the spec get pods"
        spec = pod["spec"]
        pod["metadata"]["labels"].update(self.labels(manifest, ref))
        pod["metadata"]["annotations"][RESTARTS_SO_FAR] = str(create.failures)
        spec["restartPolicy"] = pod_restart_policy(replicas.restart_policy)
        for container in spec["containers"]:
            container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
        trainer = find_container(spec, self.container)
        if trainer is not None and self.has_service(job, ref.role):
            open_port(trainer, PORT_NAME, PORT)
        self.set_up_pod(pod, manifest, job, create)

    # Status

    def status(self, job: Job, state: JobState, observed: Observed, manifest: Obj, now: datetime) -> StatusReport:
        before: Obj = manifest.get("status") or {}
        counts = count_replicas(state, observed, leaving_counts_as=self.leaving_counts_as)
        keys = {each.role: each.key for each in self.read_spec(manifest).replicas}
        shown = {
            keys[role]: {**{key: count for key, count in found.items() if count}, **self.role_status(manifest, role)}
            for role, found in counts.items()
            if role in keys
        }
        started, ended = state.stamps.clock_from, state.stamps.ended
        status = {
            "conditions": [dict(each) for each in self._conditions(state, observed, manifest, shown, now).entries],
            "replicaStatuses": shown,
            "startTime": rfc3339(started) if started is not None and not state.is_held else None,
            "completionTime": rfc3339(ended) if ended is not None else None,
            **self.more_status(manifest, before),
        }
        del job
        return StatusReport(status={key: value for key, value in status.items() if value is not None})

    def role_status(self, manifest: Obj, role: str) -> Obj:
        """What the status of a role has besides its counts."""
        del manifest, role
        return {}

    def more_status(self, manifest: Obj, before: Obj) -> Obj:
        """What the status of the job has besides conditions, counts and times."""
        del manifest, before
        return {}

    def _conditions(
        self, state: JobState, observed: Observed, manifest: Obj, shown: Mapping[str, Obj], now: datetime
    ) -> Conditions:
        before: Obj = manifest.get("status") or {}
        at = rfc3339(now.replace(microsecond=0))
        made = Conditions(self.texts, name_of(manifest), at, before.get("conditions") or ()).set(cond.CREATED)
        if state.run.intent is Intent.END:
            return self._ended(made, state, shown)
        if state.is_held:
            if made.has(cond.RUNNING):
                made = made.set(cond.RUNNING, False, reason=self.texts.reasons[cond.SUSPENDED])
            return made.set(cond.SUSPENDED)
        if made.has(cond.SUSPENDED):
            made = made.set(
                cond.SUSPENDED, False, reason=self.texts.reasons["Resumed"], message=self.texts.messages["Resumed"]
            )
        made = self._queued(made, observed)
        restarted = _new_restarts(before, shown)
        if restarted:
            key, count = restarted[0]
            made = made.set(cond.RESTARTING, count=count, role=key)
        if state.run.ran is not None and not restarted:
            lead = MASTER.capitalize() if any(key.lower() == MASTER for key in shown) else WORKER.capitalize()
            if shown.get(lead, {}).get(ACTIVE):
                made = made.set(cond.RUNNING)
        return made

    def _queued(self, made: Conditions, observed: Observed) -> Conditions:
        waiting = next((group for group in observed.groups.values() if not group.admitted), None)
        if waiting is not None and waiting.pending_message:
            return made.set(cond.QUEUING, message="{why}", why=waiting.pending_message)
        if waiting is None and made.has(cond.QUEUING):
            return made.set(
                cond.QUEUING, False, reason=self.texts.reasons["Dequeued"], message=self.texts.messages["Dequeued"]
            )
        return made

    def _ended(self, made: Conditions, state: JobState, shown: Mapping[str, Obj]) -> Conditions:
        outcome = state.run.outcome
        if outcome is not None and outcome.is_ok:
            return made.end(cond.SUCCEEDED)
        role = outcome.trigger.role if outcome is not None and outcome.trigger is not None else WORKER
        key = next((key for key in shown if key.lower() == role), role)
        count = max(int(shown.get(key, {}).get(FAILED) or 0), 1)
        phrase = outcome.phrase if outcome is not None else ""
        return made.end(cond.FAILED, message=self.texts.ended.get(phrase, ""), count=count, role=key)


def _new_restarts(before: Obj, shown: Mapping[str, Obj]) -> list[tuple[str, int]]:
    """Roles whose pods were created again since the last report, and how many of them."""
    known = before.get("replicaStatuses") or {}
    counts = ((key, int(found.get(RESTARTS) or 0)) for key, found in shown.items())
    fresh = ((key, count - int((known.get(key) or {}).get(RESTARTS) or 0)) for key, count in counts)
    return [(key, count) for key, count in fresh if count > 0]


class _Objects(ReplicaObjects):
    def __init__(self, dialect: TrainingDialect[Any]) -> None:
        super().__init__(dialect.selector())
        self._dialect = dialect
        self.kind: Kind = dialect.kind

    def labels(self, manifest: Obj, ref: TaskRef | None) -> dict[str, str]:
        return self._dialect.labels(manifest, ref)

    def pod_name(self, manifest: Obj, ref: TaskRef) -> str:
        return self._dialect.pod_name(manifest, ref)

    def service_spec(self, manifest: Obj, ref: TaskRef) -> Obj:
        return self._dialect.service_spec(manifest, ref)

    def specs(self, manifest: Obj) -> Mapping[str, GangSpec]:
        return self._dialect.gangs(self._dialect.read_spec(manifest), manifest)


class _TrainingWarnings(ManifestWarnings):
    def __init__(self, dialect: TrainingDialect[Any]) -> None:
        self._dialect = dialect

    def warn(self, new: Obj, old: Obj | None) -> list[str]:
        """Of a new manifest without mistakes."""
        if old is not None or self._dialect.validate(new):
            return []
        spec, job = self._dialect.read(new)
        found = list(without_effect(new, self._dialect.without_effect))
        for each in job.replicas:
            found += of_templates(each, f"spec.{self._dialect.replicas_field}.{each.written_key}")
        return [*found, *self._dialect.warnings(spec, job)]


class _WorkerScaling(Scaling):
    def __init__(self, dialect: TrainingDialect[Any]) -> None:
        self._dialect = dialect

    def patch(self, manifest: Obj, sizes: Mapping[str, int]) -> list[Obj]:
        known = {each.role: each for each in self._dialect.read_spec(manifest).replicas}
        operations = []
        for role, size in sizes.items():
            if role not in known:
                raise LookupError(f"there is no role {role!r}; the roles are: {', '.join(known)}")
            if known[role].size != size:
                path = f"/spec/{self._dialect.replicas_field}/{known[role].written_key}/replicas"
                operations.append({"op": "add", "path": path, "value": size})
        return operations


class _ReplicaProgress(StatusProgress):
    """Of equal pods, the first ones are shown as running."""

    def __init__(self, dialect: TrainingDialect[Any]) -> None:
        self._dialect = dialect

    def status_state(self, manifest: Obj) -> JobState:
        counts: Obj = at_path(manifest, "status", "replicaStatuses", default={})
        running = {key.lower(): int((found or {}).get(ACTIVE) or 0) for key, found in counts.items()}
        try:
            sizes = {each.role: each.size for each in self._dialect.read_spec(manifest).replicas}
        except (ManifestInvalid, ValidationError):
            sizes = {}
        return complete_state(self._dialect.load_state(manifest), sizes, running, cut_off=BAD)

"""A base for languages of roles with numbered pods: the spec is a model, the job state an annotation.

A subclass says which model its spec has, which roles and policies follow from a spec, and what is special about a pod.
Everything else a job language needs is here: the CRD, validation, names, labels, owners, the stored state and a status
with counts. `docs/writing-a-dialect.md` builds such a language.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec
from pydantic import ValidationError, WithJsonSchema

from shoal.dialects import state_annotation
from shoal.dialects.base_settings import BaseSettings
from shoal.dialects.capabilities import StatusProgress
from shoal.dialects.dialect import Dialect, ManifestInvalid, Owner, StatePatch, StatusReport
from shoal.dialects.displayed_state import complete_state
from shoal.dialects.job_limits import size_error
from shoal.dialects.memo import memoize
from shoal.dialects.template_validation import template_errors
from shoal.dialects.validation_errors import Model, causes
from shoal.engine import Create, Job, JobState, Observed, ObservedPod, Policies, Role, TaskRef, read_pod
from shoal.engine.policies import BAD
from shoal.kube.counts import parse_count
from shoal.kube.crd_schema import PRESERVED, crd_manifest, structural
from shoal.kube.errors import Cause
from shoal.kube.objects import (
    Key,
    Obj,
    annotations_of,
    at_path,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from shoal.kube.owners import controller_of, owner_reference
from shoal.kube.patching.json_values import clone
from shoal.kube.structural_schema import broken_rules, kinds_of
from shoal.kube.validation.errors import invalid

JOB_NAME = "shoal.dev/job-name"
ROLE = "shoal.dev/role"
INDEX = "shoal.dev/index"
RUN = "shoal.dev/run"
LONGEST_POD_NAME = 63

PodTemplate = Annotated[dict[str, Any], WithJsonSchema(PRESERVED)]  # for models: validated as pods are

S = TypeVar("S", bound=Model)


@dataclass(frozen=True, slots=True)
class TemplatedRole:
    """A role with the template of its pods, and where in the manifest that template is."""

    role: Role
    template: Obj
    path: str


class _ParsedSpec(NamedTuple):
    roles: tuple[Role, ...]
    templates: Mapping[str, Obj]
    policies: Policies


class IndexedDialect(Dialect, Generic[S]):
    """Set `group`, `version`, `names` and `spec_model`; implement `roles` and, where the defaults do not fit, the
    other methods."""

    state_in_annotation = True
    group: ClassVar[str]
    version: ClassVar[str]
    names: ClassVar[Obj]  # kind, listKind, plural, singular, shortNames
    columns: ClassVar[Sequence[Obj]] = (
        {"name": "STATUS", "type": "string", "jsonPath": ".status.phase"},
        {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    )
    spec_model: type[S]

    def __init__(self) -> None:
        openapi = {
            "type": "object",
            "properties": {"spec": structural(self.spec_model.model_json_schema(by_alias=True)), "status": PRESERVED},
        }
        self._crd = crd_manifest(
            openapi, group=self.group, version=self.version, names=self.names, columns=self.columns
        )
        (self.kind,) = kinds_of(self._crd)
        self.capabilities = (*self.capabilities, _CountedTasks(self))

    # For subclasses

    @abstractmethod
    def roles(self, spec: S) -> Sequence[TemplatedRole]:
        """The roles of a job, in order."""

    def policies(self, spec: S) -> Policies:
        """The policies that the language sets for the engine."""
        del spec
        return Policies()

    def spec_errors(self, spec: S) -> Sequence[Cause]:
        """Mistakes that the model does not find."""
        del spec
        return ()

    def complete_pod(self, pod: Obj, manifest: Obj, create: Create) -> None:
        """Add to a new pod what the language promises, such as environment variables."""

    # Reading

    def crd(self) -> Obj:
        return deepcopy(self._crd)

    def settings(self, written: Mapping[str, Any] | None = None) -> BaseSettings:
        """There are none; every key is a mistake."""
        return BaseSettings.read(written)

    def default(self, manifest: Obj) -> Obj:
        """Fills in what the model has a default for, where the spec has no mistakes."""
        filled: Obj = clone(manifest)
        try:
            model = self._spec_of(manifest)
        except ValidationError:
            return filled
        defaults = model.model_dump(by_alias=True, mode="json", exclude_none=True)
        written = {key: value for key, value in (filled.get("spec") or {}).items() if value is not None}
        filled["spec"] = {**defaults, **written}
        return filled

    def validate(self, new: Obj, old: Obj | None = None) -> list[Cause]:
        try:
            spec = self._spec_of(new)
        except ValidationError as wrong:
            return causes(wrong, prefix="spec", right={})
        found = [*broken_rules(self.kind, new, old), *self.spec_errors(spec)]
        if found:
            return found  # roles are made of a spec that keeps the rules
        roles = self.roles(spec)
        for each in roles:
            found += template_errors(each.template, each.path)
            longest = f"{name_of(new)}-{each.role.name}-{max(each.role.size - 1, 0)}"
            if len(longest) > LONGEST_POD_NAME:
                why = f"the name of its pod {longest} is longer than {LONGEST_POD_NAME} characters"
                found.append(invalid("metadata.name", name_of(new), why))
        if wrong_size := size_error(sum(each.role.size for each in roles)):
            found.append(Cause("FieldValueInvalid", wrong_size, "spec"))
        return found

    def to_job(self, manifest: Obj, settings: BaseSettings) -> Job | None:
        parsed = self._parse(manifest, settings)
        return Job(
            uid=uid_of(manifest),
            name=name_of(manifest),
            namespace=namespace_of(manifest),
            roles=parsed.roles,
            policies=parsed.policies,
            deleting=is_terminating(manifest),
        )

    def _spec_of(self, manifest: Obj) -> S:
        return self.spec_model.model_validate(manifest.get("spec") or {})

    def _parse(self, manifest: Obj, settings: BaseSettings) -> _ParsedSpec:
        def parse() -> _ParsedSpec:
            if mistakes := self.validate(manifest):
                raise ManifestInvalid(mistakes)
            spec = self._spec_of(manifest)
            roles = self.roles(spec)
            templates = {each.role.name: each.template for each in roles}
            return _ParsedSpec(tuple(each.role for each in roles), templates, self.policies(spec))

        known: _ParsedSpec = memoize(settings.understood, (name_of(manifest), manifest.get("spec")), parse)
        return known

    # Pods

    def build_pod(self, manifest: Obj, create: Create) -> Obj:
        ref = create.target
        assert isinstance(ref, TaskRef)
        written = self._parse(manifest, self._no_settings).templates[ref.role]
        template: Obj = msgspec.json.decode(msgspec.json.encode(written))
        metadata = template.get("metadata") or {}
        labels = {JOB_NAME: name_of(manifest), ROLE: ref.role, INDEX: str(ref.index)}
        owner = {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": manifest["metadata"]}
        pod: Obj = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.pod_name(manifest, ref),
                "namespace": namespace_of(manifest),
                "labels": {**(metadata.get("labels") or {}), **labels},
                "annotations": {**(metadata.get("annotations") or {}), RUN: str(create.build_context.run)},
                "ownerReferences": [owner_reference(owner)],
            },
            "spec": template["spec"],
        }
        self.complete_pod(pod, manifest, create)
        return pod

    def pod_name(self, manifest: Obj, task: TaskRef) -> str:
        return f"{name_of(manifest)}-{task}"

    def owner_of(self, obj: Obj) -> Owner | None:
        controller = controller_of(obj) or {}
        if (controller.get("apiVersion"), controller.get("kind")) != (self.kind.api_version, self.kind.kind):
            return None
        return Owner(Key(namespace_of(obj), str(controller.get("name"))), str(controller.get("uid")))

    def observe_pod(self, pod: Obj, manifest: Obj) -> ObservedPod | None:
        """Also a pod of another owner that has the name of one of ours: it blocks the name."""
        owner, labels = self.owner_of(pod), labels_of(pod)
        if owner is not None and owner.uid == uid_of(manifest):
            role, index = labels.get(ROLE, ""), parse_count(labels.get(INDEX))
            return read_pod(pod, role=role, index=index, run=parse_count(annotations_of(pod).get(RUN)) or 0)
        role, _, number = name_of(pod).removeprefix(f"{name_of(manifest)}-").rpartition("-")
        if not number.isdecimal() or name_of(pod) != self.pod_name(manifest, TaskRef(role, int(number))):
            return None
        return read_pod(pod, role=role, index=int(number), owned=False)

    # State and status

    def load_state(self, manifest: Obj) -> JobState:
        return state_annotation.restore(manifest) or JobState()

    def save_state(self, job: Job, state: JobState, settings: BaseSettings) -> StatePatch:
        del settings
        return state_annotation.record(job, state)

    def status(self, job: Job, state: JobState, observed: Observed, manifest: Obj, now: datetime) -> StatusReport:
        """The phase, and per role the pods by phase; finished tasks count when their pods are gone, too."""
        del job, manifest, now
        counts: dict[str, Counter[str]] = {role.name: Counter() for role in state.roles}
        present = set()
        for pod in observed.pods:
            if pod.owned:
                present.add((pod.role, pod.index))
                counts.setdefault(pod.role, Counter())[pod.phase.value.lower()] += 1
        for role in state.roles:
            for task in role.tasks:
                if task.outcome is not None and not task.dropped and (role.name, task.index) not in present:
                    counts[role.name]["succeeded" if task.outcome.is_ok else "failed"] += 1
        roles = {name: dict(sorted(found.items())) for name, found in sorted(counts.items()) if found}
        outcome = state.run.outcome
        if state.is_ended:
            phase = outcome.phrase if outcome is not None else BAD.phrase
        elif state.is_held:
            phase = "Suspended"
        else:
            phase = "Running" if state.run.ran is not None and state.run.is_open else "Pending"
        return StatusReport(status={"phase": phase, "roles": roles})

    _no_settings: ClassVar[BaseSettings] = BaseSettings()


class _CountedTasks(StatusProgress):
    """Of equal pods, the first ones are shown as running."""

    def __init__(self, dialect: IndexedDialect[Any]) -> None:
        self._dialect = dialect

    def status_state(self, manifest: Obj) -> JobState:
        counts: Obj = at_path(manifest, "status", "roles", default={})
        running = {role: int(found.get("running") or 0) for role, found in counts.items()}
        try:
            job = self._dialect.to_job(manifest, self._dialect.settings(None))
            sizes = {role.name: role.size for role in job.roles} if job is not None else {}
        except ManifestInvalid:
            sizes = {}
        return complete_state(self._dialect.load_state(manifest), sizes, running, cut_off=BAD)

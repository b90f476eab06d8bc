"""The user's manifest: models of `spec`, its defaults, and every mistake with its path.

The models are the single source: the CRD (`crd`) is generated from them, with rules in CEL for its updates and its
size, and defaults are those of the CRD. `admit` reports what models and rules reject. Only the types in the pod
template are checked; the API server validates a pod when it is created, and `pod_preview` previews that validation. An
unknown field is pruned by the CRD's schema, not rejected here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, WithJsonSchema

from shoal.dialects.framework import template_fields
from shoal.dialects.job_limits import LARGEST_JOB, within_limit
from shoal.dialects.validation_errors import Model, causes
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.kube.patching.json_values import clone
from shoal.kube.schema_errors import find_mismatches, is_at_or_below
from shoal.kube.schemas import named
from shoal.kube.structural_schema import apply_defaults, broken_rules
from shoal.kube.validation.errors import duplicate, invalid, required

NAME_PATTERN = "^[a-z0-9]{1,63}$"
NAME = re.compile(NAME_PATTERN, re.ASCII)
PREFIX_PATTERN = "^[a-z0-9]{1,58}$"  # of generateName: five letters follow
PREFIX = re.compile(PREFIX_PATTERN, re.ASCII)

MOST_ROLES = 9_999  # as many as the loops of a rule have iterations

_RETRIES = "-2 retries always, -1 after every failure, 0 never, n at most n times"
_COUNTS = "-1 or 0 switches the rule off, n asks for n tasks"
_EXPECTED = {
    "name": "1 to 63 lower case letters and digits",
    "taskNumber": f"a role has from 0 to {LARGEST_JOB} tasks",
    "maxRetryCount": _RETRIES,
    "minFailedTaskCount": _COUNTS,
    "minSucceededTaskCount": _COUNTS,
    "podGracefulDeletionTimeoutSec": "seconds after which a pod is deleted by force, or null for never",
    "pod": "the template of the role's pods",
    "taskRoles": "a list of roles, each with a name and a task",
}

Int32 = {"format": "int32"}


def _fits_int64(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise ValueError("must fit into 64 bits")
    return number


def _is_no_past(seconds: int) -> int:
    if seconds < 0:
        raise ValueError("must be 0 or more: " + _EXPECTED["podGracefulDeletionTimeoutSec"])
    return seconds


# No bound of the schema: a stored number below zero is reported, and the rest can still be changed.
Seconds = Annotated[int, AfterValidator(_fits_int64), AfterValidator(_is_no_past)]


class RetryPolicy(Model):
    """Whether an attempt that ended is tried again."""

    fancy_retry_policy: Annotated[
        bool,
        Field(
            description="Look at the kind of failure: a transient one is retried free of charge, a permanent one never"
        ),
    ] = False
    max_retry_count: Annotated[
        int, Field(ge=-2, le=2**31 - 1, json_schema_extra=Int32, description=f"How often: {_RETRIES}")
    ] = 0


class CompletionPolicy(Model):
    """When the tasks of this role decide about the whole attempt."""

    min_failed_task_count: Annotated[
        int,
        Field(
            ge=-1,
            le=2**31 - 1,
            json_schema_extra=Int32,
            description=f"So many failed tasks fail the attempt; {_COUNTS}",
        ),
    ] = 1
    min_succeeded_task_count: Annotated[
        int,
        Field(
            ge=-1,
            le=2**31 - 1,
            json_schema_extra=Int32,
            description=f"So many succeeded tasks make the attempt succeed; {_COUNTS}",
        ),
    ] = -1


class FrameworkTask(Model):
    """What every task of the role is made of."""

    retry_policy: Annotated[RetryPolicy, Field(description="Whether a task that ended is tried again")] = RetryPolicy()
    pod_graceful_deletion_timeout_sec: Annotated[
        Seconds | None,
        Field(
            json_schema_extra={"format": "int64"},
            description="Seconds after which a pod that is being deleted is deleted by force; null: never, "
            "so that no two pods of a task can ever run at once",
        ),
    ] = None
    pod: Annotated[
        dict[str, Any],
        Field(description="The template of the pod; {{FC_TASK_INDEX}} and five other placeholders are filled in"),
        WithJsonSchema(template_fields.OUTLINE),
    ] = Field(default_factory=dict)


class TaskRole(Model):
    """A group of like tasks."""

    name: Annotated[str, Field(pattern=NAME_PATTERN, description="Part of the names of the role's pods")]
    task_number: Annotated[
        int, Field(ge=0, le=LARGEST_JOB, json_schema_extra=Int32, description="How many tasks; may change at any time")
    ] = 0
    framework_attempt_completion_policy: Annotated[
        CompletionPolicy, Field(description="When the tasks of this role decide about the whole attempt")
    ] = CompletionPolicy()
    task: Annotated[FrameworkTask, Field(description="What every task of the role is made of")] = FrameworkTask()


_STOPPED = "a Framework that was stopped stays stopped; delete it and create it again to run it again"
_STARTED = "a Framework that was started keeps running; Stop ends it"


class FrameworkSpec(Model):
    """What the user wants."""

    description: Annotated[str | None, Field(description="A description for people")] = ""
    execution_type: Annotated[
        Literal["Create", "Start", "Stop"],
        Field(
            description="Create waits, Start runs, Stop ends it for good and keeps the object",
            json_schema_extra={
                "x-kubernetes-validations": [
                    {
                        "rule": "oldSelf != 'Stop' || self == 'Stop'",
                        "message": _STOPPED,
                        "reason": "FieldValueForbidden",
                    },
                    {
                        "rule": "oldSelf != 'Start' || self != 'Create'",
                        "message": _STARTED,
                        "reason": "FieldValueForbidden",
                    },
                ]
            },
        ),
    ] = "Start"
    retry_policy: Annotated[RetryPolicy, Field(description="Whether the whole is tried again")] = RetryPolicy()
    task_roles: list[TaskRole] = Field(
        [],
        max_length=MOST_ROLES,
        description=f"The roles of the application, of at most {LARGEST_JOB} tasks in all; no tasks means paused",
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "x-kubernetes-validations": [within_limit("(has(r.taskNumber) ? r.taskNumber : 0)")],
        },
    )


def spec_of(manifest: Obj) -> FrameworkSpec:
    """The spec as a model; raises ValidationError where `spec_errors` has something to say."""
    return FrameworkSpec.model_validate(manifest.get("spec") or {})


def admit(manifest: Obj, old: Obj | None = None) -> list[Cause]:
    """Return every mistake, with its path and what would be valid; an empty list admits the manifest.

    With `old`, also what may not become of a stored Framework.
    """
    return [*_name_problems(manifest.get("metadata") or {}), *spec_errors(manifest, old)]


def spec_errors(manifest: Obj, old: Obj | None = None) -> list[Cause]:
    """Every mistake of the spec alone."""
    from shoal.dialects.framework.crd import kind

    spec = manifest.get("spec")
    found: list[Cause] = []
    try:
        FrameworkSpec.model_validate({} if spec is None else spec)
    except ValidationError as problems:
        found = causes(problems, prefix="spec", right=_EXPECTED)
    wrong = [cause.field for cause in found]
    for cause in broken_rules(kind(), _typed(manifest), _typed(old) if old is not None else None):
        # A rule that reads what is wrong below its place says nothing more.
        if not is_at_or_below(cause.field, wrong) and not any(is_at_or_below(each, [cause.field]) for each in wrong):
            found.append(cause)
    return [*found, *repeated_roles(spec), *_template_errors(manifest)]


def _typed(manifest: Obj) -> Obj:
    """With its executionType, which rules compare with that before."""
    spec = manifest.get("spec")
    if not isinstance(spec, dict) or spec.get("executionType") is not None:
        return manifest
    return {**manifest, "spec": {**spec, "executionType": FrameworkSpec.model_fields["execution_type"].default}}


def _template_errors(manifest: Obj) -> Iterator[Cause]:
    """Templates no pod can be made of, whatever the API server would say about it: text for a number, and the like."""
    schema = named("PodTemplateSpec")
    for index, task in tasks_of(manifest):
        if isinstance(task.get("pod"), dict):
            wrong = find_mismatches(schema, template_fields.canonical(task["pod"]))
            yield from (misfit.cause(f"spec.taskRoles[{index}].task.pod") for misfit in wrong)


def _name_problems(metadata: Obj) -> list[Cause]:
    name, prefix = metadata.get("name") or "", metadata.get("generateName") or ""
    if name:
        return [] if NAME.fullmatch(name) else [_bad_name("metadata.name", name)]
    if not prefix:
        return [required("metadata.name", "give the Framework a name of 1 to 63 lower case letters and digits")]
    return [] if PREFIX.fullmatch(prefix) else [_bad_name("metadata.generateName", prefix, longest=58)]


def _bad_name(path: str, name: str, *, longest: int = 63) -> Cause:
    right = re.sub("[^a-z0-9]", "", name.lower())[:longest]
    example = f", for example {right}" if right else ""
    return invalid(path, name, f"must consist of 1 to {longest} lower case letters and digits{example}")


def repeated_roles(spec: Any) -> list[Cause]:
    """At the path the API server itself names for entries of one key."""
    seen: set[str] = set()
    found: list[Cause] = []
    for index, role in _roles(spec):
        name = role.get("name")
        if isinstance(name, str) and name in seen:
            found.append(duplicate(f"spec.taskRoles[{index}]", {"name": name}, "give every role a name of its own"))
        elif isinstance(name, str):
            seen.add(name)
    return found


def default(manifest: Obj) -> Obj:
    """The manifest as it is stored: defaults filled in, fields of the pod templates under their proper names."""
    from shoal.dialects.framework.crd import schema

    made: Obj = clone(manifest)
    apply_defaults(schema(), made)
    for _, task in tasks_of(made):
        if isinstance(task.get("pod"), dict):
            task["pod"] = template_fields.canonical(task["pod"])
    return made


def tasks_of(manifest: Obj) -> Iterator[tuple[int, Obj]]:
    """The task of every role with the role's place, as far as the shape allows."""
    for index, role in roles_of(manifest):
        task = role.get("task")
        if isinstance(task, dict | None):
            yield index, task or {}


def roles_of(manifest: Obj) -> Iterator[tuple[int, Obj]]:
    """Every role with its place, as far as the shape allows."""
    yield from _roles(manifest.get("spec"))


def _roles(spec: Any) -> Iterator[tuple[int, Obj]]:
    roles = spec.get("taskRoles") if isinstance(spec, dict) else None
    for index, role in enumerate(roles if isinstance(roles, list) else ()):
        if isinstance(role, dict):
            yield index, role

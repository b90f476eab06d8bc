"""The validation of a cluster without a cluster: a temporary API machinery in memory.

A cluster runs one check after the other and stops at the first failure: are the types right, is the object valid, and
much later, is the pod made of it? Here every check runs, each on what the ones before have not reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import click

from shoal.cli.lint import drop_reported, idle_warnings, kind_hint, lint_warnings, undecodable, unknown_fields
from shoal.cli.manifest_files import Manifest
from shoal.cluster.apimachinery import MEMORY, Machinery
from shoal.cluster.types import WriteOptions
from shoal.dialects import dialect_of, dialects
from shoal.dialects.capabilities import PodPreview
from shoal.dialects.dialect import definitions_of
from shoal.kube import names
from shoal.kube.errors import ApiError, Cause
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, Kind
from shoal.kube.objects import Key, Obj
from shoal.kube.schema_errors import is_at_or_below, path_of, remove_mismatches
from shoal.kube.validation.errors import invalid
from shoal.node.images import Images
from shoal.node.messages import text
from shoal.operator.dialect_registration import admit
from shoal.scheduler.api.hypernodes import hypernode_definition
from shoal.scheduler.queue_validation import admit as admit_queues_and_groups


@dataclass(frozen=True, slots=True)
class ValidationResult:
    mistakes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    fields: tuple[str, ...] = field(default=(), compare=False)  # that the mistakes are about

    def with_warnings(self, warnings: Iterable[str]) -> ValidationResult:
        return replace(self, warnings=(*self.warnings, *warnings))

    def with_more(self, causes: Iterable[Cause]) -> ValidationResult:
        """Add the causes that only the cluster can find; one without a field repeats those that have one."""
        more = [
            str(cause)
            for cause in causes
            if not self.mistakes or (cause.field and not is_at_or_below(cause.field, self.fields))
        ]
        return replace(self, mistakes=(*self.mistakes, *more))


def format_result(manifest: Manifest, result: ValidationResult) -> list[str]:
    """A verdict in lines."""
    count = len(result.mistakes)
    plural = f"has {count} mistake{'s' * (count > 1)}:" if count else "is valid."
    if not count and (warning_count := len(result.warnings)):
        plural = f"has {warning_count} warning{'s' * (warning_count > 1)}:"
    mistakes = [f"  {mistake}" for mistake in result.mistakes]
    warnings = [f"  warning: {warning}" for warning in result.warnings]
    return [f"{manifest.where}: {manifest} {plural}", *mistakes, *warnings]


def make_machinery() -> Machinery:
    """An empty cluster that serves every job language."""
    machinery = Machinery.open(MEMORY)
    admit(machinery, dialects())
    admit_queues_and_groups(machinery, sees_queues=False)
    definitions = definitions_of(*dialects())
    for definition in (*definitions, hypernode_definition()):
        machinery.create(CUSTOM_RESOURCE_DEFINITION, "", definition)
    return machinery


def validate(machinery: Machinery, manifest: Manifest) -> ValidationResult:
    kinds = list(machinery.kinds())
    kind = next((k for k in kinds if (k.api_version, k.kind) == (manifest.api_version, manifest.kind)), None)
    if kind is None:
        unknown = f"apiVersion, kind: the kind {manifest.kind} in {manifest.api_version} is unknown"
        return ValidationResult((unknown + kind_hint(manifest, kinds),))
    wrong = undecodable(kind, manifest.obj)
    places = [path_of("", misfit.steps) for misfit in wrong]
    rest = replace(manifest, obj=remove_mismatches(manifest.obj, wrong))
    refused, api_warnings = _dry_run_create(machinery, kind, rest.obj)
    causes = [
        *(misfit.cause() for misfit in wrong),
        *(cause for cause in refused if not is_at_or_below(cause.field, places)),
    ]
    dialect = dialect_of(manifest.api_version, manifest.kind)
    preview = dialect.capability(PodPreview) if dialect is not None else None
    if preview is not None:  # what will be rejected once pods of the job are created
        reported = {cause.field for cause in causes}
        causes += [cause for cause in preview.errors(rest.obj) if cause.field not in reported]
    notes = list(dict.fromkeys(drop_reported(causes, [*lint_warnings(rest, kind), *api_warnings])))
    strict = unknown_fields(notes)
    warnings = [note for note in notes if note not in strict]
    if not causes:
        warnings += idle_warnings(rest)
    fields = (*(cause.field for cause in causes if cause.field), *(unknown.field for unknown in strict))
    mistakes = dict.fromkeys((*(str(cause) for cause in causes), *strict))  # two checks may find one
    return ValidationResult(tuple(mistakes), tuple(warnings), fields)


def without_command(obj: Any, images: Images, path: str = "") -> Iterator[str]:
    """Containers anywhere in the object that this machine could not start: neither they nor their image name a
    command. On Kubernetes the image itself has one, so this is a warning."""
    if isinstance(obj, list):
        for index, each in enumerate(obj):
            yield from without_command(each, images, f"{path}[{index}]")
        return
    if not isinstance(obj, dict):
        return
    for key, value in obj.items():
        place = path_of(path, (key,))
        if key not in ("containers", "initContainers") or not isinstance(value, list):
            yield from without_command(value, images, place)
            continue
        for index, container in enumerate(value):
            if not isinstance(container, dict):
                continue  # a list of that name in an object of another kind
            image = str(container.get("image") or "")
            if not container.get("command") and not container.get("args") and not images.command(image):
                yield f"{place}[{index}]: {text(images.missing_command(image, str(container.get('name'))))}"


def reject_invalid(manifests: Iterable[Manifest]) -> None:
    """End the command where one of the manifests has mistakes, with all of them."""
    machinery = make_machinery()
    results = [(manifest, validate(machinery, manifest)) for manifest in manifests]
    if lines := [line for manifest, result in results if result.mistakes for line in format_result(manifest, result)]:
        raise click.ClickException("\n".join(lines))


def _dry_run_create(machinery: Machinery, kind: Kind, obj: Obj) -> tuple[list[Cause], list[str]]:
    """The mistakes an API server finds, or else its warnings."""
    namespace = (obj.get("metadata") or {}).get("namespace") or "default"
    problems = names.dns_label(namespace)
    if problems:
        elsewhere = {**obj, "metadata": {**obj["metadata"], "namespace": "default"}}
        found = [invalid("metadata.namespace", namespace, message) for message in problems]
        return [*found, *_dry_run_create(machinery, kind, elsewhere)[0]], []
    if Key("", namespace) not in {stored.key for stored in machinery.list(NAMESPACE).items}:
        machinery.create(NAMESPACE, "", {"metadata": {"name": namespace}})
    options = WriteOptions("shoal", dry_run=True, field_validation="Ignore")
    try:
        written = machinery.create(kind, namespace if kind.namespaced else "", deepcopy(obj), options)
    except ApiError as refused:
        return list(refused.causes) or [Cause(refused.reason, refused.message)], []
    return [], list(written.warnings)

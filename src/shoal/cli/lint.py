"""Remarks that a manifest alone permits, without a cluster: for every command that submits or validates one."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from shoal.cli.job_lookup import FoundJob
from shoal.cli.manifest_files import Manifest
from shoal.cli.reasons import why_idle, why_not_started
from shoal.cluster.object_validation import deviation_warnings
from shoal.dialects import dialect_of
from shoal.dialects.capabilities import ManifestWarnings
from shoal.dialects.dialect import StateUnreadable, warnings_of
from shoal.engine import JobState
from shoal.kube.errors import Cause
from shoal.kube.kinds import BUILT_IN, Kind
from shoal.kube.objects import Obj
from shoal.kube.schema_errors import (
    FieldWarning,
    SchemaMismatch,
    UnknownField,
    closest_match,
    find_mismatches,
    find_unknown_fields,
)
from shoal.kube.schemas import schema_of

_FLOW_GROUP = "flow.volcano.sh"
_NO_FLOWS = (
    "; Shoal does not run JobFlows: make the Jobs of the flow tasks of one Job with `dependsOn`, or submit each Job "
    "when `shoal wait` has returned for those before it"
)


def undecodable(kind: Kind, obj: Obj) -> list[SchemaMismatch]:
    """What no cluster could even read. Of a custom kind that is its metadata: the rest is a matter of its schema."""
    schema = schema_of(kind)
    if not kind.custom:
        return list(find_mismatches(schema, obj))
    metadata = schema.fields.get("metadata")
    return list(find_mismatches(metadata, obj.get("metadata"), ("metadata",))) if metadata is not None else []


def lint_warnings(manifest: Manifest, kind: Kind) -> list[str]:
    """Unknown fields, as UnknownField, and the warnings of the job's language."""
    dialect = dialect_of(manifest.api_version, manifest.kind)
    own = warnings_of(dialect, manifest.obj, None) if dialect is not None else []
    return [*find_unknown_fields(schema_of(kind), manifest.obj), *own]


def deviation_warnings_of(manifest: Manifest) -> tuple[str, ...]:
    """What an object of Kubernetes' own kinds means in the embedded cluster alone."""
    kind = next((k for k in BUILT_IN if (k.api_version, k.kind) == (manifest.api_version, manifest.kind)), None)
    return deviation_warnings(kind, manifest.obj) if kind is not None else ()


def idle_warnings(manifest: Manifest, *, is_submitted: bool = False) -> list[str]:
    """That the job as written does not start by itself: it is suspended, has no tasks, belongs to another controller
    or waits for its start. The last is no warning where it is submitted: `shoal start` is the usual next step. A
    Framework without tasks has a warning of its language."""
    dialect = dialect_of(manifest.api_version, manifest.kind)
    if dialect is None or undecodable(dialect.kind, manifest.obj):
        return []
    obj, meta = manifest.obj, manifest.obj.get("metadata") or {}
    if not meta.get("name") and meta.get("generateName"):
        obj = {**obj, "metadata": {**meta, "name": f"{meta['generateName']}x"}}  # as the API server does
    if dialect.validate(obj):
        return []
    found = FoundJob(obj, dialect)
    with suppress(StateUnreadable):  # of a status that was written by hand
        if found.counts is not None and found.counts.wanted == 0:
            return [FieldWarning("spec", "it requires 0 completions: it succeeds without a pod")]
    warnings = dialect.capability(ManifestWarnings)
    if warnings is not None and warnings.covers_idle_jobs and not any(found.sizes.values()):
        return []
    if is_submitted and found.job is not None and why_not_started(found.job):
        return []
    why = why_idle(found, JobState())
    return [f"spec: {why}; `shoal run` ends at once"] if why else []


def unknown_fields(found: Iterable[str]) -> list[UnknownField]:
    """Those of the remarks that strict validation, kubectl's default, counts as mistakes."""
    return [warning for warning in found if isinstance(warning, UnknownField)]


def drop_reported(causes: Iterable[Cause], more: Iterable[str]) -> list[str]:
    """Remarks, without those about a mistake that is reported already."""
    reported = {cause.field for cause in causes if cause.field}
    return [warning for warning in more if not (isinstance(warning, FieldWarning) and warning.field in reported)]


def kind_hint(manifest: Manifest, kinds: Iterable[Kind]) -> str:
    """What was probably meant by an unknown kind: the same word in another case or version, or one like it; of a kind
    that is left out on purpose, what to use instead."""
    if manifest.api_version.partition("/")[0] == _FLOW_GROUP:
        return _NO_FLOWS
    by_name = {kind.kind: kind for kind in kinds}
    meant = closest_match(manifest.kind, tuple(by_name))
    return f"; did you mean {meant} in {by_name[meant].api_version}?" if meant else ""

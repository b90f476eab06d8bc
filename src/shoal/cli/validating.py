"""The judgement of a cluster without a cluster: the API machinery in memory, asked and thrown away."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

from shoal.cli.manifests import Manifest
from shoal.cluster.machinery import MEMORY, Machinery
from shoal.cluster.records import WriteOptions
from shoal.dialects import dialects
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, Kind
from shoal.kube.objects import Key
from shoal.operator.jobs.installing import admit


@dataclass(frozen=True, slots=True)
class Verdict:
    mistakes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def judge_room() -> Machinery:
    """An empty cluster that knows every job language."""
    machinery = Machinery.open(MEMORY)
    admit(machinery, dialects())
    for dialect in dialects():
        machinery.create(CUSTOM_RESOURCE_DEFINITION, "", dialect.crd())
    return machinery


def judge(machinery: Machinery, manifest: Manifest) -> Verdict:
    kind = _kind_of(machinery, manifest)
    if kind is None:
        return Verdict((f"apiVersion, kind: nobody here knows a {manifest.kind} in {manifest.api_version}",))
    namespace = (manifest.obj.get("metadata") or {}).get("namespace") or "default"
    if Key("", namespace) not in {stored.key for stored in machinery.list(NAMESPACE).items}:
        machinery.create(NAMESPACE, "", {"metadata": {"name": namespace}})
    options = WriteOptions("shoal", dry_run=True, field_validation="Warn")
    try:
        written = machinery.create(kind, namespace if kind.namespaced else "", deepcopy(manifest.obj), options)
    except ApiError as refused:
        return Verdict(tuple(str(cause) for cause in refused.causes) or (refused.message,))
    return Verdict(warnings=written.warnings)


def _kind_of(machinery: Machinery, manifest: Manifest) -> Kind | None:
    wanted = (manifest.api_version, manifest.kind)
    return next((kind for kind in machinery.kinds() if (kind.api_version, kind.kind) == wanted), None)

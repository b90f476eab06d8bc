"""What the languages of Kubernetes' own kinds have in common: one role, one template, pods with generated names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.dialects.capabilities import Adoption, DisplayNames, ManifestWarnings
from shoal.dialects.dialect import Dialect, Owner
from shoal.dialects.native import adoption, pod_builder
from shoal.dialects.native.settings import NativeSettings
from shoal.engine import ObservedPod, TaskRef
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj


class TemplateDialect(Dialect):
    """A kind every cluster serves, with its template in `spec.template`."""

    embedded_only = True
    state_in_annotation = True
    role: str  # the name of its one role
    finalizer: str = ""  # on its pods

    def crd(self) -> None:
        return None

    def settings(self, written: Mapping[str, Any] | None = None) -> NativeSettings:
        return NativeSettings.read(written)

    def default(self, manifest: Obj) -> Obj:
        return pod_builder.default(self.kind, manifest)

    def pod_name(self, manifest: Obj, task: TaskRef) -> str:
        """Unknown before the server generates it."""
        del manifest, task
        return ""

    def owner_of(self, obj: Obj) -> Owner | None:
        return pod_builder.owner_of(self.kind, obj)

    def observe_pod(self, pod: Obj, manifest: Obj) -> ObservedPod | None:
        return pod_builder.observe_pod(self.kind, self.role, pod, manifest, self.finalizer)


class TemplateWarnings(ManifestWarnings):
    """Fields the kind does not have."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def warn(self, new: Obj, old: Obj | None) -> list[str]:
        del old
        return pod_builder.unknown_fields(self._kind, new)


class GeneratedNames(DisplayNames):
    """By the letters that the server drew: `pod-x7k2q`. Others have had its place before, and others will."""

    def __init__(self, role: str) -> None:
        self._role = role

    def of(self, pod: Obj, manifest: Obj) -> str:
        del manifest
        return pod_builder.display_name(self._role, pod)


class SelectorAdoption(Adoption):
    """The pods that the selector of a new object finds without an owner."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def orphans(self, manifest: Obj) -> str:
        return adoption.orphans_of(manifest)

    def adopt_patch(self, pod: Obj, manifest: Obj) -> Obj | None:
        return adoption.adopt_patch(self._kind, pod, manifest)

"""What may be chosen for an installation, and what all of its objects have in common: name, namespace and labels.

Every object carries `app.kubernetes.io/part-of: shoal`; that label, not a name, decides whether an object is ours to
change or to remove.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal import __version__
from shoal.controller_runtime.labels import INSTANCE, PART_OF
from shoal.dialects import DEFAULT
from shoal.kube.objects import Obj

METRICS_PORT, HEALTH_PORT, WEBHOOK_PORT = 8080, 8081, 9443
LONGEST_NAME = 53  # a Service has 63 letters, and names are lengthened a little
# There is no public image. The name is a placeholder in the kustomize base; nothing can be pulled from .invalid.
NO_IMAGE = f"image.invalid/shoal:{__version__}"


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """The fields have the names of the chart's values."""

    name: str = "shoal"
    namespace: str = "shoal-system"
    image: str = NO_IMAGE
    replicas: int = 2
    shards: int = 1
    dialects: tuple[str, ...] = field(default=DEFAULT)
    watchNamespace: str = ""  # noqa: N815 - the chart's spelling; '': all namespaces
    jobClass: str = ""  # noqa: N815
    webhook: bool = False
    failurePolicy: str = "Ignore"  # noqa: N815
    apiServers: tuple[str, ...] = ()  # noqa: N815 - ranges of addresses from which it calls the webhook; (): any
    sshPlugin: bool = False  # noqa: N815 - of Volcano Jobs, whose keys are in Secrets
    serviceMonitor: bool = False  # noqa: N815
    scheduler: bool = False  # Shoal's own, beside the operator
    schedulerSharing: str = "proportion"  # noqa: N815
    schedulerTiers: tuple[str, ...] = ()  # noqa: N815 - labels of nodes, the nearest first
    schedulerVolcano: str = "auto"  # noqa: N815 - whether it also places pods of scheduler volcano
    logFormat: str = "json"  # noqa: N815
    createNamespace: bool = True  # noqa: N815
    # One of `operator.gang_scheduler_detection.CHOICES`; auto is resolved before anything is rendered.
    gangScheduler: str = "shoal"  # noqa: N815
    gangSchedulerName: str = ""  # noqa: N815
    plainStatus: tuple[str, ...] = ()  # noqa: N815 - dialects whose definition here has no status subresource

    @property
    def selection(self) -> dict[str, str]:
        """Labels of the operator's pods."""
        return {"app.kubernetes.io/name": "shoal-operator", INSTANCE: self.name}

    @property
    def scheduler_selection(self) -> dict[str, str]:
        return {**self.selection, "app.kubernetes.io/name": "shoal-scheduler"}


def default_name(namespace: str = "", job_class: str = "") -> str:
    """Of an installation; what it alone serves is included, so that neighbours have Leases of their own."""
    words = re.sub(r"[^a-z0-9]+", "-", "-".join(("shoal", namespace, job_class)).lower())
    return words[:LONGEST_NAME].strip("-")


def labels_of(selection: Mapping[str, str]) -> dict[str, str]:
    return {**selection, PART_OF: "shoal", "app.kubernetes.io/version": __version__}


def build_object(
    options: InstallOptions,
    api_version: str,
    kind: str,
    name: str = "",
    *,
    namespaced: bool = True,
    labels: Mapping[str, str] | None = None,
    **parts: Any,
) -> Obj:
    """An object of the installation; without a name, one that is called like it."""
    place = {"namespace": options.namespace} if namespaced else {}
    metadata = {"name": name or options.name, **place, "labels": dict(labels or labels_of(options.selection))}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}

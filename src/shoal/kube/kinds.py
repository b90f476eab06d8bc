"""Which kinds there are: their names on the wire, their scope and their subresources.

`BUILT_IN` is what the embedded cluster serves from the start; a CustomResourceDefinition adds a `Kind`
of the same shape at run time. The fields of each kind are in `shoal.kube.schemas`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table `kubectl get` prints; `priority` above 0 shows with -o wide only."""

    name: str
    type: str = "string"  # string, integer, number, boolean, date
    path: str = ""  # JSONPath below the object, for custom resources; built-in kinds compute theirs
    description: str = ""
    priority: int = 0
    format: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a kind keeps what the scale subresource shows; JSON paths such as `.spec.replicas`."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind in one API version. Equality is by value, so a Kind works as a dictionary key."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    singular: str = ""
    subresources: frozenset[str] = frozenset()  # of: status, scale, log, exec, binding, eviction, attach, portforward
    custom: bool = False  # from a CustomResourceDefinition
    scale: Scale | None = None
    columns: tuple[Column, ...] = ()
    selectable: tuple[str, ...] = ()  # extra JSON paths for field selectors, of a custom resource
    # The CRD's openAPIV3Schema of this version; None for built-in kinds, whose schema is in shoal.kube.schemas.
    openapi: dict[str, Any] | None = field(default=None, compare=False, hash=False)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def resource(self) -> str:
        """The name messages use: `pods`, `frameworks.frameworkcontroller.microsoft.com`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """The name validation messages use: `Pod`, `Framework.frameworkcontroller.microsoft.com`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


_STATUS = frozenset({"status"})

NAMESPACE = Kind("", "v1", "Namespace", "namespaces", False, ("ns",), subresources=frozenset({"status", "finalize"}))
NODE = Kind("", "v1", "Node", "nodes", False, ("no",), subresources=_STATUS)
POD = Kind(
    "", "v1", "Pod", "pods", True, ("po",), ("all",),
    subresources=frozenset({"status", "log", "exec", "portforward", "binding", "eviction"}),
)  # fmt: skip
SERVICE = Kind("", "v1", "Service", "services", True, ("svc",), ("all",), subresources=_STATUS)
ENDPOINTS = Kind("", "v1", "Endpoints", "endpoints", True, ("ep",), singular="endpoints")
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps", True, ("cm",))
SECRET = Kind("", "v1", "Secret", "secrets", True)
SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts", True, ("sa",))
EVENT = Kind("", "v1", "Event", "events", True, ("ev",))
EVENT_V1 = Kind("events.k8s.io", "v1", "Event", "events", True, ("ev",))
PERSISTENT_VOLUME = Kind("", "v1", "PersistentVolume", "persistentvolumes", False, ("pv",), subresources=_STATUS)
PERSISTENT_VOLUME_CLAIM = Kind(
    "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", True, ("pvc",), subresources=_STATUS
)
RESOURCE_QUOTA = Kind("", "v1", "ResourceQuota", "resourcequotas", True, ("quota",), subresources=_STATUS)
POD_DISRUPTION_BUDGET = Kind(
    "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True, ("pdb",), subresources=_STATUS
)
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", False, ("sc",))
ENDPOINT_SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", True)
PRIORITY_CLASS = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False, ("pc",))
REPLICA_SET = Kind(
    "apps", "v1", "ReplicaSet", "replicasets", True, ("rs",), ("all",),
    subresources=frozenset({"status", "scale"}), scale=Scale(".spec.replicas", ".status.replicas", ".spec.selector"),
)  # fmt: skip
# Its first version. Kubernetes has removed it, but old manifests still use it.
REPLICA_SET_V1BETA1 = Kind(
    "extensions", "v1beta1", "ReplicaSet", "replicasets", True,
    subresources=REPLICA_SET.subresources, scale=REPLICA_SET.scale,
)  # fmt: skip
DEPLOYMENT = Kind(
    "apps", "v1", "Deployment", "deployments", True, ("deploy",), ("all",),
    subresources=REPLICA_SET.subresources, scale=REPLICA_SET.scale,
)  # fmt: skip
JOB = Kind("batch", "v1", "Job", "jobs", True, (), ("all",), subresources=_STATUS)
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases", True)
CUSTOM_RESOURCE_DEFINITION = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False,
    ("crd", "crds"), ("api-extensions",), subresources=_STATUS,
)  # fmt: skip

BUILT_IN: tuple[Kind, ...] = (
    NAMESPACE, NODE, POD, SERVICE, ENDPOINTS, CONFIG_MAP, SECRET, SERVICE_ACCOUNT, EVENT, EVENT_V1,
    PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, ENDPOINT_SLICE, PRIORITY_CLASS, LEASE, REPLICA_SET, REPLICA_SET_V1BETA1,
    DEPLOYMENT, JOB, RESOURCE_QUOTA, POD_DISRUPTION_BUDGET, STORAGE_CLASS, CUSTOM_RESOURCE_DEFINITION,
)  # fmt: skip

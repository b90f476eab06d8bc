"""What a pod of the embedded cluster is given to reach the API server: a token, an authority and its namespace.

On Kubernetes the ServiceAccount admission plugin adds this volume to the spec of each pod. The embedded cluster leaves
the spec as it was written; its nodes add the volume when they prepare a container.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from shoal.kube.kinds import CONFIG_MAP
from shoal.kube.objects import Key, Obj, key_of, namespace_of
from shoal.node.environment import API
from shoal.node.pod_references import Lookup, Reference

FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME = "kube_api_access"  # no volume of a pod can have this name: it is no DNS label
ROOT_CA = "kube-root-ca.crt"  # the ConfigMap that each namespace of a Kubernetes cluster has
TOKEN_SECONDS = 3607  # as Kubernetes requests

_SOURCES = [
    {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
    {"configMap": {"name": ROOT_CA, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
]


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """How pods reach the API server.
    `authority` is in PEM. `direct` is the server's address on the machine's own network, where pods with hostNetwork
    cannot reach the address of the Service; None: they can. `automounts` looks up the setting of a service account,
    given its namespace and name."""

    authority: str
    direct: tuple[str, int] | None
    automounts: Callable[[str, str], bool]

    def is_for(self, pod: Obj) -> bool:
        """The pod decides before its service account does, as on Kubernetes."""
        spec = pod["spec"]
        wanted = spec.get("automountServiceAccountToken")
        if wanted is None:
            return self.automounts(namespace_of(pod), spec.get("serviceAccountName") or "default")
        return bool(wanted)

    def add_to(self, pod: Obj) -> Obj:
        """The pod with the volume, mounted in each container that mounts nothing else there."""
        spec = pod["spec"]
        volume = {"name": VOLUME, "projected": {"sources": _SOURCES, "defaultMode": 0o644}}
        mount = {"name": VOLUME, "mountPath": FOLDER, "readOnly": True}
        containers: dict[str, list[Obj]] = {}
        for part in ("initContainers", "containers"):
            for container in spec.get(part) or ():
                mounts = container.get("volumeMounts") or []
                if not any(each["mountPath"].rstrip("/") == FOLDER for each in mounts):
                    container = {**container, "volumeMounts": [*mounts, mount]}
                containers.setdefault(part, []).append(container)
        return {**pod, "spec": {**spec, **containers, "volumes": [*(spec.get("volumes") or ()), volume]}}

    def with_root_ca(self, lookup: Lookup, namespace: str) -> Lookup:
        """With the ConfigMap of the authority, unless one of that name exists already."""
        key = Key(namespace, ROOT_CA)
        config_map: Obj = {
            "metadata": {"name": key.name, "namespace": key.namespace},
            "data": {"ca.crt": self.authority},
        }
        return replace(lookup, objects={Reference(CONFIG_MAP, key): config_map, **lookup.objects})

    def reachable_services(self, services: Iterable[Obj]) -> tuple[Obj, ...]:
        """For a pod on the machine's network: the Service of the API resolves to the server's own address."""
        if self.direct is None:
            return tuple(services)
        host, port = self.direct
        reachable = []
        for service in services:
            if key_of(service) == Key(*API):
                ports = [{**each, "port": port} for each in service["spec"].get("ports") or ()]
                service = {**service, "spec": {**service["spec"], "clusterIP": host, "ports": ports}}
            reachable.append(service)
        return tuple(reachable)

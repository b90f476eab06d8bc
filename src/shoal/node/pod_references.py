"""What a pod refers to: the ConfigMaps, Secrets and claims it needs, and reading them.

Pure. `references_of` returns which objects to watch for a pod; `Lookup` is the view of those objects that `environment`
and `volume_files` read. A reference to nothing raises `ReferenceMissing`, whose message ends up in the pod's status,
unless the manifest made it optional.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from shoal.kube.kinds import CONFIG_MAP, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, SECRET, Kind
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, namespace_of
from shoal.node.messages import MessageError
from shoal.node.service_account_tokens import IssuedTokens


class Reference(NamedTuple):
    kind: Kind
    key: Key


class ReferenceMissing(MessageError):
    """Something a pod refers to is missing. The message is the one for its status.

    `path` is set where the missing thing is a path of this machine, so that its appearance can be waited for.
    """

    def __init__(self, message: Message, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


def not_found(kind: Kind, name: str) -> ReferenceMissing:
    return ReferenceMissing(Message("Object.NotFound", {"kind": kind.kind.lower(), "name": name}))


@dataclass(frozen=True, slots=True)
class Lookup:
    """The objects the pods of this node refer to, as far as they exist."""

    objects: Mapping[Reference, Obj] = field(default_factory=dict)
    issued: IssuedTokens | None = None  # the pod's tokens; None where this cluster issues none

    def get(self, kind: Kind, namespace: str, name: str) -> Obj | None:
        return self.objects.get(Reference(kind, Key(namespace, name)))

    def data(self, kind: Kind, namespace: str, name: str) -> dict[str, bytes] | None:
        """The keys of a ConfigMap or Secret and their bytes; None where there is no such object."""
        obj = self.get(kind, namespace, name)
        if obj is None:
            return None
        encoded = obj.get("data" if kind == SECRET else "binaryData") or {}
        found: dict[str, bytes] = {}
        for key, value in encoded.items():
            try:
                found[key] = base64.b64decode(value, validate=True)
            except binascii.Error:  # a real API server stores none; a simulated one may
                found[key] = b""
        if kind == CONFIG_MAP:
            found.update({key: value.encode() for key, value in (obj.get("data") or {}).items()})
        return found


def references_of(pod: Obj) -> frozenset[Reference]:
    """Everything the pod needs before it can start, except the volume behind a claim."""
    return frozenset(_references(pod["spec"], namespace_of(pod)))


def bound_volume(claim: Obj) -> Reference | None:
    """The PersistentVolume a bound claim leads to."""
    name = (claim.get("spec") or {}).get("volumeName")
    return Reference(PERSISTENT_VOLUME, Key("", name)) if name else None


def is_bound(claim: Obj) -> bool:
    return bound_volume(claim) is not None and (claim.get("status") or {}).get("phase") == "Bound"


def _references(spec: Mapping[str, Any], namespace: str) -> Iterator[Reference]:
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        for source in container.get("envFrom") or ():
            yield from _pair(source.get("configMapRef"), source.get("secretRef"), namespace)
        for variable in container.get("env") or ():
            origin = variable.get("valueFrom") or {}
            yield from _pair(origin.get("configMapKeyRef"), origin.get("secretKeyRef"), namespace)
    for volume in spec.get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            yield Reference(PERSISTENT_VOLUME_CLAIM, Key(namespace, claim["claimName"]))
        secret = volume.get("secret")
        named = {"name": secret.get("secretName")} if secret else None
        yield from _pair(volume.get("configMap"), named, namespace)
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from _pair(source.get("configMap"), source.get("secret"), namespace)


def _pair(config_map: Obj | None, secret: Obj | None, namespace: str) -> Iterator[Reference]:
    if config_map and config_map.get("name"):
        yield Reference(CONFIG_MAP, Key(namespace, config_map["name"]))
    if secret and secret.get("name"):
        yield Reference(SECRET, Key(namespace, secret["name"]))

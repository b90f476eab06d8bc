"""Volume claims, as far as they say where a pod may go: the volume of a claim may be reachable from some nodes only.

A claim that is missing, or has no volume yet, keeps its pod waiting: a volume that came after the pod was placed could
lie where the pod is not. So pods never start whose claims get a volume when their first pod is placed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.cluster.reflecting import Change
from shoal.kube.kinds import PERSISTENT_VOLUME
from shoal.kube.objects import Key, Obj, at_path, is_leaving, key_of

Terms = tuple[Mapping[str, Any], ...]  # of a node selector: any of these
LATE = "a class that waits for the first pod (WaitForFirstConsumer) gives it none here, so use one that does not wait"


class Claims:
    """Knows claims and volumes by watches, and which waiting pods ask for which."""

    def __init__(self) -> None:
        self._claims: dict[Key, Obj] = {}
        self._volumes: dict[str, Obj] = {}
        self._waiting: dict[Key, tuple[Key, ...]] = {}  # pods, and their claims

    def changed(self, change: Change) -> list[Key]:
        """The pods that it may matter to."""
        if change.kind == PERSISTENT_VOLUME:
            _put(self._volumes, change.key.name, change.new)
            return [pod for pod, claims in self._waiting.items() if change.key.name in map(self._volume_of, claims)]
        _put(self._claims, change.key, change.new)
        return [pod for pod, claims in self._waiting.items() if change.key in claims]

    def _volume_of(self, claim: Key) -> str:
        found: str = at_path(self._claims.get(claim, {}), "spec", "volumeName", default="")
        return found

    def of(self, pod: Obj) -> tuple[str, tuple[Terms, ...]]:
        """Of a pod without a node: what keeps it waiting, and for each volume where it can be reached."""
        named = tuple(_named(pod))
        if not named:
            return "", ()
        self._waiting[key_of(pod)] = named
        terms: list[Terms] = []
        for key in named:
            claim = self._claims.get(key)
            if claim is None:
                return f"the claim {key.name} does not exist; create it, or take it out of the pod", ()
            if is_leaving(claim):
                return f"the claim {key.name} is being deleted", ()
            name = self._volume_of(key)
            if not name:
                return f"the claim {key.name} has no volume yet; {LATE}", ()
            if (volume := self._volumes.get(name)) is None:
                return f"the volume {name} of the claim {key.name} does not exist", ()
            found = at_path(volume, "spec", "nodeAffinity", "required", "nodeSelectorTerms")
            if found:
                terms.append(tuple(found))
        return "", tuple(terms)

    def forget(self, pod: Key) -> None:
        self._waiting.pop(pod, None)


def _named(pod: Obj) -> Iterable[Key]:
    namespace, name = key_of(pod)
    for volume in pod["spec"].get("volumes") or ():
        if claim := at_path(volume, "persistentVolumeClaim", "claimName"):
            yield Key(namespace, claim)
        elif "ephemeral" in volume:
            yield Key(namespace, f"{name}-{volume['name']}")


def _put(table: dict[Any, Obj], key: Any, obj: Obj | None) -> None:
    if obj is None:
        table.pop(key, None)
    else:
        table[key] = obj

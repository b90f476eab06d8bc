"""Volume claims, as far as they restrict where a pod may run: a volume may be reachable from some nodes only.

A claim that is missing, or that has no volume and will get one whatever pod uses it, keeps its pod waiting: the volume
could turn out to be where the pod is not. One whose class waits for the first pod allows every node where a free volume
would do or one can be made; which it is, is chosen when the pod has its node, and no volume is chosen twice.

Pods that something may have changed for are only recorded; the caller that plans reads them again, once, before the
next plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shoal.cluster.informer import Change
from shoal.kube.kinds import PERSISTENT_VOLUME, STORAGE_CLASS
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, annotations_of, at_path, is_terminating, key_of, name_of, uid_of
from shoal.scheduler.cache.volume_index import VolumeIndex
from shoal.scheduler.channels import VolumeChoice
from shoal.scheduler.planner.node_and_pod_types import Node
from shoal.scheduler.planner.volume_matching import (
    NO_PROVISIONER,
    SELECTED_NODE,
    Terms,
    class_of,
    is_for,
    is_within,
    made_at,
    on_node,
    reach_of,
    requested_size,
    smallest,
    waits_for_first_consumer,
)


class VolumeClaims:
    """Tracks claims, volumes and classes by watches, and which waiting pods use which claims."""

    def __init__(self, has_node: Callable[[str], bool]) -> None:
        self._has_node = has_node
        self._claims: dict[Key, Obj] = {}
        self._volumes = VolumeIndex()
        self._bound_to: dict[str, set[Key]] = {}  # claims that name a volume
        self._classes: dict[str, Obj] = {}
        self._waiting: dict[Key, tuple[Key, ...]] = {}  # pods, and their claims
        self._pods: dict[Key, dict[Key, None]] = {}  # the same by claim
        self._stale: set[Key] = set()  # pods to be read again
        self._stale_classes: set[str] = set()  # and so are all with unbound claims of these
        self.late: set[Key] = set()  # pods with claims that wait for them
        self._making: dict[Key, str] = {}  # claims that a volume is made for, and the node
        self._resting: dict[Key, str] = {}  # claims for which none could be made a moment ago, and why

    def changed(self, change: Change) -> None:
        name = change.key.name
        if change.kind == STORAGE_CLASS:
            _put(self._classes, name, change.new)
            self._stale_classes.add(name)
        elif change.kind == PERSISTENT_VOLUME:
            touched = self._volumes.put(name, change.new)
            self._stale_classes |= touched.classes
            for claim in touched.claims.union(self.bound_to(name)):
                self._stale.update(self._pods.get(claim, ()))
        else:
            key = change.key
            if before := self._volume_of(key):
                self._bound_to[before].discard(key)
                if not self._bound_to[before]:
                    del self._bound_to[before]
            _put(self._claims, key, change.new)
            if volume := self._volume_of(key):
                self._bound_to.setdefault(volume, set()).add(key)
            self._stale.update(self._pods.get(key, ()))

    def take_stale(self) -> list[Key]:
        """The pods for which something may have changed since the last call."""
        if self._stale_classes:
            for claim, pods in self._pods.items():
                if not self._volume_of(claim) and class_of(self._claims.get(claim, {})) in self._stale_classes:
                    self._stale.update(pods)
        found = [pod for pod in self._waiting if pod in self._stale] if self._stale else []
        self._stale.clear()
        self._stale_classes.clear()
        return found

    def bound_to(self, volume: str) -> list[Key]:
        """The claims that name it."""
        return list(self._bound_to.get(volume, ()))

    def get(self, claim: Key) -> Obj | None:
        return self._claims.get(claim)

    def _volume_of(self, claim: Key) -> str:
        found: str = at_path(self._claims.get(claim, {}), "spec", "volumeName", default="")
        return found

    def of(self, pod: Obj) -> tuple[Message | None, tuple[Terms, ...]]:
        """Of a pod without a node: what keeps it waiting, and for each volume where it can be reached."""
        named = tuple(dict.fromkeys(claims_of(pod)))
        if not named:
            return None, ()
        if self._waiting.get(key_of(pod)) != named:
            self.remove_pod(key_of(pod))
            self._waiting[key_of(pod)] = named
            for key in named:
                self._pods.setdefault(key, {})[key_of(pod)] = None
        self.late.discard(key_of(pod))
        terms: list[Terms] = []
        for key in named:
            claim = self._claims.get(key)
            if claim is None:
                return Message("Claim.Missing", {"claim": key.name}), ()
            if is_terminating(claim):
                return Message("Claim.Deleted", {"claim": key.name}), ()
            if name := self._volume_of(key):
                if (volume := self._volumes.get(name)) is None:
                    return Message("Claim.VolumeMissing", {"volume": name, "claim": key.name}), ()
                terms += reach_of(volume)
                continue
            why, reach = self._of_unbound(key, claim)
            if why is not None:
                return why, ()
            self.late.add(key_of(pod))
            terms += reach
        return None, tuple(terms)

    # Claims that wait for their first pod

    def _of_unbound(self, key: Key, claim: Obj) -> tuple[Message | None, tuple[Terms, ...]]:
        if key in self._resting:
            return Message("Claim.Failed", {"claim": key.name, "error": self._resting[key]}), ()
        storage = self._classes.get(class_of(claim))
        if storage is None or not waits_for_first_consumer(storage):
            return Message("Claim.Unbound", {"claim": key.name}), ()
        node = self._making.get(key) or _selected(claim)
        if node and self._has_node(node):
            return None, ((on_node(node),),)
        # Wherever one of the volumes that would do can be reached, or one can be made.
        reach = self._volumes.reach_for(key, claim)
        is_made = self._is_provisionable(key, claim, storage)
        places = made_at(storage)
        if (is_made and not places) or reach.is_everywhere:
            return None, ()
        if not reach.is_any and not is_made:
            wanted = {"claim": key.name, "size": f"{requested_size(claim)}", "storage_class": name_of(storage)}
            return Message("Claim.NoVolume", wanted), ()
        return None, ((reach.terms + places) if is_made else reach.terms,)

    def _is_provisionable(self, key: Key, claim: Obj, storage: Obj) -> bool:
        """Whether a provisioner makes volumes, and no volume names the claim already."""
        if storage.get("provisioner") == NO_PROVISIONER:
            return False
        return not any(is_for(volume, claim) for volume in self._volumes.kept_for(key, claim))

    def choose(self, pod: Key, node: Node) -> list[VolumeChoice] | None:
        """A volume for each claim of the pod that waits for it, or that one is to be made; None where none is left."""
        found: list[VolumeChoice] = []
        for key in self._waiting.get(pod, ()):
            if self._volume_of(key):
                continue
            claim = self._claims.get(key)
            storage = self._classes.get(class_of(claim)) if claim is not None else None
            if claim is None or storage is None:
                return None
            if kept := self._volumes.kept_for(key, claim):
                volume = smallest(each for each in kept if is_within(node, reach_of(each)))
            else:
                free = self._volumes.open_to(claim)
                volume = next((each for each in free if is_within(node, reach_of(each))), None)
            if volume is not None:
                self._volumes.choose(volume, key)
                self._stale_classes.add(class_of(volume))  # for the others it is one less
            else:
                places = made_at(storage)
                if not self._is_provisionable(key, claim, storage) or (places and not is_within(node, (places,))):
                    return None
            found.append(VolumeChoice(key, uid_of(claim), node.name, volume))
        return found

    def begin(self, choices: Iterable[VolumeChoice]) -> None:
        """They are being executed: another pod with the same claims follows them."""
        self._making.update((choice.claim, choice.node) for choice in choices if choice.volume is None)

    def end(self, claims: Iterable[Key]) -> None:
        """What was chosen for these is bound, or free again."""
        for claim in claims:
            self._stale_classes |= self._volumes.release(claim)
            self._making.pop(claim, None)

    def back_off(self, claim: Key, why: str) -> None:
        """None could be made: its pods wait for a while."""
        self._resting[claim] = why

    def is_tied(self, claim: Key) -> bool:
        """Whether it names the node of the volume that it is to get, and has none yet."""
        return not self._volume_of(claim) and bool(_selected(self._claims.get(claim, {})))

    def selected_on(self, node: str) -> list[Key]:
        """The pods with a claim that is to get its volume there."""
        tied = (claim for claim in self._pods if _selected(self._claims.get(claim, {})) == node)
        return [pod for claim in tied for pod in self._pods[claim]]

    def try_again(self, claim: Key) -> list[Key]:
        """The pods that it may matter to."""
        self._resting.pop(claim, None)
        return list(self._pods.get(claim, ()))

    def reaches(self, pod: Key, node: Node) -> bool:
        """Whether every claim of the pod has a volume that the node reaches."""
        volumes = [self._volumes.get(self._volume_of(claim)) for claim in self._waiting.get(pod, ())]
        return all(volume is not None and is_within(node, reach_of(volume)) for volume in volumes)

    def is_bound(self, claim: Key) -> bool:
        """And its volume is known."""
        found = self._claims.get(claim, {})
        return at_path(found, "status", "phase") == "Bound" and self._volume_of(claim) in self._volumes

    def of_pod(self, pod: Key) -> tuple[Key, ...]:
        return self._waiting.get(pod, ())

    def remove_pod(self, pod: Key) -> None:
        for claim in self._waiting.pop(pod, ()):
            del self._pods[claim][pod]
            if not self._pods[claim]:
                del self._pods[claim]
        self.late.discard(pod)


def claims_of(pod: Obj) -> Iterable[Key]:
    """The claims that its volumes name or, where they are ephemeral, will have."""
    namespace, name = key_of(pod)
    for volume in pod["spec"].get("volumes") or ():
        if claim := at_path(volume, "persistentVolumeClaim", "claimName"):
            yield Key(namespace, claim)
        elif "ephemeral" in volume:
            yield Key(namespace, f"{name}-{volume['name']}")


def _selected(claim: Obj) -> str:
    return annotations_of(claim).get(SELECTED_NODE, "")


def _put(table: dict[Any, Obj], key: Any, obj: Obj | None) -> None:
    if obj is None:
        table.pop(key, None)
    else:
        table[key] = obj

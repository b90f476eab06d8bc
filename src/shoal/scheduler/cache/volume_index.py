"""Volumes, indexed by use: those that are kept for a claim, and the free ones of a class.

A change of a volume costs the same however many there are. Claims with equal requests (class, size, modes, labels)
share one list of what would do for them and one result of where that can be reached; both are computed on demand, and
dropped when a free volume of the class is added, removed or chosen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shoal.kube.objects import Key, Obj, at_path, is_terminating, name_of
from shoal.scheduler.planner.volume_matching import (
    Terms,
    class_of,
    is_for,
    is_free,
    merged,
    reach_of,
    requested_size,
    satisfies,
    size_of,
)

TAKEN = ("Bound", "Released", "Failed")  # phases of volumes that cannot be chosen


class Reachability(NamedTuple):
    """Where one of several volumes can be reached."""

    is_any: bool  # volume there
    is_everywhere: bool
    terms: Terms


class Affected(NamedTuple):
    """What the change of a volume may affect: the claims it names, and claims that need one of these classes."""

    claims: set[Key]
    classes: set[str]


@dataclass(slots=True)
class ClassVolumes:
    """The free volumes of one class."""

    volumes: dict[str, Obj] = field(default_factory=dict)
    serving: dict[Any, list[Obj]] = field(default_factory=dict)  # smallest first, by request
    reaching: dict[Any, Reachability] = field(default_factory=dict)  # by the same

    def changed(self) -> None:
        self.serving.clear()
        self.reaching.clear()


class VolumeIndex:
    def __init__(self) -> None:
        self._volumes: dict[str, Obj] = {}
        self._classes: dict[str, ClassVolumes] = {}  # by class
        self._naming: dict[Key, set[str]] = {}  # volumes that name a claim
        self._chosen: dict[str, Key] = {}  # volumes that were chosen for a claim, and are not bound to it yet
        self._chosen_for: dict[Key, set[str]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._volumes

    def get(self, name: str) -> Obj | None:
        return self._volumes.get(name)

    def put(self, name: str, volume: Obj | None) -> Affected:
        """The volume as it is now; None: it was deleted."""
        touched = Affected(set(), set())
        if (before := self._volumes.pop(name, None)) is not None:
            if (claim := _named(before)) is not None:
                self._naming[claim].discard(name)
                if not self._naming[claim]:
                    del self._naming[claim]
                touched.claims.add(claim)
            elif _is_open(before):
                del self._class_volumes(before).volumes[name]
                self._count(name, before, touched)
        if volume is not None:
            self._volumes[name] = volume
            if (claim := _named(volume)) is not None:
                self._naming.setdefault(claim, set()).add(name)
                touched.claims.add(claim)
            elif _is_open(volume):
                self._class_volumes(volume).volumes[name] = volume
                self._count(name, volume, touched)
        return touched

    def _count(self, name: str, volume: Obj, touched: Affected) -> None:
        self._class_volumes(volume).changed()
        if name not in self._chosen:  # what was chosen is nothing to others, whatever becomes of it
            touched.classes.add(class_of(volume))

    def _class_volumes(self, obj: Obj) -> ClassVolumes:
        return self._classes.setdefault(class_of(obj), ClassVolumes())

    # For a claim

    def kept_for(self, key: Key, claim: Obj) -> list[Obj]:
        """No other claim gets these, and it gets no other."""
        named = (self._volumes[name] for name in sorted(self._naming.get(key, ())))
        chosen = (self._volumes[name] for name in sorted(self._chosen_for.get(key, ())) if name in self._volumes)
        return [*(volume for volume in named if is_for(volume, claim) and not is_terminating(volume)), *chosen]

    def open_to(self, claim: Obj) -> Iterator[Obj]:
        """Those that would do and that no claim has, the smallest first: the least is wasted so; names decide."""
        of_class, asked = self._class_volumes(claim), _asked(claim)
        if (found := of_class.serving.get(asked)) is None:
            fitting = (volume for volume in of_class.volumes.values() if satisfies(volume, claim))
            found = of_class.serving[asked] = sorted(fitting, key=lambda volume: (size_of(volume), name_of(volume)))
        return (volume for volume in found if name_of(volume) not in self._chosen)

    def reach_for(self, key: Key, claim: Obj) -> Reachability:
        if kept := self.kept_for(key, claim):
            return _reach(kept)
        known, asked = self._class_volumes(claim).reaching, _asked(claim)
        if (found := known.get(asked)) is None:
            found = known[asked] = _reach(self.open_to(claim))
        return found

    def choose(self, volume: Obj, key: Key) -> None:
        self._chosen[name_of(volume)] = key
        self._chosen_for.setdefault(key, set()).add(name_of(volume))
        self._class_volumes(volume).reaching.clear()

    def release(self, key: Key) -> set[str]:
        """What was chosen for the claim is bound, or free again: the classes in which claims may search again."""
        classes: set[str] = set()
        for name in self._chosen_for.pop(key, ()):
            if self._chosen.get(name) == key:
                del self._chosen[name]
            if (volume := self._volumes.get(name)) is not None and name in self._class_volumes(volume).volumes:
                self._class_volumes(volume).reaching.clear()
                classes.add(class_of(volume))
        return classes


def _named(volume: Obj) -> Key | None:
    reference = at_path(volume, "spec", "claimRef")
    return Key(reference.get("namespace", ""), reference.get("name", "")) if reference else None


def _is_open(volume: Obj) -> bool:
    return is_free(volume) and at_path(volume, "status", "phase") not in TAKEN


def _asked(claim: Obj) -> tuple[Any, ...]:
    """What decides whether a volume of its class would do; see `satisfies`."""
    spec = claim.get("spec") or {}
    modes, selector = frozenset(spec.get("accessModes") or ()), json.dumps(spec.get("selector"), sort_keys=True)
    return requested_size(claim), spec.get("volumeMode") or "", modes, selector


def _reach(volumes: Iterable[Obj]) -> Reachability:
    reaches = [reach_of(volume) for volume in volumes]
    terms = tuple(term for reach in reaches for term in merged(reach))
    return Reachability(bool(reaches), any(not reach for reach in reaches), terms)

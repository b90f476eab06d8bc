"""HyperNodes: which nodes are in each domain.

Members are named exactly, by pattern, by label, or are HyperNodes themselves; what that means is computed again when a
HyperNode changes, or a node is added, removed or relabelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.cluster.informer import Change
from shoal.kube.objects import Obj, labels_of
from shoal.kube.re2 import compiled
from shoal.kube.selectors import from_label_selector
from shoal.logs import Logger
from shoal.scheduler.planner.gang_types import HyperNode

if TYPE_CHECKING:
    from shoal.scheduler.planner.cluster_view import ClusterView

log = Logger(__name__)


class HyperNodeResolver:
    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._objects: dict[str, Obj] = {}
        self._labels: dict[str, Mapping[str, str]] = {}  # of nodes
        self._known: dict[str, HyperNode] = {}
        self._is_stale = False

    def changed(self, change: Change) -> None:
        if change.new is None:
            self._objects.pop(change.key.name, None)
        else:
            self._objects[change.key.name] = change.new
        self._is_stale = True

    def node_changed(self, change: Change) -> None:
        labels = labels_of(change.new) if change.new is not None else None
        if labels == self._labels.get(change.key.name):
            return
        if labels is None:
            del self._labels[change.key.name]
        else:
            self._labels[change.key.name] = labels
        self._is_stale = self._is_stale or bool(self._objects)

    def update_view(self) -> bool:
        """Once after all events that have arrived; returns whether a domain has changed."""
        if not self._is_stale:
            return False
        self._is_stale = False
        found = resolved(self._objects, self._labels)
        for name in self._known.keys() - found.keys():
            self._view.remove_hypernode(name)
        for name, domain in found.items():
            if self._known.get(name) != domain:
                self._view.set_hypernode(domain)
        is_changed, self._known = found != self._known, found
        return is_changed


@dataclass(frozen=True, slots=True)
class DirectMembers:
    """What one HyperNode names itself."""

    tier: int
    tier_name: str
    nodes: frozenset[str]
    domains: frozenset[str]


def resolved(objects: Mapping[str, Obj], nodes: Mapping[str, Mapping[str, str]]) -> dict[str, HyperNode]:
    named = {}
    domains = {name: labels_of(obj) for name, obj in objects.items()}
    for name, obj in sorted(objects.items()):
        try:
            spec = obj.get("spec") or {}
            chosen: dict[bool, set[str]] = {True: set(), False: set()}
            for member in spec.get("members") or ():
                is_node = member.get("type") != "HyperNode"
                selector = member.get("selector") or {}
                chosen[is_node].update(selected_members(selector, nodes if is_node else domains))
            tier, tier_name = int(spec.get("tier") or 1), spec.get("tierName") or ""
            named[name] = DirectMembers(tier, tier_name, frozenset(chosen[True]), frozenset(chosen[False]))
        except (ValueError, TypeError, AttributeError) as wrong:
            log.warning("HyperNode cannot be read and is left out", hypernode=name, error=str(wrong))
    found = {}
    for name, domain in named.items():
        # The HyperNode and all within it, each visited once: mutual references and cycles lead to the same ones often.
        within, ahead = {name}, [name]
        while ahead:
            known = named.get(ahead.pop())
            fresh = known.domains - within if known is not None else frozenset()
            within |= fresh
            ahead += sorted(fresh)
        if unread := sorted(within - named.keys()):
            log.warning("HyperNode is left out with one within it", hypernode=name, unread=unread)
        else:
            nodes_within = frozenset().union(*(named[each].nodes for each in within))
            found[name] = HyperNode(name, domain.tier, nodes_within, domain.tier_name)
    return found


def selected_members(selector: Mapping[str, Any], table: Mapping[str, Mapping[str, str]]) -> list[str]:
    if exact := (selector.get("exactMatch") or {}).get("name"):
        return [exact] if exact in table else []
    if pattern := (selector.get("regexMatch") or {}).get("pattern"):
        matches = compiled(pattern).matches  # anywhere in the name, as Volcano does
        return [name for name in sorted(table) if matches(name)]
    if wanted := selector.get("labelMatch"):
        chooses = from_label_selector(wanted)
        return [name for name in sorted(table) if chooses.matches(table[name])]
    return []

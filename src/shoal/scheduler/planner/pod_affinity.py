"""Rules between pods: required (anti-)affinity, spread over domains, host ports.

Each rule is counted per node: how many pods it chooses there, and how many pods there hold it. A pod with such a
rule, or one that somebody's rule is about, is placed one at a time: the mask of nodes it may use is made from the
counts as they stand, earlier members of the same gang included. A rule costs its first look at all pods and then only
the changes, and it is forgotten with the last pod that has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.kube.messages import Message
from shoal.scheduler.planner.node_and_pod_types import AffinityTerm, Pod, SpreadConstraint
from shoal.scheduler.planner.node_resources import NodeResources
from shoal.scheduler.planner.resource_vectors import Ints, Mask


@dataclass(slots=True)
class TermCounts:
    """One rule: pods it chooses (`chosen`) and pods that keep others of its kind away (`holders`), per node."""

    rule: AffinityTerm
    chosen: Ints
    holders: Ints
    held: int = 0
    users: int = 0  # pods that have the rule, wherever they are


@dataclass(slots=True)
class PortUse:
    used: Ints
    users: int = 0


class ClosedNodes(NamedTuple):
    """A rule, as a message that lacks how many nodes it closes (`nodes`), and those nodes."""

    why: Message
    nodes: Mask


class AffinityIndex:
    def __init__(self, resources: NodeResources) -> None:
        self._room = resources
        self._rules: dict[AffinityTerm, TermCounts] = {}
        self._ports: dict[str, PortUse] = {}

    def add_terms(self, pod: Pod, placed: Iterable[Pod]) -> None:
        """Count for the rules of this pod from now on; `placed` are all pods on nodes."""
        fresh: list[TermCounts] = []
        for rule in _rules_of(pod):
            if rule not in self._rules:
                self._rules[rule] = TermCounts(rule, self._zeros(), self._zeros())
                fresh.append(self._rules[rule])
            self._rules[rule].users += 1
        for port in pod.ports:
            self._ports.setdefault(port, PortUse(self._zeros())).users += 1
        if fresh:
            for other in placed:
                row = self._room.rows.get(other.node)
                if row is not None:
                    self._count(fresh, other, row, 1)

    @property
    def has_any(self) -> bool:
        return bool(self._rules or self._ports)

    @property
    def has_holders(self) -> bool:
        """Whether any pod on a node keeps others away."""
        return any(counts.held for counts in self._rules.values())

    def remove_terms(self, pod: Pod) -> None:
        for rule in _rules_of(pod):
            self._rules[rule].users -= 1
            if not self._rules[rule].users:
                del self._rules[rule]
        for port in pod.ports:
            self._ports[port].users -= 1
            if not self._ports[port].users:
                del self._ports[port]

    def add(self, pod: Pod, row: int, sign: int) -> None:
        """A pod sits on the node, or (sign -1) has left it."""
        if self._rules:
            self._count(self._rules.values(), pod, row, sign)
        for port in pod.ports:
            found = self._ports[port]
            found.used = self._sized(found.used)
            found.used[row] += sign

    def remove_node(self, row: int) -> None:
        for counts in self._rules.values():
            if row < len(counts.holders):
                counts.held -= int(counts.holders[row])
                counts.chosen[row] = counts.holders[row] = 0
        for port in self._ports.values():
            if row < len(port.used):
                port.used[row] = 0

    def affects(self, pod: Pod) -> bool:
        """Whether a pod on a node keeps pods like this one away."""
        return any(counts.held and chooses(counts.rule, pod) for counts in self._rules.values())

    def allowed(self, pod: Pod, able: Mask) -> Mask:
        """Where the rules let the pod go, of the nodes that are `able` to take it otherwise."""
        ok = np.ones(len(self._room), dtype=np.bool_)
        for port in pod.ports:
            ok &= ~self._taken(port)
        for counts in self._rules.values():
            if counts.held and chooses(counts.rule, pod):
                ok &= self._per_domain(counts.rule.topology_key, counts.holders) == 0
        for rule in pod.apart:
            ok &= self._per_domain(rule.topology_key, self._rules[rule].chosen) == 0
        for rule in pod.together:
            ok &= self._matching_domains(rule, pod)
        for spread in pod.spreads:
            ok &= self._even(spread, able)
        return ok

    def closed(self, pod: Pod, eligible: Mask, able: Mask) -> list[ClosedNodes]:
        """Each rule that keeps the pod off some of the `able` nodes: `eligible`, and with enough resources for it."""
        found = []
        for port in sorted(pod.ports):
            protocol, _, number = port.partition("/")
            shown = number if protocol == "TCP" else f"{number}/{protocol}"
            found.append(ClosedNodes(Message("Closed.HostPort", {"port": shown}), self._taken(port)))
        for counts in self._rules.values():
            if counts.held and counts.rule not in pod.apart and chooses(counts.rule, pod):
                why = Message("Closed.AntiAffinityOfOthers", {"key": counts.rule.topology_key})
                found.append(ClosedNodes(why, self._per_domain(counts.rule.topology_key, counts.holders) > 0))
        for rule in pod.apart:
            why = Message("Closed.AntiAffinity", {"others": _chosen(rule, pod), "key": rule.topology_key})
            found.append(ClosedNodes(why, self._per_domain(rule.topology_key, self._rules[rule].chosen) > 0))
        found += [
            ClosedNodes(self._why_not_beside(rule, pod), ~self._matching_domains(rule, pod)) for rule in pod.together
        ]
        for spread in pod.spreads:
            key = spread.term.topology_key
            why = Message("Closed.Spread", {"key": key, "max_skew": spread.max_skew})
            if not (eligible & (self._room.label(key).codes > 0)).any():
                why = Message("Closed.SpreadLabel", {"key": key})
            found.append(ClosedNodes(why, ~self._even(spread, eligible)))
        return [ClosedNodes(why, nodes & able) for why, nodes in found if (nodes & able).any()]

    def _taken(self, port: str) -> Mask:
        taken: Mask = self._sized(self._ports[port].used) > 0
        return taken

    def _why_not_beside(self, rule: AffinityTerm, pod: Pod) -> Message:
        others, key = _chosen(rule, pod), rule.topology_key
        if self._rules[rule].chosen.any():
            return Message("Closed.Affinity", {"others": others, "key": key})
        if chooses(rule, pod):
            return Message("Closed.AffinityLabel", {"key": key})
        return Message("Closed.AffinityNowhere", {"others": others})

    def _matching_domains(self, rule: AffinityTerm, pod: Pod) -> Mask:
        counts = self._rules[rule]
        domains = self._room.label(rule.topology_key).codes
        if not counts.chosen.any() and chooses(rule, pod):
            return domains > 0  # the first of them may begin anywhere
        return (self._per_domain(rule.topology_key, counts.chosen) > 0) & (domains > 0)

    def _even(self, spread: SpreadConstraint, able: Mask) -> Mask:
        rule = spread.term
        domains = self._room.label(rule.topology_key).codes
        here = self._per_domain(rule.topology_key, self._rules[rule].chosen)
        open_to_it = able & (domains > 0)
        if not open_to_it.any():
            return open_to_it
        ok: Mask = open_to_it & (here + 1 - here[open_to_it].min() <= spread.max_skew)
        return ok

    def _per_domain(self, key: str, counts: Ints) -> Ints:
        """For each node, the sum over its domain. A node without the label is no domain."""
        codes = self._room.label(key).codes
        sums = np.bincount(codes, weights=self._sized(counts), minlength=1)
        sums[0] = 0
        return sums.astype(np.int64)[codes]

    def _count(self, rules: Iterable[TermCounts], pod: Pod, row: int, sign: int) -> None:
        for counts in rules:
            counts.chosen, counts.holders = self._sized(counts.chosen), self._sized(counts.holders)
            if chooses(counts.rule, pod):
                counts.chosen[row] += sign
            if counts.rule in pod.apart:
                counts.holders[row] += sign
                counts.held += sign

    def _zeros(self) -> Ints:
        return np.zeros(len(self._room), dtype=np.int64)

    def _sized(self, counts: Ints) -> Ints:
        more = len(self._room) - len(counts)
        return np.pad(counts, (0, more)) if more else counts


def has_rules(pod: Pod) -> bool:
    return bool(pod.together or pod.apart or pod.spreads or pod.ports)


def _rules_of(pod: Pod) -> list[AffinityTerm]:
    return [*pod.together, *pod.apart, *(spread.term for spread in pod.spreads)]


def _chosen(rule: AffinityTerm, pod: Pod) -> Message:
    """`pod with app=web`, and of which namespaces where those are others."""
    selected = bool(rule.selector.requirements)
    others = Message("Others.Selected", {"selector": str(rule.selector)}) if selected else Message("Others")
    places: list[Message] = []
    if rule.is_everywhere:
        places = [Message("Namespaces.All")]
    else:
        by_label = bool(rule.namespace_selector.requirements)
        if not by_label and rule.namespaces == {pod.key.namespace}:
            return others
        if rule.namespaces:
            places.append(Message("Namespaces.Named", {"namespaces": sorted(rule.namespaces)}))
        if by_label:
            places.append(Message("Namespaces.Selected", {"selector": str(rule.namespace_selector)}))
    return Message("Others.InNamespaces", {"others": others, "namespaces": places})


def chooses(rule: AffinityTerm, pod: Pod) -> bool:
    """Whether the rule is about the pod."""
    return rule.covers(pod.key.namespace) and rule.selector.matches(pod.labels)

"""The cluster as the scheduler sees it: nodes with their room, pods with their needs. Plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from shoal.kube.conditions import is_true
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, labels_of, name_of
from shoal.kube.quantity_format import amounts
from shoal.kube.selectors import EVERYTHING, NOTHING, LabelSelector

FINISHED = ("Succeeded", "Failed")
CRITICAL_PRIORITY = 2_000_000_000  # the two classes of the system start here


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    allocatable: Mapping[str, int]  # thousandths
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, Any], ...] = ()
    unschedulable: bool = False
    ready: bool = True


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """A rule about the pods beside a pod: those of these namespaces that the selector chooses, per topology domain."""

    selector: LabelSelector
    topology_key: str
    namespaces: frozenset[str]  # by name
    namespace_selector: LabelSelector = NOTHING  # others, by their labels
    selected: frozenset[str] = frozenset()  # the namespaces that have such labels now

    @property
    def is_everywhere(self) -> bool:
        return self.namespace_selector == EVERYTHING

    def selection_changes(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Whether a namespace with these labels (None: it is gone) is selected and was not, or the reverse."""
        by_labels = bool(self.namespace_selector.requirements) and labels is not None
        return (namespace in self.selected) != (by_labels and self.namespace_selector.matches(labels or {}))

    def covers(self, namespace: str) -> bool:
        return namespace in self.namespaces or namespace in self.selected or self.is_everywhere


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """Topology spread that must be kept: no domain more than `max_skew` pods ahead of the emptiest one."""

    term: AffinityTerm
    max_skew: int = 1


class PodState(StrEnum):
    """The state of a pod between its creation and its end, as far as placement is concerned."""

    PENDING = "Pending"
    BOUND = "Bound"
    RUNNING = "Running"
    RELEASING = "Releasing"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


# Looking a member up in its class costs Python 3.11 as much as ten other names, and these are read very often.
BOUND, RELEASING, SUCCEEDED, FAILED = PodState.BOUND, PodState.RELEASING, PodState.SUCCEEDED, PodState.FAILED
OVER = (SUCCEEDED, FAILED)


@dataclass(frozen=True, slots=True)
class Pod:
    key: Key
    uid: str
    requests: Mapping[str, int]  # thousandths
    priority: int = 0
    created: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    node_terms: tuple[Mapping[str, Any], ...] | None = None  # required node affinity: any of these
    tolerations: tuple[Mapping[str, Any], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    group: Key | None = None
    role: str = ""
    index: int = 0
    queue: str = ""  # that a pod without a group names
    node: str = ""
    state: PodState = PodState.PENDING
    since: float = 0.0  # bound or started, in seconds
    checkpoint: float | None = None  # the last one known, in seconds
    gated: bool = False
    blocked: Message | None = None  # what no node can cure: a claim that does not exist
    generation: int = 0  # of the job that made it
    evicted_by_controller: bool = False  # the controller of its job has announced that it deletes the pod
    preemptable: bool | None = None  # as its owner sets it; None: not set
    recreated: bool = True  # its controller creates another pod when it is deleted
    never_preempts: bool = False
    protected: bool = False  # the server would not let it go a moment ago
    gpu_milli: int = 0  # a share of one device; 0 for whole ones
    devices: tuple[int, ...] = ()  # which ones it was given
    preferred_nodes: tuple[tuple[int, Mapping[str, Any]], ...] = ()  # weight, node selector term
    volume_terms: tuple[tuple[Mapping[str, Any], ...], ...] = ()  # each of its volumes: any of these
    ports: frozenset[str] = frozenset()  # "TCP/8080"
    together: tuple[AffinityTerm, ...] = ()
    apart: tuple[AffinityTerm, ...] = ()
    spreads: tuple[SpreadConstraint, ...] = ()

    def moved(self, *, node: str, state: PodState, since: float, devices: tuple[int, ...] = ()) -> Pod:
        """The same pod elsewhere. Done for every bind, where `replace` is ten times as slow."""
        return _moved(self, node, state, since, devices)

    @property
    def holds_node(self) -> bool:
        return bool(self.node) and self.state not in OVER

    @property
    def is_critical(self) -> bool:
        return self.key.namespace == "kube-system" or self.priority >= CRITICAL_PRIORITY

    @property
    def stays(self) -> bool:
        """Never evicted in its current state, for no other pod."""
        return self.preemptable is False or self.protected or self.is_critical


def _compiled_copy() -> Callable[[Pod, str, PodState, float, tuple[int, ...]], Pod]:
    """A function that copies field by field, written out for all fields as dataclasses write their constructors.

    It fills a draft, which has the same slots and is not frozen, and then declares it a pod.
    """
    given = ("node", "state", "since", "devices")
    names = tuple(Pod.__dataclass_fields__)
    lines = [f"draft.{name} = {name if name in given else f'pod.{name}'}" for name in names]
    body = ["draft = Draft()", *lines, "draft.__class__ = Pod", "return draft"]
    known: dict[str, Any] = {"Pod": Pod, "Draft": type("Draft", (), {"__slots__": names})}
    source = "\n    ".join([f"def moved(pod, {', '.join(given)}):", *body])
    exec(source, known)  # noqa: S102 (made of nothing but the names of our own fields)
    found: Callable[[Pod, str, PodState, float, tuple[int, ...]], Pod] = known["moved"]
    return found


_moved = _compiled_copy()


def node_from(obj: Obj) -> Node:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return Node(
        name=name_of(obj),
        allocatable=amounts(status.get("allocatable") or status.get("capacity")),
        labels=labels_of(obj),
        taints=tuple(spec.get("taints") or ()),
        unschedulable=bool(spec.get("unschedulable")),
        ready=is_true(obj, "Ready"),
    )

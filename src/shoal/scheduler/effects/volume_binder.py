"""Binds the claims of a gang before its pods, where the volume is chosen or made for the node of the pod.

The claim is written into the volume that the cycle chose, or the node into the claim for the provisioner. The gang's
pods are bound when watches have shown every claim bound; where that fails they wait again as before, and no claim stays
tied to the node that was chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from shoal.cluster.client import Cluster, OutcomeUnknown
from shoal.cluster.informer import Change
from shoal.kube.errors import ApiError
from shoal.kube.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, annotations_of, name_of, uid_of
from shoal.logs import Logger
from shoal.scheduler.cache.scheduler_cache import SchedulerCache
from shoal.scheduler.channels import (
    BindFailed,
    Channel,
    ClaimFailed,
    ClaimRetry,
    ClaimsReleased,
    Event,
    GangVolumes,
    VolumeChoice,
)
from shoal.scheduler.effects.dispatcher import Dispatcher, Timers
from shoal.scheduler.planner.message_parts import waiting
from shoal.scheduler.planner.plan_types import Bind, Wait
from shoal.scheduler.planner.volume_matching import BY_CONTROLLER, SELECTED_NODE, reference_to

log = Logger(__name__)

PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 300.0
MAX_DOUBLINGS = 20  # more would exceed the longest pause anyway; a thousand would overflow a float
CONFLICT = 409  # changed by another client, as a watch will show: an early retry is worth it
LONGEST_SECONDS = 600.0  # for making a volume; then the pods wait again, and may go elsewhere


def pause_seconds(failures: int) -> float:
    """How long a claim waits after so many failures in a row."""
    return min(PAUSE_SECONDS * 2.0 ** min(failures, MAX_DOUBLINGS), LONGEST_PAUSE_SECONDS)


@dataclass(eq=False, slots=True)
class GangBinding:
    """The pods of one gang that are bound together, and the claims that have to be bound before."""

    binds: list[Bind]
    choices: list[VolumeChoice]
    unbound: set[Key] = field(default_factory=set)  # those of the claims that no watch has shown bound
    is_over: bool = False

    @property
    def needs_provisioning(self) -> bool:
        """Whether a claim names its node by now, and has to be untied if the binding fails."""
        return any(choice.volume is None for choice in self.choices)


class VolumeBinder:
    def __init__(
        self,
        cluster: Cluster,
        cache: SchedulerCache,
        events: Channel[Event],
        dispatcher: Dispatcher,
        timers: Timers,
        *,
        bind: Callable[[Bind], None],
        report: Callable[[Sequence[Wait]], None],
    ) -> None:
        self._cluster = cluster
        self._cache = cache
        self._events = events
        self._dispatcher = dispatcher
        self._timers = timers
        self._bind = bind
        self._report = report
        self._bindings: dict[Key, list[GangBinding]] = {}  # by claim
        self._failures: Counter[Key] = Counter()  # of claims, one after the other
        self._backing_off: set[Key] = set()  # claims that are retried later

    def begin(self, volumes: Iterable[GangVolumes]) -> set[Key]:
        """The pods that are bound later."""
        held: set[Key] = set()
        for binds, choices in volumes:
            binding = GangBinding(binds, choices, {choice.claim for choice in choices})
            held.update(bind.pod for bind in binds)
            try:
                self._begin_binding(binding)
            except Exception:
                # One gang of many: the others must be bound all the same.
                log.exception("binding of volumes broke", pods=len(binds))
                self._timers.call_later(PAUSE_SECONDS, partial(self._fail, binding, "the scheduler could not begin"))
        return held

    def _begin_binding(self, binding: GangBinding) -> None:
        message = waiting(Message("Claim.Preparing", {"claims": [choice.claim.name for choice in binding.choices]}))
        self._report([Wait(bind.pod, bind.uid, message, "Queued") for bind in binding.binds])
        for choice in binding.choices:
            self._bindings.setdefault(choice.claim, []).append(binding)
            self._dispatcher.submit(partial(self._write, binding, choice))
        self._timers.call_later(LONGEST_SECONDS, partial(self._give_up, binding, "it took too long"))

    async def _write(self, binding: GangBinding, choice: VolumeChoice) -> None:
        if binding.is_over:
            return
        try:
            if choice.volume is not None:
                await self._reserve(choice, choice.volume)
            else:
                # The provisioner makes the volume where it can be reached from this node.
                patch = {"metadata": {"uid": choice.uid, "annotations": {SELECTED_NODE: choice.node}}}
                name, namespace = choice.claim.name, choice.claim.namespace
                await self._cluster.patch(PERSISTENT_VOLUME_CLAIM, name, namespace, patch=patch)
        except (ApiError, OutcomeUnknown, OSError) as failed:
            log.info("a claim got no volume", claim=str(choice.claim), error=str(failed))
            if isinstance(failed, ApiError) and failed.code == CONFLICT and not binding.needs_provisioning:
                self._timers.call_later(PAUSE_SECONDS, partial(self._fail, binding, str(failed)))
            else:
                self._give_up(binding, str(failed))

    async def _reserve(self, choice: VolumeChoice, volume: Obj) -> None:
        """Write the claim into the volume; the volume controller does the rest."""
        claim = self._cache.claims.get(choice.claim)
        if claim is None or uid_of(claim) != choice.uid:
            raise OutcomeUnknown(f"the claim {choice.claim} has gone")
        if (volume["spec"].get("claimRef") or {}).get("uid") == choice.uid:
            return
        seen = {"uid": uid_of(volume), "resourceVersion": volume["metadata"]["resourceVersion"]}
        patch = {
            "metadata": {**seen, "annotations": {BY_CONTROLLER: "yes"}},
            "spec": {"claimRef": reference_to(claim)},
        }
        await self._cluster.patch(PERSISTENT_VOLUME, name_of(volume), patch=patch)

    # Changes of claims, volumes and nodes, which the cache has applied

    def claim_changed(self, change: Change) -> None:
        # The provisioner removes the node where no volume can be made for it: another node is to be chosen.
        is_given_back = SELECTED_NODE in annotations_of(change.old or {}) and (
            SELECTED_NODE not in annotations_of(change.new or {})
        )
        for binding in list(self._bindings.get(change.key, ())):
            if change.new is None or is_given_back:
                self._give_up(binding, "the provisioner made no volume for the chosen node")
            else:
                self._check(binding, change.key)
        self._clear_selected_node(change.key)
        if change.new is None:
            del self._failures[change.key]

    def volume_changed(self, change: Change) -> None:
        for claim in self._cache.claims.bound_to(change.key.name):
            for binding in list(self._bindings.get(claim, ())):
                self._check(binding, claim)

    def node_changed(self, change: Change) -> None:
        if change.new is not None:
            return
        name = change.key.name
        for binding in [each for bindings in self._bindings.values() for each in bindings]:
            if any(bind.node == name for bind in binding.binds):
                self._give_up(binding, f"the node {name} that was chosen has gone")

    def _check(self, binding: GangBinding, claim: Key) -> None:
        """Bind the pods if this was the last of their claims."""
        is_bound = self._cache.claims.is_bound
        if binding.is_over or not is_bound(claim):
            return
        binding.unbound.discard(claim)
        if binding.unbound or not all(is_bound(choice.claim) for choice in binding.choices):
            return
        resources = self._cache.view.resources
        for bind in binding.binds:
            node = resources.nodes[resources.rows[bind.node]] if bind.node in resources.rows else None
            if node is None or not self._cache.claims.reaches(bind.pod, node):
                self._fail(binding, "a volume was made where one of the pods cannot reach it")
                return
        self._finish(binding)
        for choice in binding.choices:
            del self._failures[choice.claim]
        for bind in binding.binds:
            self._bind(bind)

    def _give_up(self, binding: GangBinding, why: str) -> None:
        """No retry at once: the provisioner would get the same request without end."""
        if binding.is_over:
            return
        for choice in binding.choices:
            claim = choice.claim
            if self._cache.claims.is_bound(claim):
                continue
            self._backing_off.add(claim)
            self._events.put(ClaimFailed(claim, why))
            self._failures[claim] += 1
            self._timers.call_later(pause_seconds(self._failures[claim]), partial(self._retry, claim))
        self._fail(binding, why)
        for choice in binding.choices:
            self._clear_selected_node(choice.claim)

    def _retry(self, claim: Key) -> None:
        self._backing_off.discard(claim)
        self._events.put(ClaimRetry(claim))

    def _clear_selected_node(self, claim: Key) -> None:
        """Let the next try choose another node. The version is named: a node that was chosen since then stays."""
        known = self._cache.claims.get(claim)
        if known is None or claim in self._bindings or claim not in self._backing_off:
            return
        if self._cache.claims.is_tied(claim):
            metadata = {
                "uid": uid_of(known),
                "resourceVersion": known["metadata"]["resourceVersion"],
                "annotations": {SELECTED_NODE: None},
            }
            self._dispatcher.submit(partial(self._patch_claim, claim, metadata))

    async def _patch_claim(self, claim: Key, metadata: Obj) -> None:
        patch = {"metadata": metadata}
        try:
            await self._cluster.patch(PERSISTENT_VOLUME_CLAIM, claim.name, claim.namespace, patch=patch)
        except (ApiError, OutcomeUnknown, OSError) as failed:  # whatever changes the claim brings the next try
            log.info("a claim still names its node", claim=str(claim), error=str(failed))

    def _fail(self, binding: GangBinding, why: str) -> None:
        if binding.is_over:
            return
        log.info("pods wait again: their volumes did not come", pods=len(binding.binds), reason=why)
        self._finish(binding)
        for bind in binding.binds:
            self._events.put(BindFailed(bind, for_good=False))

    def _finish(self, binding: GangBinding) -> None:
        binding.is_over = True
        for choice in binding.choices:
            left = [each for each in self._bindings.pop(choice.claim, ()) if each is not binding]
            if left:
                self._bindings[choice.claim] = left
        self._events.put(ClaimsReleased(tuple(choice.claim for choice in binding.choices)))

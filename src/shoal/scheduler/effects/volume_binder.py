"""Volumes that are chosen or made once a gang's pods have their nodes: its claims are bound before its pods.

`choose` checks a plan before it is executed. Where two pods would need the same volume their gang is left out of the
plan; what was chosen for it stays chosen, so that the next plan, made at once, tries other volumes. Each such turn
settles one claim more, so their number is limited. `begin` writes what was chosen: the claim into the volume, or the
node into the claim for the provisioner. The gang's pods are bound when watches have shown every claim bound; where that
fails they wait again as before, and no claim stays tied to the node that was chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby

from shoal.cluster.client import Cluster, OutcomeUnknown
from shoal.cluster.informer import Change, Informer
from shoal.kube.errors import ApiError
from shoal.kube.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, annotations_of, name_of, uid_of
from shoal.logs import Logger
from shoal.scheduler.cache.scheduler_cache import CacheUpdater
from shoal.scheduler.cache.volume_claims import VolumeChoice
from shoal.scheduler.effects.dispatcher import Dispatcher
from shoal.scheduler.planner.message_parts import waiting
from shoal.scheduler.planner.plan_types import Bind, Plan, Wait
from shoal.scheduler.planner.snapshot_types import Node
from shoal.scheduler.planner.volume_matching import BY_CONTROLLER, SELECTED_NODE, reference_to
from shoal.scheduler.timers import Timers

log = Logger(__name__)

PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 300.0
CONFLICT = 409  # changed by another client, as a watch will show: an early retry is worth it
LONGEST_SECONDS = 600.0  # for making a volume; then the pods wait again, and may go elsewhere


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
        cache_updater: CacheUpdater,
        pods: Informer,
        dispatcher: Dispatcher,
        timers: Timers,
        *,
        bind: Callable[[Bind], None],
        tell: Callable[[Sequence[Wait]], None],
    ) -> None:
        self._cluster = cluster
        self._feed = cache_updater
        self._pods = pods
        self._crew = dispatcher
        self._timers = timers
        self._bind = bind
        self._tell = tell
        self._bundles: dict[Key, list[GangBinding]] = {}  # by claim
        self._failures: Counter[Key] = Counter()  # of claims, one after the other
        self._pinned: dict[Key, set[Key]] = {}  # gangs that were left out, and the claims something was chosen for

    # Looking a plan through

    def choose(self, made: Plan) -> tuple[Plan, list[GangBinding]]:
        """The plan without gangs for which too few volumes are left, and those whose claims are to be bound first."""
        claims, bindings, out = self._feed.claims, [], set()
        if not claims.late and not self._pinned:
            return made, []
        for gang, found in groupby(made.binds, key=self._gang):
            binds = list(found)
            if not any(bind.pod in claims.late for bind in binds):
                continue
            choices = self._choices(binds)
            if choices is None:
                out.add(gang)
                self._pin(gang, binds)
            else:
                bindings.append(GangBinding(binds, choices))
        self._unpin(out, bindings)
        if out:
            kept = tuple(bind for bind in made.binds if self._gang(bind) not in out)
            made = replace(made, binds=kept, groups=tuple(v for v in made.groups if v.group not in out))
        return made, bindings

    def _gang(self, bind: Bind) -> Key:
        view = self._feed.view
        return view.gang_of(view.pods[bind.pod]).key

    def _choices(self, binds: list[Bind]) -> list[VolumeChoice] | None:
        found: dict[Key, VolumeChoice] = {}
        for bind in binds:
            choices = self._feed.claims.choose(bind.pod, self._node(bind))
            if choices is None:
                return None
            for choice in choices:
                found.setdefault(choice.claim, choice)  # pods may share one
        return list(found.values())

    def _node(self, bind: Bind) -> Node:
        resources = self._feed.view.resources
        node = resources.nodes[resources.rows[bind.node]]
        assert node is not None, "a placed pod has a node"
        return node

    def _pin(self, gang: Key, binds: list[Bind]) -> None:
        claims = self._feed.claims
        self._pinned.setdefault(gang, set()).update(claim for bind in binds for claim in claims.of_pod(bind.pod))
        self._reread(bind.pod for bind in binds)

    def _unpin(self, out: set[Key], bindings: list[GangBinding]) -> None:
        """What was chosen for a gang that has a place by now is executed.
        One that found none is retried when something happens, and not before: the result would be the same."""
        used = {choice.claim for binding in bindings for choice in binding.choices}
        for gang in self._pinned.keys() - out:
            self._feed.claims.end(self._pinned.pop(gang) - used)
            members = self._feed.view.groups.get(gang)
            if members is not None:
                self._reread(list(members.waiting), quietly=True)

    def _reread(self, pods: Iterable[Key], *, quietly: bool = False) -> None:
        for pod in pods:
            if (seen := self._pods.objects.get(pod)) is not None:
                self._feed.reread(seen, quietly=quietly)

    # Carrying it out

    def begin(self, bindings: Iterable[GangBinding]) -> set[Key]:
        """The pods that are bound later."""
        held: set[Key] = set()
        for binding in bindings:
            held.update(bind.pod for bind in binding.binds)
            self._feed.claims.begin(binding.choices)
            binding.unbound.update(choice.claim for choice in binding.choices)
            for choice in binding.choices:
                self._bundles.setdefault(choice.claim, []).append(binding)
            self._tell(self._waiting_messages(binding))
            for choice in binding.choices:
                self._crew.submit(partial(self._write, binding, choice))
            self._timers.call_later(LONGEST_SECONDS, partial(self._give_up, binding, "it took too long"))
        return held

    def _waiting_messages(self, binding: GangBinding) -> list[Wait]:
        claims = [choice.claim.name for choice in binding.choices]
        message = waiting(Message("Claim.Preparing", {"claims": claims}))
        return [Wait(bind.pod, bind.uid, message, "Queued") for bind in binding.binds]

    async def _write(self, binding: GangBinding, choice: VolumeChoice) -> None:
        if binding.is_over:
            return
        try:
            await (self._reserve_volume(choice) if choice.volume is not None else self._request_provisioning(choice))
        except (ApiError, OutcomeUnknown, OSError) as failed:
            log.info("a claim got no volume", claim=str(choice.claim), error=str(failed))
            if isinstance(failed, ApiError) and failed.code == CONFLICT and not binding.needs_provisioning:
                self._timers.call_later(PAUSE_SECONDS, partial(self._fail, binding, str(failed)))
            else:
                self._give_up(binding, str(failed))

    async def _reserve_volume(self, choice: VolumeChoice) -> None:
        """The claim is written into the volume; the volume controller does the rest."""
        volume, claim = choice.volume, self._feed.claims.get(choice.claim)
        if volume is None or claim is None or uid_of(claim) != choice.uid:
            raise OutcomeUnknown(f"the claim {choice.claim} has gone")
        if (volume["spec"].get("claimRef") or {}).get("uid") == choice.uid:
            return
        seen = {"uid": uid_of(volume), "resourceVersion": volume["metadata"]["resourceVersion"]}
        patch = {
            "metadata": {**seen, "annotations": {BY_CONTROLLER: "yes"}},
            "spec": {"claimRef": reference_to(claim)},
        }
        await self._cluster.patch(PERSISTENT_VOLUME, name_of(volume), patch=patch)

    async def _request_provisioning(self, choice: VolumeChoice) -> None:
        patch = {"metadata": {"uid": choice.uid, "annotations": {SELECTED_NODE: choice.node}}}
        await self._cluster.patch(PERSISTENT_VOLUME_CLAIM, choice.claim.name, choice.claim.namespace, patch=patch)

    # What becomes of it

    def changed(self, change: Change) -> None:
        """A claim or a volume changed; the claims index contains the change already."""
        if change.kind == PERSISTENT_VOLUME_CLAIM:
            for binding in list(self._bundles.get(change.key, ())):
                if change.new is None or _is_given_back(change):
                    self._give_up(binding, "the provisioner made no volume for the chosen node")
                else:
                    self._check(binding, change.key)
            self._clear_selected_node(change.key)
            if change.new is None:
                del self._failures[change.key]
        elif change.kind == PERSISTENT_VOLUME:
            for claim in self._feed.claims.bound_to(change.key.name):
                for binding in list(self._bundles.get(claim, ())):
                    self._check(binding, claim)

    def node_changed(self, change: Change) -> None:
        """One that came or went; the view has it already."""
        if change.old is not None and change.new is not None:
            return
        name = change.key.name
        if change.new is None:
            for binding in [each for bindings in self._bundles.values() for each in bindings]:
                if any(bind.node == name for bind in binding.binds):
                    self._give_up(binding, f"the node {name} that was chosen has gone")
        self._reread(self._feed.claims.selected_on(name))

    def _check(self, binding: GangBinding, claim: Key) -> None:
        is_bound = self._feed.claims.is_bound
        if binding.is_over or not is_bound(claim):
            return
        binding.unbound.discard(claim)
        if not binding.unbound and all(is_bound(choice.claim) for choice in binding.choices):
            self._bind_pods(binding)

    def _bind_pods(self, binding: GangBinding) -> None:
        rows = self._feed.view.resources.rows
        reached = all(
            bind.node in rows and self._feed.claims.reaches(bind.pod, self._node(bind)) for bind in binding.binds
        )
        if not reached:
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
        claims = self._feed.claims
        for claim in (choice.claim for choice in binding.choices if not claims.is_bound(choice.claim)):
            claims.back_off(claim, why)
            self._failures[claim] += 1
            seconds = min(PAUSE_SECONDS * 2 ** self._failures[claim], LONGEST_PAUSE_SECONDS)
            self._timers.call_later(seconds, partial(self._try_again, claim))
        self._fail(binding, why)
        for choice in binding.choices:
            self._clear_selected_node(choice.claim)

    def _clear_selected_node(self, claim: Key) -> None:
        """The next try may choose another node. The version is named: a node that was chosen since then stays."""
        known = self._feed.claims.get(claim)
        if known is not None and claim not in self._bundles and self._feed.claims.is_left_behind(claim):
            seen = {"uid": uid_of(known), "resourceVersion": known["metadata"]["resourceVersion"]}
            self._crew.submit(
                partial(self._remove_selected_node, claim, {**seen, "annotations": {SELECTED_NODE: None}})
            )

    async def _remove_selected_node(self, claim: Key, metadata: Obj) -> None:
        try:
            await self._cluster.patch(
                PERSISTENT_VOLUME_CLAIM, claim.name, claim.namespace, patch={"metadata": metadata}
            )
        except (ApiError, OutcomeUnknown, OSError) as failed:  # whatever changes the claim brings the next try
            log.info("a claim still names its node", claim=str(claim), error=str(failed))

    def _try_again(self, claim: Key) -> None:
        self._reread(self._feed.claims.try_again(claim))

    def _fail(self, binding: GangBinding, why: str) -> None:
        if binding.is_over:
            return
        log.info("pods wait again: their volumes did not come", pods=len(binding.binds), reason=why)
        self._finish(binding)
        for bind in binding.binds:
            self._feed.not_bound(bind, self._pods.objects.get(bind.pod), for_good=False)

    def _finish(self, binding: GangBinding) -> None:
        binding.is_over = True
        for choice in binding.choices:
            left = [each for each in self._bundles.pop(choice.claim, ()) if each is not binding]
            if left:
                self._bundles[choice.claim] = left
        self._feed.claims.end(choice.claim for choice in binding.choices)


def _is_given_back(change: Change) -> bool:
    """The provisioner removes the node where no volume can be made for it: another node is to be chosen."""
    return SELECTED_NODE in annotations_of(change.old or {}) and SELECTED_NODE not in annotations_of(change.new or {})

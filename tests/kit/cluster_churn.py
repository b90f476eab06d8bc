"""Lives of a small cluster, lived from a seed: what comes, what goes, and what must hold after every cycle.

A `World` says of what the cluster is made: nodes, queues, gangs. A `Life` plays one: gangs come and go, nodes vanish,
are cordoned and return, binds fail, evicted pods are made again by their job. After every cycle: no gang newly stands
half placed, no node and no device holds more than it has, no queue grows beyond its ceiling, no pod is bound twice,
victims leave their gang whole or gone. Before some cycles the same cluster is told to a fresh view in another
order, which must give the same plan. When nothing comes and nobody ends any more, plans come to rest. Then, in most
lives, those that run end, and everybody has run who would run if alone; in the others that holds although small
gangs never stop coming.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kit.planner_board import GPU, RACK, Board
from shoal.kube.objects import Key
from shoal.scheduler.planner.cluster_view import ClusterView
from shoal.scheduler.planner.gang import Gang
from shoal.scheduler.planner.gang_types import PodGroup, PodGroupPhase, Queue
from shoal.scheduler.planner.node_and_pod_types import Node, Pod, PodState
from shoal.scheduler.planner.plan_types import Plan
from shoal.scheduler.planner.planner import plan

CYCLES = 100
RETOLD_EVERY = 7
REPEATED_EVERY = 5
REST_CYCLES = 60
STREAM_ROUNDS = 200
STREAM_SECONDS = 200
HOLD_SECONDS = 30

Arrival = tuple[PodGroup, list[Pod]]


@dataclass(frozen=True)
class World:
    """What the seed does not decide."""

    queues: tuple[Queue, ...]
    node: Callable[[int], Node]
    gang: Callable[[random.Random, str, float], Arrival]
    nodes: int = 6
    settings: dict[str, object] = field(default_factory=dict)

    def names(self) -> list[str]:
        return [self.node(number).name for number in range(self.nodes)]


@dataclass
class Life:
    world: World
    rng: random.Random
    board: Board
    born: int = 0
    lost: set[str] = field(default_factory=set)
    shrunk: set[Key] = field(default_factory=set)
    whole: set[Key] = field(default_factory=set)  # groups that truly ran
    cycles: int = 0

    @classmethod
    def begun(cls, world: World, seed: int) -> Life:
        life = cls(world, random.Random(seed), Board(**world.settings))
        for queue in world.queues:
            life.view.set_queue(queue)
        for number in range(world.nodes):
            life.view.set_node(world.node(number))
        return life

    @property
    def view(self) -> ClusterView:
        return self.board.view

    # What happens

    def arrive(self) -> None:
        name = f"g{self.born:03}"
        self.born += 1
        group, pods = self.world.gang(self.rng, name, self.board.now)
        self.view.set_group(group)
        for pod in pods:
            self.view.set_pod(pod)

    def finish(self) -> None:
        running = [m for m in self.view.groups.values() if m.placed and m.is_whole]
        if running:
            self.board.finishes(self.rng.choice(sorted(running, key=lambda m: m.key)).key.name)

    def lose(self) -> None:
        number = self.rng.randrange(self.world.nodes)
        node = self.world.node(number)
        if node.name in self.lost:
            self.lost.discard(node.name)
            self.view.set_node(node)
        elif len(self.lost) < 2:
            self.lost.add(node.name)
            if self.rng.random() < 0.3:
                self.view.set_node(replace(node, unschedulable=True))
                return
            gone = self.view.pods_on(node.name)
            self.view.remove_node(node.name)
            for pod in gone:
                self.view.remove_pod(pod.key)
                self.again(pod)

    def again(self, pod: Pod) -> None:
        """The job makes the pod anew, if the job is still there."""
        members = self.view.groups.get(pod.group)
        if members is not None and members.known:
            fresh = replace(pod, node="", state=PodState.PENDING, uid=pod.uid + "'", since=0.0, devices=())
            self.view.set_pod(fresh)

    def pass_time(self) -> None:
        self.board.now += self.rng.choice((1, 1, 5, 40, 700))
        self.settle()

    def settle(self) -> None:
        """Bound pods run or were refused; leaving ones are gone and, unless their job was to shrink, made anew."""
        view = self.view
        for pod in sorted(view.pods.values(), key=lambda pod: pod.key):
            if pod.state is PodState.BOUND and self.rng.random() < 0.05:
                view.set_pod(replace(pod, node="", state=PodState.PENDING, devices=()))
            elif pod.state is PodState.BOUND:
                view.set_pod(replace(pod, state=PodState.RUNNING))
            elif pod.state is PodState.RELEASING:
                view.remove_pod(pod.key)
                if pod.key not in self.shrunk:
                    self.again(pod)
        for members in list(view.groups.values()):
            group = members.group
            # Binds were refused before the gang was whole: what the plan took for a start was none.
            if group.ran and members.placed and members.ready < group.min_member and members.key not in self.whole:
                view.set_group(replace(group, ran=False, phase=PodGroupPhase.INQUEUE))

    # One cycle, and what must hold after it

    def cycle(self) -> Plan:
        view = self.view
        before = {k: len(m.placed) for k, m in view.groups.items()}
        held = {name: dict(account.allocated) for name, account in view.accounts.items()}
        made = plan(view, self.board.now)
        if self.cycles % RETOLD_EVERY == 0:
            assert plan(retold(view, self.rng), self.board.now) == made, "the same cluster gave another plan"
        self.check_binds(made)
        view.assume(made, self.board.now)
        if self.cycles % REPEATED_EVERY == 0:
            self.check_wakes(made)
        self.check_gangs(made, before)
        self.check_closeness()
        self.check_room()
        self.check_ceilings(held)
        self.shrunk |= {eviction.pod for shrink in made.shrinks for eviction in shrink.evictions}
        self.whole |= {k for k, m in view.groups.items() if m.ready >= m.group.min_member and all_run(m)}
        self.cycles += 1
        return made

    def check_wakes(self, made: Plan) -> None:
        """What asks for no other plan, at once or at a moment, would get none that decides anything."""
        if made.again:
            return
        now = plan(self.view, self.board.now)
        assert not decides(now, made), "a plan that follows another decides something, and nothing asks for it"
        until = min(now.wake_at or float("inf"), self.board.now + 7200)
        assert not decides(plan(self.view, until - 0.001), now), "the mere time decides something, and nothing wakes"

    def check_binds(self, made: Plan) -> None:
        assert max(Counter(bind.pod for bind in made.binds).values(), default=1) == 1, "bound twice"
        pods = self.view.pods
        assert all(not pods[bind.pod].node and pods[bind.pod].uid == bind.uid for bind in made.binds)

    def check_gangs(self, made: Plan, before: dict[Key, int]) -> None:
        touched = {self.view.pods[e.pod].group for e in made.evictions} | {s.group for s in made.shrinks}
        for k, members in self.view.groups.items():
            now, least = len(members.placed), members.group.min_member
            if not before.get(k):
                assert now == 0 or members.is_whole, f"{k} newly stands half placed"
            if k in touched and before[k] >= least:
                assert now == 0 or members.is_whole, f"{k} was left broken"
            if 0 < now < least and not members.group.ran:
                since = min(pod.since for pod in members.placed.values())
                assert self.board.now - since < HOLD_SECONDS, f"{k} holds nodes without running"

    def check_closeness(self) -> None:
        for k, members in self.view.groups.items():
            closeness = members.group.closeness
            if closeness is not None and closeness.hard:
                nodes = {pod.node for pod in members.placed.values()}
                racks = {
                    node.labels[RACK] for node in self.view.resources.nodes if node is not None and node.name in nodes
                }
                assert len(racks) <= 1, f"{k} must be in one rack and is in {racks}"

    def check_room(self) -> None:
        for name, row in self.view.resources.rows.items():
            node, pods = self.view.resources.nodes[row], self.view.pods_on(name)
            assert node is not None
            for resource, whole in node.allocatable.items():
                used = sum(pod.requests.get(resource, 0) for pod in pods)
                assert used <= whole, f"{name} holds {used} {resource}"
            parts = Counter(dict.fromkeys(range(node.allocatable.get(GPU, 0) // 1000), 0))
            for pod in pods:
                parts.update(dict.fromkeys(pod.devices, pod.gpu_milli or 1000))
            assert all(used <= 1000 for used in parts.values()), f"a device of {name} is given twice: {parts}"

    def check_ceilings(self, held: dict[str, dict[str, int]]) -> None:
        has_parents = self.view.settings.sharing == "capacity"
        for queue in self.world.queues:
            family = [q.name for q in self.world.queues if q is queue or (has_parents and q.parent == queue.name)]
            for resource, most in queue.capability.items():
                now = sum(self.account(name).get(resource, 0) for name in family)
                was = sum(held.get(name, {}).get(resource, 0) for name in family)
                assert now <= max(most, was), f"queue {queue.name} holds {now} {resource}"

    def account(self, queue: str) -> dict[str, int]:
        found = self.view.accounts.get(queue)
        return found.allocated if found else {}

    # How it ends

    def rest(self) -> None:
        """Nothing comes and nobody ends: pods are made again, and yet plans have nothing more to change at last."""
        for _ in range(REST_CYCLES):
            self.pass_time()
            made = self.cycle()
            if not (made.binds or made.evictions or made.shrinks):
                return
        raise AssertionError(f"no rest: {made.evictions[:2]} {made.shrinks[:2]} {made.binds[:2]}")

    def return_nodes(self) -> None:
        for number in range(self.world.nodes):
            self.view.set_node(self.world.node(number))
        self.lost.clear()

    def stream(self) -> None:
        """Small gangs keep the cluster full without an end, and whoever came before the first of them starts."""
        self.return_nodes()
        view, first = self.view, self.board.now
        for _ in range(STREAM_ROUNDS):
            for _ in range(self.world.nodes):
                self.arrive_small()
            self.board.now += STREAM_SECONDS
            self.settle()
            self.cycle()
            ended = [m for m in view.groups.values() if m.placed and m.is_whole and self.is_over(m, first)]
            for members in sorted(ended, key=lambda m: m.key):
                self.board.finishes(members.key.name)
            if not self.stuck(first):
                return
        raise AssertionError(f"{self.stuck(first)} starved behind an endless stream")

    def arrive_small(self) -> None:
        """One pod, of no priority and in a queue of none, to be admitted by that."""
        queues = [queue.name for queue in self.world.queues if not queue.priority and queue.name != "dept"]
        self.born += 1
        group, pods = self.world.gang(self.rng, f"s{self.born:04}", self.board.now)
        pod = replace(pods[0], apart=(), ports=frozenset(), role="")
        group = replace(
            group,
            min_member=1,
            min_roles={},
            subgroups=(),
            closeness=None,
            queue=self.rng.choice(queues),
            priority=0,
            phase=PodGroupPhase.PENDING,
            inqueue_since=None,
            min_resources={name: amount for name, amount in pod.requests.items() if name != "pods"},
        )
        self.view.set_group(group)
        self.view.set_pod(pod)

    def is_over(self, members: Gang, first: float) -> bool:
        """Gangs from before the stream end at once, those of it after a while: not all at the same time."""
        since = min(pod.since for pod in members.placed.values())
        age = self.board.now - since
        return members.group.created < first or age >= STREAM_SECONDS * self.rng.randint(1, 4)

    def stuck(self, first: float) -> list[str]:
        old = [m for m in self.view.groups.values() if m.group.created <= first and m.waiting and not m.placed]
        return [m.key.name for m in old if m.key.name[0] == "g" and not m.missing() and self.runs_alone(m)]

    def drain(self) -> None:
        """All nodes are back and whoever runs ends: the next have their turn, until nobody is left who ever could."""
        self.return_nodes()
        for _ in range(3 * len(self.view.groups) + 20):
            for members in [m for m in self.view.groups.values() if m.placed and m.is_whole]:
                self.board.finishes(members.key.name)
            self.pass_time()
            self.cycle()
            if not any(members.waiting for members in self.view.groups.values()):
                return
        waiting = [m for m in self.view.groups.values() if m.waiting and not m.missing()]
        stuck = [members.key.name for members in waiting if self.runs_alone(members)]
        assert not stuck, f"{stuck} never ran"

    def runs_alone(self, members: Gang) -> bool:
        alone = Board(**self.world.settings)
        for queue in self.world.queues:
            alone.view.set_queue(queue)
        for number in range(self.world.nodes):
            alone.view.set_node(self.world.node(number))
        alone.view.set_group(replace(members.group, phase=PodGroupPhase.INQUEUE))
        for pod in members.waiting.values():
            alone.view.set_pod(pod)
        return bool(plan(alone.view, self.board.now).binds)


def decides(made: Plan, before: Plan) -> bool:
    phases = {verdict.group: verdict.phase for verdict in before.groups}
    turned = any(phases.get(verdict.group, verdict.phase) is not verdict.phase for verdict in made.groups)
    reserved = set(made.reservations) - set(before.reservations)  # one that ends where nobody waits helps nobody
    return bool(made.binds or made.evictions or made.shrinks or turned or reserved)


def all_run(members: Gang) -> bool:
    return all(pod.state is PodState.RUNNING for pod in members.placed.values())


def retold(view: ClusterView, rng: random.Random) -> ClusterView:
    """The same cluster, told in another order."""
    fresh = ClusterView(view.settings)
    tell: list[Callable[[], None]] = []
    tell += [lambda n=n: fresh.set_node(n) for n in view.resources.nodes if n is not None]
    tell += [lambda p=p: fresh.set_pod(p) for p in view.pods.values()]
    tell += [lambda m=m: fresh.set_group(m.group) for m in view.groups.values() if m.known and not m.lone]
    tell += [lambda q=q: fresh.set_queue(q) for q in view.queues.values()]
    rng.shuffle(tell)
    for say in tell:
        say()
    for k, members in view.groups.items():
        fresh.groups[k].nominated.update(members.nominated)
    fresh.nominated |= view.nominated
    fresh.reservations = dict(view.reservations)
    return fresh


def lived(world: World, seed: int) -> None:
    life = Life.begun(world, seed)
    happenings = [life.arrive, life.arrive, life.arrive, life.finish, life.finish, life.lose]
    for _ in range(CYCLES):
        life.rng.choice(happenings)()
        life.pass_time()
        life.cycle()
    life.rest()
    if seed % 8 < 6:  # parts of the test take every fourth seed
        life.drain()
    else:
        life.stream()


def seeds(plain: int) -> range:
    """So many of them in a plain run, always the same; more where SHOAL_LIVES asks for them."""
    return range(int(os.environ.get("SHOAL_LIVES", plain)))

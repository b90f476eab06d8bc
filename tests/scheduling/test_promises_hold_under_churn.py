"""What no sequence of arrivals, ends, failures and lost nodes may break: 104 lives of 100 cycles and more.

Gangs come and go, nodes vanish and return, binds fail, evicted pods are made again by their job. After every cycle:
no gang newly stands half placed, no node holds more than it has, no queue grows beyond its ceiling, no pod is bound
twice, victims leave their gang whole or gone, and a view built anew from the same objects gives the same plan. When
arrivals stop, everybody who can ever run has run.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from kit.gangs import RACK, Board, cores, key
from shoal.kube.objects import Key
from shoal.scheduling.groups import Closeness, Group, Phase, Queue
from shoal.scheduling.members import Members
from shoal.scheduling.planner import plan
from shoal.scheduling.planning import Plan
from shoal.scheduling.snapshot import Pod, State
from shoal.scheduling.view import ClusterView

CYCLES = 100
CORES = 4
NODES = [f"n{number}" for number in range(6)]
QUEUES = [
    Queue("default"),
    Queue("a", weight=1, capability=cores(cpu=10)),
    Queue("b", weight=3, guarantee=cores(cpu=3), deserved=cores(cpu=9)),
    Queue("c", weight=2, fifo=True, deserved=cores(cpu=8), reclaimable=False),
]
CAPABILITY = {queue.name: queue.capability["cpu"] for queue in QUEUES if queue.capability}


@dataclass
class Life:
    chance: random.Random
    board: Board
    born: int = 0
    lost: set[str] = field(default_factory=set)
    shrunk: set[Key] = field(default_factory=set)
    whole: set[Key] = field(default_factory=set)  # groups that truly ran
    cycles: int = 0

    @classmethod
    def begun(cls, seed: int, sharing: str) -> Life:
        life = cls(random.Random(seed), Board(sharing=sharing, tiers=(RACK,)))
        for queue in QUEUES:
            life.board.view.set_queue(queue)
        for name in NODES:
            life.put(name)
        return life

    def put(self, name: str) -> None:
        self.lost.discard(name)
        self.board.node(name, cpu=CORES, labels={RACK: f"r{int(name[1]) // 3}"})

    def arrive(self) -> None:
        chance, view = self.chance, self.board.view
        name = f"g{self.born:03}"
        self.born += 1
        pods = chance.randint(1, 5)
        group = Group(
            key(name),
            uid=name,
            created=self.board.now,
            min_member=chance.randint(1, pods),
            queue=chance.choice(QUEUES).name,
            priority=chance.choice((0, 0, 0, 1, 2)),
            phase=Phase.INQUEUE,
            inqueue_since=self.board.now,
            elastic=chance.random() < 0.3,
            guest=chance.random() < 0.1,
            closeness=Closeness(hard=chance.random() < 0.5) if chance.random() < 0.3 else None,
        )
        view.set_group(group)
        self.board.pods(name, range(pods), cpu=chance.randint(1, 3))

    def finish(self) -> None:
        running = [m for m in self.board.view.groups.values() if m.sitting and m.is_whole]
        if running:
            self.board.finishes(self.chance.choice(sorted(running, key=lambda m: m.key)).key.name)

    def lose(self) -> None:
        name = self.chance.choice(NODES)
        view = self.board.view
        if name in self.lost:
            self.put(name)
        elif len(self.lost) < 2:
            self.lost.add(name)
            gone = view.pods_on(name)
            view.remove_node(name)
            for pod in gone:
                view.remove_pod(pod.key)
                self.again(pod)

    def again(self, pod: Pod) -> None:
        """The job makes the pod anew, if the job is still there."""
        members = self.board.view.groups.get(pod.group)
        if members is not None and members.known:
            self.board.view.set_pod(replace(pod, node="", state=State.PENDING, uid=pod.uid + "'", since=0.0))

    def pass_time(self) -> None:
        """Bound pods run or were refused; leaving ones are gone and, unless their job was to shrink, made anew."""
        view = self.board.view
        self.board.now += self.chance.choice((1, 1, 5, 40, 700))
        for pod in sorted(view.pods.values(), key=lambda pod: pod.key):
            if pod.state is State.BOUND and self.chance.random() < 0.05:
                view.set_pod(replace(pod, node="", state=State.PENDING))
            elif pod.state is State.BOUND:
                view.set_pod(replace(pod, state=State.RUNNING))
            elif pod.state is State.RELEASING:
                view.remove_pod(pod.key)
                if pod.key not in self.shrunk:
                    self.again(pod)
        for members in view.groups.values():
            group = members.group
            if group.ran and members.sitting and members.ready < group.min_member and self.never_ran(members):
                view.set_group(replace(group, ran=False, phase=Phase.INQUEUE))

    def never_ran(self, members: Members) -> bool:
        """Binds were refused before the gang was whole: what the plan took for a start was none."""
        return members.key not in self.whole

    def cycle(self) -> Plan:
        view = self.board.view
        before = {k: len(m.sitting) for k, m in view.groups.items()}
        held = {name: dict(account.allocated) for name, account in view.accounts.items()}
        made = plan(view, self.board.now)
        if self.cycles % 10 == 0:
            assert plan(rebuilt(view, self.chance), self.board.now) == made, "the same cluster gave another plan"
        self.check_binds(made)
        view.assume(made, self.board.now)
        self.check_gangs(made, before)
        self.check_room(held)
        self.shrunk |= {pod for shrink in made.shrinks for pod in shrink.pods}
        self.whole |= {k for k, m in view.groups.items() if m.ready >= m.group.min_member and self.all_run(m)}
        self.cycles += 1
        return made

    def all_run(self, members: Members) -> bool:
        return all(pod.state is State.RUNNING for pod in members.sitting.values())

    def check_binds(self, made: Plan) -> None:
        assert max(Counter(bind.pod for bind in made.binds).values(), default=1) == 1, "bound twice"
        pods = self.board.view.pods
        assert all(not pods[bind.pod].node and pods[bind.pod].uid == bind.uid for bind in made.binds)

    def check_gangs(self, made: Plan, before: dict[Key, int]) -> None:
        touched = {self.board.view.pods[e.pod].group for e in made.evictions} | {s.group for s in made.shrinks}
        for k, members in self.board.view.groups.items():
            now, least = len(members.sitting), members.group.min_member
            if not before.get(k):
                assert now == 0 or now >= least, f"{k} newly stands half placed"
            if k in touched and before[k] >= least:
                assert now == 0 or now >= least, f"{k} was left broken"
            if 0 < now < least and not members.group.ran:
                since = min(pod.since for pod in members.sitting.values())
                assert self.board.now - since < 30, f"{k} holds nodes without running"

    def check_room(self, held: dict[str, dict[str, int]]) -> None:
        view = self.board.view
        for name in view.room.rows:
            used = sum(pod.requests["cpu"] for pod in view.pods_on(name))
            assert used <= CORES * 1000, f"{name} holds {used}"
        for name, most in CAPABILITY.items():
            now = view.accounts[name].allocated.get("cpu", 0) if name in view.accounts else 0
            assert now <= max(most, held.get(name, {}).get("cpu", 0)), f"queue {name} holds {now}"

    def drain(self) -> None:
        """No more arrivals, no more losses: whoever runs ends, and the next have their turn."""
        for name in sorted(self.lost):
            self.put(name)
        view = self.board.view
        for _ in range(3 * len(view.groups) + 20):
            for members in [m for m in view.groups.values() if m.sitting and m.is_whole]:
                self.board.finishes(members.key.name)
            self.pass_time()
            self.cycle()
            stuck = [members for members in view.groups.values() if members.waiting and can_ever_run(members)]
            if not stuck:
                return
        assert not stuck, f"{[m.key.name for m in stuck]} never ran"


def can_ever_run(members: Members) -> bool:
    """Small enough for the empty cluster, its rack, and its queue."""
    group = members.group
    if members.lack():
        return False
    cpu = max(pod.requests["cpu"] for pod in members.waiting.values())
    per_node = CORES * 1000 // cpu
    nodes = 3 if group.closeness is not None and group.closeness.hard else len(NODES)
    ceiling = min(CAPABILITY.get(group.queue, 10**9), len(NODES) * CORES * 1000 - (3000 if group.queue != "b" else 0))
    return group.min_member <= nodes * per_node and group.min_member * cpu <= ceiling


def rebuilt(view: ClusterView, chance: random.Random) -> ClusterView:
    """The same cluster, told in another order."""
    fresh = ClusterView(view.settings)
    tell = [lambda n=n: fresh.set_node(n) for n in view.room.nodes if n is not None]
    tell += [lambda p=p: fresh.set_pod(p) for p in view.pods.values()]
    tell += [lambda m=m: fresh.set_group(m.group) for m in view.groups.values() if m.known and not m.lone]
    tell += [lambda q=q: fresh.set_queue(q) for q in view.queues.values()]
    chance.shuffle(tell)
    for say in tell:
        say()
    for k, members in view.groups.items():
        fresh.groups[k].nominated.update(members.nominated)
    fresh.nominated |= view.nominated
    fresh.reservations = dict(view.reservations)
    return fresh


@pytest.mark.parametrize("first", range(0, 52, 13))  # in parts, so that several workers share the work
@pytest.mark.parametrize("sharing", ["proportion", "capacity"])
def test_promises_hold_whatever_comes(sharing: str, first: int) -> None:
    for seed in range(first, first + 13):
        lived(seed, sharing)


@pytest.mark.xfail(
    strict=True, reason="a plan of capacity sharing still depends on the order in which things were told"
)
def test_a_life_that_still_breaks_a_promise() -> None:
    lived(67, "capacity")


def lived(seed: int, sharing: str) -> None:
    life = Life.begun(seed, sharing)
    happenings = [life.arrive, life.arrive, life.arrive, life.finish, life.finish, life.lose]
    for _ in range(CYCLES):
        life.chance.choice(happenings)()
        life.pass_time()
        life.cycle()
    life.drain()

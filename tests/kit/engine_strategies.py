"""Random lives of a job: scripts of fates and wishes that hypothesis draws, and the worlds they are played in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from kit.engine_jobs import batch, elastic, fc_role, framework, paused, replica_set, resized, t9, volcano
from kit.engine_world import LOST_LEDGER, World
from shoal.engine import Command, Job, ObservedPod, Refused, TaskRef
from shoal.engine.policies import CompletionsSize, Memory, Rendezvous, WeightedSize


def a_framework() -> Job:
    return framework(
        fc_role("a", 3, task=(True, 1), force=30), fc_role("b", 2), rules={"a": (2, 3), "b": (2, -1)}, run=(True, 1)
    )


def a_training_job() -> Job:
    job = t9(4, deadline=600)
    return replace(job, policies=replace(job.policies, rendezvous=Rendezvous(published=True)))


JOBS: dict[str, Callable[[], Job]] = {
    "framework": a_framework,
    "training job": a_training_job,
    "volcano": volcano,
    "elastic": elastic,
    "batch": batch,
    "batch by index": lambda: batch(indexed=True),
    "replica set": replica_set,
}

CODES = (0, 1, 137, 200, 201, 210)


@dataclass(frozen=True)
class Move:
    """One thing that happens. `pick` chooses among the pods that are there; `crash` is where the next pass dies."""

    what: str
    pick: int = 0
    amount: int = 0
    crash: int | None = None
    passes: int = 1


FATES = ("run", "run", "run all", "exit", "exit", "leave", "reap", "reap", "ask")
WISHES = ("resize", "tick", "anchor", "command", "hold", "stop")
ACCIDENTS = ("refuse", "lose", "foreign", "stall")  # an answer lost with the operator changes what they come to


def moves(*what: str) -> st.SearchStrategy[Move]:
    return st.builds(
        Move,
        what=st.sampled_from(what),
        pick=st.integers(0, 9),
        amount=st.integers(0, 5),
        crash=st.one_of(st.none(), st.none(), st.integers(LOST_LEDGER, 6)),
        passes=st.integers(1, 3),
    )


LIVES = st.lists(moves(*FATES, *WISHES), max_size=12)
LIVES_WITH_ACCIDENTS = st.lists(moves(*FATES, *WISHES, *ACCIDENTS), max_size=25)


def play(world: World, move: Move) -> None:
    """The move, then passes with the crash in the first of them."""
    happen(world, move)
    world.step(crash_after=move.crash)
    for _ in range(move.passes - 1):
        world.step()


def happen(world: World, move: Move) -> None:
    names = sorted(world.pods, key=lambda name: _looks(world.pods[name]))
    name = names[move.pick % len(names)] if names else None
    if move.what == "run all":
        world.run()
    elif move.what == "tick":
        world.tick(move.amount * 60)
    elif move.what == "resize":
        _resize(world, move)
    elif move.what == "hold":
        world.edit(lambda job: paused(job, move.amount % 2 == 0) if job.name in ("t9", "batch") else job)
    elif move.what == "stop":
        world.edit(lambda job: replace(job, stop=job.stop or (job.name == "fw" and move.amount > 3)))
    elif move.what in ACCIDENTS:
        _accident(world, move)
    elif move.what == "anchor" and world.run_owner is not None and not world.run_owner.leaving and move.amount > 3:
        world.delete_anchor()
    elif move.what == "command" and world.job.policies.commands:
        words = sorted(world.job.policies.commands)
        world.commands.append(Command(f"cmd-{len(world.steps)}", words[move.pick % len(words)]))
    elif name is not None:
        _befall(world, name, move)


REFUSALS = (
    Refused(TaskRef("", 0), 422, "invalid"),
    Refused(TaskRef("", 0), 403, "forbidden"),
    Refused(TaskRef("", 0), 403, "exceeded quota"),
    Refused(TaskRef("", 0), 500, "down"),
    Refused(TaskRef("", 0), 0, "connection lost"),
)


def _accident(world: World, move: Move) -> None:
    """The next create of some task is refused, or its body vanishes unseen; a foreign pod; a pod that will not go."""
    role = world.job.roles[move.pick % len(world.job.roles)]
    ref = TaskRef(role.name, move.amount % 3)
    if move.what == "refuse":
        world.refusals[ref] = REFUSALS[move.pick % len(REFUSALS)]
    elif move.what == "lose":
        world.lost_creates.add(ref)
    elif move.what == "foreign" and str(ref) not in world.pods:
        world.pods[str(ref)] = ObservedPod(
            f"foreign-{len(world.steps)}", str(ref), role.name, ref.index, owned=False, created=world.now
        )
    elif move.what == "stall" and world.pods:
        name = sorted(world.pods)[move.pick % len(world.pods)]
        world.leave(name)
        world.tick(move.amount * 20)


def _looks(pod: ObservedPod) -> tuple[object, ...]:
    """An order that does not depend on uids, so that a script means the same in a world where somebody died."""
    return (pod.role, -1 if pod.index is None else pod.index, pod.phase.name, pod.leaving, pod.created, pod.name)


def _befall(world: World, name: str, move: Move) -> None:
    pod = world.pods[name]
    if move.what == "run":
        world.run(name)
    elif move.what == "exit" and not pod.is_finished:
        world.exits(name, CODES[move.amount])
    elif move.what == "leave":
        world.leave(name)
    elif move.what == "ask":
        world.ask(*sorted(world.pods)[: move.amount + 1])
    elif move.what == "reap":
        world.reap(name)


def _resize(world: World, move: Move) -> None:
    job = world.job
    role = job.roles[move.pick % len(job.roles)]
    if isinstance(job.policies.size, CompletionsSize):
        size = replace(job.policies.size, parallelism=move.amount)
        world.edit(lambda job: replace(job, policies=replace(job.policies, size=size)))
    else:
        world.edit(lambda job: _possible(resized(job, **{role.name: max(move.amount, 1)})))


def _possible(job: Job) -> Job:
    """With a minimum that it can reach, as every job has that was let in."""
    if job.minimum is None or isinstance(job.policies.size, WeightedSize):
        return job
    return replace(job, minimum=min(job.minimum, sum(role.size for role in job.roles)))


def _tasks(world: World) -> dict[str, object]:
    """Records whole where the ledger is the record; else those that say something, and how many live."""
    recorded = world.job.policies.pod_policy.memory is Memory.RECORD
    told: dict[str, object] = {}
    living = 0
    for role in world.state.roles:
        for task in role.tasks:
            if recorded or task.is_done:
                code = None if task.outcome is None else task.outcome.code
                told[f"{role.name}-{task.index}"] = (task.stage.name, task.dropped, task.charged, code)
            else:
                living += 1
    return {**told, "living": living if world.state.run.is_open else 0}


def summary(world: World) -> dict[str, object]:
    """What must come out the same however often the operator died on the way."""
    state = world.state
    outcome = state.run.outcome
    return {
        "run": (state.run.number, state.run.stage.name, state.run.intent),
        "outcome": None if outcome is None else (outcome.failure_class, outcome.code, outcome.phrase, outcome.trigger),
        "charges": dict(state.charges),
        "tasks": _tasks(world),
        "counts": {role.name: (role.ok_count, role.bad_count) for role in state.roles},
        "pods": sorted(
            (pod.role, -1 if pod.index is None else pod.index, pod.phase.name) for pod in world.pods.values()
        ),
        "anchor": world.run_owner is not None,
        "groups": sorted(world.groups),
        "companions": sorted(map(str, world.owned_objects)),
    }

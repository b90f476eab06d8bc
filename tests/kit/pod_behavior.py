"""What becomes of a pod's process, written once for two kinds of node.

A fate goes into the pod template twice: as an annotation that the fake kubelet of the simulated cluster reads, and as
a shell script that a real node runs. Rules may depend on the task's index and attempt, and on the Framework's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from shoal.cluster.client import LogOptions
from shoal.kube.objects import Obj, annotations_of, labels_of

if TYPE_CHECKING:
    from kit.scenario import World

ANNOTATION = "kit.shoal.dev/fate"
REAL_SECONDS = 0.2  # a second of a scenario, with real processes


@dataclass(frozen=True)
class Fate:
    code: int = 0
    after: float | None = 1.0  # seconds; None: until it is told to go
    leaves_after: float = 0.0  # how long it takes to go once told
    leaves_with: int = 143
    held: str = ""  # the folder whose end real processes await, instead of `after` or `leaves_after`
    unplaced: bool = False  # no node has room for it
    barrier_seconds: float | None = None  # how long it waits behind the barrier at most, before it begins
    message: str = ""  # its last words
    reason: str = ""  # of the container, instead of Completed or Error
    pod_reason: str = ""  # the pod fails with that reason, without any container


def exits(code: int = 0, after: float = 1.0, **more: Any) -> Fate:
    return Fate(code=code, after=after, **more)


def runs(**more: Any) -> Fate:
    return Fate(after=None, **more)


@contextmanager
def holding() -> Iterator[str]:
    """What `held` takes: real processes with that fate neither end nor leave before the test has left this block.

    Simulated ones go by their seconds all the same: on a virtual clock nothing else takes its time.
    """
    with TemporaryDirectory() as folder:
        yield folder


async def would_take_its_time(world: World, *pods: str) -> None:
    """Until real processes that leave in their own way would do so: told earlier, they are gone at once."""
    for pod in pods if world.has_processes else ():
        async for _ in world.user.logs(pod, world.namespace, LogOptions(container="main", follow=True)):
            break


@dataclass(frozen=True)
class Rule:
    fate: Fate
    index: int | None = None
    attempt: int | None = None
    run: int | None = None  # of the Framework

    def fits(self, index: int, attempt: int, run: int) -> bool:
        return self.index in (None, index) and self.attempt in (None, attempt) and self.run in (None, run)


def pod_with(*rules: Rule, **spec: Any) -> Obj:
    """A pod template; the first rule that fits decides."""
    container = {"name": "main", "image": "scenario", "command": ["sh", "-c", script(rules)]}
    return {
        "metadata": {"annotations": {ANNOTATION: json.dumps([asdict(rule) for rule in rules])}},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 30, "containers": [container], **spec},
    }


def fate_of(pod: Obj) -> Fate:
    stamps = {**labels_of(pod), **annotations_of(pod)}
    place = [int(next((stamps[key] for key in keys if key in stamps), 0)) for keys in _STAMPS]
    return next((rule.fate for rule in _rules(stamps.get(ANNOTATION, "[]")) if rule.fits(*place)), runs())


# Index, attempt and run, as each job language writes them down.
_STAMPS = (
    ("FC_TASK_INDEX", "volcano.sh/task-index", "shoal.dev/slot", "shoal.dev/index"),
    ("FC_TASK_ATTEMPT_ID", "batch.kubernetes.io/job-index-failure-count", "shoal.dev/restarts"),
    ("FC_FRAMEWORK_ATTEMPT_ID", "volcano.sh/job-version"),
)


@cache
def _rules(written: str) -> list[Rule]:
    return [Rule(Fate(**rule.pop("fate")), **rule) for rule in json.loads(written)]


def script(rules: tuple[Rule, ...]) -> str:
    cases = [f"{_glob(rule.index)}/{_glob(rule.attempt)}/{_glob(rule.run)}) {_body(rule.fate)} ;;" for rule in rules]
    place = "$FC_TASK_INDEX/$FC_TASK_ATTEMPT_ID/$FC_FRAMEWORK_ATTEMPT_ID"
    return f'case "{place}" in ' + " ".join(cases) + " esac"


def _glob(number: int | None) -> str:
    return "*" if number is None else str(number)


def _body(fate: Fate) -> str:
    if fate.after is None:
        if (fate.leaves_after, fate.leaves_with) == (0.0, 143):
            return "exec sleep 100000"
        leave = f"{_wait(fate, fate.leaves_after)}; exit {fate.leaves_with}"
        return f"trap '{leave}' TERM; echo ready; sleep 100000 & wait"
    words = f"echo '{fate.message}' >&2; " if fate.message else ""
    return f"{_wait(fate, fate.after)}; {words}exit {fate.code}"


def _wait(fate: Fate, seconds: float) -> str:
    return f"while [ -e {fate.held} ]; do sleep 0.1; done" if fate.held else f"sleep {seconds * REAL_SECONDS:g}"

"""What becomes of a pod's process, written once for two kinds of node.

A fate goes into the pod template twice: as an annotation that the fake kubelet of the simulated cluster reads, and as
a shell script that a real node runs. Rules may depend on the task's index and attempt.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from shoal.kube.objects import Obj, annotations_of

ANNOTATION = "kit.shoal.dev/fate"
REAL_SECONDS = 0.2  # a second of a scenario, with real processes


@dataclass(frozen=True)
class Fate:
    code: int = 0
    after: float | None = 1.0  # seconds; None: until it is told to go
    leaves_after: float = 0.0  # how long it takes to go once told
    leaves_with: int = 143
    stuck: bool = False  # its node never answers a deletion
    unplaced: bool = False  # no node has room for it
    message: str = ""  # its last words
    reason: str = ""  # of the container, instead of Completed or Error
    pod_reason: str = ""  # the pod fails with that reason, without any container


def exits(code: int = 0, after: float = 1.0, **more: Any) -> Fate:
    return Fate(code=code, after=after, **more)


def runs(**more: Any) -> Fate:
    return Fate(after=None, **more)


@dataclass(frozen=True)
class Rule:
    fate: Fate
    index: int | None = None
    attempt: int | None = None

    def fits(self, index: int, attempt: int) -> bool:
        return self.index in (None, index) and self.attempt in (None, attempt)


def pod_with(*rules: Rule, **spec: Any) -> Obj:
    """A pod template; the first rule that fits decides."""
    container = {"name": "main", "image": "scenario", "command": ["sh", "-c", script(rules)]}
    return {
        "metadata": {"annotations": {ANNOTATION: json.dumps([asdict(rule) for rule in rules])}},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 30, "containers": [container], **spec},
    }


def fate_of(pod: Obj) -> Fate:
    stamps = annotations_of(pod)
    index, attempt = int(stamps.get("FC_TASK_INDEX", 0)), int(stamps.get("FC_TASK_ATTEMPT_ID", 0))
    for written in json.loads(stamps.get(ANNOTATION, "[]")):
        rule = Rule(Fate(**written["fate"]), written["index"], written["attempt"])
        if rule.fits(index, attempt):
            return rule.fate
    return runs()


def script(rules: tuple[Rule, ...]) -> str:
    cases = [f"{_glob(rule.index)}/{_glob(rule.attempt)}) {_body(rule.fate)} ;;" for rule in rules]
    return 'case "$FC_TASK_INDEX/$FC_TASK_ATTEMPT_ID" in ' + " ".join(cases) + " esac"


def _glob(number: int | None) -> str:
    return "*" if number is None else str(number)


def _body(fate: Fate) -> str:
    if fate.after is None:
        if (fate.leaves_after, fate.leaves_with) == (0.0, 143):
            return "exec sleep 100000"
        leave = f"sleep {fate.leaves_after * REAL_SECONDS:g}; exit {fate.leaves_with}"
        return f"trap '{leave}' TERM; sleep 100000 & wait"
    words = f"echo '{fate.message}' >&2; " if fate.message else ""
    return f"sleep {fate.after * REAL_SECONDS:g}; {words}exit {fate.code}"

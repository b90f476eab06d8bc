"""Kueue: a Workload stands for the gang, and no pod is made before it is admitted.

Kueue could also be left to find the pods by itself, by their labels. It then keeps each pod that ended until another
took its place, which pods that are called by their index never can; and it takes away whoever comes beyond the count
it was first told. So the job waits as a whole, as jobs that Kueue knows do while they are suspended: it is admitted
with all its pods, and when its quota is taken back the run ends and queues again, at no cost of a retry.

The sets of a Workload cannot change once it is admitted. Each size of a gang is therefore a Workload of its own, which
names the one it takes over from: Kueue counts the difference where it knows slices, and both until the old one goes
where it does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.dialects.backends.backend import Backend, Standing, told, use_scheduler
from shoal.dialects.backends.gang import Gang, Part
from shoal.engine.policies import Opens
from shoal.kube.conditions import is_true
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj
from shoal.kube.patching.values import clone

GROUP = "kueue.x-k8s.io"
VERSIONS = ("v1beta2", "v1beta1")  # newest first; what is written here is the same in both
QUEUE_NAME = f"{GROUP}/queue-name"
ELASTIC = f"{GROUP}/elastic-job"
TAKES_OVER = f"{GROUP}/workload-slice-replacement-for"
MOST_SETS = 8


def workload(version: str) -> Kind:
    return Kind(GROUP, version, "Workload", "workloads", subresources=frozenset({"status"}))


def spec(gang: Gang) -> Obj:
    return {
        "queueName": gang.labels.get(QUEUE_NAME) or gang.queue,
        "podSets": [_pod_set(part) for part in gang.parts if part.size],
    }


def _pod_set(part: Part) -> Obj:
    """Only what counts for admission; of a template's metadata Kueue takes labels and annotations alone."""
    written = part.template.get("metadata") or {}
    kept = {key: clone(written[key]) for key in ("labels", "annotations") if written.get(key)}
    template: Obj = {"spec": clone(part.template.get("spec") or {})}
    return {"name": part.role, "count": part.size, "template": template | ({"metadata": kept} if kept else {})}


def standing(obj: Obj) -> Standing:
    if is_true(obj, "Evicted"):
        return Standing(evicted=True, why=told(obj, "Evicted"))
    if is_true(obj, "Admitted"):
        return Standing(admitted=True)
    if is_true(obj, "QuotaReserved"):
        return Standing(why=told(obj, "Admitted") or "its quota is reserved, and checks are under way")
    return Standing(why=told(obj, "QuotaReserved") or "Kueue has not looked at it yet")


def refuses(gang: Gang) -> str:
    count = sum(1 for part in gang.parts if part.size)
    if count > MOST_SETS:
        return f"Kueue takes at most {MOST_SETS} kinds of pods in one gang, and this one has {count}: join some of them"
    return ""


def leaves_out(gang: Gang) -> tuple[str, ...]:
    return tuple(_unsaid(gang))


def _unsaid(gang: Gang) -> Iterator[str]:
    if gang.least < sum(part.size for part in gang.parts):
        yield "that fewer pods would do: it waits for the quota of all"
    if gang.priority_class:
        yield f"its priority class {gang.priority_class}"
    if gang.topology is not None or any(part.partition_size for part in gang.parts):
        yield "how near to each other its pods have to be"


def kueue(scheduler: str = "", version: str = "") -> Backend:
    def join(pod: Obj, _: Gang) -> None:
        use_scheduler(pod, scheduler)

    return Backend(
        "kueue", scheduler, workload(version or VERSIONS[0]), spec, standing, join,
        opens=Opens.ADMITTED, takes_over=TAKES_OVER, evicts=True, notes={ELASTIC: "true"},
        refuses=refuses, leaves_out=leaves_out,
    )  # fmt: skip

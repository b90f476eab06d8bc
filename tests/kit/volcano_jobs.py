"""Volcano Jobs in the notation of the acceptance scenarios: vcjob(tasks; policies, minima, plugins)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kit.pod_behavior import Fate, Rule, exits, pod_with
from shoal.kube.objects import Obj

# What the scripts of kit.pod_behavior look at, from what the controller writes on the pod.
_PLACE = [
    {
        "name": "FC_TASK_INDEX",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['volcano.sh/task-index']"}},
    },
    {"name": "FC_TASK_ATTEMPT_ID", "value": "0"},
    {
        "name": "FC_FRAMEWORK_ATTEMPT_ID",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['volcano.sh/job-version']"}},
    },
]


def policy(event: str | int, action: str, timeout: str | None = None) -> Obj:
    """An event, several as "A,B", or an exit code."""
    made: Obj = {"action": action}
    if isinstance(event, int):
        made["exitCode"] = event
    elif "," in event:
        made["events"] = event.split(",")
    else:
        made["event"] = event
    return made | ({"timeout": timeout} if timeout else {})


def task(
    name: str = "worker",
    replicas: int = 1,
    *,
    least: int | None = None,
    fate: Fate | None = None,
    of: Mapping[int, Fate] | None = None,
    in_runs: Mapping[int, Fate] | None = None,
    policies: list[Obj] | None = None,
    after: list[str] | None = None,
    requests: Mapping[str, str] | None = None,
    pod: Obj | None = None,
    **more: Any,
) -> Obj:
    """Fates of their own: `of` for single pods, `in_runs` for versions of the job. `pod` adds to the pod's spec."""
    rules = [Rule(each, run=run) for run, each in (in_runs or {}).items()]
    rules += [Rule(each, index=index) for index, each in (of or {}).items()]
    template = pod_with(*rules, Rule(fate or exits(0)), **(pod or {}))
    container = template["spec"]["containers"][0]
    container["env"] = list(_PLACE)
    if requests:
        container["resources"] = {"requests": dict(requests)}
    made: Obj = {"name": name, "replicas": replicas, "template": template, **more}
    if least is not None:
        made["minAvailable"] = least
    if policies:
        made["policies"] = policies
    if after:
        made["dependsOn"] = {"name": after}
    return made


def vcjob(name: str, *tasks: Obj, annotations: Mapping[str, str] | None = None, **spec: Any) -> Obj:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, **({"annotations": dict(annotations)} if annotations else {})},
        "spec": {"tasks": list(tasks), **spec},
    }

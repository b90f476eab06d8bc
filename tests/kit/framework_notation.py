"""Frameworks in the notation of the acceptance scenarios: FW(retry; role: n, F/S, task retry, grace, container)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kit.frameworks import role as plain_role
from kit.pod_behavior import Fate, Rule, exits, pod_with
from shoal.kube.objects import Obj


def role(
    name: str = "worker",
    number: int = 1,
    failed: int = 1,
    ok: int = -1,
    *,
    retry: tuple[bool, int] = (False, 0),
    grace: int | None = None,
    fate: Fate | None = None,
    of: Mapping[int, Fate] | None = None,
    attempts: Mapping[int, Fate] | None = None,
    in_runs: Mapping[int, Fate] | None = None,
    **spec: Any,
) -> Obj:
    """Fates of their own: `of` for single tasks, `attempts` for attempts of any task, `in_runs` of the Framework."""
    rules = [Rule(each, index=index) for index, each in (of or {}).items()]
    rules += [Rule(each, attempt=attempt) for attempt, each in (attempts or {}).items()]
    rules += [Rule(each, run=run) for run, each in (in_runs or {}).items()]
    pod = pod_with(*rules, Rule(fate or exits(0)), **spec)
    return plain_role(name, number, failed, ok, retry=retry, grace=grace, pod=pod)


def fw(name: str, *roles: Obj, retry: tuple[bool, int] = (False, 0), start: str = "Start") -> Obj:
    return {
        "apiVersion": "frameworkcontroller.microsoft.com/v1",
        "kind": "Framework",
        "metadata": {"name": name},
        "spec": {
            "executionType": start,
            "retryPolicy": {"fancyRetryPolicy": retry[0], "maxRetryCount": retry[1]},
            "taskRoles": list(roles),
        },
    }

"""Small valid objects of each kind, and a way to change one place in them.

A test names only what it is about: `changed(pod(), {"spec.containers[0].name": "A_b"})`. The value GONE
takes a field away.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from shoal.kube.objects import Obj

GONE = object()
_STEP = re.compile(r"\[(\d+)\]|\[([^]]+)\]|([^.\[\]]+)")


def changed(obj: Obj, changes: Mapping[str, Any]) -> Obj:
    """A copy with the value at each path replaced; steps that are missing are made."""
    result = copy.deepcopy(obj)
    for path, value in changes.items():
        _put(result, _steps(path), copy.deepcopy(value) if value is not GONE else GONE)
    return result


def _steps(path: str) -> list[str | int]:
    return [int(index) if index else key or name for index, key, name in _STEP.findall(path)]


def _put(obj: Any, steps: list[str | int], value: Any) -> None:
    here = obj
    for step, following in pairwise(steps):
        here = _below(here, step, [] if isinstance(following, int) else {})
    last = steps[-1]
    if value is GONE:
        del here[last]
    elif isinstance(here, list) and last == len(here):
        here.append(value)
    else:
        here[last] = value


def _below(here: Any, step: str | int, empty: Any) -> Any:
    if isinstance(here, list):
        if step == len(here):
            here.append(empty)
        return here[step]
    return here.setdefault(step, empty)


def _named(name: str, **more: Any) -> Obj:
    return {"metadata": {"name": name, "namespace": "default"}, **more}


def pod(name: str = "web") -> Obj:
    return _named(name, spec={"containers": [{"name": "main", "image": "python:3.11"}]})


def service(name: str = "web") -> Obj:
    return _named(name, spec={"selector": {"app": "web"}, "ports": [{"port": 80}]})


def config_map(name: str = "settings") -> Obj:
    return _named(name, data={"mode": "fast"})


def secret(name: str = "keys") -> Obj:
    return _named(name, data={"token": "c2VjcmV0"})


def service_account(name: str = "robot") -> Obj:
    return _named(name)


def claim(name: str = "data") -> Obj:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return _named(name, spec=spec)


def endpoints(name: str = "web") -> Obj:
    return _named(name, subsets=[{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}])


def endpoint_slice(name: str = "web-1") -> Obj:
    return _named(name, addressType="IPv4", endpoints=[{"addresses": ["10.1.2.3"]}], ports=[{"port": 80}])


def lease(name: str = "node-1") -> Obj:
    return _named(name, spec={"holderIdentity": "node-1", "leaseDurationSeconds": 40})


def event(name: str = "web.1") -> Obj:
    about = {"kind": "Pod", "namespace": "default", "name": "web"}
    return _named(name, involvedObject=about, reason="Started", message="Started", type="Normal")


def event_v1(name: str = "web.1") -> Obj:
    return _named(
        name,
        regarding={"kind": "Pod", "namespace": "default", "name": "web"},
        eventTime="2026-11-16T04:12:00.000000Z",
        reason="Started",
        action="Starting",
        note="Started",
        type="Normal",
        reportingController="shoal.dev/node",
        reportingInstance="node-1",
    )


def namespace(name: str = "team") -> Obj:
    return {"metadata": {"name": name}}


def node(name: str = "node-1") -> Obj:
    return {"metadata": {"name": name}}


def volume(name: str = "disk") -> Obj:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/srv/disk"}}
    return {"metadata": {"name": name}, "spec": spec}


def priority_class(name: str = "urgent") -> Obj:
    return {"metadata": {"name": name}, "value": 1000}


def definition() -> Obj:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "boats", "kind": "Boat"}
    spec = {"group": "sea.dev", "names": names, "scope": "Namespaced", "versions": [version]}
    return {"metadata": {"name": "boats.sea.dev"}, "spec": spec}

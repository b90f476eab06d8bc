"""The barrier's condition: every task of the Framework has an address; and the list of the addresses.

The containers of a gang start together or not at all: an init container waits until every task's pod has an IP, then
writes a script that gives the application its peers' addresses. Task state is irrelevant: a task that is already done
still counts by the address it had. Tasks that are scaled away do not count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from shoal.dialects.framework.compression import unpacked
from shoal.kube.objects import Obj, at_path

FRAMEWORK_FILE = "framework.json"
INJECTOR_FILE = "injector.sh"

PASSED = 0
FAILED = 1  # any unexpected error: the last read failed, the files could not be written
TIMED_OUT = 201  # transient and a conflict: all pods are released, and tried again after a random delay
HOPELESS = 210  # permanent: no such Framework, or the environment is wrong


@dataclass(frozen=True, slots=True)
class Progress:
    """How many tasks have an address, of how many."""

    known: int
    wanted: int

    @property
    def is_passed(self) -> bool:
        return self.known >= self.wanted

    def __str__(self) -> str:
        return f"{self.known} of {self.wanted} tasks have an address"


def progress(framework: Obj) -> Progress:
    known = sum(len(found) for found in addresses(framework).values())
    return Progress(known, sum(size for _, size in _roles(framework)))


def addresses(framework: Obj) -> dict[str, list[str]]:
    """The known addresses of every role of the spec, in the order of its tasks."""
    status = unpacked(framework.get("status"))
    roles = at_path(status or {}, "attemptStatus", "taskRoleStatuses", default=())
    tasks = {role.get("name"): role.get("taskStatuses") or () for role in roles}
    return {
        name: [
            ip
            for task in tasks.get(name, ())[:size]
            if not task.get("deletionPending") and (ip := at_path(task, "attemptStatus", "podIP", default=""))
        ]
        for name, size in _roles(framework)
    }


def _roles(framework: Obj) -> Iterator[tuple[str, int]]:
    for role in at_path(framework, "spec", "taskRoles", default=()):
        yield role["name"], role.get("taskNumber") or 0


def framework_json(framework: Obj) -> str:
    """The whole object, with its task statuses in the clear."""
    shown = dict(framework)
    if framework.get("status"):
        shown["status"] = unpacked(framework["status"])
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False) + "\n"


def injector(framework: Obj) -> str:
    """A script to be sourced. Ports are the caller's: FB_WORKER_PORT is filled in when it is sourced."""
    found = addresses(framework)
    lines = ["#!/bin/sh"]
    for role, ips in found.items():
        lines += _exported(f"FB_{role.upper()}_IPS", ",".join(ips))
    for role, ips in found.items():
        name = f"FB_{role.upper()}"
        lines += _exported(f"{name}_ADDRESSES", ",".join(f"{ip}:${{{name}_PORT}}" for ip in ips))
    return "\n".join(lines) + "\n"


def _exported(name: str, value: str) -> tuple[str, str]:
    return f"export {name}={value}", f'echo "{name}=${{{name}}}"'

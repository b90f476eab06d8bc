"""What this machine allows a node to do, and the cost where it does not.

`run_checks` is for people (`shoal doctor`): it tries things out in a child process that is thrown away, looks at the
rest, takes well under a second and leaves nothing behind.
"""

from __future__ import annotations

import json
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import shoal
from shoal.node.sandbox import cgroups, feature_probe

_PROBE_SCRIPT = (
    "import sys, json; sys.path.append(sys.argv[1]); from shoal.node.sandbox import feature_probe; "
    "print(json.dumps(feature_probe.probe_features()))"
)
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - looked at, never written to
_ENOUGH_DESCRIPTORS = 4096
_ENOUGH_SHARED_MEMORY = 1 << 30
_OLDEST_SQLITE = (3, 35, 0)


@dataclass(frozen=True, slots=True)
class Finding:
    """One result for the user. `cost` is what is lost where it does not work; '' where nothing is."""

    name: str
    works: bool
    detail: str
    cost: str = ""


def probe_host(python: str = sys.executable) -> Mapping[str, Any]:
    """The result of the trial (see `sandbox.feature_probe`), made in a process of its own: a trial forks, and this one
    may have threads."""
    root = str(Path(shoal.__file__).parents[1])
    done = subprocess.run([python, "-I", "-S", "-c", _PROBE_SCRIPT, root], capture_output=True, check=True, timeout=30)
    allowed: Mapping[str, Any] = json.loads(done.stdout)
    return allowed


def run_checks() -> list[Finding]:
    allowed = probe_host()
    return [
        check_namespaces(allowed),
        check_mounts(allowed),
        check_networks(allowed),
        check_egress(allowed),
        *check_limits(),
        check_gpus(),
        check_shared_memory(),
        check_descriptors(),
        check_sqlite(),
    ]


def check_namespaces(allowed: Mapping[str, Any]) -> Finding:
    name = "namespaces"
    match allowed["privilege"]:
        case feature_probe.ROOT:
            return Finding(name, True, "created directly, as root")
        case feature_probe.USER:
            return Finding(name, True, "made inside a user namespace; no root needed")
    reason = namespace_obstacle() or allowed["detail"]
    return Finding(
        name,
        False,
        reason,
        "pods run as plain processes: they share the machine's hostname, hosts file and folders",
    )


def namespace_obstacle() -> str:
    """Settings known to forbid user namespaces, each with the way to allow them."""
    for setting, forbids, remedy in (
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("kernel/unprivileged_userns_clone", "0", "sudo sysctl kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "sudo sysctl user.max_user_namespaces=15000"),
    ):
        try:
            value = Path("/proc/sys", setting).read_text().strip()
        except OSError:
            continue
        if value == forbids:
            return f"{setting.replace('/', '.')} is {value}, which forbids user namespaces. To allow them: {remedy}"
    return ""


def check_mounts(allowed: Mapping[str, Any]) -> Finding:
    if allowed["mounts"]:
        return Finding("mounts", True, "volumes appear at any path, also where the folder does not exist here")
    return Finding(
        "mounts",
        False,
        allowed["detail"],
        "volumes cannot be shown at their mountPath: pods with volumes fail with a message",
    )


def check_networks(allowed: Mapping[str, Any]) -> Finding:
    if allowed["network"]:
        return Finding("pod networks", True, "every pod has a network of its own on a bridge of the cluster")
    return Finding(
        "pod networks",
        False,
        allowed["network_detail"],
        "pods share the machine's network with a 127.x.y.z address each: a program that listens on all addresses "
        "(0.0.0.0) takes the port from every other pod; have it listen on its pod's address",
    )


def check_egress(allowed: Mapping[str, Any]) -> Finding:
    if not allowed["network"]:
        return Finding("egress", True, "pods use the machine's own network")
    if allowed["redirect"]:
        return Finding(
            "egress",
            True,
            "any TCP connection and any name, by a process of the cluster; your proxy settings are honoured",
            "UDP other than names does not leave the cluster: pods that need it set hostNetwork: true",
        )
    return Finding(
        "egress",
        True,
        f"HTTP and HTTPS by a proxy in the pods' environment (http_proxy, https_proxy); "
        f"the packet filter cannot be used: {allowed['redirect_detail']}",
        "other protocols do not leave the cluster: pods that need them set hostNetwork: true",
    )


_LIMITS = (
    (
        cgroups.MEMORY,
        "memory limits",
        "memory limits are not enforced; a pod killed because the machine is out of memory is reported as OOMKilled",
    ),
    (cgroups.CPU, "cpu limits", "cpu limits are not enforced: a pod may use every processor of the machine"),
    (
        cgroups.PIDS,
        "process limits",
        "the number of a pod's processes is not limited: one that forks without end takes what the machine has",
    ),
)


def check_limits() -> list[Finding]:
    place, details = cgroups.find()
    allowed = {} if place is None else place.folders
    return [
        Finding(name, controller in allowed, details[controller], "" if controller in allowed else cost)
        for controller, name, cost in _LIMITS
    ]


def check_gpus() -> Finding:
    try:
        import pynvml

        pynvml.nvmlInit()
        try:
            count = pynvml.nvmlDeviceGetCount()
            found = [pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(i)) for i in range(count)]
            names = sorted({name.decode() if isinstance(name, bytes) else name for name in found})  # by its version
        finally:
            pynvml.nvmlShutdown()
    except Exception as error:
        detail = f"none found: {error}"
        return Finding("GPUs", False, detail, "pods that ask for nvidia.com/gpu wait, unless --capacity declares some")
    return Finding("GPUs", True, f"{count} x {', '.join(names)}")


def check_shared_memory() -> Finding:
    try:
        size = shutil.disk_usage(_SHARED_MEMORY).total
    except OSError as error:
        return Finding(_SHARED_MEMORY, False, str(error), "data loaders with workers and NCCL between processes fail")
    works = size >= _ENOUGH_SHARED_MEMORY
    cost = "" if works else "data loaders with many workers may run out of it; mount a larger one"
    return Finding(_SHARED_MEMORY, works, f"{size / (1 << 30):.1f} GiB", cost)


def check_descriptors() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    works = soft >= _ENOUGH_DESCRIPTORS or hard == resource.RLIM_INFINITY or hard >= _ENOUGH_DESCRIPTORS
    highest = "any number" if hard == resource.RLIM_INFINITY else hard
    cost = "" if works else "some hundred pods or watchers at once will fail; raise it with ulimit -n"
    return Finding("file descriptors", works, f"{soft}, may be raised to {highest}", cost)


def check_sqlite() -> Finding:
    works = sqlite3.sqlite_version_info >= _OLDEST_SQLITE
    cost = "" if works else "the cluster's store needs 3.35 or newer"
    return Finding("SQLite", works, sqlite3.sqlite_version, cost)


__all__ = ["Finding", "probe_host", "run_checks"]

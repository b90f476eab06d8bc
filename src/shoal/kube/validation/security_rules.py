"""Security contexts of pods and containers."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.kube.validation.errors import invalid, not_supported, required
from shoal.kube.validation.value_rules import descending_path, number_between, optional_choice

_LARGEST_ID = 2**31 - 1
_SECCOMP = ("Localhost", "RuntimeDefault", "Unconfined")
_CHANGE_POLICIES = ("Always", "OnRootMismatch")
_GROUP_POLICIES = ("Merge", "Strict")
_PROC_MOUNTS = ("Default", "Unmasked")
_CONTEXT_FIELDS = (
    "Capabilities", "Privileged", "SELinuxOptions", "WindowsOptions", "RunAsUser", "RunAsGroup", "RunAsNonRoot",
    "ReadOnlyRootFilesystem", "AllowPrivilegeEscalation", "ProcMount", "SeccompProfile", "AppArmorProfile",
)  # fmt: skip


def pod_context(spec: Obj, path: str) -> Iterator[Cause]:
    context = spec.get("securityContext")
    if not context:
        return
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from number_between(context.get(name), 0, _LARGEST_ID, f"{path}.{name}")
    for i, group in enumerate(context.get("supplementalGroups") or ()):
        yield from number_between(group, 0, _LARGEST_ID, f"{path}.supplementalGroups[{i}]")
    yield from optional_choice(context.get("fsGroupChangePolicy"), _CHANGE_POLICIES, f"{path}.fsGroupChangePolicy")
    yield from _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    policy = context.get("supplementalGroupsPolicy")
    yield from optional_choice(policy, _GROUP_POLICIES, f"{path}.supplementalGroupsPolicy")


def shared_processes(spec: Obj, path: str) -> Iterator[Cause]:
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{path}.shareProcessNamespace", True, detail)


def container_context(context: Obj, path: str) -> Iterator[Cause]:
    for name in ("runAsUser", "runAsGroup"):
        yield from number_between(context.get(name), 0, _LARGEST_ID, f"{path}.{name}")
    yield from optional_choice(context.get("procMount"), _PROC_MOUNTS, f"{path}.procMount")
    yield from _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield invalid(path, _shown(context), detail)
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield invalid(path, _shown(context), detail)


def _shown(context: Obj) -> Obj:
    """The context as an API server prints it: its own field names, all of them."""
    shown = {name: context.get(name[0].lower() + name[1:]) for name in _CONTEXT_FIELDS}
    shown["SELinuxOptions"] = context.get("seLinuxOptions")
    if (capabilities := context.get("capabilities")) is not None:
        shown["Capabilities"] = {"Add": capabilities.get("add"), "Drop": capabilities.get("drop")}
    return shown


def _seccomp(profile: Obj | None, path: str) -> Iterator[Cause]:
    if profile is None:
        return
    kind, local = profile.get("type"), profile.get("localhostProfile")
    if not kind:
        yield required(f"{path}.type", "type is required when seccompProfile is set")
    elif kind not in _SECCOMP:
        yield not_supported(f"{path}.type", kind, _SECCOMP)
    if kind != "Localhost":
        if local is not None:
            yield invalid(f"{path}.localhostProfile", profile, "can only be set when seccomp type is Localhost")
    elif local is None:
        yield required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
    else:
        yield from descending_path(local, f"{path}.localhostProfile")

"""What this machine allows, found out by doing it: namespaces, mounts and a bridge, in a child that is thrown away.

Settings that forbid these things are many (capabilities, sysctls, seccomp, AppArmor) and not all can be read;
the attempt is the only honest answer. It takes a few milliseconds and everything it makes dies with the child.
"""

from __future__ import annotations

import json
import os

from shoal.node.sandbox import netfilter, rtnetlink, syscalls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# whose powers make namespaces: root's, those of a user namespace, none
ROOT, USER, UNPRIVILEGED = "root", "user", "none"


def probe_features() -> dict[str, Any]:
    """Forks; the caller must have a single thread."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, json.dumps(_probe_all()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    allowed: dict[str, Any] = json.loads(data)
    return allowed


def _probe_all() -> dict[str, Any]:
    allowed: dict[str, Any] = {
        "privilege": UNPRIVILEGED,
        "mounts": False,
        "network": False,
        "redirect": False,  # whether connections that leave a pod's network can be led out
        "detail": "",
        "network_detail": "",
        "redirect_detail": "",
    }
    try:
        try:
            syscalls.unshare(syscalls.NEW_NS | syscalls.NEW_UTS)
            allowed["privilege"] = ROOT
        except PermissionError:
            syscalls.enter_own_user_namespace()
            syscalls.unshare(syscalls.NEW_NS | syscalls.NEW_UTS)
            allowed["privilege"] = USER
        syscalls.mount(None, "/", flags=syscalls.MS_REC | syscalls.MS_SLAVE)
        syscalls.mount("tmpfs", "/etc", fs_type="tmpfs")
        syscalls.set_hostname("trial")
        allowed["mounts"] = True
    except OSError as error:
        allowed.update(privilege=UNPRIVILEGED, detail=_describe_error(error), network_detail=_describe_error(error))
        return allowed
    try:
        syscalls.unshare(syscalls.NEW_NET)
        outer = rtnetlink.Netlink()
        address = rtnetlink.hardware_address("10.77.0.1")
        bridge = outer.add_bridge("trial", hardware=address)
        syscalls.unshare(syscalls.NEW_NET)
        here = syscalls.open_namespace("net")
        outer.add_veth("trial0", master=bridge, peer="eth0", peer_namespace=here, hardware=address)
        allowed["network"] = True
    except OSError as error:
        allowed["network_detail"] = _describe_error(error)
        return allowed
    try:
        netfilter.redirect_outgoing_tcp("10.77.0.1", 16, 1)
        allowed["redirect"] = True
    except OSError as error:
        allowed["redirect_detail"] = _describe_error(error)
    return allowed


def _describe_error(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)

"""The namespaces of a pod, entered once by its shim: hostname, network, and the right to mount.

The shim stays in the machine's mount namespace (it writes logs there); each process gets a mount namespace of
its own. An isolated pod's network is a veth pair to the bridge of the cluster's network process. For an ordinary user
all of this happens inside the network process's user namespace, in which the shim has capabilities and the programs it
starts have none.
"""

from __future__ import annotations

import os

from shoal.node.sandbox import feature_probe, rtnetlink, syscalls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BRIDGE = "shoal0"


class PodNamespaces:
    """Where a pod's processes run. `network_fds` are of the network process's namespaces: network, then user."""

    def __init__(self, config: dict[str, Any], network_fds: list[int]) -> None:
        self._config = config
        self.network_fds = network_fds
        self._netlink: rtnetlink.Netlink | None = None

    def enter(self) -> None:
        if self._config["privilege"] == feature_probe.UNPRIVILEGED:
            return
        if self._config["privilege"] == feature_probe.USER:
            if len(self.network_fds) > 1:
                syscalls.setns(self.network_fds[1], syscalls.NEW_USER)
                syscalls.set_dumpable()
            else:
                syscalls.enter_own_user_namespace()
        syscalls.unshare(syscalls.NEW_UTS)
        syscalls.set_hostname(self._config["spec"]["hostname"])
        if self._config["isolated"] and self._config["spec"]["ip"]:
            self._enter_network(self._config["spec"]["ip"])

    def _enter_network(self, ip: str) -> None:
        syscalls.setns(self.network_fds[0], syscalls.NEW_NET)
        # The socket stays in this namespace: it makes, and later removes, the veth pair from the bridge's side.
        self._netlink = rtnetlink.Netlink()
        bridge = self._netlink.index_of(BRIDGE)
        syscalls.unshare(syscalls.NEW_NET)
        here = syscalls.open_namespace("net")
        self._netlink.add_veth(
            f"pod{os.getpid()}",
            master=bridge,
            peer="eth0",
            peer_namespace=here,
            hardware=rtnetlink.hardware_address(ip),
        )
        os.close(here)
        inside = rtnetlink.Netlink()
        inside.set_up(1)
        eth0 = inside.index_of("eth0")
        inside.set_up(eth0)
        inside.add_address(eth0, ip, self._config["prefix"])
        inside.add_default_route(self._config["gateway"])
        inside.close()
        try:  # a server on port 80 is an ordinary thing in a network of one's own
            fd = os.open("/proc/sys/net/ipv4/ip_unprivileged_port_start", os.O_WRONLY | os.O_CLOEXEC)
            os.write(fd, b"0")
            os.close(fd)
        except OSError:
            return

    def base_mounts(self) -> list[dict[str, Any]] | None:
        """What every process of the pod sees; None where nothing can be mounted."""
        if self._config["privilege"] == feature_probe.UNPRIVILEGED:
            return None
        hosts = {"target": "/etc/hosts", "source": self._config["spec"]["hosts_file"]}
        name = {"target": "/etc/hostname", "source": f"{self._config['folder']}/hostname"}
        mounts = [hosts, name] if os.path.exists("/etc/hostname") else [hosts]
        if self._netlink is not None and os.path.exists("/etc/resolv.conf"):
            mounts.append({"target": "/etc/resolv.conf", "source": self._config["resolv_conf"]})
        return [{**mount, "read_only": False, "size_bytes": None} for mount in mounts]

    def remove_veth(self) -> None:
        """Remove the veth pair now; the kernel would do it some time after the last process is gone."""
        if self._netlink is None:
            return
        try:
            self._netlink.delete_link(self._netlink.index_of(f"pod{os.getpid()}"))
        except OSError:
            return

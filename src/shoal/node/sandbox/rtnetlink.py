"""Links, addresses and routes, set through a raw rtnetlink socket.

Own messages instead of the `ip` program or a library: `ip` is not on every machine and costs several forks per pod, and
a library would double the memory of every shim. What a pod needs is half a dozen messages. A netlink socket stays in
the network namespace it was opened in, so a shim can open one in the network process's namespace, move on into the
pod's own, and use both.
"""

from __future__ import annotations

import os
import socket
import struct

_NEWLINK, _DELLINK, _GETLINK, _SETLINK = 16, 17, 18, 19
_NEWADDR, _DELADDR, _NEWROUTE = 20, 21, 24
_ERROR = 2
_REQUEST, _ACK, _EXCL, _CREATE, _REPLACE = 0x1, 0x4, 0x200, 0x400, 0x100

_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MASTER, _IFLA_LINKINFO, _IFLA_AF_SPEC, _IFLA_NET_NS_FD = 1, 3, 10, 18, 26, 28
_INFO_KIND, _INFO_DATA, _VETH_PEER = 1, 2, 1
_INET_CONF, _CONF_FORWARDING = 1, 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RTA_GATEWAY, _RTA_PRIORITY = 5, 6
_RTN_UNICAST, _RTN_PROHIBIT = 1, 8
_TABLE_MAIN, _PROTOCOL_BOOT, _SCOPE_UNIVERSE = 254, 3, 0
_NESTED = 0x8000
_UP = 1

_HEADER = struct.Struct("=IHHII")
_LINK = struct.Struct("=BxHiII")
_ADDR = struct.Struct("=BBBBi")
_ROUTE = struct.Struct("=BBBBBBBBI")


def attribute(kind: int, payload: bytes) -> bytes:
    """One netlink attribute, padded to four bytes."""
    return struct.pack("=HH", 4 + len(payload), kind) + payload + b"\0" * (-len(payload) % 4)


def _text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def _number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=I", value))


def _link(*, index: int = 0, flags: int = 0, change: int = 0) -> bytes:
    return _LINK.pack(socket.AF_UNSPEC, 0, index, flags, change)


def hardware_address(ip: str) -> bytes:
    """A MAC that follows from the address: a pod that takes over an address answers where neighbours expect."""
    return b"\x02\x4d" + socket.inet_aton(ip)


class Netlink:
    """A netlink socket of the network namespace that was current when this was made."""

    def __init__(self) -> None:
        self._sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._sock.bind((0, 0))
        self._sequence = 0

    def close(self) -> None:
        self._sock.close()

    def add_bridge(self, name: str, *, hardware: bytes) -> int:
        info = attribute(_IFLA_LINKINFO, _text(_INFO_KIND, "bridge"))
        body = _link(flags=_UP, change=_UP) + _text(_IFLA_IFNAME, name) + attribute(_IFLA_ADDRESS, hardware) + info
        self._send_request(_NEWLINK, body, _CREATE | _EXCL, f"bridge {name}")
        return self.index_of(name)

    def add_veth(self, name: str, *, master: int, peer: str, peer_namespace: int, hardware: bytes) -> None:
        """A veth pair: this end on the bridge `master` and up, the other named `peer` in another namespace. The other
        end must be set up from its own side: the kernel refuses an end that is up before the pair is complete."""
        other = (
            _link()
            + _text(_IFLA_IFNAME, peer)
            + attribute(_IFLA_ADDRESS, hardware)
            + _number(_IFLA_NET_NS_FD, peer_namespace)
        )
        data = attribute(_INFO_DATA, attribute(_VETH_PEER, other))
        info = attribute(_IFLA_LINKINFO, _text(_INFO_KIND, "veth") + data)
        body = _link(flags=_UP, change=_UP) + _text(_IFLA_IFNAME, name) + _number(_IFLA_MASTER, master) + info
        self._send_request(_NEWLINK, body, _CREATE | _EXCL, f"veth {name}")

    def set_up(self, index: int) -> None:
        self._send_request(_SETLINK, _link(index=index, flags=_UP, change=_UP), 0, f"link {index} up")

    def forward(self, index: int) -> None:
        """Let the kernel route packets that come in here (needed even to answer "unreachable")."""
        conf = attribute(_INET_CONF | _NESTED, _number(_CONF_FORWARDING, 1))
        spec = attribute(_IFLA_AF_SPEC | _NESTED, attribute(socket.AF_INET | _NESTED, conf))
        self._send_request(_SETLINK, _link(index=index) + spec, 0, f"forwarding on link {index}")

    def delete_link(self, index: int) -> None:
        self._send_request(_DELLINK, _link(index=index), 0, f"link {index}")

    def index_of(self, name: str) -> int:
        answer = self._send_request(_GETLINK, _link() + _text(_IFLA_IFNAME, name), 0, f"link {name}")
        index: int = _LINK.unpack_from(answer)[2]
        return index

    def add_address(self, index: int, ip: str, prefix: int) -> None:
        self._send_request(_NEWADDR, self._address(index, ip, prefix), _CREATE | _REPLACE, f"address {ip}")

    def delete_address(self, index: int, ip: str, prefix: int) -> None:
        self._send_request(_DELADDR, self._address(index, ip, prefix), 0, f"address {ip}")

    def _address(self, index: int, ip: str, prefix: int) -> bytes:
        raw = socket.inet_aton(ip)
        head = _ADDR.pack(socket.AF_INET, prefix, 0, _SCOPE_UNIVERSE, index)
        return head + attribute(_IFA_LOCAL, raw) + attribute(_IFA_ADDRESS, raw)

    def add_default_route(self, gateway: str) -> None:
        self._send_request(
            _NEWROUTE,
            self._route(_RTN_UNICAST) + attribute(_RTA_GATEWAY, socket.inet_aton(gateway)),
            _CREATE | _REPLACE,
            f"default route by {gateway}",
        )

    def add_prohibited_default(self) -> None:
        """Reject connections to the outside at once, so that no program waits for its time-out.
        Prohibited rather than unreachable: the kernel reports to a datagram socket only errors it takes for final. The
        metric is the highest, so that any true default route has precedence."""
        body = self._route(_RTN_PROHIBIT) + _number(_RTA_PRIORITY, 0xFFFFFFFE)
        self._send_request(_NEWROUTE, body, _CREATE | _REPLACE, "prohibited default route")

    def _route(self, kind: int) -> bytes:
        return _ROUTE.pack(socket.AF_INET, 0, 0, 0, _TABLE_MAIN, _PROTOCOL_BOOT, _SCOPE_UNIVERSE, kind, 0)

    def _send_request(self, kind: int, body: bytes, flags: int, what: str) -> bytes:
        """One request; the answer's payload where there is one. OSError with `what` where the kernel refuses."""
        self._sequence += 1
        wanted = _ACK if kind != _GETLINK else 0
        length = _HEADER.size + len(body)
        self._sock.send(_HEADER.pack(length, kind, _REQUEST | wanted | flags, self._sequence, 0) + body)
        while True:
            data = self._sock.recv(1 << 16)
            length, answer, _, sequence, _ = _HEADER.unpack_from(data)
            if sequence != self._sequence:
                continue
            payload = data[_HEADER.size : length]
            if answer != _ERROR:
                return payload
            (code,) = struct.unpack_from("=i", payload)
            if code:
                raise OSError(-code, os.strerror(-code), what)
            return payload

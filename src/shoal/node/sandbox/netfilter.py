"""One rule of the kernel's packet filter, set through a raw netlink socket.

It redirects TCP that would leave the cluster to the network process. The rule lives in that process's own network
namespace and dies with it; the machine's firewall is never touched, so an ordinary user may have it and a killed
cluster leaves nothing to undo. Written out rather than requested from the `nft` program for the reasons given in
`rtnetlink`.
"""

from __future__ import annotations

import os
import socket
import struct

from shoal.node.sandbox.rtnetlink import attribute

_NETLINK_NETFILTER = 12
_NFTABLES = 10
_BATCH_BEGIN, _BATCH_END = 0x10, 0x11
_NEW_TABLE, _NEW_CHAIN, _NEW_RULE = 0, 3, 6
_REQUEST, _ACK, _CREATE, _APPEND = 0x1, 0x4, 0x400, 0x800
_ERROR = 2
_NESTED = 0x8000

_REGISTER = 1
_EQUAL, _DIFFERENT = 0, 1
_META_PROTOCOL = 16
_FIB_ADDRESS_TYPE, _FIB_DESTINATION = 3, 2
_TYPE_LOCAL = 2
_PREROUTING, _BEFORE_ROUTING = 0, -100
_NETWORK_HEADER, _DESTINATION_OFFSET = 1, 16

_HEADER = struct.Struct("=IHHII")
_FAMILY = struct.Struct(">BBH")

SO_ORIGINAL_DST = 80


def _nested(kind: int, *parts: bytes) -> bytes:
    return attribute(kind | _NESTED, b"".join(parts))


def _number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack(">i", value))


def _text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def _expression(name: str, *parts: bytes) -> bytes:
    return _nested(1, _text(1, name), _nested(2, *parts))


def _value(kind: int, data: bytes) -> bytes:
    return _nested(kind, attribute(1, data))


def _compare(operation: int, data: bytes) -> bytes:
    return _expression("cmp", _number(1, _REGISTER), _number(2, operation), _value(3, data))


def _redirect_rule(inside: bytes, mask: bytes, port: int) -> bytes:
    """TCP, not to an address of the network process itself, not to a pod: to its `port`."""
    return b"".join(
        (
            _expression("meta", _number(1, _REGISTER), _number(2, _META_PROTOCOL)),
            _compare(_EQUAL, bytes([socket.IPPROTO_TCP])),
            _expression("fib", _number(1, _REGISTER), _number(2, _FIB_ADDRESS_TYPE), _number(3, _FIB_DESTINATION)),
            _compare(_DIFFERENT, struct.pack("=I", _TYPE_LOCAL)),
            # Where the machine filters bridged packets too, traffic between pods passes here as well.
            _expression(
                "payload",
                _number(1, _REGISTER),
                _number(2, _NETWORK_HEADER),
                _number(3, _DESTINATION_OFFSET),
                _number(4, 4),
            ),
            _expression(
                "bitwise",
                _number(1, _REGISTER),
                _number(2, _REGISTER),
                _number(3, 4),
                _value(4, mask),
                _value(5, bytes(4)),
            ),
            _compare(_DIFFERENT, inside),
            _expression("immediate", _number(1, _REGISTER), _value(2, struct.pack(">H", port))),
            _expression("redir", _number(1, _REGISTER)),
        )
    )


def redirect_outgoing_tcp(network: str, prefix: int, port: int) -> None:
    """Hand TCP that would leave `network`/`prefix` to `port` here. OSError where the kernel has no such filter."""
    mask = struct.pack(">I", (0xFFFFFFFF << (32 - prefix)) & 0xFFFFFFFF)
    inside = bytes(a & b for a, b in zip(socket.inet_aton(network), mask, strict=True))
    hook = _nested(4, _number(1, _PREROUTING), _number(2, _BEFORE_ROUTING))
    chain = _text(1, "shoal") + _text(3, "leaving") + hook + _text(7, "nat")
    rule = _text(1, "shoal") + _text(2, "leaving") + _nested(4, _redirect_rule(inside, mask, port))
    changes = [
        (_NEW_TABLE, _text(1, "shoal"), _CREATE),
        (_NEW_CHAIN, chain, _CREATE),
        (_NEW_RULE, rule, _CREATE | _APPEND),
    ]
    # One batch: the kernel makes all of the changes or none.
    batch = [_message(_BATCH_BEGIN, b"", _REQUEST, 0, family=socket.AF_UNSPEC, about=_NFTABLES)]
    for sequence, (kind, body, flags) in enumerate(changes, start=1):
        batch.append(_message(_NFTABLES << 8 | kind, body, _REQUEST | _ACK | flags, sequence))
    batch.append(_message(_BATCH_END, b"", _REQUEST, 0, family=socket.AF_UNSPEC, about=_NFTABLES))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_NETFILTER) as sock:
        sock.bind((0, 0))
        sock.send(b"".join(batch))
        answered = 0
        while answered < len(changes):
            answered += _acknowledged(sock.recv(1 << 16))


def _message(
    kind: int, body: bytes, flags: int, sequence: int, *, family: int = socket.AF_INET, about: int = 0
) -> bytes:
    payload = _FAMILY.pack(family, 0, about) + body
    return _HEADER.pack(_HEADER.size + len(payload), kind, flags, sequence, 0) + payload


def _acknowledged(data: bytes) -> int:
    """How many changes this response acknowledges; OSError for a rejection."""
    count = 0
    while data:
        length, kind, _, _, _ = _HEADER.unpack_from(data)
        if kind == _ERROR:
            (code,) = struct.unpack_from("=i", data, _HEADER.size)
            if code:
                raise OSError(-code, os.strerror(-code), "packet filter")
            count += 1
        data = data[(length + 3) & ~3 :]
    return count

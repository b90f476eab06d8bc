"""Fields that hold a name, a key, a port or an address: the rule of the format, applied to the field.

The rules for names are in `shoal.kube.names`; here a valid value costs one call and an invalid one becomes a `Cause`
per message.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.validation.errors import NEGATIVE, forbidden, invalid, not_supported, required

PROTOCOLS = ("SCTP", "TCP", "UDP")
_CACHE_SIZE = 64  # long values are rare, and many of them would fill the memory
_BAD_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_BAD_NETWORK = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

_PERCENT = re.compile(r"[0-9]{1,9}%")
_PERCENT_RULE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def named(rule: Callable[[str], list[str]], value: str, path: str) -> Iterable[Cause]:
    """The errors in a field's value by a rule of `shoal.kube.names`."""
    problems = _cached(rule, value) if len(value) < _CACHE_SIZE else rule(value)
    return [invalid(path, value, problem) for problem in problems] if problems else ()


@lru_cache(maxsize=8192)
def _cached(rule: Callable[[str], list[str]], value: str) -> tuple[str, ...]:
    """The pods of a job have the same labels, ports and variables: each is checked once."""
    return tuple(rule(value))


def required_name(rule: Callable[[str], list[str]], value: Any, path: str) -> Iterable[Cause]:
    """The same for a field that must be there."""
    return named(rule, value, path) if value else (required(path),)


def labels(found: Mapping[str, Any] | None, path: str) -> Iterator[Cause]:
    for key, value in (found or {}).items():
        yield from named(names.qualified_name, key, path)
        yield from named(names.label_value, value or "", path)


def choice(value: Any, supported: tuple[str, ...], path: str) -> Iterable[Cause]:
    """One of a few values, and it is required."""
    if value in supported:
        return ()
    return (not_supported(path, value, supported) if value else required(path),)


def optional_choice(value: Any, supported: tuple[str, ...], path: str) -> Iterable[Cause]:
    return () if value is None or value in supported else (not_supported(path, value, supported),)


def number_or_percent(value: int | str, path: str) -> Iterable[Cause]:
    if isinstance(value, str):
        return () if _PERCENT.fullmatch(value) else (invalid(path, value, _PERCENT_RULE),)
    return (invalid(path, value, NEGATIVE),) if value < 0 else ()


def at_most_all(value: int | str, path: str) -> Iterable[Cause]:
    """A percentage of something that cannot be more than all of it."""
    if isinstance(value, str) and figure(value) > 100:
        return (invalid(path, value, "must not be greater than 100%"),)
    return ()


def figure(value: int | str) -> int:
    """The number itself, or the number of percent; 0 of a text that is no percentage."""
    if isinstance(value, int):
        return value
    return int(value[:-1]) if _PERCENT.fullmatch(value) else 0


def port(value: Any, path: str) -> Iterable[Cause]:
    """A port by number or by name."""
    if isinstance(value, str):
        return named(names.port_name, value, path)
    number = value or 0
    return () if 0 < number < 65536 else (invalid(path, number, names.out_of_range(1, 65535)),)


def number_between(value: Any, low: int, high: int, path: str) -> Iterable[Cause]:
    if value is None or low <= value <= high:
        return ()
    return (invalid(path, value, names.out_of_range(low, high)),)


def file_mode(value: Any, path: str) -> Iterable[Cause]:
    if value is None or 0 <= value <= 0o777:
        return ()
    return (invalid(path, value, "must be a number between 0 and 0777 (octal), both inclusive"),)


def no_backsteps(value: str, path: str) -> Iterable[Cause]:
    return (invalid(path, value, "must not contain '..'"),) if ".." in value.split("/") else ()


def descending_path(value: str, path: str) -> Iterator[Cause]:
    """A path below another: relative, and never up."""
    if value.startswith("/"):
        yield invalid(path, value, "must be a relative path")
    yield from no_backsteps(value, path)


def file_path(value: str, path: str) -> Iterator[Cause]:
    """The path of a file in a volume; names that begin with two dots are the node's own."""
    yield from descending_path(value, path)
    if value.startswith("..") and not value.startswith("../"):
        yield invalid(path, value, "must not start with '..'")


def parsed_address(value: str) -> Address | None:
    """The address, also where a leading zero makes it doubtful; None where it is none."""
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        parts = value.split(".")
        if len(parts) == 4 and all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
            return parsed_address(".".join(str(int(part)) for part in parts)) if _has_zeros(parts) else None
        return None


def _has_zeros(parts: list[str]) -> bool:
    return any(len(part) > 1 and part[0] == "0" for part in parts)


def address(value: str, path: str, known: Iterable[str] = ()) -> Iterator[Cause]:
    """An IP address; `known` are those the object held before, kept whatever they look like."""
    if value in known:
        return
    found = parsed_address(value)
    if found is None:
        yield invalid(path, value, _BAD_ADDRESS)
    elif "." in value and ":" not in value and _has_zeros(value.split(".")):
        yield invalid(path, value, "must not have leading 0s")
    elif isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        yield invalid(path, value, "must not be an IPv4-mapped IPv6 address")


def network(value: str, path: str) -> Iterator[Cause]:
    try:
        ipaddress.ip_network(value)
        sound = "/" in value
    except ValueError:
        sound = False
    if not sound:
        yield invalid(path, value, _BAD_NETWORK)


def endpoint_address(value: str, path: str, *, allow_loopback: bool = False) -> Iterator[Cause]:
    """An address other machines can reach. A pod on one machine may have 127.x.y.z: see `allow_loopback`."""
    found = parsed_address(value)
    if found is None:
        yield invalid(path, value, "must be a valid IP address")
        return
    if found.is_unspecified:
        yield invalid(path, value, f"may not be unspecified ({value})")
    if found.is_loopback and not allow_loopback:
        yield invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if found.is_link_local:
        yield invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    packed = found.packed
    is_local_multicast = (
        packed[:3] == b"\xe0\x00\x00" if found.version == 4 else packed[0] == 0xFF and packed[1] & 0x0F == 2
    )
    if is_local_multicast:
        yield invalid(path, value, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


def at_most_one(path: str, present: list[str], message: str) -> Iterator[Cause]:
    """All but the first of several alternatives that were given together."""
    for name in present[1:]:
        yield forbidden(f"{path}.{name}", f"may not specify more than 1 {message}")

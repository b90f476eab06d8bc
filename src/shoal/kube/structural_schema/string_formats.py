"""Formats a custom schema may require of a text: addresses, times, identifiers.

A format that is not listed is documentation only, as in Kubernetes. Formats of cards, books and colours are
documentation here too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_interface
from urllib.parse import urlsplit

from shoal.kube.names import dns_label, dns_subdomain
from shoal.kube.wire_formats import base64_problem, time_problem

_HEX = "[0-9a-fA-F]"
_UUID = rf"{_HEX}{{8}}-?{_HEX}{{4}}-?%s-?%s-?{_HEX}{{12}}"
_ANY4, _VARIANT = f"{_HEX}{{4}}", f"[89abAB]{_HEX}{{3}}"
_UNITS = (
    "ns|nanos?|nanoseconds?|us|µs|μs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|"
    "h|hrs?|hours?|d|days?|w|wks?|weeks?"
)
_DURATION = rf"(?:\d+(?:\.\d*)?|\.\d+)\s*(?:{_UNITS})\s*"


def _matching(pattern: str) -> Callable[[str], bool]:
    found = re.compile(pattern, re.ASCII).fullmatch
    return lambda text: found(text) is not None


def _is_address(sort: type[IPv4Address] | type[IPv6Address]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            sort(text)
        except AddressValueError:
            return False
        return True

    return check


def _is_network(text: str) -> bool:
    try:
        ip_interface(text)
    except ValueError:
        return False
    return "/" in text


def _is_uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(text) and " " not in text and (bool(parts.scheme) or text.startswith("/"))


_CHECKS: dict[str, Callable[[str], bool]] = {
    "byte": lambda text: base64_problem(text) is None,
    "cidr": _is_network,
    "date": lambda text: time_problem(f"{text}T00:00:00Z") is None,
    "datetime": lambda text: time_problem(text.replace("t", "T").replace("z", "Z")) is None,
    "duration": _matching(rf"0|[+-]?(?:{_DURATION})+"),
    "email": _matching(r"[^@\s<>]+@[^@\s<>]+"),
    "hostname": _matching(r"(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9-]{1,63})*\.?"),
    "ipv4": _is_address(IPv4Address),
    "ipv6": _is_address(IPv6Address),
    "k8slongname": lambda text: not dns_subdomain(text),
    "k8sshortname": lambda text: not dns_label(text),
    "mac": _matching(rf"{_HEX}{{2}}([:-]{_HEX}{{2}}){{5}}|{_HEX}{{4}}(\.{_HEX}{{4}}){{2}}"),
    "uri": _is_uri,
    "uuid": _matching(_UUID % (_ANY4, _ANY4)),
    "uuid3": _matching(_UUID % (f"3{_HEX}{{3}}", _ANY4)),
    "uuid4": _matching(_UUID % (f"4{_HEX}{{3}}", _VARIANT)),
    "uuid5": _matching(_UUID % (f"5{_HEX}{{3}}", _VARIANT)),
}


def reads_as(text: str, form: str) -> bool:
    """Whether `text` has the format; true for every format that is not enforced."""
    check = _CHECKS.get(form.replace("-", ""))
    return check is None or check(text)

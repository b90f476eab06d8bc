"""Addresses of a cluster whose pods share the machine's network: ranges of 127.0.0.0/8 for pods and for Services.

Other clusters of this machine do not use them. A cluster takes the first pair that is free and stores it, because
Services keep their addresses for good. It is taken by a name in the kernel that is released with the process, however
that ends. No other process is consulted: a cluster that returns while another has its pair keeps it all the same, since
the addresses are on record, and reports that. A cluster that had pod networks until now has no pair yet.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

import click

from shoal.logs import Logger

log = Logger(__name__)

PAIRS = 19  # 127.77 to 127.95 for pods, 127.96 to 127.114 for Services
_FIRST_OF_PODS, _FIRST_OF_SERVICES = 77, 96
_NAME = "shoal addresses"  # in the kernel: of all processes of this machine


@dataclass(frozen=True, slots=True)
class Ranges:
    pods: str
    services: IPv4Network


def ranges_of(number: int) -> Ranges:
    return Ranges(f"127.{_FIRST_OF_PODS + number}.0.0/16", IPv4Network(f"127.{_FIRST_OF_SERVICES + number}.0.0/16"))


class RecordUnreadable(click.ClickException):
    """The cluster's pair cannot be determined, and a guess might give its Services' addresses to others."""

    def __init__(self, record: Path) -> None:
        super().__init__(
            f"{record} does not name the loopback addresses of this cluster: a number from 0 to {PAIRS - 1}. "
            f"Remove the file; the cluster then uses the addresses of its Services and pods."
        )


@contextmanager
def reserved_ranges(record: Path, *, is_new: bool, addresses: Callable[[], Iterable[str]] = tuple) -> Iterator[Ranges]:
    """The pair of the cluster that keeps its number in `record`.
    A cluster that has none there, and is not new, has the pair of the first of its `addresses` that is in any.
    RecordUnreadable where there is a record without a pair."""
    with ExitStack() as held:
        recorded = read_record(record, is_new=is_new)
        known = find_number(addresses()) if recorded is None and not is_new else recorded
        free = (number for number in (range(PAIRS) if known is None else [known]) if reserve(number, held))
        number = next(free, None)
        if number is None:
            number = known or 0
            log.warning("another cluster uses the same loopback addresses", pods=ranges_of(number).pods)
        if recorded is None:
            draft = record.with_name(f".{record.name}.new")  # a crash leaves a whole record or none
            draft.write_text(f"{number}\n")
            draft.replace(record)
        yield ranges_of(number)


def read_record(record: Path, *, is_new: bool) -> int | None:
    try:
        number = int(record.read_text())
        if 0 <= number < PAIRS:
            return number
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        pass
    if is_new:
        return None
    raise RecordUnreadable(record)


def find_number(addresses: Iterable[str]) -> int | None:
    firsts = (_FIRST_OF_PODS, _FIRST_OF_SERVICES)
    numbers = {f"127.{first + number}": number for first in firsts for number in range(PAIRS)}
    found = (numbers.get(address.rsplit(".", 2)[0]) for address in addresses)
    return next((number for number in found if number is not None), None)


def reserve(number: int, held: ExitStack) -> bool:
    """Whether it was free; it is ours until `held` is left."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0{_NAME} {ranges_of(number).pods}")
    except OSError:
        claim.close()
        return False
    held.enter_context(claim)
    return True

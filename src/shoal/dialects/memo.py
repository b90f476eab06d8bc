"""What was read once is not read again: what follows from a spec, by the spec's digest.

Thousands of jobs may be of one template, and each is looked at many times; equal specs share one reading.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import TypeVar

import msgspec

MOST = 10_000  # readings kept in mind

T = TypeVar("T")


def memoize(known: dict[bytes, T], written: object, read: Callable[[], T]) -> T:
    """What `read` makes of `written`, which is all that it depends on."""
    digest = blake2b(msgspec.json.encode(written), digest_size=16).digest()
    found = known.get(digest)
    if found is None:
        found = read()
        if len(known) >= MOST:
            known.clear()
        known[digest] = found
    return found

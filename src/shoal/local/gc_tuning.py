"""When Python collects garbage: not while a program starts, and seldom while it serves.

Little of what a cluster or an operator holds is ever garbage in a cycle: reference counts free most objects. A full
collection after every few hundred new ones costs a seventh of the processor time. No collection at all costs memory:
what does form cycles, as tasks and their closures do, stays until one runs. What a full collection leaves free is
returned to the system, where the C library supports it.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_THRESHOLDS = (50_000, 5, 5)


@contextmanager
def starting() -> Iterator[None]:
    """There is nothing to collect while a program is loaded, and much to go through."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def serve() -> None:
    """What was loaded stays for good; look seldom from now on."""
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    trim: Callable[[int], int] | None = None
    # glibc keeps what was freed between blocks that are in use; other libraries have no such call.
    with suppress(AttributeError, OSError):
        trim = ctypes.CDLL(None).malloc_trim

    def trim_heap(phase: str, info: dict[str, int]) -> None:
        if trim is not None and phase == "stop" and info["generation"] == 2:
            trim(0)

    gc.callbacks.append(trim_heap)

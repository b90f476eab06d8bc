"""When Python looks for garbage: not while a program starts, and seldom while it serves.

Little of what a cluster or an operator holds is ever garbage in a cycle: objects come and go by their counts. Looking
through all of it after every few hundred new ones costs a seventh of the processor time. Never looking through it costs
memory: what does hold each other, as tasks and their closures do, stays until somebody does.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

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

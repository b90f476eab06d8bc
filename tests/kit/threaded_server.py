"""A scripted server on a thread of its own, for commands that have the main thread and a loop to themselves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kit.scripted_server import ScriptedServer, Step, scripted

DEADLINE_SECONDS = 120


@contextmanager
def threaded(step: Step, **more: Any) -> Iterator[ScriptedServer]:
    """Every request is answered by the same step."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="scripted-server", daemon=True)
    thread.start()

    def call(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(DEADLINE_SECONDS)

    serving = scripted(**more)
    server = call(serving.__aenter__())
    server.plays(*[step] * 1000)
    try:
        yield server
    finally:
        call(serving.__aexit__(None, None, None))
        loop.call_soon_threadsafe(loop.stop)
        thread.join(DEADLINE_SECONDS)
        loop.close()

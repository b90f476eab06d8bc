"""The faults of a network process, as one line per kind of fault in a file of bounded size.

A fault that repeats is written the 1st, 2nd, 4th, 8th ... time, with the count. Nothing a pod can send makes the file
grow faster than that, and a full file is rotated once.
"""

from __future__ import annotations

import asyncio
import logging
import logging.handlers
from collections import Counter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_BYTES = 1 << 20
_MAX_KINDS = 1000  # after which counting starts again


class FaultLog:
    """Takes what asyncio complains about, and what is given to `note`."""

    def __init__(self, path: str) -> None:
        self._counts: Counter[str] = Counter()
        self._log = logging.Logger("faults")
        handler = logging.handlers.RotatingFileHandler(path, maxBytes=_MAX_BYTES, backupCount=1, encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._log.addHandler(handler)

    def note(self, fault: str) -> None:
        """`fault` names the kind: it holds nothing that differs from one occurrence to the next."""
        if len(self._counts) >= _MAX_KINDS:
            self._counts.clear()
        self._counts[fault] += 1
        count = self._counts[fault]
        if count & (count - 1) == 0:
            self._log.warning("%s", fault if count == 1 else f"{fault} ({count} times)")

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take over from asyncio, which writes a traceback for each."""

        def handle(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            self.note(fault_of(context["message"], context.get("exception")))

        loop.set_exception_handler(handle)
        asyncio_log = logging.getLogger("asyncio")
        asyncio_log.addHandler(_Forward(self))
        asyncio_log.propagate = False


class _Forward(logging.Handler):
    def __init__(self, faults: FaultLog) -> None:
        super().__init__()
        self._faults = faults

    def emit(self, record: logging.LogRecord) -> None:
        self._faults.note(fault_of(str(record.msg), record.exc_info[1] if record.exc_info else None))


def fault_of(what: str, error: BaseException | None) -> str:
    first = what.partition("\n")[0]
    if error is None:
        return first
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return f"{first}: {type(error).__name__}: {reason or ''}"[:300]

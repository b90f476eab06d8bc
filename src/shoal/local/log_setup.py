"""The cluster's own log: lines of key=value in the data folder, kept small.

The history of jobs has a file of its own beside it, `history.log`: a line per snapshot, as it was emitted, so that a
search for `: ObjectSnapshot: ` finds JSON behind it; and many retries do not drive the log out of its file.
"""

from __future__ import annotations

import logging
import logging.handlers
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shoal.logs import KeyValues

LARGEST_BYTES = 4 << 20
LARGEST_HISTORY_BYTES = 32 << 20
KEPT = 3
HISTORY = "history.log"


class _LogFile(logging.handlers.RotatingFileHandler):
    """Drops what a full disk does not take. The standard handler prints a traceback to stderr for each record."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (the name is logging's)
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)

    def close(self) -> None:
        with suppress(OSError):  # the rest of the buffer
            super().close()


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Every record that is logged, with time and level; secrets are never logged anywhere."""
    handler = _LogFile(path, maxBytes=LARGEST_BYTES, backupCount=KEPT)
    handler.setFormatter(KeyValues())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    history = logging.getLogger("shoal.history")
    # The file is created with the first snapshot.
    history_handler = _LogFile(path.with_name(HISTORY), maxBytes=LARGEST_HISTORY_BYTES, backupCount=KEPT, delay=True)
    lines = logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    lines.converter = time.gmtime
    history_handler.setFormatter(lines)
    history.addHandler(history_handler)
    history.propagate = False
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # it would log requests, and with them what people exec
    try:
        yield
    finally:
        history.propagate = True
        history.removeHandler(history_handler)
        history_handler.close()
        root.removeHandler(handler)
        handler.close()

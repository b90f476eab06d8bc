"""Where the cluster's own log goes: lines of key=value in the data folder, kept small."""

from __future__ import annotations

import logging
import logging.handlers
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.logs import KeyValues

LARGEST_BYTES = 4 << 20
KEPT = 3


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Everything said through logging, with time and level; secrets are never logged anywhere."""
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=LARGEST_BYTES, backupCount=KEPT)
    handler.setFormatter(KeyValues())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # it would log requests, and with them what people exec
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()

"""Where the cluster's own log goes: lines of key=value in the data folder, kept small."""

from __future__ import annotations

import logging
import logging.handlers
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog
import structlog.typing

LARGEST_BYTES = 4 << 20
KEPT = 3


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Everything said through structlog or logging, with time and level; secrets are never logged anywhere."""
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=LARGEST_BYTES, backupCount=KEPT)
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "logger", "event"]),
        ],
    )
    handler.setFormatter(formatter)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # it would log requests, and with them what people exec
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()

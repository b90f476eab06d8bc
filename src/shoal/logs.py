"""Log lines with fields: `log.info("bind refused", pod="team/a", node="n1")`.

A thin layer over the standard library's logging, which carries the fields along with the record, so that the program
decides where lines are written and how they are formatted. Nothing is imported that would delay a quick start.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

_FIELDS = "fields"  # the record's attribute


class Logger:
    """A logger of one module."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def info(self, event: str, **fields: object) -> None:
        self._logger.info(event, extra={_FIELDS: fields})

    def warning(self, event: str, **fields: object) -> None:
        self._logger.warning(event, extra={_FIELDS: fields})

    def exception(self, event: str, **fields: object) -> None:
        """With the trace of the exception that is being handled."""
        self._logger.exception(event, extra={_FIELDS: fields})


def _entry_fields(record: logging.LogRecord) -> dict[str, object]:
    return {
        "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "event": record.getMessage(),
        **getattr(record, _FIELDS, {}),
    }


class KeyValues(logging.Formatter):
    """`timestamp='…' level='info' logger='…' event='…' key=value …`, also for records of other people's loggers."""

    def format(self, record: logging.LogRecord) -> str:
        pairs = _entry_fields(record)
        line = " ".join(f"{key}={value!r}" for key, value in pairs.items())
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """One JSON object per record, its fields beside the time, level, logger and event; for programs that read logs."""

    def format(self, record: logging.LogRecord) -> str:
        entry = _entry_fields(record)
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)

"""The operator's log for programs: one JSON object per line, whatever the fields hold."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

from shoal.logs import JsonLines


def said(**fields: Any) -> dict[str, Any]:
    record = logging.LogRecord(
        "shoal.try", logging.WARNING, "file", 1, "bind %s", ("refused",), fields.pop("exc", None)
    )
    record.fields = fields
    line = JsonLines().format(record)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    assert found.pop("timestamp").endswith("Z")
    return found


def test_a_line_has_its_fields() -> None:
    assert said(pod="team/a", tries=2, at=Path("/x")) == {
        "level": "warning", "logger": "shoal.try", "event": "bind refused", "pod": "team/a", "tries": 2, "at": "/x",
    }  # fmt: skip


def test_an_exception_brings_its_trace_on_the_same_line() -> None:
    try:
        raise ValueError("wrong")
    except ValueError:
        found = said(exc=sys.exc_info())
    assert found["trace"].startswith("Traceback (most recent call last):")
    assert found["trace"].endswith("ValueError: wrong")

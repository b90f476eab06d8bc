"""The cluster's log: one line per record, with time, level, logger, event and fields, whoever wrote it."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from shoal.local.log_setup import log_to
from shoal.logs import Logger


def written(folder: Path) -> str:
    """What was logged, with the times replaced."""
    text = (folder / "shoal.log").read_text()
    return re.sub(r"timestamp='\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z'", "timestamp=T", text)


def test_a_line_has_its_fields(tmp_path: Path) -> None:
    with log_to(tmp_path / "shoal.log"):
        Logger("shoal.try").info("bind refused", pod="team/a", tries=2)
    assert written(tmp_path) == (
        "timestamp=T level='info' logger='shoal.try' event='bind refused' pod='team/a' tries=2\n"
    )


def test_records_of_other_loggers_are_written_too(tmp_path: Path) -> None:
    with log_to(tmp_path / "shoal.log"):
        logging.getLogger("elsewhere").warning("%s is late", "it")
    assert written(tmp_path) == "timestamp=T level='warning' logger='elsewhere' event='it is late'\n"


def test_an_exception_brings_its_trace(tmp_path: Path) -> None:
    with log_to(tmp_path / "shoal.log"):
        try:
            raise ValueError("wrong")
        except ValueError:
            Logger("shoal.try").exception("pass broke", key="team/a")
    first, *trace = written(tmp_path).splitlines()
    assert first == "timestamp=T level='error' logger='shoal.try' event='pass broke' key='team/a'"
    assert (trace[0], trace[-1]) == ("Traceback (most recent call last):", "ValueError: wrong")


def test_nothing_is_written_after_the_end(tmp_path: Path) -> None:
    with log_to(tmp_path / "shoal.log"):
        pass
    Logger("shoal.try").warning("too late")
    assert written(tmp_path) == ""

"""What a job's status is about to forget: one line of JSON each, in a file of its own in the cluster's folder."""

from __future__ import annotations

import json
import re
from pathlib import Path

from shoal.dialects.capabilities import Snapshot
from shoal.local.log_setup import log_to
from shoal.operator.job_events import log_snapshot

# With every letter that a log might want to dress up.
TASK = {"kind": "Task", "status": {"diagnostics": 'it\'s "over"\nünd ✓ \\ gone'}}


def test_a_snapshot_is_logged_unchanged(tmp_path: Path) -> None:
    with log_to(tmp_path / "shoal.log"):
        log_snapshot(Snapshot("default/pet", "OnTaskRetry", TASK))
    (line,) = (tmp_path / "history.log").read_text().splitlines()
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ default/pet: OnTaskRetry: ObjectSnapshot: \{", line)
    found = re.search(": ObjectSnapshot: (.+)", line)
    assert found is not None
    assert json.loads(found[1]) == TASK
    assert (tmp_path / "shoal.log").read_text() == ""


def test_without_history_there_is_no_file(tmp_path: Path) -> None:
    with log_to(tmp_path / "shoal.log"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["shoal.log"]

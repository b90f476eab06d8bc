"""What the keeper writes on a disk that is full: facts that were torn are skipped, the next ones count."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from shoal.node.sandbox import shim_journal
from shoal.node.sandbox.cri_log import LogFile

HEAD = {"spec": {"id": "u1"}, "keeper": 1, "keeper_start": 2, "boot": "b"}


def test_a_torn_fact_is_skipped_and_the_next_one_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = shim_journal.ShimJournal(str(tmp_path))
    record.append("sandbox", **HEAD)
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:10]))
    with pytest.raises(OSError, match="No space left") as refused:
        record.append("intent", process="main.0", at=1.0)
    record.append_if_possible("exited", process="main.0", at=1.0)
    monkeypatch.undo()
    record.append("intent", process="main.1", at=2.0)
    assert (refused.value.errno, refused.value.filename) == (errno.ENOSPC, shim_journal.NAME)
    read = shim_journal.read(str(tmp_path))
    assert read is not None
    assert set(read.processes) == {"main.1"}


def test_a_log_that_cannot_begin_a_new_file_goes_on_in_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LogFile(str(tmp_path / "log"), max_bytes=10, max_files=3)
    log.write(b"0123456789\n")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "open", full)
    log.write(b"second\n")
    monkeypatch.undo()
    log.write(b"third\n")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "log.2": b"0123456789\nsecond\n",
        "log": b"third\n",
    }

"""Where committed objects outlive the process: one SQLite file, written one transaction per batch.

The journal handles rows, not Kubernetes objects. It holds the newest version of each object and the revision
the store had reached; recent history is in memory only. WAL with synchronous=NORMAL: a killed process loses
nothing that was committed, a power cut may lose the last moments but never leaves half a transaction.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, Protocol

FORMAT = 1
_APPLICATION_ID = 0x53484F4C

_SCHEMA = """
CREATE TABLE objects (
    id INTEGER PRIMARY KEY,      -- the revision that created the object
    resource TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    raw BLOB NOT NULL
);
CREATE TABLE progress (id INTEGER PRIMARY KEY CHECK (id = 0), revision INTEGER NOT NULL);
INSERT INTO progress VALUES (0, 0);
"""


class StoreInUse(Exception):
    """Another process has the file open."""


class StoreBroken(Exception):
    """The file cannot be used: another program's, a newer version's, or damaged."""


class Row(NamedTuple):
    id: int
    resource: str
    namespace: str
    name: str
    revision: int
    raw: bytes


class Journal(Protocol):
    def load(self) -> Iterator[Row]: ...

    def revision(self) -> int: ...

    def commit(self, rows: list[Row], deleted_ids: list[int], revision: int) -> None:
        """All of it or nothing of it. Raises OSError where the disk refuses."""
        ...

    def close(self) -> None: ...


class MemoryJournal:
    """For throw-away runs: nothing is kept."""

    def load(self) -> Iterator[Row]:
        return iter(())

    def revision(self) -> int:
        return 0

    def commit(self, rows: list[Row], deleted_ids: list[int], revision: int) -> None:
        del rows, deleted_ids, revision

    def close(self) -> None:
        return


def _create(path: Path) -> None:
    """A store without objects, complete from the moment it has its name: an empty file there is a damaged store."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        temporary = Path(folder) / path.name
        temporary.touch(mode=0o600)  # it holds Secrets: readable by its owner only
        with closing(sqlite3.connect(temporary, isolation_level=None)) as db:
            for statement in _SCHEMA.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {FORMAT}")
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            return  # another process was faster: its store is as good
        except OSError:  # a file system without hard links
            temporary.rename(path)


def _empty_store(path: Path) -> StoreBroken:
    return StoreBroken(
        f"{path} is there and holds nothing: what the cluster stored is lost. "
        f"Restore a copy, or remove the file to start with an empty cluster."
    )


class SqliteJournal:
    """One file, one process: the lock is SQLite's own and ends with the process, however it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            if not path.exists():
                _create(path)
            size = path.stat().st_size
        except OSError as error:
            raise StoreBroken(f"{path} cannot be made: {error.strerror}. Choose another data folder.") from None
        except sqlite3.Error as error:
            raise StoreBroken(f"{path} cannot be made: {error}. Choose another data folder.") from None
        if not size:
            raise _empty_store(path)
        self._db = sqlite3.connect(path, isolation_level=None, timeout=0)
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._db.close()
            if "locked" in str(error):
                raise StoreInUse(
                    f"{path} is in use by another process. Stop the cluster that runs on this data folder first."
                ) from None
            raise StoreBroken(
                f"{path} cannot be read as a store ({error}). Restore a copy, or choose another folder."
            ) from None
        except StoreBroken:
            self._db.close()
            raise

    def _prepare(self) -> None:
        run = self._db.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")
        run("PRAGMA wal_autocheckpoint = 4000")
        run("BEGIN EXCLUSIVE")
        (found,) = run("PRAGMA user_version").fetchone()
        (owner,) = run("PRAGMA application_id").fetchone()
        (tables,) = run("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and owner != _APPLICATION_ID:
            raise StoreBroken(f"{self._path} is a database of another program. Choose another data folder.")
        if found > FORMAT:
            raise StoreBroken(
                f"{self._path} was written by a newer version of shoal (format {found}; this one reads {FORMAT}). "
                f"Install that version again, or choose another data folder."
            )
        if not tables:
            raise _empty_store(self._path)
        run("COMMIT")

    def load(self) -> Iterator[Row]:
        rows = self._db.execute("SELECT id, resource, namespace, name, revision, raw FROM objects ORDER BY id")
        return (Row(*row) for row in rows)

    def revision(self) -> int:
        (revision,) = self._db.execute("SELECT revision FROM progress").fetchone()
        return int(revision)

    def commit(self, rows: list[Row], deleted_ids: list[int], revision: int) -> None:
        try:
            self._db.execute("BEGIN")
            if rows:
                self._db.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)", rows)
            if deleted_ids:
                self._db.executemany("DELETE FROM objects WHERE id = ?", [(row_id,) for row_id in deleted_ids])
            self._db.execute("UPDATE progress SET revision = ?", (revision,))
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise OSError(f"{self._path} cannot be written: {error}") from error

    def close(self) -> None:
        self._db.close()

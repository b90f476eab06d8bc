"""Durability: what was acknowledged is there after a kill -9; what was not acknowledged may or may not be."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from kit.cluster_objects import config_map, key, machinery, names, obj, refusal
from shoal.cluster.apimachinery import Machinery
from shoal.cluster.client import PatchType
from shoal.cluster.clock import VirtualClock
from shoal.cluster.store import Row, SqliteJournal, StoreBroken, StoreInUse
from shoal.cluster.types import WatchOptions
from shoal.kube import kinds
from shoal.kube.errors import ApiError

WRITER = """
import asyncio, json, random, sys
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube import kinds

async def main(path, seed):
    chance = random.Random(seed)
    cluster = await EmbeddedCluster.open(path)
    alive = {}
    for number in range(100000):
        name = f"c{chance.randrange(20)}"
        if name not in alive:
            config_map = {"metadata": {"name": name}, "data": {"n": str(number)}}
            made = await cluster.create(kinds.CONFIG_MAP, config_map, "default")
            alive[name] = number
        elif chance.random() < 0.3:
            await cluster.delete(kinds.CONFIG_MAP, name, "default")
            del alive[name]
            made = None
        else:
            made = await cluster.patch(kinds.CONFIG_MAP, name, "default", patch={"data": {"n": str(number)}})
            alive[name] = number
        version = made["metadata"]["resourceVersion"] if made else None
        sys.stdout.write(json.dumps([name, alive.get(name), version]) + "\\n")
        sys.stdout.flush()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def run_and_kill(path: Path, seed: int, after_lines: int) -> list[list[object]]:
    """Let a writer acknowledge so many writes, kill it in the middle of the next ones, give what it acknowledged."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(seed)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    lines = [writer.stdout.readline() for _ in range(after_lines)]
    os.kill(writer.pid, signal.SIGKILL)
    lines += writer.stdout.readlines()
    writer.stdout.close()
    writer.wait()
    whole = [line for line in lines if line.endswith("\n")]
    return [json.loads(line) for line in whole]


@pytest.mark.parametrize("seed", range(6))
def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path, seed):
    path = tmp_path / "store.db"
    acknowledged = run_and_kill(path, seed, random.Random(seed).randrange(5, 300))
    expected: dict[str, object] = {}
    newest = 0
    for name, number, version in acknowledged:
        expected[str(name)] = number
        newest = max(newest, int(version or 0))
    cluster = machinery(path)
    found = {s.key.name: int(s.obj()["data"]["n"]) for s in cluster.list(kinds.CONFIG_MAP, "default").items}
    # One write more may have been committed than was heard of.
    different = {name for name in {*expected, *found} if expected.get(name) != found.get(name)}
    assert len(different) <= 1
    assert cluster.revision >= newest
    for stored in cluster.list(kinds.CONFIG_MAP, "default").items:
        assert stored.obj()["metadata"]["resourceVersion"] == str(stored.revision)
    cluster.close()


def test_a_store_comes_back_as_it_was(tmp_path):
    path = tmp_path / "store.db"
    cluster = machinery(path)
    for name in ("a", "b", "c"):
        cluster.create(kinds.CONFIG_MAP, "default", config_map(name, labels={"name": name}))
    cluster.patch(kinds.CONFIG_MAP, key("a"), {"data": {"x": "1"}}, PatchType.MERGE)
    cluster.delete(kinds.CONFIG_MAP, key("b"))
    before = cluster.list(kinds.CONFIG_MAP, "default")
    cluster.close()
    cluster = machinery(path)
    after = cluster.list(kinds.CONFIG_MAP, "default")
    assert [(s.raw, s.labels, s.fields, s.uid) for s in after.items] == [
        (s.raw, s.labels, s.fields, s.uid) for s in before.items
    ]
    assert after.revision == before.revision
    assert cluster.create(kinds.CONFIG_MAP, "default", config_map("d")).stored.revision == before.revision + 1
    cluster.close()


async def test_watches_from_before_a_restart_end_with_410(tmp_path):
    cluster = machinery(tmp_path / "store.db")
    old = cluster.create(kinds.CONFIG_MAP, "default", config_map("a")).stored.revision
    cluster.create(kinds.CONFIG_MAP, "default", config_map("b"))
    cluster.close()
    cluster = machinery(tmp_path / "store.db")
    with pytest.raises(ApiError) as caught:
        await anext(cluster.watch(kinds.CONFIG_MAP, None, WatchOptions(resource_version=str(old))))
    assert caught.value.code == 410
    cluster.close()


def test_the_file_is_readable_by_its_owner_only(tmp_path):
    path = tmp_path / "store.db"
    cluster = machinery(path)
    cluster.create(kinds.SECRET, "default", obj("s"))
    cluster.store.flush()
    assert {entry.name: entry.stat().st_mode & 0o777 for entry in tmp_path.iterdir()} == {
        "store.db": 0o600,
        "store.db-wal": 0o600,
    }
    cluster.close()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StoreBroken, match="cannot be made: No such file or directory"):
        machinery(tmp_path / "nowhere" / "store.db")


def test_a_second_process_fails_because_the_file_is_in_use(tmp_path):
    path = tmp_path / "store.db"
    cluster = machinery(path)
    program = "import sys; from shoal.cluster.apimachinery import Machinery; Machinery.open(sys.argv[1])"
    second = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    assert second.returncode != 0
    assert f"StoreInUse: {path} is in use by another process." in second.stderr
    with pytest.raises(StoreInUse):
        SqliteJournal(path)
    cluster.close()


def test_a_file_of_a_newer_format_is_refused(tmp_path):
    path = tmp_path / "store.db"
    machinery(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreBroken, match=r"written by a newer version of shoal \(format 99"):
        machinery(path)


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to look like a file" * 20])
def test_a_file_that_is_no_store_is_refused(tmp_path, content):
    path = tmp_path / "store.db"
    path.write_bytes(content)
    with pytest.raises(StoreBroken):
        machinery(path)
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_left_alone(tmp_path):
    path = tmp_path / "store.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()
    with pytest.raises(StoreBroken, match="a database of another program"):
        machinery(path)


class FullDisk:
    """A journal whose disk can be full."""

    def __init__(self) -> None:
        self.full = False
        self.rows: dict[int, Row] = {}

    def load(self):
        return iter(self.rows.values())

    def revision(self) -> int:
        return 0

    def commit(self, rows, gone, revision) -> None:
        if self.full:
            raise OSError("no space left on device")
        self.rows.update({row.id: row for row in rows})

    def close(self) -> None:
        return


async def test_a_batch_the_disk_refuses_did_not_happen():
    disk = FullDisk()
    cluster = Machinery(disk, clock=VirtualClock(), rng=random.Random(0))
    cluster.create(kinds.CONFIG_MAP, "default", config_map("a"))
    await cluster.durable()
    before = cluster.revision
    disk.full = True
    cluster.create(kinds.CONFIG_MAP, "default", config_map("b"))
    cluster.patch(kinds.CONFIG_MAP, key("a"), {"data": {"x": "1"}}, PatchType.MERGE)
    cluster.create(kinds.SERVICE, "default", obj("s", spec={"ports": [{"port": 80}]}))
    with pytest.raises(ApiError) as caught:
        await cluster.durable()
    assert (caught.value.code, "no space left" in caught.value.message) == (503, True)
    disk.full = False
    assert names(cluster.list(kinds.CONFIG_MAP, "default")) == ["a"]
    assert cluster.get(kinds.CONFIG_MAP, key("a")).obj()["data"] == {"mode": "fast"}
    assert cluster.revision == before
    assert refusal(cluster.get, kinds.SERVICE, key("s"))[0] == 404
    assert cluster.create(kinds.CONFIG_MAP, "default", config_map("b")).stored.revision == before + 1


async def test_writes_of_one_turn_are_one_transaction():
    disk = FullDisk()
    commits = []
    inner = disk.commit
    disk.commit = lambda rows, gone, revision: (commits.append(len(rows)), inner(rows, gone, revision))
    cluster = Machinery(disk, clock=VirtualClock(), rng=random.Random(0))
    commits.clear()
    for number in range(10):
        cluster.create(kinds.CONFIG_MAP, "default", config_map(f"c{number}"))
    await cluster.durable()
    assert commits == [10]

"""`shoal up` on a disk without room ends with one sentence, and SIGTERM ends a start that waits."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.local import cluster
from shoal.local.cluster import ClusterConfig, StartInterrupted, host
from shoal.local.data_dir import DataFolder

pytestmark = pytest.mark.processes

# Starts with the smallest disk on which nothing fits and ends with the first on which the cluster comes up; in between
# lie all places at which a start can run out of room.
SWEEP = """
import json, os, select, signal, subprocess, sys
disk, words = sys.argv[1], sys.argv[2:]
for kib in range(16, 400, 34):
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "none", disk], check=True)
    cluster = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    first = cluster.stdout.readline()
    is_up = first.startswith("Cluster is up")
    if is_up:
        cluster.send_signal(signal.SIGTERM)
    rest = cluster.communicate()[0]
    subprocess.run(["umount", "-l", disk], check=True)
    print(json.dumps([kib, is_up, cluster.returncode, first + rest]), flush=True)
    if is_up:
        break
"""


def start(folder: Path) -> list[str]:
    return [sys.executable, "-m", "shoal", "up", "--data", str(folder)]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a tmpfs in a mount namespace of its own")
def test_a_start_that_runs_out_of_room_ends_with_one_sentence(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", SWEEP, str(disk)]
    swept = subprocess.run([*words, *start(disk / "data")], env=plain(), check=True, stdout=subprocess.PIPE, text=True)
    *refused, (_, is_up, code, said) = map(json.loads, swept.stdout.splitlines())
    assert (is_up, code) == (True, 0), said
    assert len(refused) > 3
    for kib, _, code, said in refused:
        assert (code, said.startswith("Error: "), said.count("\n")) == (1, True, 1), (kib, said)
    assert any("Make room on the disk" in said for *_, said in refused)


def plain() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("SHOAL_", "KUBE"))}


async def test_sigterm_ends_a_start_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait_for_ever(_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    monkeypatch.setattr(cluster, "prepare", wait_for_ever)
    data = DataFolder(tmp_path / "data")
    data.make()
    with pytest.raises(StartInterrupted, match="stopped before the cluster was up"):
        await host(data, ClusterConfig(), on_ready=lambda _: pytest.fail("it cannot be up"))


# A cluster that runs, and then has no room left for a write.
FILL = """
import json, subprocess, sys
disk, job, shoal = sys.argv[1], sys.argv[2], sys.argv[3:]
def run(*words):
    done = subprocess.run([*shoal, *words, "--data", f"{disk}/data"], capture_output=True, text=True)
    return [done.returncode, done.stdout, done.stderr]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", disk], check=True)
subprocess.run([*shoal, "up", "--detach", "--data", f"{disk}/data"], check=True, capture_output=True)
try:
    first = run("submit", job)
    subprocess.run(["dd", "if=/dev/zero", f"of={disk}/fill", "bs=4k"], capture_output=True)
    full = [run("get"), run("scale", "j", "pod=2"), run("delete", "j")]
    subprocess.run(["rm", f"{disk}/fill"], check=True)
    print(json.dumps([first, full, run("delete", "j")]))
finally:
    run("down")
"""
JOB = """apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, command: [sleep, "60"]}]}}}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a tmpfs in a mount namespace of its own")
def test_a_cluster_whose_disk_fills_answers_reads_and_rejects_writes_in_a_sentence(tmp_path: Path) -> None:
    disk, job = tmp_path / "disk", tmp_path / "job.yaml"
    disk.mkdir()
    job.write_text(JOB)
    words = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", FILL, str(disk), str(job)]
    shoal = [sys.executable, "-m", "shoal"]
    played = subprocess.run([*words, *shoal], env=plain(), check=True, stdout=subprocess.PIPE, text=True)
    first, (listed, *writes), after = json.loads(played.stdout.splitlines()[-1])
    assert (first[0], listed[0], "j " in listed[1], after[0]) == (0, 0, True, 0)
    for code, _, error in writes:
        lines = [line for line in error.splitlines() if not line.startswith("Cluster: ")]
        assert (code, len(lines)) == (1, 1), error
        assert "database or disk is full" in lines[0]

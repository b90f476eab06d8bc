"""Whoever removes a folder means the cluster in it: neither its process nor a pod's stays behind, unseen for ever."""

from __future__ import annotations

import os
import select
import subprocess
from pathlib import Path

import pytest

from kit.local_cluster import LocalCluster

pytestmark = pytest.mark.processes


def test_removing_the_folder_of_a_running_cluster_stops_it_and_its_pods(tmp_path: Path) -> None:
    cluster, told = LocalCluster(tmp_path / "data"), tmp_path / "pid"
    os.mkfifo(told)
    script = f"echo $$$$ > {told}; exec sleep 1000"  # two of them become one, as in every manifest
    container = {"name": "main", "image": "x", "command": ["sh", "-c", script]}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [container]}}
    cluster.start().post("/api/v1/namespaces/default/pods", pod).ok()
    process = os.pidfd_open(int(told.read_text()))

    subprocess.run(["rm", "-rf", str(cluster.data)], stderr=subprocess.DEVNULL)  # what ends may still write into it
    code, said = cluster.wait()
    select.select([process], [], [])
    os.close(process)
    assert (code, said) == (
        1,
        f"Error: {cluster.data} was removed while its cluster ran. The cluster has stopped, and its pods with it.\n",
    )

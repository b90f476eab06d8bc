"""A whole cluster as people start it: how soon it answers, how soon a pod runs, what it costs at rest and when full."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
from harness import ROOT, Metric

from kit.local_cluster import LocalCluster
from kit.raw_api import Api

METRICS = [
    Metric("shoal up to the first answer of kubectl get nodes", "s", 1.5),
    Metric("pod created to process started, median of 20", "ms", 50),
    Metric("memory with 10,000 pods stored", "MB", 250),
    Metric("processor time at rest, 10 s", "%", 1),
]
PODS = "/api/v1/namespaces/default/pods"
STORED = 10_000
SECONDS = 10


def run() -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        data = Path(folder) / "data"
        first = up_to_nodes(data)
        cluster = LocalCluster(data)
        api = cluster.start()
        try:
            started = create_to_started(api, Path(folder))
            until_over(api)
            resting = at_rest(cluster.pid)
            memory = filled(api, cluster.pid)
        finally:
            cluster.stop()
    return dict(zip((metric.name for metric in METRICS), (first, started, memory, resting), strict=True))


def up_to_nodes(data: Path) -> float:
    """From nothing: a new folder, a new certificate. The clock stops when kubectl has printed the node."""
    env = {**os.environ, "SHOAL_DATA": str(data), "KUBECONFIG": str(data / "kubeconfig")}
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "shoal", "up", "--detach"], check=True, env=env, stdout=subprocess.DEVNULL)
    subprocess.run([kubectl(), "get", "nodes"], check=True, env=env, stdout=subprocess.DEVNULL)
    took = time.monotonic() - began
    subprocess.run([sys.executable, "-m", "shoal", "down"], check=True, env=env, stdout=subprocess.DEVNULL)
    return took


def kubectl() -> str:
    found = shutil.which("kubectl")
    if found:
        return found
    built = subprocess.run([ROOT / "tools" / "control-plane", "kubectl"], check=True, stdout=subprocess.PIPE, text=True)
    return str(Path(built.stdout.strip()) / "kubectl")


def create_to_started(api: Api, folder: Path) -> float:
    """From sending the request to the time the pod's own process reads off the clock."""
    waits = []
    for number in range(20):
        note = folder / f"started-{number}"
        os.mkfifo(note)
        began = time.time()
        api.post(PODS, pod(f"quick-{number}", ["sh", "-c", f"date +%s.%N > {note}"])).ok()
        waits.append(float(note.read_text()) - began)
    return statistics.median(waits) * 1000


def until_over(api: Api) -> None:
    """Until every pod has ended and been told about; one that runs on would be measured as rest."""
    left = {item["metadata"]["name"] for item in api.get(PODS).ok()["items"]}
    with api.watch(PODS, resourceVersion="0") as watch:
        for event in watch:
            if event["object"]["status"].get("phase") == "Succeeded":
                left.discard(event["object"]["metadata"]["name"])
            if not left:
                return


def filled(api: Api, pid: int) -> float:
    """Pods that wait at a scheduling gate: stored, watched and cached, but not running."""

    def create(numbers: range) -> None:
        mine = Api(api.url, api.token, api.ca_file)
        for number in numbers:
            gated = pod(f"stored-{number}", ["true"])
            gated["spec"]["schedulingGates"] = [{"name": "bench"}]
            mine.post(PODS, gated).ok()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(create, (range(start, STORED, 4) for start in range(4))))
    assert len(json.loads(api.get(PODS).body)["items"]) >= STORED
    return psutil.Process(pid).memory_info().rss / 1e6


def at_rest(pid: int) -> float:
    """The cluster's process and its helpers, as a share of one core."""
    before = spent(pid)
    time.sleep(SECONDS)
    after = spent(pid)
    return sum(after[one] - before.get(one, 0) for one in after) / SECONDS * 100


def spent(pid: int) -> dict[int, float]:
    process = psutil.Process(pid)
    seconds = {}
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):  # the last of a pod's processes may be leaving
            seconds[one.pid] = sum(one.cpu_times()[:2])
    return seconds


def pod(name: str, command: list[str]) -> dict:
    container = {"name": "main", "image": "bench", "command": command}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }

"""The whole process is killed again and again while pods come and go: nothing is lost and nothing is doubled.

Each pod's process keeps a diary of its own: it appends a line when it starts, holds a lock on the file while it
lives, and says so where another process of the same pod is alive already. What the API acknowledged is remembered
here and compared after every restart.
"""

from __future__ import annotations

import fcntl
import http.client
import os
import random
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kit.local_cluster import LocalCluster
from kit.raw_api import Api, Obj

KILLS = 100
POD_COUNT = 20
PODS = "/api/v1/namespaces/default/pods"
BROKEN = (http.client.HTTPException, ssl.SSLError, OSError, ValueError)

LIVE = """
import fcntl, os, sys, time
diary = open(os.environ["DIARY"], "a")
try:
    fcntl.flock(diary, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    diary.write("doubled\\n"); sys.exit(3)
diary.write("started\\n"); diary.flush()
print("started", flush=True)
time.sleep(float(os.environ["LIFE"]))
diary.write("ended\\n")
"""


def pod(name: str, diary: Path, *, life: float) -> Obj:
    """A pod that ends by itself runs once; one that stays is started again whenever it ends."""
    env = [{"name": "DIARY", "value": str(diary)}, {"name": "LIFE", "value": str(life)}]
    container = {"name": "main", "image": "x", "command": ["python3", "-S", "-E", "-c", LIVE], "env": env}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    spec["restartPolicy"] = "Never" if life < 100 else "Always"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@dataclass
class Remembered:
    """What the API said yes to. A request that broke off may or may not have been carried out."""

    folder: Path
    uids: dict[str, str] = field(default_factory=dict)  # acknowledged and not asked to go
    going: set[str] = field(default_factory=set)  # names whose deletion was acknowledged
    unsure: set[str] = field(default_factory=set)  # names of requests that broke off
    made: int = 0
    stays: set[str] = field(default_factory=set)

    def diary(self, name: str) -> Path:
        return self.folder / name

    def create(self, api: Api, rng: random.Random) -> None:
        self.made += 1
        name = f"p{self.made}"
        life = rng.choice([0.0, 0.05, 0.3, 1000.0])
        if life > 100:
            self.stays.add(name)
        self.unsure.add(name)
        answer = api.post(PODS, pod(name, self.diary(name), life=life)).ok()
        self.unsure.discard(name)
        self.uids[name] = answer["metadata"]["uid"]

    def delete(self, api: Api, rng: random.Random) -> None:
        name = rng.choice(sorted(self.uids))
        uid = self.uids.pop(name)
        self.unsure.add(name)
        answer = api.delete(f"{PODS}/{name}", {"preconditions": {"uid": uid}})
        assert answer.status in (200, 202), answer.body
        self.unsure.discard(name)
        self.going.add(name)

    def compare(self, api: Api) -> None:
        found = {item["metadata"]["name"]: item["metadata"] for item in api.get(PODS).ok()["items"]}
        assert {name: found[name]["uid"] for name in self.uids if name in found} == self.uids
        assert all("deletionTimestamp" in found[name] for name in self.going if name in found)
        assert set(found) <= set(self.uids) | self.going | self.unsure


def come_and_go(api: Api, remembered: Remembered, rng: random.Random) -> None:
    """Until the cluster is killed under our hands."""
    try:
        while True:
            many = len(remembered.uids) >= POD_COUNT
            if many or (remembered.uids and rng.random() < 0.4):
                remembered.delete(api, rng)
            else:
                remembered.create(api, rng)
    except BROKEN:
        return


def has_begun(api: Api, name: str) -> None:
    """Wait for its first word: a pod is running as soon as it has a process, which may take a while to say so."""
    first = "started\n"
    heard = api.get(f"{PODS}/{name}/log", accept="*/*", follow="true", limitBytes=len(first))
    assert (heard.status, heard.body.decode()) == (200, first), name


def is_alive(diary: Path) -> bool:
    with diary.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def until(api: Api, names: set[str], phases: tuple[str, ...]) -> dict[str, Obj]:
    """The named pods once each has one of the phases; told by a watch."""
    reached: dict[str, Obj] = {}
    with api.watch(PODS, resourceVersion="0") as watch:
        for event in watch:
            seen = event["object"]
            name = seen["metadata"]["name"]
            if name in names and (seen.get("status") or {}).get("phase") in phases:
                reached[name] = seen
            if set(reached) == names:
                return reached
    raise AssertionError(f"{names - set(reached)} did not become {phases}")


def until_gone(api: Api, names: set[str]) -> None:
    listed = api.get(PODS).ok()
    left = {item["metadata"]["name"] for item in listed["items"]} & names
    if not left:
        return
    with api.watch(PODS, resourceVersion=listed["metadata"]["resourceVersion"]) as watch:
        for event in watch:
            if event["type"] == "DELETED":
                left.discard(event["object"]["metadata"]["name"])
            if not left:
                return


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    cluster = LocalCluster(tmp_path / "data")
    cluster.start()
    yield cluster
    api = cluster.api()
    api.delete(PODS, {"gracePeriodSeconds": 0})
    until_gone(api, {item["metadata"]["name"] for item in api.get(PODS).ok()["items"]})
    cluster.stop()


@pytest.mark.processes
@pytest.mark.timeout(1800)
def test_nothing_is_lost_or_doubled_by_a_hundred_kills(
    cluster: LocalCluster, tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    seed = int(os.environ.get("SHOAL_SEED") or random.SystemRandom().randrange(1 << 32))
    record_property("seed", seed)
    print(f"replay with SHOAL_SEED={seed}")
    rng = random.Random(seed)
    (tmp_path / "diaries").mkdir()
    remembered = Remembered(tmp_path / "diaries")
    api = cluster.api()
    for _ in range(KILLS):
        moment = threading.Timer(rng.uniform(0.0, 0.4), cluster.kill)
        moment.start()
        come_and_go(api, remembered, rng)
        moment.join()
        api = cluster.start()
        remembered.compare(api)
    settled(api, remembered)


def settled(api: Api, remembered: Remembered) -> None:
    """Left alone, everything comes to its proper end, and every diary tells the same story as the API."""
    names = set(remembered.uids)
    stays, ends = names & remembered.stays, names - remembered.stays
    finished = until(api, ends, ("Succeeded", "Failed"))
    running = until(api, stays, ("Running",))
    until_gone(api, remembered.going)
    assert {name: pod["status"]["phase"] for name, pod in finished.items()} == dict.fromkeys(ends, "Succeeded")
    for name in ends:
        assert remembered.diary(name).read_text() == "started\nended\n", name
    for name in stays:
        has_begun(api, name)
        restarts = running[name]["status"]["containerStatuses"][0]["restartCount"]
        assert (remembered.diary(name).read_text(), restarts) == ("started\n", 0), name
        assert is_alive(remembered.diary(name)), name
    for name in remembered.going:
        diary = remembered.diary(name)
        if diary.exists():
            assert not is_alive(diary), name
            assert diary.read_text() in ("", "started\n", "started\nended\n"), name  # told to go at any moment

"""What is taken of a quota is what its pods ask for, after any writes, and no pod is counted twice for others' sake."""

from __future__ import annotations

import random

import pytest

from kit.cluster_objects import key, machinery, obj, pod
from shoal.cluster.apimachinery import Machinery
from shoal.cluster.client import DeleteOptions, PatchType
from shoal.kube import kinds, quotas
from shoal.kube.errors import ApiError
from shoal.kube.objects import Obj
from shoal.kube.pod_resources import Amounts
from shoal.kube.quotas import quota_usage, usage_of

ENDING = {"scopes": ["Terminating"]}


def quota(name: str, cpu: str = "6", **spec: object) -> Obj:
    return obj(name, spec={"hard": {"cpu": cpu}, **spec})


def asking(name: str, cpu: str, **spec: object) -> Obj:
    made = pod(name, node="n1")
    made["spec"] |= spec
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return made


def kept(cluster: Machinery) -> list[Amounts]:
    return [{name: n for name, n in tally.used.items() if n} for tally in cluster._core.quotas.values("default")]


def counted(cluster: Machinery) -> list[Amounts]:
    found = [stored.obj() for stored in cluster.list(kinds.RESOURCE_QUOTA, "default").items]
    pods = [stored.obj() for stored in cluster.list(kinds.POD, "default").items]
    return [quota_usage(each, pods) for each in found]


def write_something(cluster: Machinery, rng: random.Random) -> None:
    name, other = f"p{rng.randrange(6)}", f"q{rng.randrange(2)}"
    what = rng.randrange(7)
    if what < 3:
        more = {"activeDeadlineSeconds": 9} if rng.random() < 0.5 else {}
        cluster.create(kinds.POD, "default", asking(name, f"{rng.randrange(1, 20)}00m", **more))
    elif what == 3:
        ended = {"status": {"phase": rng.choice(["Running", "Failed"])}}
        cluster.patch(kinds.POD, key(name), ended, PatchType.MERGE, subresource="status")
    elif what == 4:
        cluster.delete(kinds.POD, key(name), DeleteOptions(grace_seconds=0))
    elif what == 5:
        cluster.create(kinds.RESOURCE_QUOTA, "default", quota(other, **rng.choice([{}, ENDING])))
    else:
        cluster.delete(kinds.RESOURCE_QUOTA, key(other), DeleteOptions())


@pytest.mark.parametrize("seed", range(5))
def test_the_tally_is_what_counting_gives(seed: int) -> None:
    cluster, rng = machinery(), random.Random(seed)
    for _ in range(150):
        try:
            write_something(cluster, rng)
        except ApiError:
            continue  # there already, not there, or too much
        if rng.random() < 0.5:
            assert kept(cluster) == counted(cluster)
    assert kept(cluster) == counted(cluster)


async def test_what_the_disk_refuses_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = machinery()
    cluster.create(kinds.RESOURCE_QUOTA, "default", quota("q"))
    cluster.create(kinds.POD, "default", asking("a", "2"))
    cluster.store.flush()

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(cluster.store._journal, "commit", full)
        cluster.create(kinds.POD, "default", asking("b", "4"))
        assert [used["cpu"] for used in kept(cluster)] == [6000]
        with pytest.raises(ApiError, match="no space left"):
            await cluster.durable()
    assert kept(cluster) == [usage_of(asking("a", "2"))]
    cluster.create(kinds.POD, "default", asking("c", "4"))


def test_a_quota_whose_status_is_written_goes_on_from_what_it_knew(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []

    def noted(one: Obj) -> Amounts:
        looked_at.append(one["metadata"]["name"])
        return usage_of(one)

    monkeypatch.setattr(quotas, "usage_of", noted)
    cluster = machinery()
    cluster.create(kinds.RESOURCE_QUOTA, "default", quota("q", "99"))
    names = [f"p{number}" for number in range(20)]
    for name in names:
        cluster.create(kinds.POD, "default", asking(name, "1"))
        status = {"status": {"hard": {"cpu": "99"}, "used": {"cpu": str(len(looked_at))}}}
        cluster.patch(kinds.RESOURCE_QUOTA, key("q"), status, PatchType.MERGE, subresource="status")
    assert looked_at == names[:-1]  # each once, when the next came

"""ReplicaSets in a cluster of our own: as many pods as are wished for, whatever becomes of them."""

from __future__ import annotations

from kit.native_world import ReplicaSetWorld, replica_set, replica_set_scenario
from shoal.cluster.client import DeletionPropagation
from shoal.kube.objects import name_of, uid_of


@replica_set_scenario(kubernetes=True)
async def test_a_pod_that_goes_is_made_again(world: ReplicaSetWorld) -> None:
    await world.submit(replica_set("a", 2))
    await world.ready("a", 2)
    first, second = world.living("a")
    await world.delete_pod(name_of(first))
    await world.until(lambda: uid_of(first) not in {uid_of(pod) for pod in world.pods_of("a")})
    await world.until(lambda: len(world.living("a")) == 2)
    await world.ready("a", 2)
    assert uid_of(second) in {uid_of(pod) for pod in world.living("a")}
    assert world.counts("a") == {
        "replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
    }  # fmt: skip


@replica_set_scenario(kubernetes=True)
async def test_a_size_is_changed_both_ways_and_survivors_stay(world: ReplicaSetWorld) -> None:
    await world.submit(replica_set("a", 3))
    await world.ready("a", 3)
    before = {uid_of(pod) for pod in world.living("a")}
    await world.change("a", replicas=1)
    await world.until(lambda: len(world.pods_of("a")) == 1)
    (kept,) = world.living("a")
    await world.change("a", replicas=2)
    await world.ready("a", 2)
    after = {uid_of(pod) for pod in world.living("a")}
    assert (uid_of(kept) in before, after & before) == (True, {uid_of(kept)})
    await world.change("a", replicas=0)
    await world.until(lambda: not world.pods and world.counts("a") == {})


@replica_set_scenario(kubernetes=True)
async def test_its_pods_go_with_it(world: ReplicaSetWorld) -> None:
    await world.submit(replica_set("a", 2))
    await world.ready("a", 2)
    await world.delete("a", DeletionPropagation.BACKGROUND)
    await world.until(lambda: "a" not in world.frameworks and not world.pods)

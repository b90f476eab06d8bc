"""No GPU and no address is given to two pods at once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.pods import container, machine, pod
from shoal.kube.objects import Obj
from shoal.kube.quantity_format import requests_of
from shoal.node.admission import reject_by_resources
from shoal.node.gpus import Gpu, assign, visible
from shoal.node.ipam import NoAddressLeft, next_address, node_range
from shoal.node.messages import text
from shoal.node.node_object import capacity_of, devices_of, share_of


def wants(name: str, count: int, **more: object) -> Obj:
    return container(name, resources={"limits": {"nvidia.com/gpu": str(count)}}, **more)


def test_containers_side_by_side_share_nothing_and_an_init_container_borrows() -> None:
    made = pod(
        "p", wants("a", 1), wants("b", 2), container("c"), inits=(wants("i", 2), wants("s", 1, restartPolicy="Always"))
    )
    assert assign(made, [7, 3, 5, 1]) == {"s": [1], "a": [3], "b": [5, 7], "i": [3, 5]}


def test_too_few_devices_are_none() -> None:
    assert assign(pod("p", wants("a", 3)), [0, 1]) is None


@settings(deadline=None)
@given(st.sets(st.integers(0, 15)), st.lists(st.integers(0, 4), max_size=4))
def test_whatever_is_given_was_free_and_is_given_once(free: set[int], counts: list[int]) -> None:
    given_out = assign(pod("p", *(wants(f"c{i}", n) for i, n in enumerate(counts))), free)
    if given_out is None:
        assert sum(counts) > len(free)
        return
    handed = [index for indices in given_out.values() for index in indices]
    assert sorted(handed) == sorted(set(handed))
    assert set(handed) <= free
    assert len(handed) == sum(counts)


@settings(deadline=None)
@given(st.lists(st.booleans(), max_size=600))
def test_addresses_in_use_are_never_given_again(steps: list[bool]) -> None:
    part, used, last = node_range("10.77.0.0/16", 3), [], ""
    for take in steps:
        if take and len(used) < 254:
            last = next_address(part, used, last)
            assert last not in used
            assert last.startswith("10.77.4.")
            used.append(last)
        elif used:
            used.pop(0)


def test_a_full_address_range_is_reported() -> None:
    part = node_range("10.77.0.0/16", 0)
    with pytest.raises(NoAddressLeft, match=r"all 254 addresses of 10.77.1.0/24 are in use"):
        next_address(part, [str(address) for address in part.hosts()])


def test_an_address_that_was_just_freed_is_not_the_next_one() -> None:
    part = node_range("10.77.0.0/16", 0)
    assert next_address(part, [], "10.77.1.1") == "10.77.1.2"
    assert next_address(part, [], "10.77.1.254") == "10.77.1.1"


def test_the_shares_of_a_machine_add_up_to_it() -> None:
    whole = machine(cores=7, memory_bytes=1001 << 20, gpus=(0, 1, 2, 3, 4))
    shares = [share_of(whole, index, 3) for index in range(3)]
    assert [s.cores for s in shares] == [3, 2, 2]
    assert sum(s.memory_bytes for s in shares) == whole.memory_bytes
    assert sorted(g for s in shares for g in s.gpus) == [0, 1, 2, 3, 4]


def test_more_nodes_than_cores_share_them_in_thousandths() -> None:
    shares = [share_of(machine(cores=2), index, 3) for index in range(3)]
    assert [capacity_of(share, {})["cpu"] for share in shares] == ["666m", "666m", "666m"]


CAPACITY = {
    "found": (machine(gpus=(0, 1)), {}, {"nvidia.com/gpu": "2"}, (0, 1)),
    "none": (machine(), {}, {}, None),
    "declared": (
        machine(),
        {"nvidia.com/gpu": "3", "acme.com/x": "1k"},
        {"nvidia.com/gpu": "3", "acme.com/x": "1k"},
        (0, 1, 2),
    ),
    "declared fewer than found": (machine(gpus=(4, 5)), {"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"}, (4,)),
}


@pytest.mark.parametrize("case", CAPACITY, ids=str)
def test_what_is_declared_replaces_what_was_found(case: str) -> None:
    found, declared, extra, devices = CAPACITY[case]
    fixed = {"cpu": "64", "memory": "268435456Ki", "ephemeral-storage": "104857600Ki", "pods": "110"}
    assert (capacity_of(found, declared), devices_of(found, declared)) == ({**fixed, **extra}, devices)


def asks(**requests: str) -> Obj:
    return pod("p", container("a", resources={"requests": requests}))


REFUSALS: dict[str, tuple[Obj, list[Obj], tuple[str, str] | None]] = {
    "fits": (asks(cpu="1"), [asks(cpu="1")], None),
    "cpu": (
        asks(cpu="1500m"),
        [asks(cpu="1")],
        (
            "OutOfcpu",
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000",
        ),
    ),
    "pods": (
        asks(),
        [asks(), asks()],
        (
            "OutOfpods",
            "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2",
        ),
    ),
    "unheard of": (
        pod("p", container("a", resources={"limits": {"acme.com/x": "1"}})),
        [],
        (
            "OutOfacme.com/x",
            "Pod was rejected: Node didn't have enough resource: acme.com/x, requested: 1, used: 0, capacity: 0",
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSALS, ids=str)
def test_a_pod_that_does_not_fit_is_refused_by_the_short_resource(case: str) -> None:
    asked, others, expected = REFUSALS[case]
    outcome = reject_by_resources(asked, map(requests_of, others), {"cpu": "2", "pods": "2"})
    assert (None if outcome is None else (outcome.reason, text(outcome.message))) == expected


FOUND = (Gpu(0, "x", 1, "GPU-aa"), Gpu(1, "x", 1, "GPU-bb"), Gpu(2, "x", 1, "GPU-cc"))

CHOSEN: dict[str, tuple[str | None, list[int]]] = {
    "all": (None, [0, 1, 2]),
    "by index": ("2,0", [0, 2]),
    "by name": ("GPU-bb", [1]),
    "none": ("", []),
}


@pytest.mark.parametrize("case", CHOSEN, ids=str)
def test_a_caller_that_was_given_some_gpus_offers_those(case: str) -> None:
    chosen, expected = CHOSEN[case]
    assert [gpu.index for gpu in visible(FOUND, chosen)] == expected

"""The order of samples: fixed by seed and epoch, divided among any number of workers, resumed anywhere."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainer.order import Order, Progress

if TYPE_CHECKING:
    from trainer.order import Slot

orders = st.builds(
    Order,
    samples=st.integers(1, 300),
    global_batch=st.integers(1, 64),
    slot=st.integers(1, 16),
    seed=st.integers(0, 5),
)
# How many workers there are, how many steps they make, and how many of those are lost with the group that made them.
lives = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 20), st.integers(0, 5)), max_size=8)


def seen_by(order: Order, at: Progress, world: int) -> list[Slot]:
    return [slot for rank in range(world) for slot in order.share(at, rank=rank, world=world)]


def learn(order: Order, epochs: int, groups: list[tuple[int, int, int]]) -> dict[Progress, list[Slot]]:
    """What a training has learnt at each step when groups follow each other; the last group finishes it."""
    learnt: dict[Progress, list[Slot]] = {}
    at = Progress()
    for world, steps, lost in [*groups, (3, epochs * order.steps, 0)]:
        kept = [at]
        while len(kept) <= steps and at.epoch < epochs:
            learnt[at] = seen_by(order, at, world)
            at = order.after(at)
            kept.append(at)
        at = kept[max(0, len(kept) - 1 - lost)]
    return learnt


@given(orders, lives)
def test_each_epoch_sees_each_sample_exactly_once(order: Order, groups: list[tuple[int, int, int]]) -> None:
    learnt = learn(order, 2, groups)
    for epoch in range(2):
        counted = Counter(
            sample for at, slots in learnt.items() if at.epoch == epoch for slot in slots for sample in slot
        )
        assert counted == Counter(range(order.samples))


@given(orders, lives)
def test_resizes_change_who_computes_a_slot_and_nothing_else(order: Order, groups: list[tuple[int, int, int]]) -> None:
    undisturbed = {at: sorted(slots) for at, slots in learn(order, 2, []).items()}
    assert {at: sorted(slots) for at, slots in learn(order, 2, groups).items()} == undisturbed


@given(orders, st.integers(1, 9))
def test_no_worker_has_more_than_one_slot_more_than_another(order: Order, world: int) -> None:
    shares = [len(order.share(Progress(), rank=rank, world=world)) for rank in range(world)]
    assert max(shares) - min(shares) <= 1


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    batches = {Order(50, 50, 50, seed).batch(Progress(epoch)) for seed in (0, 1) for epoch in (0, 1)}
    assert len(batches) == 4


def test_an_empty_data_set_is_refused_with_the_way_out() -> None:
    with pytest.raises(ValueError, match=r"0 samples in batches of 128 .*`python prepare.py` makes it"):
        Order(0, 128, 16)

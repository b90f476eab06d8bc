"""Clicks that nobody made: advertisements shown to people, and whether they were clicked, drawn from a hidden taste.

Each impression has eight categorical features (who, where, what) and four numbers. A taste that is the same for
everybody, and drawn once from a fixed seed, gives each feature a weight; their sum decides how likely a click is. A
model that learns the weights of the ids it has seen can tell clicks from the rest, and one that has learned nothing
cannot.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

SLOTS = 8
IDS = 1000  # per slot
NUMBERS = 4
_TASTE_SEED = 2019

Batch = tuple[np.ndarray, np.ndarray, np.ndarray]  # ids, numbers, clicks


def batches(*, trainer: int, turn: int, count: int, size: int) -> Iterator[Batch]:
    """What one trainer sees in one pass over its share of the data: the same each time it is asked for."""
    taste = np.random.default_rng(_TASTE_SEED)
    weights = taste.normal(0, 0.9, (SLOTS, IDS))
    slopes = taste.normal(0, 0.5, NUMBERS)
    chance = np.random.default_rng((trainer, turn))
    for _ in range(count):
        # A few ids are met often and most of them hardly ever, as with real advertisements.
        ids = np.minimum(chance.zipf(1.3, (size, SLOTS)) - 1, IDS - 1)
        numbers = chance.normal(0, 1, (size, NUMBERS))
        score = weights[np.arange(SLOTS), ids].sum(axis=1) + numbers @ slopes - 1.0
        clicks = chance.random(size) < 1 / (1 + np.exp(-score))
        yield ids.astype(np.int64), numbers.astype(np.float32), clicks.astype(np.int64).reshape(-1, 1)

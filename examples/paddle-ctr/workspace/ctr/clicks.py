"""Synthetic clicks: impressions of advertisements, and whether they were clicked, drawn from a hidden preference model.

Each impression has eight categorical features (who, where, what) and four numbers. One preference model, drawn once
from a fixed seed, gives each feature a weight; the sum of the weights determines the probability of a click. A model
that learns the weights of the ids it has seen can separate clicks from the rest, an untrained one cannot.
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
    """One pass of one trainer over its share of the data; deterministic."""
    taste = np.random.default_rng(_TASTE_SEED)
    weights = taste.normal(0, 0.9, (SLOTS, IDS))
    slopes = taste.normal(0, 0.5, NUMBERS)
    chance = np.random.default_rng((trainer, turn))
    for _ in range(count):
        # A few ids are frequent and most are rare, as with real advertisements.
        ids = np.minimum(chance.zipf(1.3, (size, SLOTS)) - 1, IDS - 1)
        numbers = chance.normal(0, 1, (size, NUMBERS))
        score = weights[np.arange(SLOTS), ids].sum(axis=1) + numbers @ slopes - 1.0
        clicks = chance.random(size) < 1 / (1 + np.exp(-score))
        yield ids.astype(np.int64), numbers.astype(np.float32), clicks.astype(np.int64).reshape(-1, 1)

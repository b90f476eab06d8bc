"""How well guesses tell clicks from the rest: the area under the curve, over everything that was added."""

from __future__ import annotations

import numpy as np

_BINS = 4096


class Scores:
    """Counts by how sure a guess was; exact to one part in four thousand, however much is added."""

    def __init__(self) -> None:
        self._clicked = np.zeros(_BINS, dtype=np.int64)
        self._passed = np.zeros(_BINS, dtype=np.int64)

    def add(self, guesses: np.ndarray, clicks: np.ndarray) -> None:
        bins = np.clip((guesses.reshape(-1) * _BINS).astype(np.int64), 0, _BINS - 1)
        clicked = clicks.reshape(-1) > 0
        self._clicked += np.bincount(bins[clicked], minlength=_BINS)
        self._passed += np.bincount(bins[~clicked], minlength=_BINS)

    def auc(self) -> float:
        """How often a click has the higher guess of a pair; ties count half. Half where there is nothing to compare."""
        clicked, passed = int(self._clicked.sum()), int(self._passed.sum())
        if not clicked or not passed:
            return 0.5
        below = np.cumsum(self._passed) - self._passed
        return float((self._clicked * (below + self._passed / 2)).sum() / (clicked * passed))

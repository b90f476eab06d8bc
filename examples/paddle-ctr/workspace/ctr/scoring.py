"""AUC, the area under the ROC curve, over everything that was added."""

from __future__ import annotations

import numpy as np

_BINS = 4096


class Scores:
    """Histograms of the predictions; accurate to one part in four thousand for any number of samples."""

    def __init__(self) -> None:
        self._clicked = np.zeros(_BINS, dtype=np.int64)
        self._passed = np.zeros(_BINS, dtype=np.int64)

    def add(self, guesses: np.ndarray, clicks: np.ndarray) -> None:
        bins = np.clip((guesses.reshape(-1) * _BINS).astype(np.int64), 0, _BINS - 1)
        clicked = clicks.reshape(-1) > 0
        self._clicked += np.bincount(bins[clicked], minlength=_BINS)
        self._passed += np.bincount(bins[~clicked], minlength=_BINS)

    def auc(self) -> float:
        """Probability that a click has a higher prediction than a non-click; ties count half. 0.5 without pairs."""
        clicked, passed = int(self._clicked.sum()), int(self._passed.sum())
        if not clicked or not passed:
            return 0.5
        below = np.cumsum(self._passed) - self._passed
        return float((self._clicked * (below + self._passed / 2)).sum() / (clicked * passed))

"""The gradient of a global batch, independent of the number of workers.

Each slot of a batch has the same samples, hence the same gradient, wherever it is computed. Only the order in which the
slots are added can differ, and sums of floats depend on it. They are therefore added in double precision, within a
worker and between workers, and rounded once: another order changes the sum by about 1e-16 of its size, which the
rounding to single precision (6e-8) hides for all but very few parameters.

Loss and accuracy are part of the same sum, so that a step needs one all-reduce.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Score:
    """Mean loss, top-1 and top-5 accuracy in percent of some samples."""

    samples: int
    loss: float
    top1: float
    top5: float


class Tally:
    """Adds up losses, correct predictions and (with parameters) gradients; `share` sums over all workers."""

    def __init__(self, parameters: list[nn.Parameter], device: torch.device) -> None:
        self._parameters = parameters
        self._sizes = [parameter.numel() for parameter in parameters]
        self._sums = torch.zeros(sum(self._sizes) + 4, dtype=torch.float64, device=device)

    def add(self, logits: Tensor, labels: Tensor) -> None:
        """Add one slot; computes its gradient if there are parameters."""
        loss = nn.functional.cross_entropy(logits, labels, reduction="sum")
        if self._parameters:
            slopes = torch.autograd.grad(loss, self._parameters)
            self._sums[:-4] += torch.cat([slope.reshape(-1) for slope in slopes])
        within = (logits.topk(min(5, logits.shape[1])).indices == labels.unsqueeze(1)).sum(0)
        right = torch.stack([within[0], within.sum()])
        self._sums[-4:] += torch.cat([torch.stack([loss.detach(), torch.full_like(loss, len(labels))]), right])

    def share(self) -> Score:
        """Sum over all workers, set the mean gradient of every parameter, and reset."""
        dist.all_reduce(self._sums)
        loss, samples, top1, top5 = self._sums[-4:].tolist()
        mean = (self._sums[:-4] / samples).float()
        for parameter, slope in zip(self._parameters, mean.split(self._sizes), strict=True):
            parameter.grad = slope.view_as(parameter)
        self._sums.zero_()
        return Score(int(samples), loss / samples, 100 * top1 / samples, 100 * top5 / samples)

"""Residual networks for small images.

The shape is ResNet's (two 3x3 convolutions per block, four stages, each half the size and twice the channels of the
one before), narrowed so that a training step takes a fraction of a second on a CPU. Normalisation is by groups of
channels within one image: unlike batch normalisation its result does not depend on which images share a worker.
"""

from __future__ import annotations

from torch import Tensor, nn

ARCHITECTURES = {"resnet10": (1, 1, 1, 1), "resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3)}
WIDTH = 12
GROUPS = 4


def build(arch: str, classes: int) -> nn.Module:
    stages: list[nn.Module] = []
    channels = WIDTH
    for number, blocks in enumerate(ARCHITECTURES[arch]):
        width = WIDTH << number
        for block in range(blocks):
            stages.append(Block(channels, width, stride=2 if number and not block else 1))
            channels = width
    return nn.Sequential(
        nn.Conv2d(3, WIDTH, 3, padding=1, bias=False),
        nn.GroupNorm(GROUPS, WIDTH),
        nn.ReLU(),
        *stages,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(channels, classes),
    )


class Block(nn.Module):
    """Two convolutions around which the input is added."""

    def __init__(self, channels: int, width: int, *, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False),
            nn.GroupNorm(GROUPS, width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.GroupNorm(GROUPS, width),
        )
        nn.init.zeros_(self.body[-1].weight)  # a block starts as its shortcut: learns from the first step on
        self.shortcut = nn.Sequential()
        if stride != 1 or channels != width:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, width, 1, stride=stride, bias=False), nn.GroupNorm(GROUPS, width)
            )

    def forward(self, images: Tensor) -> Tensor:
        return nn.functional.relu(self.body(images) + self.shortcut(images))

"""Images in the layout of tiny-imagenet: `train/<class>/images/*`, `val/<class>/images/*`.

Files are decoded on the first access to a sample, so a worker reads only its own samples. Whether a training image is
rotated depends on the seed, the epoch and the sample, not on the worker that loads it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

MEAN, DEVIATION = 127.5, 64.0


class NoImages(FileNotFoundError):
    """No images were found; the message has the path."""


class Images:
    """One split of a data set."""

    def __init__(self, folder: Path) -> None:
        self.classes = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
        self._files = [
            (file, label)
            for label, name in enumerate(self.classes)
            for file in sorted((folder / name / "images").iterdir())
        ]
        if not self._files:
            raise NoImages(f"no images under {folder}/<class>/images. `python prepare.py` makes some.")
        self._decoded: dict[int, Tensor] = {}

    def __len__(self) -> int:
        return len(self._files)

    def load(self, samples: Sequence[int], *, turn_by: str = "") -> tuple[Tensor, Tensor]:
        """The images, scaled, and their labels; with `turn_by` about half of them are rotated."""
        images = torch.stack([self._turned(sample, turn_by) for sample in samples])
        labels = torch.tensor([self._files[sample][1] for sample in samples])
        return (images.float() - MEAN) / DEVIATION, labels

    def _turned(self, sample: int, turn_by: str) -> Tensor:
        # By 180 degrees: a mirrored grating would belong to another class.
        image = self._image(sample)
        is_turned = bool(turn_by) and random.Random(f"{turn_by}/{sample}").random() < 0.5
        return image.flip(-1, -2) if is_turned else image

    def _image(self, sample: int) -> Tensor:
        if sample not in self._decoded:
            with Image.open(self._files[sample][0]) as file:
                pixels = np.array(file.convert("RGB"))
            self._decoded[sample] = torch.from_numpy(pixels).permute(2, 0, 1)
        return self._decoded[sample]

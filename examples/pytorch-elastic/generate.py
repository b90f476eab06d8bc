"""Draws a small data set in the layout of tiny-imagenet: `{train,val}/<class>/images/*.JPEG`.

A class is a grating of one direction, frequency and tint; its images differ in phase, contrast, position of a bright
spot, and noise. Learnable in two short epochs, and not by colour alone. Deterministic.

    python generate.py FOLDER
"""

from __future__ import annotations

import colorsys
import math
import shutil
import sys
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES, TRAIN, VAL, SIZE = 20, 256, 32, 32  # images are per class
Pixels = np.ndarray


def main(folder: Path) -> None:
    """Create the folder atomically: an existing one is complete."""
    beside = folder.with_name(folder.name + ".part")
    shutil.rmtree(beside, ignore_errors=True)
    for label in range(CLASSES):
        name = f"n{label:08d}"
        draw = np.random.default_rng(label)
        for split, count in (("train", TRAIN), ("val", VAL)):
            images = beside / split / name / "images"
            images.mkdir(parents=True)
            for number in range(count):
                Image.fromarray(picture(label, draw)).save(images / f"{name}_{number}.JPEG", quality=92)
        if sys.stdout.isatty() or label + 1 == CLASSES:
            print(f"\rimages: {label + 1} of {CLASSES} classes", end="", flush=True)
    print()
    shutil.rmtree(folder, ignore_errors=True)
    beside.replace(folder)


def picture(label: int, draw: np.random.Generator) -> Pixels:
    """One image of a class, SIZE x SIZE, RGB."""
    angle = math.pi / 2 * (label % 2) + draw.normal(0, 0.2)
    waves = (3.0, 8.0)[label // 2 % 2] * draw.uniform(0.8, 1.2)
    hue = label // 4 / 5 + draw.normal(0, 0.06)
    y, x = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    along = x * math.cos(angle) + y * math.sin(angle)
    grating = np.sin(2 * math.pi * (waves * along + draw.uniform())) * draw.uniform(0.5, 1.0)
    spot = np.exp(-((x - draw.uniform()) ** 2 + (y - draw.uniform()) ** 2) / 0.02)
    tint = np.array(colorsys.hsv_to_rgb(hue % 1.0, 0.5, 1.0))
    light = 0.5 + 0.3 * grating + 0.3 * spot
    noisy = light[..., None] * tint + draw.normal(0, 0.08, (SIZE, SIZE, 3))
    return (noisy.clip(0, 1) * 255).astype(np.uint8)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Prepares the example: a Python environment with Paddle 3. Idempotent.

The environment is about 900 MB and is created once per machine under `$SHOAL_CACHE` (`~/.cache/shoal`); this folder has
a link to it. Needs access to a package index.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from environments import Environment, point

HERE = Path(__file__).resolve().parent
LINK = HERE / "environment"
PACKAGES = ("paddlepaddle>=3.0,<4", "numpy>=1.26")


def main() -> None:
    point(LINK, Environment("paddle", PACKAGES, "Paddle", "a minute and 900 MB").ready())
    print(f"prepare: ready. Paddle: {LINK}")


if __name__ == "__main__":
    main()

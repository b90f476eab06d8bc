"""Prepares the example: a Python environment with Paddle, and the start command. Idempotent.

The environment is about 600 MB and is created once per machine under `$SHOAL_CACHE` (`~/.cache/shoal`); this folder has
a link to it. Needs Python 3.11, for which Paddle 2.6.2 has wheels, access to a package index, and `shoal` in the same
folder as the Python interpreter, or on the PATH.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from environments import Environment, point

HERE = Path(__file__).resolve().parent
LINK = HERE / "environment"
COMMAND = HERE / "workspace" / "bin" / "paddle_k8s"
PACKAGES = (
    "paddlepaddle==2.6.2",  # later wheels are built without parameter servers
    "numpy>=1.26,<2",
    "protobuf>=4.25,<5",  # the version this Paddle was built with; later ones lack functions it calls
    "setuptools<80",
)


def main() -> None:
    if sys.version_info[:2] != (3, 11):
        sys.exit("prepare: Paddle 2.6.2 has wheels for Python 3.11; run me with that: python3.11 prepare.py")
    point(LINK, Environment("paddle-ps", PACKAGES, "Paddle", "a minute and 600 MB").ready())
    write_command()
    print(f"prepare: ready. Paddle: {LINK}, start command: {COMMAND}")


def write_command() -> None:
    """Create `paddle_k8s` for the pods: a script that calls `shoal muster` by absolute path."""
    beside = Path(sys.executable).parent / "shoal"
    found = str(beside) if beside.exists() else shutil.which("shoal")
    if found is None:
        sys.exit("prepare: there is no shoal beside this Python or on the PATH; install it, then run me again")
    COMMAND.parent.mkdir(parents=True, exist_ok=True)
    fresh = COMMAND.with_name(f".paddle_k8s-{os.getpid()}")
    fresh.write_text(f'#!/bin/sh\nexec {found} muster "$@"\n')
    fresh.chmod(0o755)
    fresh.rename(COMMAND)


if __name__ == "__main__":
    main()

"""Makes what the example needs: a Python environment with Paddle, and the start command. Run it as often as you like.

The environment is about 600 MB and is made once per machine under `$SHOAL_CACHE` (`~/.cache/shoal`); here is only a
link to it. Needs Python 3.11, for which Paddle 2.6.2 has wheels, access to a package index, and `shoal` beside the
Python it is run with, or on the PATH.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
LINK = HERE / "environment"
COMMAND = HERE / "workspace" / "bin" / "paddle_k8s"
PACKAGES = (
    "paddlepaddle==2.6.2",  # later wheels are built without parameter servers
    "numpy>=1.26,<2",
    "protobuf>=4.25,<5",  # what this Paddle was made with; later ones have lost what it asks for
    "setuptools<80",
)


def main() -> None:
    if sys.version_info[:2] != (3, 11):
        sys.exit("prepare: Paddle 2.6.2 has wheels for Python 3.11; run me with that: python3.11 prepare.py")
    place = environment()
    with locked(place.with_suffix(".lock")):
        if not (place / ".ready").exists():
            make_environment(place)
    point_to(place)
    write_command()
    print(f"prepare: ready. Paddle: {LINK}, start command: {COMMAND}")


def environment() -> Path:
    """Where the environment is: a new place when the packages or the Python change."""
    cache = Path(os.environ.get("SHOAL_CACHE") or Path.home() / ".cache" / "shoal")
    wanted = "\n".join((*PACKAGES, sys.version, sys.base_prefix))
    return cache.absolute() / "envs" / f"paddle-ps-{hashlib.sha256(wanted.encode()).hexdigest()[:8]}"


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """One at a time: tests in parallel all ask for the same environment."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def make_environment(place: Path) -> None:
    print(f"prepare: installing Paddle in {place}; a minute and 600 MB, once", flush=True)
    shutil.rmtree(place, ignore_errors=True)
    venv.create(place, with_pip=True, symlinks=True)
    pip: list[str | Path] = [place / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check"]
    try:
        subprocess.run([*pip, "--progress-bar", "off", *PACKAGES], check=True)
    except subprocess.CalledProcessError as failed:
        sys.exit(
            f"prepare: pip ended with code {failed.returncode}. Its message is above; run me again when it is solved."
        )
    (place / ".ready").touch()


def point_to(place: Path) -> None:
    """The link, whole or not at all: others may be reading it."""
    if LINK.is_symlink() and LINK.readlink() == place:
        return
    fresh = HERE / f".environment-{os.getpid()}"
    fresh.symlink_to(place)
    fresh.rename(LINK)


def write_command() -> None:
    """`paddle_k8s` for the pods: our own start command, by the path of the shoal that is used here."""
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

"""Makes what the example needs: a Python environment with Paddle 3. Run it as often as you like.

The environment is about 900 MB and is made once per machine under `$SHOAL_CACHE` (`~/.cache/shoal`); here is only a
link to it. Needs access to a package index.
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
PACKAGES = ("paddlepaddle>=3.0,<4", "numpy>=1.26")


def main() -> None:
    place = environment()
    with locked(place.with_suffix(".lock")):
        if not (place / ".ready").exists():
            make_environment(place)
    point_to(place)
    print(f"prepare: ready. Paddle: {LINK}")


def environment() -> Path:
    """Where the environment is: a new place when the packages or the Python change."""
    cache = Path(os.environ.get("SHOAL_CACHE") or Path.home() / ".cache" / "shoal")
    wanted = "\n".join((*PACKAGES, sys.version, sys.base_prefix))
    return cache.absolute() / "envs" / f"paddle-{hashlib.sha256(wanted.encode()).hexdigest()[:8]}"


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """One at a time: tests in parallel all ask for the same environment."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def make_environment(place: Path) -> None:
    print(f"prepare: installing Paddle in {place}; a minute and 900 MB, once", flush=True)
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


if __name__ == "__main__":
    main()

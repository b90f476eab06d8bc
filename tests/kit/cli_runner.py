"""Commands as people type them, at a cluster of their own as `shoal up` starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from kit.local_cluster import LocalCluster
from shoal.kube.objects import Obj

SHOAL = str(Path(sys.executable).with_name("shoal"))


class Terminal:
    """Types commands at the cluster in a folder."""

    def __init__(self, folder: Path, data: Path | None = None) -> None:
        self.folder = folder
        self.env = {
            **os.environ,
            "SHOAL_DATA": str(data or folder / "data"),
            "KUBECONFIG": "/nowhere",
            "COLUMNS": "120",
        }

    def __call__(self, *words: str, code: int = 0) -> str:
        """What it printed, on both ways and without the name of the changed cluster; it must end with that code."""
        both = subprocess.STDOUT
        made = subprocess.run([SHOAL, *words], env=self.env, stdout=subprocess.PIPE, stderr=both, text=True)
        assert made.returncode == code, made.stdout
        return "".join(line for line in made.stdout.splitlines(keepends=True) if not line.startswith("Cluster: "))

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command that is not waited for; only what goes to standard output is to be read."""
        return subprocess.Popen([SHOAL, *words], env=self.env, stdout=subprocess.PIPE, text=True)

    def file(self, *objects: Obj) -> str:
        path = self.folder / "job.yaml"
        path.write_text("---\n".join(yaml.safe_dump(obj) for obj in objects))
        return str(path)

    def submit(self, *objects: Obj) -> None:
        self("submit", self.file(*objects))


@contextmanager
def at_a_cluster(folder: Path) -> Iterator[Terminal]:
    cluster = LocalCluster(folder / "data")
    cluster.start()
    try:
        yield Terminal(folder)
    finally:
        cluster.stop()

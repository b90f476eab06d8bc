"""Projects: what `shoal submit` takes along of the place it was called in, for the jobs it submits.

A project is the working folder, the choice of an environment and the `images:` of a configuration file. It is stored in
the cluster's data folder, which only the user of the machine can write, under a name made of its content; jobs and
their pods carry that name as an annotation. A client of the API can therefore choose among the projects that are
stored, and cannot make one.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from shoal.kube.messages import Message
from shoal.node.images import Images, read_images

FOLDER = "projects"  # of the data folder
# What selects the programs and libraries that a command finds; all other variables are the cluster's own.
VARIABLES = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONPATH", "LD_LIBRARY_PATH")
_NAME = re.compile(r"[0-9a-f]{40}")


class Project(msgspec.Struct, frozen=True):
    """`env`: None for a variable that is not set. `images`: None where the cluster's own entries hold."""

    working_dir: str
    env: dict[str, str | None]
    images: dict[str, Any] | None = None
    config_file: str = ""

    def environment(self, cluster: Mapping[str, str]) -> dict[str, str]:
        merged = {**cluster, **self.env}
        return {name: value for name, value in merged.items() if value is not None}

    def read_images(self, cluster: Images) -> Images:
        if self.images is None:
            return replace(cluster, job_file=str(Path(self.working_dir) / "shoal.yaml"))
        images = read_images(self.images, config_file=self.config_file, base=Path(self.config_file).parent)
        return replace(images, retry_hint=Message("Retry.Resubmit"))


@dataclass(frozen=True, slots=True)
class Projects:
    """The projects of one data folder."""

    data: Path

    def store(self, project: Project) -> str:
        """Its name; the same project has the same name."""
        text = msgspec.json.encode(project, order="deterministic")
        name = hashlib.sha256(text).hexdigest()[:40]
        folder = self.data / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        draft = folder / f".{name}.{os.getpid()}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
        draft.replace(folder / name)
        return name

    def load(self, name: str) -> Project | None:
        """None where there is none of that name; a file whose content has another name is none."""
        if not _NAME.fullmatch(name):
            return None
        try:
            text = (self.data / FOLDER / name).read_bytes()
        except OSError:
            return None
        if hashlib.sha256(text).hexdigest()[:40] != name:
            return None
        return msgspec.json.decode(text, type=Project)

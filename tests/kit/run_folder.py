"""What all processes of one test run share: a folder, and whether a real control plane can be had."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


def folder_of_the_run(factory: pytest.TempPathFactory, name: str) -> Path:
    """The same for every worker of this run."""
    base = factory.getbasetemp()
    if base.name.startswith("popen-"):  # one of several workers: they share the folder above
        base = base.parent
    return base / name


def needs_a_control_plane() -> None:
    if not os.environ.get("KUBEBUILDER_ASSETS") and shutil.which("go") is None:
        pytest.skip("a real control plane needs its programs in KUBEBUILDER_ASSETS, or Go to build them")

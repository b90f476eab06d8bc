"""From nothing to a trained model on a real control plane: `shoal install`, `shoal node`, and the example's manifest.

The operator's own pod runs on the node too, with the rights it was installed with and no others.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit import control_plane, control_plane_with_node, elastic_group
from kit.control_plane import ControlPlane

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.kubernetes, pytest.mark.processes, pytest.mark.timeout(1800)]


def images(place: Path, metrics: Path) -> dict[str, Any]:
    """The example's images with a place of their own for measurements, and this very checkout as the operator's."""
    found: dict[str, Any] = yaml.safe_load((place / "shoal.yaml").read_text())["images"]
    for entry in found.values():
        entry["mounts"] = {at: str(place / path) if path else None for at, path in entry["mounts"].items()}
        if "python" in entry:
            entry["python"] = str(place / entry["python"])
            entry["mounts"]["/metrics"] = str(metrics.parent)
            entry["env"]["METRICS_FILE"] = f"/metrics/{metrics.name}"
    return {**found, "shoal:*": operator_image()}


def operator_image() -> dict[str, Any]:
    """At places of its own: the operator runs as another user, who may not look into somebody's home."""
    packages = sysconfig.get_path("purelib")
    return {
        "mounts": {"/image/python": sys.base_prefix, "/image/packages": packages, "/image/shoal": str(ROOT / "src")},
        "command": ["/image/python/bin/python3", "-m", "shoal"],
        "env": {"PYTHONPATH": "/image/shoal:/image/packages", "LD_LIBRARY_PATH": "/image/python/lib"},
    }


def install(plane: ControlPlane) -> None:
    """And wait until the operator says that it is ready."""
    shoal = [sys.executable, "-m", "shoal", "install", "--image", "shoal:test", "--replicas", "1"]
    kubectl = [str(control_plane.binaries(["kubectl"]) / "kubectl"), "rollout", "status", "deployment/shoal"]
    for command in (shoal, [*kubectl, "-n", "shoal-system", "--timeout=900s"]):
        done = subprocess.run([*command, f"--kubeconfig={plane.kubeconfig}"], capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{pods(plane)}"


def pods(plane: ControlPlane) -> str:
    """What became of the operator, for whoever has to find out."""
    kubectl = str(control_plane.binaries(["kubectl"]) / "kubectl")
    told = ""
    for words in (("get", "pods", "-A"), ("describe", "pods"), ("logs", "deployment/shoal")):
        command = [kubectl, f"--kubeconfig={plane.kubeconfig}", "-n", "shoal-system", *words]
        done = subprocess.run(command, capture_output=True, text=True)
        told += f"$ kubectl {' '.join(words)}\n{done.stdout}{done.stderr}"
    return told


@pytest.mark.skipif(os.geteuid() != 0, reason="the operator's pod runs as another user, which takes root here")
def test_four_workers_then_two_then_three_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import demo

    elastic_group.prepare()
    folder, metrics = tmp_path / "plane", tmp_path / "measured" / "metrics.jsonl"
    for place in (folder, metrics.parent):
        place.mkdir()
    config = yaml.safe_dump({"images": images(elastic_group.EXAMPLE, metrics)})
    (folder / control_plane_with_node.CONFIG).write_text(config)
    with control_plane_with_node.shared(folder) as plane:
        install(plane)
        monkeypatch.setenv("KUBECONFIG", plane.kubeconfig)
        stage = demo.Stage(str(tmp_path / "nothing"))
        del stage.env["SHOAL_DATA"]  # which would name a cluster of this machine
        stage.type("shoal submit pet.yaml")
        demo.train(stage)
        stage.type("shoal wait pet")
        steps = demo.picture.read(metrics.read_text().splitlines())
        assert [workers for _, workers in demo.picture.worlds(steps)[:-1]] == demo.SIZES

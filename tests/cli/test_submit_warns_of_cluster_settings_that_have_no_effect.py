"""Settings of nodes and network in shoal.yaml take effect when a cluster starts, not when a job is submitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.cli.project import warn_of_settings
from shoal.local.cluster import ClusterConfig
from shoal.local.config import load
from shoal.node.sandbox.interface import Network

GPUS = {"nvidia.com/gpu": "4"}


@pytest.mark.parametrize(
    ("cluster", "named"),
    [
        pytest.param(ClusterConfig(), "capacity, network", id="both differ"),
        pytest.param(ClusterConfig(capacity=GPUS), "network", id="one differs"),
        pytest.param(ClusterConfig(capacity={**GPUS, "a.b/c": "1"}, network=Network.ISOLATED), "", id="it has more"),
    ],
)
def test_settings_that_the_running_cluster_does_not_have_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cluster: ClusterConfig, named: str
) -> None:
    file = tmp_path / "shoal.yaml"
    file.write_text("capacity: {nvidia.com/gpu: 4}\nnetwork: isolated\n")
    warn_of_settings(load(file), cluster.shown())
    assert capsys.readouterr().err.partition(" in ")[0] == (f"Warning: {named}" if named else "")

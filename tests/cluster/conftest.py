"""One port, four places: every test that asks for `place` runs on each of them, as kit/cluster_backends.py describes
them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from kit import cluster_backends, control_plane
from kit.cluster_backends import Place, Reached
from kit.control_plane import ControlPlane
from kit.control_plane_with_node import kubernetes_plane
from kit.embedded_api_server import Running, serve
from kit.run_folder import folder_of_the_run
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import open_client

__all__ = ["kubernetes_plane"]
KUBERNETES = pytest.param("kubernetes", marks=pytest.mark.kubernetes)


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane.shared(folder_of_the_run(tmp_path_factory, "control-plane")) as found:
        yield found


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serve(tmp_path_factory.mktemp("served")) as running:
        yield running


@pytest.fixture(params=["simulated", "embedded", "served", KUBERNETES])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    match request.param:
        case "simulated":
            opening = cluster_backends.simulated()
        case "embedded":
            opening = cluster_backends.embedded()
        case "served":
            opening = cluster_backends.served(request.getfixturevalue("served"))
        case _:
            opening = cluster_backends.kubernetes(request.getfixturevalue("plane"))
    async with opening as made:
        yield made


@pytest.fixture(params=["served", KUBERNETES])
async def reached(request: pytest.FixtureRequest) -> AsyncIterator[Reached]:
    """For what only the client of real clusters has."""
    if request.param == "served":
        kubeconfig = request.getfixturevalue("served").kubeconfig
    else:
        kubeconfig = Path(request.getfixturevalue("plane").kubeconfig)
    async with open_client(from_kubeconfig(kubeconfig)) as cluster:
        yield Reached(request.param, cluster, await cluster_backends.new_namespace(cluster), kubeconfig)

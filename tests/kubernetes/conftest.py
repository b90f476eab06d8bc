"""The operator on a real control plane, with exactly the rights that `shoal install` gives it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator

import pytest

from kit import audited_control_plane, control_plane_with_crds
from kit.control_plane import ControlPlane
from kit.operator_namespace import Ground
from kit.run_folder import folder_of_the_run, needs_a_control_plane
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client


@pytest.fixture(scope="session")
def operated_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    needs_a_control_plane()
    with audited_control_plane.shared(folder_of_the_run(tmp_path_factory, "operated")) as plane:
        yield plane


@pytest.fixture(scope="session")
def littered_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """For tests that leave hundreds of namespaces behind."""
    needs_a_control_plane()
    with control_plane_with_crds.shared(folder_of_the_run(tmp_path_factory, "littered")) as plane:
        yield plane


@pytest.fixture
async def admin(operated_plane: ControlPlane) -> AsyncIterator[KubernetesCluster]:
    from pathlib import Path

    async with open_client(from_kubeconfig(Path(operated_plane.kubeconfig))) as cluster:
        yield cluster


@pytest.fixture
async def ground(operated_plane: ControlPlane, admin: KubernetesCluster, tmp_path: object) -> AsyncIterator[Ground]:
    """A namespace for jobs and one for the operator, both new, the operator serving the first alone."""
    made = Ground(operated_plane, admin, tmp_path, secrets.token_hex(4))  # type: ignore[arg-type]
    await made.make()
    yield made
    await made.clear()

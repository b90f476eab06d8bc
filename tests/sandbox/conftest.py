"""Every behaviour is shown on both kinds of network, where the machine has both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path

import pytest

from kit.sandboxes import Place, opened
from shoal.node.host_checks import probe_host
from shoal.node.sandbox.interface import Network


@cache
def allowed() -> dict[str, object]:
    return dict(probe_host())


@pytest.fixture(params=list(Network), ids=lambda network: network.value)
def network(request: pytest.FixtureRequest) -> Network:
    if request.param is Network.ISOLATED and not allowed()["network"]:
        pytest.skip(f"no networks for pods here: {allowed()['network_detail']}")
    wanted: Network = request.param
    return wanted


@pytest.fixture
async def place(tmp_path: Path, network: Network) -> AsyncIterator[Place]:
    async with opened(tmp_path, network) as place:
        yield place


@pytest.fixture
def needs_isolation() -> None:
    if not allowed()["network"]:
        pytest.skip(f"no networks for pods here: {allowed()['network_detail']}")


@pytest.fixture
async def isolated(tmp_path: Path, needs_isolation: None) -> AsyncIterator[Place]:
    async with opened(tmp_path, Network.ISOLATED) as place:
        yield place


@pytest.fixture
async def loopback(tmp_path: Path) -> AsyncIterator[Place]:
    async with opened(tmp_path, Network.LOOPBACK) as place:
        yield place

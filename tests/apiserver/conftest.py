"""The application in place, over a store in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kit.asgi_client import Asgi
from kit.scripted_node import ScriptedNode
from shoal.apiserver.app import build_application
from shoal.cluster.embedded import EmbeddedCluster

TOKEN = "let-me-in"


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    made = await EmbeddedCluster.open(":memory:")
    made.nodes["node-1"] = ScriptedNode()
    yield made
    await made.close()


@pytest.fixture
def node(cluster: EmbeddedCluster) -> ScriptedNode:
    found = cluster.nodes["node-1"]
    assert isinstance(found, ScriptedNode)
    return found


@pytest.fixture
def http(cluster: EmbeddedCluster) -> Asgi:
    return Asgi(build_application(cluster, token=TOKEN), TOKEN)

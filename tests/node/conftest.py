"""A cluster in memory, and the sandboxes of this machine, for the tests of the node."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.pods import config
from shoal.cluster.embedded import EmbeddedCluster
from shoal.node.config import NodeConfig
from shoal.node.sandbox.sandbox_manager import SandboxManager


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    opened = await EmbeddedCluster.open(":memory:")
    yield opened
    await opened.close()


@pytest.fixture
def data() -> Iterator[Path]:
    """A folder with a short name: sockets lie in it."""
    with tempfile.TemporaryDirectory(prefix="shoal-") as folder:
        yield Path(folder)


@pytest.fixture
async def keepers(data: Path) -> AsyncIterator[SandboxManager]:
    """Real sandboxes. What a test leaves running is killed."""
    opened = await SandboxManager.open(data / "sandboxes")
    yield opened
    for sandbox in (await opened.adopt())[0]:
        await sandbox.close()
    await opened.close()


@pytest.fixture
def real_config(data: Path) -> Callable[..., NodeConfig]:
    """The node of this machine's real processes: the test's own environment, the root as working folder."""

    def make(**more: Any) -> NodeConfig:
        return config(data, **{"caller_env": dict(os.environ), "working_dir": "/", **more})

    return make

"""The elastic example's own modules, importable by their names; and its environment, made once."""

from __future__ import annotations

import sys

import pytest

from kit import elastic_group

for place in ("workspace/lib", "workspace/examples/imagenet", "."):
    sys.path.append(str(elastic_group.EXAMPLE / place))


@pytest.fixture(scope="session")
def torch_environment() -> None:
    """torch, etcd and the images. The first time on a machine this installs them, which takes minutes."""
    elastic_group.prepare()

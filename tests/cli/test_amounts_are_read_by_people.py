"""Nodes say what they have in units a person thinks in."""

from __future__ import annotations

import pytest

from shoal.cli.node_format import format_allocatable

ROOMS = [
    pytest.param({"cpu": "2", "memory": "24682416Ki"}, "2 cpu, 23.5 GiB memory", id="as measured"),
    pytest.param({"cpu": "500m", "memory": "64Gi"}, "500m cpu, 64 GiB memory", id="as declared"),
    pytest.param({"memory": "512M", "nvidia.com/gpu": "4"}, "488.3 MiB memory, 4 nvidia.com/gpu", id="decimal"),
    pytest.param({"memory": "1023", "pods": "110", "ephemeral-storage": "9Ki"}, "1023 B memory", id="hardly any"),
    pytest.param({"memory": "4096Pi"}, "4096 PiB memory", id="more than there are units"),
    pytest.param({}, "", id="nothing yet"),
]


@pytest.mark.parametrize(("room", "words"), ROOMS)
def test_allocatable_resources_are_formatted(room: dict[str, str], words: str) -> None:
    assert format_allocatable(room) == words

"""What the nodes of a machine are called: its host name, as a label can have it."""

from __future__ import annotations

import pytest

from shoal.kube.names import dns_label
from shoal.local.cluster import MAX_NODE_NAME_LENGTH, node_name

HOSTNAMES = [
    pytest.param("laptop", "laptop", id="as it is"),
    pytest.param("Anna_s.Laptop.local", "anna-s-laptop-local", id="other letters"),
    pytest.param("a" * 64, "a" * MAX_NODE_NAME_LENGTH, id="the longest a kernel allows"),
    pytest.param("a" * 59 + "--b", "a" * 59, id="cut at a dash"),
    pytest.param("__", "node", id="nothing left"),
]


@pytest.mark.parametrize(("hostname", "name"), HOSTNAMES)
def test_a_node_has_a_name_that_is_a_label_with_its_number_too(hostname: str, name: str) -> None:
    assert (node_name(hostname), dns_label(f"{name}-63")) == (name, [])

"""A pod's questions about names go to the machine's name servers, with the machine's settings."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.node.sandbox.external_dns import failure_reply, resolv_conf, servers

QUESTION = struct.pack(">HHHHHH", 77, 0x0100, 1, 0, 0, 1) + b"\4data\7example\0\0\1\0\1" + b"\0\0\x29\4\xd0" + bytes(6)


@pytest.mark.parametrize(
    ("machines", "pods", "found"),
    [
        pytest.param("", "nameserver 10.77.0.1\n", [], id="nothing"),
        pytest.param(
            "# by hand\nnameserver 127.0.0.53\nnameserver ::1\noptions edns0\nsearch a b\n",
            "nameserver 10.77.0.1\noptions edns0\nsearch a b\n",
            ["127.0.0.53", "::1"],
            id="settings stay, servers do not",
        ),
        pytest.param("nameserver\n\n  \n", "nameserver 10.77.0.1\n", [], id="half a line"),
    ],
)
def test_pods_get_the_machines_settings_and_another_server(machines: str, pods: str, found: list[str]) -> None:
    assert resolv_conf(machines, "10.77.0.1") == pods
    assert servers(machines) == found


def test_an_unanswered_query_gets_a_failure_reply() -> None:
    head = struct.pack(">HHHHHH", 77, 0x8182, 1, 0, 0, 0)

    assert failure_reply(QUESTION) == head + b"\4data\7example\0\0\1\0\1"


@given(data=st.one_of(st.binary(max_size=60), st.integers(0, len(QUESTION)).map(lambda end: QUESTION[:end])))
def test_what_is_no_question_gets_no_answer(data: bytes) -> None:
    answer = failure_reply(data)

    assert answer is None or answer[:2] == data[:2]

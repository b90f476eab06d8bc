"""The operator's pages: alive as long as it answers, ready when every part is, listening where it is told."""

from __future__ import annotations

import pytest

from shoal.controller_runtime.health import Address, ComponentReadiness, HttpPage, health_pages

READY, LATE = ComponentReadiness("shard 0", True, "leads"), ComponentReadiness("shard 1", False, "reads Framework jobs")
CASES = {
    "before the start": ([], HttpPage("not started: the cluster is being looked at\n", 503)),
    "all ready": ([READY], HttpPage("shard 0: leads\n", 200)),
    "one is late": ([READY, LATE], HttpPage("shard 0: leads\nshard 1: reads Framework jobs\n", 503)),
}


@pytest.mark.parametrize(("parts", "page"), CASES.values(), ids=CASES)
def test_it_is_ready_when_every_part_is(parts: list[ComponentReadiness], page: HttpPage) -> None:
    pages = health_pages(lambda: parts)
    assert pages["/readyz"]() == page
    assert pages["/healthz"]() == HttpPage("ok\n")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8080", Address("127.0.0.1", 8080)),
        (":8080", Address("", 8080)),
        ("[::1]:0", Address("::1", 0)),
        ("localhost:443", Address("localhost", 443)),
    ],
)
def test_addresses_are_read(text: str, address: Address) -> None:
    assert Address.parse(text) == address


@pytest.mark.parametrize("text", ["8080", "host:", "host:port", "host:70000", ""])
def test_other_texts_are_no_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="should be HOST:PORT"):
        Address.parse(text)

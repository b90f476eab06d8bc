"""Without TLS the server listens on this machine's own addresses only."""

from __future__ import annotations

import pytest

from shoal.apiserver.server import ServerListenError, check_address


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_loopback_needs_no_tls(host: str) -> None:
    check_address(host, encrypted=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "10.0.0.1"])
def test_an_address_others_can_reach_needs_tls(host: str) -> None:
    check_address(host, encrypted=True)
    with pytest.raises(ServerListenError, match="without TLS"):
        check_address(host, encrypted=False)


def test_a_name_that_does_not_resolve_is_an_error() -> None:
    with pytest.raises(ServerListenError, match="is no address of this machine"):
        check_address("nowhere.invalid", encrypted=False)

"""What a client wants of its proxy is read from the head of its request, and handed on in the right form."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.node.sandbox.http_proxy import BadRequest, ProxyRequest, parse


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param("CONNECT a.example:443 HTTP/1.1", ProxyRequest("CONNECT", "a.example", 443, "", ()), id="tunnel"),
        pytest.param("CONNECT [::1]:443 HTTP/1.1", ProxyRequest("CONNECT", "::1", 443, "", ()), id="tunnel to IPv6"),
        pytest.param("GET http://a/ HTTP/1.1", ProxyRequest("GET", "a", 80, "/", ()), id="plain"),
        pytest.param("GET http://a HTTP/1.0", ProxyRequest("GET", "a", 80, "/", ()), id="no path"),
        pytest.param("GET http://a:81/b?c=d HTTP/1.1", ProxyRequest("GET", "a", 81, "/b?c=d", ()), id="port and query"),
        pytest.param(
            "PUT http://a/ HTTP/1.1\r\nHost: a\r\nX:  y ",
            ProxyRequest("PUT", "a", 80, "/", (("Host", "a"), ("X", "y"))),
            id="headers",
        ),
    ],
)
def test_the_destination_of_a_request_is_parsed(head: str, expected: ProxyRequest) -> None:
    assert parse(head.encode() + b"\r\n\r\n") == expected


@pytest.mark.parametrize(
    ("head", "message"),
    [
        pytest.param("hello", "this is an HTTP/1.1 proxy, and that was no HTTP/1.1 request", id="no HTTP"),
        pytest.param("GET / HTTP/2", "this is an HTTP/1.1 proxy, and that was no HTTP/1.1 request", id="HTTP/2"),
        pytest.param("CONNECT a HTTP/1.1", "CONNECT wants host:port, not a", id="tunnel without port"),
        pytest.param("CONNECT a:b HTTP/1.1", "CONNECT wants host:port, not a:b", id="port that is none"),
        pytest.param(
            "GET /x HTTP/1.1",
            "a proxy is asked for http://host/path or CONNECT host:port, not /x",
            id="a server's form",
        ),
        pytest.param("GET http://[a/ HTTP/1.1", "not a URL: http://[a/", id="broken address"),
        pytest.param("GET http://a/ HTTP/1.1\r\nnonsense", "a header without a colon: nonsense", id="broken header"),
    ],
)
def test_malformed_requests_are_rejected_with_a_message(head: str, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse(head.encode() + b"\r\n\r\n")
    assert str(refused.value) == message


@given(head=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(head: bytes) -> None:
    with suppress(BadRequest):
        assert parse(head + b"\r\n\r\n").port > 0


def test_a_server_gets_one_request_without_the_proxys_headers() -> None:
    headers = (("Host", "a"), ("Proxy-Connection", "keep-alive"), ("Proxy-Authorization", "x"), ("Accept", "*/*"))
    request = ProxyRequest("GET", "a", 81, "/b", headers)

    assert request.for_server() == b"GET /b HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    assert request.for_proxy(("Proxy-Authorization", "y")) == (
        b"GET http://a:81/b HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nProxy-Authorization: y\r\nConnection: close\r\n\r\n"
    )

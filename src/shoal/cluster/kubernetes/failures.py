"""What went wrong on the way to a server, in one message with the way out.

An error response keeps the server's own message and code. Everything before that (no such host, an unknown
certificate, a server that is not Kubernetes at all) becomes `Unreachable`, whose message a person can act on.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from shoal.cluster.client import OutcomeUnknown
from shoal.cluster.kubeconfig import ConnectionConfig
from shoal.cluster.kubernetes.api_request import OVERLOADED, RequestFailure
from shoal.cluster.kubernetes.connection_pool import ConnectFailed, StaleConnection
from shoal.cluster.kubernetes.http1 import Response
from shoal.kube.errors import ApiError

_NOT_RETRIED = 400  # represents what time does not heal: it is not retried
_EXPIRED, _NOT_YET_VALID, _OTHER_NAME, _OTHER_ADDRESS = 10, 9, 62, 64
_decode = msgspec.json.Decoder().decode


class Unreachable(ConnectionError):
    """No request was sent: there is no way to the server, or it is no API server. The message has the reason."""


def transport_failure(problem: Exception, connection: ConnectionConfig, what: str) -> RequestFailure:
    """A request that was not answered: never sent, or sent and its fate unknown."""
    if isinstance(problem, aiohttp.ClientHttpProxyError):
        message = (
            f"the proxy {_without_password(connection.proxy)} refused the way to {connection.url}: {problem.message}"
        )
        return RequestFailure(Unreachable(message), code=_NOT_RETRIED, may_have_succeeded=False)
    if isinstance(problem, aiohttp.ClientProxyConnectionError):
        proxy = _without_password(connection.proxy)
        message = f"{connection.url} cannot be reached: its proxy {proxy} does not answer. Is that its address?"
        return RequestFailure(Unreachable(message), may_have_succeeded=False)
    cause = _connect_error(problem)
    if cause is not None:
        final = isinstance(cause, socket.gaierror | ValueError)
        return RequestFailure(
            Unreachable(_connect_message(cause, connection)),
            code=_NOT_RETRIED if final else 0,
            may_have_succeeded=False,
        )
    reason = str(problem) or type(problem).__name__
    message = f"{what} was not answered by {connection.url}: {reason}"
    return RequestFailure(OutcomeUnknown(message), was_stale=isinstance(problem, StaleConnection))


def _connect_error(problem: Exception) -> Exception | None:
    """Why no connection was made; None where there was one."""
    if isinstance(problem, ConnectFailed):
        return problem.problem
    if isinstance(problem, aiohttp.ClientConnectorCertificateError):
        return problem.certificate_error
    if isinstance(problem, aiohttp.ClientConnectorError):
        return problem.os_error
    return problem if isinstance(problem, UnicodeError) else None


def _connect_message(cause: Exception, connection: ConnectionConfig) -> str:
    url = connection.url
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _certificate_message(cause, url)
    if isinstance(cause, socket.gaierror):
        host = URL(connection.proxy or url).host
        return f"{url} cannot be reached: there is no host {host} here. Check the address"
    if isinstance(cause, ssl.SSLError):
        if "WRONG_VERSION_NUMBER" in str(cause) or "record layer" in str(cause):
            return f"{url} does not speak TLS. Should the address begin with http://, or have another port?"
        return f"{url} cannot be reached: TLS failed: {cause.strerror or cause}"
    if isinstance(cause, UnicodeError):  # of a length or with letters that no name can have
        what = f"tls-server-name {connection.server_name!r}" if connection.server_name else "host"
        return f"{url} cannot be reached: its {what} is no name. Check the address"
    if isinstance(cause, ValueError):
        return f"{url} cannot be asked: {cause}"
    number = cause.errno if isinstance(cause, OSError) else None
    reason = os.strerror(number) if number else str(cause) or type(cause).__name__
    return f"{url} cannot be reached: {reason}. Is the cluster up, and is this its address?"


def _without_password(proxy: str) -> str:
    """A proxy's address without the password that may be in it."""
    scheme, _, rest = proxy.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _certificate_message(problem: ssl.SSLCertVerificationError, url: str) -> str:
    code, detail = problem.verify_code, problem.verify_message.rstrip(".")
    if code in (_EXPIRED, _NOT_YET_VALID):
        return (
            f"the certificate of {url} is out of date ({detail}). Have it renewed, and check the clock of this machine"
        )
    if code in (_OTHER_NAME, _OTHER_ADDRESS):
        return f"the certificate of {url} is for another name ({detail}). Use that name, or give it as tls-server-name"
    return (
        f"{url} shows a certificate that is not signed by an authority we trust ({detail}). "
        f"Is this the right server? Then give its certificate-authority"
    )


def response_failure(response: Response, connection: ConnectionConfig, what: str) -> RequestFailure:
    """A request that was answered with a code that is no success."""
    code, body = response.status, response.body
    retry_after = response.headers.get("retry-after", "")
    wait = float(retry_after) if retry_after.isdigit() else None  # API servers do not use the form with a date
    try:
        found = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    if isinstance(found, dict) and found.get("kind") == "Status":
        error = error_from_status(found, code)
    else:
        # A proxy in front of an API server returns these in its place, with a message of its own.
        is_from_proxy = code in (401, 403, 429) or code >= 500
        # An API server has no Status for groups it does not serve, only this text.
        is_unknown_group = code == 404 and body.strip() == b"404 page not found" and " /apis/" in what
        if not is_from_proxy and not is_unknown_group:
            return RequestFailure(Unreachable(_not_kubernetes(response, connection, what)), code=400)
        text = " ".join(body.decode(errors="replace").split())[:300]
        error = ApiError(code, "", text or f"{what} was answered {code}")
    if code == 401:
        return RequestFailure(ApiError(401, "Unauthorized", _unauthorized_message(connection), error.details), code=401)
    if any(cause.reason == "DisruptionBudget" for cause in error.causes):
        return RequestFailure(error, code=400)  # an eviction that may not be: a 429 that does not mean us
    if code == OVERLOADED and wait is None:
        wait = float((error.details or {}).get("retryAfterSeconds") or 1)
    return RequestFailure(error, code=code, wait_seconds=wait)


def error_from_status(status: dict[str, Any], code: int = 0) -> ApiError:
    """A Status as the error it is."""
    return ApiError(
        code or status.get("code") or 500, status.get("reason") or "", status.get("message") or "",
        status.get("details"),
    )  # fmt: skip


def not_json(connection: ConnectionConfig, what: str) -> Unreachable:
    """A success whose content is not Kubernetes'."""
    url = connection.url
    return Unreachable(f"{url} does not answer as a Kubernetes API server: {what} is no JSON object. Check the address")


def _not_kubernetes(response: Response, connection: ConnectionConfig, what: str) -> str:
    if response.status == 400 and b"HTTP request to an HTTPS server" in response.body:
        return f"{connection.url} speaks TLS only. The address should begin with https://"
    message = response.headers.get("content-type", "").partition(";")[0].strip() or "nothing"
    return (
        f"{connection.url} does not answer as a Kubernetes API server: {what} got {response.status} and {message}. "
        f"Check the address"
    )


def _unauthorized_message(connection: ConnectionConfig) -> str:
    from cryptography import x509  # slow to import, and seldom needed

    why = "its credentials are wrong or have run out"
    with contextlib.suppress(ValueError):  # there is no certificate, or it is none
        end = x509.load_pem_x509_certificate(connection.certificate).not_valid_after_utc
        if end < datetime.now(UTC):
            why = f"its client certificate ran out on {end:%Y-%m-%d}"
    user_description = connection.user_description or "this user"
    return f"{connection.url} does not let in {user_description}: {why}. Log in again"


def deadline_exceeded(connection: ConnectionConfig, what: str, seconds: float) -> RequestFailure:
    return RequestFailure(OutcomeUnknown(f"{what} was not answered by {connection.url} within {seconds:g} s"))

"""Executing what a probe or a lifecycle hook specifies: run a command, open a connection, send an HTTP request.

Everything happens from inside the pod, through its sandbox, so that what is checked is what the pod itself would
observe. A result is either ok or carries the message a person reads in the events.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping

from shoal.kube.messages import Message
from shoal.kube.objects import Obj
from shoal.node.messages import MessageError
from shoal.node.pod_lifecycle import all_containers
from shoal.node.probe_results import ProbeResult
from shoal.node.sandbox.interface import Sandbox, ShimLost

MAX_OUTPUT_BYTES = 10 << 10
MAX_RESPONSE_BYTES = 10 << 10


class NoSuchPort(MessageError):
    """A probe or hook names a port that no container of the pod has."""


async def run_handler(
    sandbox: Sandbox, process: str, pod: Obj, container: Obj, handler: Obj, *, ip: str, timeout: float
) -> ProbeResult:
    """The result of one probe or hook. Never raises for what the container did; a lost shim is a failed result."""
    try:
        if command := handler.get("exec"):
            return await run_command(sandbox, process, tuple(command.get("command") or ()), timeout)
        if request := handler.get("httpGet"):
            return await asyncio.wait_for(probe_http(sandbox, pod, container, request, ip, timeout), timeout)
        if connection := handler.get("tcpSocket"):
            return await probe_tcp(sandbox, pod, container, connection, ip, timeout)
        if pause := handler.get("sleep"):
            await asyncio.sleep(float(pause["seconds"]))
            return ProbeResult(True)
    except TimeoutError:
        return ProbeResult(False, Message("Handler.TimedOut", {"seconds": timeout}))
    except OSError as refused:
        return ProbeResult(False, _describe_error(refused, timeout))
    except (NoSuchPort, ShimLost) as error:
        return ProbeResult(False, error.message)
    except ValueError as error:
        return ProbeResult(False, str(error))
    if "grpc" in handler:
        return ProbeResult(False, Message("Handler.GrpcNotSupported"))
    unknown = Message("Handler.Unknown", {"handlers": list(handler)}) if handler else Message("Handler.Empty")
    return ProbeResult(False, unknown)


def port_number(pod: Obj, container: Obj, port: int | str) -> int:
    """A number, or the name of one of the container's ports (or, as kubelets allow, of another's)."""
    if isinstance(port, int) or port.isdigit():
        return int(port)
    for owner in [container, *all_containers(pod)]:
        for named in owner.get("ports") or ():
            if named.get("name") == port:
                return int(named["containerPort"])
    raise NoSuchPort(Message("Handler.NoSuchPort", {"port": port}))


async def run_command(sandbox: Sandbox, process: str, argv: tuple[str, ...], timeout: float) -> ProbeResult:
    execution = await sandbox.execute(process, argv)
    kept = b""
    try:
        async with asyncio.timeout(timeout):
            await execution.close_stdin()
            async for _, data in execution.output():
                kept += data[: MAX_OUTPUT_BYTES - len(kept)]
            code = await execution.wait()
    except TimeoutError:
        await execution.kill()
        return ProbeResult(False, Message("Handler.CommandTimedOut", {"command": " ".join(argv), "seconds": timeout}))
    except asyncio.CancelledError:  # the caller is cancelled: the container is being stopped
        await execution.kill()
        raise
    return ProbeResult(code == 0, kept.decode(errors="replace").strip())


async def probe_tcp(sandbox: Sandbox, pod: Obj, container: Obj, handler: Obj, ip: str, timeout: float) -> ProbeResult:
    host, port = handler.get("host") or ip, port_number(pod, container, handler["port"])
    try:
        (await sandbox.dial(host, port, timeout=timeout)).close()
    except OSError as refused:
        cause = _describe_error(refused, timeout)
        return ProbeResult(False, Message("Handler.NotConnected", {"address": f"{host}:{port}", "cause": cause}))
    return ProbeResult(True)


def _describe_error(refused: OSError, timeout: float) -> Message | str:
    if isinstance(refused, TimeoutError):
        return Message("Handler.NoAnswer", {"seconds": timeout})
    if isinstance(refused, ssl.SSLError):  # its number is not one of the kernel's
        return str(refused.strerror or refused)
    return (os.strerror(refused.errno) if refused.errno else str(refused)).lower()


async def probe_http(sandbox: Sandbox, pod: Obj, container: Obj, handler: Obj, ip: str, timeout: float) -> ProbeResult:
    scheme = str(handler.get("scheme") or "HTTP").lower()
    host, port = handler.get("host") or ip, port_number(pod, container, handler["port"])
    path = handler.get("path") or "/"
    path = path if path.startswith("/") else f"/{path}"
    url = f"{scheme}://{host}:{port}{path}"
    headers = {h["name"]: h["value"] for h in handler.get("httpHeaders") or ()}
    try:
        connection = await sandbox.dial(host, port, timeout=timeout)
    except OSError as refused:
        parameters = {"url": url, "address": f"{host}:{port}", "cause": _describe_error(refused, timeout)}
        return ProbeResult(False, Message("Handler.NotRequested", parameters))
    reader, writer = await asyncio.open_connection(
        sock=connection,
        ssl=tls_context() if scheme == "https" else None,
        server_hostname=host if scheme == "https" else None,
    )
    try:
        writer.write(http_request(path, f"{host}:{port}", headers))
        await writer.drain()
        status_line = await reader.readline()
        await reader.read(MAX_RESPONSE_BYTES)
    finally:
        writer.close()
    return check_status(url, status_line)


def tls_context() -> ssl.SSLContext:
    """A probe checks whether the pod answers, not its identity: self-signed certificates are the rule."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def http_request(path: str, host: str, headers: Mapping[str, str]) -> bytes:
    """A header of the probe replaces one of ours; an empty one removes it."""
    fields = {"Host": host, "User-Agent": "kube-probe/shoal", "Accept": "*/*", **headers, "Connection": "close"}
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items() if value != "")]
    return "\r\n".join([*lines, "", ""]).encode()


def check_status(url: str, status_line: bytes) -> ProbeResult:
    parts = status_line.decode("latin-1").split()
    if len(parts) < 2 or not parts[0].startswith("HTTP/") or not parts[1].isdigit():
        return ProbeResult(False, Message("Handler.NotHttp", {"url": url}))
    code = int(parts[1])
    if 200 <= code < 400:
        return ProbeResult(True)
    return ProbeResult(False, Message("Handler.StatusCode", {"code": code}))

"""A command in a container, over a websocket.

What the messages mean is in `shoal.cluster.exec_streams`. Version 4 of the protocol cannot say that stdin has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec

from shoal.cluster.client import ExecRequest, OutcomeUnknown, Streams
from shoal.cluster.exec_streams import CLOSE, ERROR, RESIZE, STDERR, STDIN, STDOUT, V4, V5
from shoal.cluster.kubernetes.api_request import ApiRequest
from shoal.cluster.kubernetes.failures import error_from_status
from shoal.cluster.kubernetes.transport import Transport
from shoal.cluster.kubernetes.url_paths import path_of
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj


async def execute(transport: Transport, pod: str, namespace: str, command: ExecRequest, streams: Streams) -> int:
    """Run it; its exit code. Raises ApiError where it cannot be run, OutcomeUnknown where the connection broke."""
    query: list[tuple[str, str]] = [("command", argument) for argument in command.command]
    if command.container:
        query.append(("container", command.container))
    wanted = {"stdin": streams.stdin is not None, "stdout": True, "stderr": not command.tty, "tty": command.tty}
    query += [(name, "true") for name, is_wanted in wanted.items() if is_wanted]
    path = f"{path_of(POD, namespace, pod, 'exec')}?{urlencode(query)}"
    request = ApiRequest("GET", path, urgent=True, resource="pods")
    try:
        async with transport.websocket(request, (V5, V4)) as websocket:
            return await _run_session(websocket, streams, what=str(request))
    except aiohttp.WSServerHandshakeError as refused:
        # A rejected handshake has only its code; the same request without one returns the message.
        try:
            await transport.send(request)
        except ApiError as error:
            if error.code == refused.status:
                raise error from None
        message = f"{request} was refused: {refused.message or refused.status}"
        raise ApiError(refused.status, "", message) from None


async def _run_session(websocket: aiohttp.ClientWebSocketResponse[bool], streams: Streams, *, what: str) -> int:
    sending = [asyncio.create_task(part) for part in (_send_stdin(websocket, streams), _send_sizes(websocket, streams))]
    try:
        async for message in websocket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel == ERROR:
                return _exit_code(data)
            if data and channel in (STDOUT, STDERR):
                await (streams.stdout if channel == STDOUT else streams.stderr)(data)
    finally:
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
    raise OutcomeUnknown(f"{what}: the connection broke before the command ended")


async def _send_stdin(websocket: aiohttp.ClientWebSocketResponse[bool], streams: Streams) -> None:
    if streams.stdin is None:
        return
    with contextlib.suppress(aiohttp.ClientError, ConnectionError):  # the other direction reports how it ended
        async for data in streams.stdin:
            await websocket.send_bytes(bytes([STDIN]) + data)
        if websocket.protocol == V5:
            await websocket.send_bytes(bytes([CLOSE, STDIN]))


async def _send_sizes(websocket: aiohttp.ClientWebSocketResponse[bool], streams: Streams) -> None:
    if streams.resize is None:
        return
    with contextlib.suppress(aiohttp.ClientError, ConnectionError):
        async for columns, rows in streams.resize:
            await websocket.send_bytes(bytes([RESIZE]) + msgspec.json.encode({"Width": columns, "Height": rows}))


def _exit_code(data: bytes) -> int:
    status: Obj = msgspec.json.decode(data)
    if status.get("status") == "Success":
        return 0
    causes: list[dict[str, Any]] = (status.get("details") or {}).get("causes") or []
    for cause in causes:
        if cause.get("reason") == "ExitCode" and str(cause.get("message", "")).isdigit():
            return int(cause["message"])
    raise error_from_status(status)

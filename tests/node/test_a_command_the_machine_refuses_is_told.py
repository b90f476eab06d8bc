"""A command that cannot run beside a container because the machine refuses: whoever asked for it reads why."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from shoal.cluster.client import ExecRequest, Streams
from shoal.kube.errors import ApiError
from shoal.node.node_api import NodeApi

POD = {
    "metadata": {"name": "p", "namespace": "default", "uid": "u"},
    "spec": {"containers": [{"name": "main"}]},
    "status": {"phase": "Running"},
}


def a_worker(refusal: OSError) -> Any:
    async def execute(*_: object, **__: object) -> None:
        raise refusal

    record = SimpleNamespace(container=lambda _: SimpleNamespace(run=SimpleNamespace(is_running=True, attempt=0)))
    return SimpleNamespace(record=record, container_manager=SimpleNamespace(sandbox=SimpleNamespace(execute=execute)))


@pytest.mark.parametrize(
    ("refusal", "code", "message"),
    [
        (OSError("no command can run beside main: Permission denied"), 503, "no command can run beside main: Per"),
        (ProcessLookupError("gone"), 400, "container main of pod p is not running"),
    ],
)
async def test_the_reason_reaches_the_caller(refusal: OSError, code: int, message: str) -> None:
    services = NodeApi(cast(Any, None), {"u": a_worker(refusal)})
    with pytest.raises(ApiError) as told:
        await services.execute(POD, ExecRequest("", ("true",)), cast(Streams, None))
    assert told.value.code == code
    assert told.value.message.startswith(message)

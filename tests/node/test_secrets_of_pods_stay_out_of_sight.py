"""What a pod gets from a Secret reaches its processes, and neither log, Events nor status, whether it starts or not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from kit.pods import container, phase_is, pod, running_agent, wait_for_pod
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.kinds import EVENT, POD, SECRET
from shoal.kube.objects import Obj
from shoal.logs import KeyValues
from shoal.node.config import NodeConfig
from shoal.node.sandbox.sandbox_manager import SandboxManager

pytestmark = pytest.mark.processes

WORD = "open-sesame-902104711"
WORDS = (WORD, "b3Blbi1zZXNhbWUtOTAyMTA0NzEx")  # as it is, and in base64
Config = Callable[..., NodeConfig]


@pytest.fixture
def log() -> Iterator[list[str]]:
    """Everything that is logged, at any level."""
    lines: list[str] = []
    handler, root = logging.Handler(logging.DEBUG), logging.getLogger()
    handler.emit = lambda record: lines.append(KeyValues().format(record))  # type: ignore[method-assign]
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield lines
    root.setLevel(before)
    root.removeHandler(handler)


VARIABLE = {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "key", "key": "word"}}}
MOUNT = {"name": "key", "mountPath": "/key"}
VOLUME = {"name": "key", "secret": {"secretName": "key"}}
CONTAINERS: dict[str, Obj] = {
    "that succeeds": container("main", "sh", "-c", 'test "$WORD$1" = "$1$(cat /key/word)"', "x", "$(WORD)"),
    "that fails": container("main", "sh", "-c", "exit 3", "x", "$(WORD)"),
    "whose program is not there": container("main", "/no/such/program", "$(WORD)"),
    "that misses a key": container(
        "main", "true", env=[VARIABLE, {"name": "X", "valueFrom": {"secretKeyRef": {"name": "key", "key": "none"}}}]
    ),
    "whose first words fail": container(
        "main", "sleep", "60", lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "exit 4", "$(WORD)"]}}}
    ),
}  # fmt: skip
ENDS = dict.fromkeys(CONTAINERS, "Failed") | {"that succeeds": "Succeeded", "that misses a key": "Pending"}


@pytest.mark.parametrize("name", CONTAINERS)
async def test_a_container(
    cluster: EmbeddedCluster, keepers: SandboxManager, real_config: Config, log: list[str], name: str
) -> None:
    await cluster.create(SECRET, {"metadata": {"name": "key"}, "stringData": {"word": WORD}}, "default")
    made = {"env": [VARIABLE], "volumeMounts": [MOUNT], **CONTAINERS[name]}
    async with running_agent(cluster, keepers, real_config()):
        await cluster.create(POD, pod("p", made, volumes=[VOLUME], restartPolicy="Never"), "default")
        found = await wait_for_pod(cluster, "p", has_its_fate)
        events = (await cluster.list(EVENT, "default")).items
    assert found is not None
    assert found["status"]["phase"] == ENDS[name]
    shown = [str(found["status"]), str(events), *log]
    assert [text for text in shown if any(word in text for word in WORDS)] == []


def has_its_fate(found: Obj | None) -> bool:
    """Ended, or waiting for something that does not come."""
    if phase_is("Succeeded", "Failed")(found):
        return True
    statuses = ((found or {}).get("status") or {}).get("containerStatuses") or ()
    return any("Error" in (status["state"].get("waiting") or {}).get("reason", "") for status in statuses)

"""Tasks of a Paddle job as the article's manifest has them: with our start command in the place of its image's."""

from __future__ import annotations

import sys

from kit.scenario import NAMESPACE
from kit.volcano_world import RealVolcano
from shoal.cluster.client import LogOptions
from shoal.kube.objects import Obj

JOB = "fluid-ctr"
_LABELS = {"pserver": "paddle-job-pserver", "trainer": "paddle-job"}
_FIELDS = {"NAMESPACE": "metadata.namespace", "POD_NAME": "metadata.name", "POD_IP": "status.podIP"}


def member(name: str, entry: str, *, servers: int, trainers: int) -> Obj:
    """The task `pserver` or `trainer`; `entry` is the command line of its program."""
    plain = {
        "PADDLE_JOB_NAME": JOB, "PADDLE_TRAINERS_NUM": str(trainers), "PADDLE_PSERVERS_NUM": str(servers),
        "PADDLE_PORT": "30236", "TRAINING_ROLE": name.upper(), "ENTRY": entry,
    }  # fmt: skip
    env: list[Obj] = [{"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in _FIELDS.items()]
    container = {
        "name": name,
        "image": "volcanosh/edlctr:v1",
        "command": [sys.executable, "-m", "shoal", "muster", "start_fluid"],
        "env": [*env, *({"name": key, "value": value} for key, value in plain.items())],
        "resources": {"requests": {"cpu": "1"}},
    }
    template = {
        "metadata": {"labels": {_LABELS[name]: JOB}},
        "spec": {"restartPolicy": "OnFailure", "containers": [container], "terminationGracePeriodSeconds": 1},
    }
    return {"name": name, "replicas": servers if name == "pserver" else trainers, "template": template}


async def last_line(world: RealVolcano, pod: str) -> str:
    """The last line of the program. The start command prints to stderr, and the two streams have no common order."""
    chunks = [chunk async for chunk in world.user.logs(pod, NAMESPACE, LogOptions())]
    lines = b"".join(chunks).decode().splitlines()
    return [line for line in lines if not line.startswith("muster: ")][-1]

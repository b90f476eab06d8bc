"""Acceptance scenarios of Volcano Jobs: servers and trainers of a Paddle job find each other (31, 33), on a cluster of
ours in the default network, with the start command the manifest of the article asks for."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kit.paddle_jobs import last_line, member
from kit.volcano_jobs import policy, vcjob
from kit.volcano_world import RealVolcano
from shoal.kube.objects import Obj

pytestmark = pytest.mark.processes

# A server tells whoever connects where it listens; a trainer asks every server, and says what it was told.
STUB = """
import json, os, socket, time
endpoints = os.environ["PADDLE_PSERVERS"].split(",")
def ask(endpoint):
    host, port = endpoint.split(":")
    while True:
        try:
            with socket.create_connection((host, int(port))) as connection:
                return json.loads(connection.makefile().read())
        except ConnectionRefusedError:
            time.sleep(0.02)
if os.environ["TRAINING_ROLE"] == "PSERVER":
    mine = next(each for each in endpoints if os.environ["POD_IP"] in each)
    with socket.create_server((mine.split(":")[0], int(mine.split(":")[1]))) as server:
        while True:
            connection, _ = server.accept()
            connection.sendall(json.dumps([os.environ["PADDLE_PSERVER_ID"], *server.getsockname()]).encode())
            connection.close()
print(json.dumps([os.environ["PADDLE_TRAINER_ID"], endpoints, [ask(each) for each in endpoints]]))
"""


def ctr(script: Path) -> Obj:
    """The manifest of the article, with a stub for the training and our start command in its image's place."""
    entry = f"exec {sys.executable} {script}"
    return vcjob(
        "ctr-volcano",
        member("pserver", entry, servers=2, trainers=2),
        {
            **member("trainer", entry, servers=2, trainers=2),
            "policies": [policy("TaskCompleted", "CompleteJob")],
        },
        minAvailable=4,
        schedulerName="volcano",
        policies=[policy("PodEvicted", "RestartJob"), policy("PodFailed", "RestartJob")],
    )


async def test_31_33_servers_and_trainers_have_addresses_and_numbers_of_their_own(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(STUB)
    async with RealVolcano(tmp_path) as world:
        await world.submit(ctr(script))
        await world.in_phase("ctr-volcano", "Completed")
        await world.rest(10)
        left = world.pods_of("ctr-volcano")
        told = [json.loads(await last_line(world, f"ctr-volcano-trainer-{index}")) for index in range(2)]
        assert (world.counts("ctr-volcano"), world.status("ctr-volcano").get("retryCount", 0)) == ({"succeeded": 2}, 0)
    assert left == {"ctr-volcano-trainer-0": "Succeeded", "ctr-volcano-trainer-1": "Succeeded"}
    endpoints = told[0][1]
    addresses = [endpoint.split(":")[0] for endpoint in endpoints]
    assert [endpoint.split(":")[1] for endpoint in endpoints] == ["30236", "30237"]
    assert len(set(addresses)) == 2
    # In the order of the servers' own numbers, so that everybody means the same one by the same place.
    servers = [[str(place), address, 30236 + place] for place, address in enumerate(addresses)]
    assert told == [["0", endpoints, servers], ["1", endpoints, servers]]

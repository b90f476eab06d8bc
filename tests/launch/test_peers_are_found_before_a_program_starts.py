"""The start command of a Paddle job: whom it waits for, how peers are numbered, and what it tells the program."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj
from shoal.launch.paddle_launcher.environment import LauncherConfig, LauncherEnvironmentInvalid, read
from shoal.launch.paddle_launcher.peer_watch import wait
from shoal.launch.paddle_launcher.peers import PeerStatus, TooManyFailed, peer_status, training_env

VARIABLES = {
    "TRAINING_ROLE": "TRAINER",
    "PADDLE_JOB_NAME": "fluid-ctr",
    "POD_NAME": "ctr-trainer-1",
    "NAMESPACE": "default",
    "PADDLE_PSERVERS_NUM": "2",
    "PADDLE_TRAINERS_NUM": "2",
    "PADDLE_PORT": "30236",
    "ENTRY": "python train.py",
}
TRAINER = read(VARIABLES)
SERVER = read({**VARIABLES, "TRAINING_ROLE": "PSERVER", "POD_NAME": "ctr-pserver-10"})
LABELS = {"pserver": "paddle-job-pserver", "trainer": "paddle-job"}


def pod(role: str, index: int, phase: str = "Running", **metadata: Any) -> Obj:
    labels = {LABELS[role]: "fluid-ctr"}
    return {
        "metadata": {"name": f"ctr-{role}-{index}", "labels": labels, **metadata},
        "status": {"phase": phase, "podIP": f"10.0.{int(role == 'trainer')}.{index}"},
    }


ALL = [pod("trainer", 1), pod("pserver", 10), pod("pserver", 9), pod("trainer", 0)]


def test_variables_are_read():
    assert read(VARIABLES) == LauncherConfig(
        "fluid-ctr", "TRAINER", "ctr-trainer-1", "default", 2, 2, 30236, "python train.py"
    )


def test_every_mistake_of_the_variables_is_reported():
    with pytest.raises(LauncherEnvironmentInvalid) as refused:
        read({"TRAINING_ROLE": "WORKER", "PADDLE_PORT": "0", "PADDLE_PSERVERS_NUM": "two", "PADDLE_TRAINERS_NUM": "2"})
    assert str(refused.value).splitlines() == [
        "TRAINING_ROLE is 'WORKER'; it must be PSERVER or TRAINER",
        "PADDLE_JOB_NAME is not set; it names the pods of the job by their label",
        "POD_NAME is not set; take it from the field metadata.name",
        "ENTRY is not set; it is the command line to run",
        "PADDLE_PSERVERS_NUM is 'two'; it must be a whole number of 1 or more",
        "PADDLE_PORT is '0'; it must be a whole number of 1 or more",
    ]


def test_a_trainer_waits_for_everybody_and_a_server_for_servers():
    pods = [
        pod("pserver", 9),
        pod("pserver", 10, "Pending"),
        pod("trainer", 0, deletionTimestamp="2026-01-01T00:00:00Z"),
    ]
    servers = ("paddle-job-pserver=fluid-ctr", 1, 2)
    assert peer_status(TRAINER, pods) == PeerStatus((servers, ("paddle-job=fluid-ctr", 0, 2)))
    assert peer_status(SERVER, pods) == PeerStatus((servers,))
    assert peer_status(TRAINER, ALL).is_complete


def test_names_order_the_members_as_text():
    assert training_env(SERVER, ALL) == {
        "PADDLE_PSERVERS": "10.0.0.10:30236,10.0.0.9:30237",
        "PADDLE_PSERVERS_IP_PORT_LIST": "10.0.0.10:30236,10.0.0.9:30237",
        "PADDLE_TRAINER_IPS": "10.0.1.0,10.0.1.1",
        "PADDLE_TRAINER_ID": "0",
        "PADDLE_PSERVER_ID": "0",
        "TRAINING_ROLE": "PSERVER",
        "PADDLE_PORT": "30236",
        "POD_IP": "10.0.0.10",
    }
    assert training_env(TRAINER, ALL)["PADDLE_TRAINER_ID"] == "1"


def test_no_trainer_starts_after_too_many_failures():
    one, two = ([*ALL, *(pod("trainer", index, "Failed") for index in range(2, 2 + count))] for count in (1, 2))
    assert training_env(TRAINER, one)["PADDLE_TRAINER_ID"] == "1"
    with pytest.raises(TooManyFailed, match="2 trainers of fluid-ctr have failed, 1 may: not starting"):
        training_env(TRAINER, two)


def test_failed_pods_being_deleted_do_not_count():
    failed = [pod("trainer", index, "Failed", deletionTimestamp="2026-01-01T00:00:00Z") for index in (2, 3)]
    assert training_env(TRAINER, [*ALL, *failed])["PADDLE_TRAINER_ID"] == "1"
    assert peer_status(TRAINER, [*ALL, *failed]).ended == ()


def test_a_trainer_that_is_done_already_is_waited_for_no_longer():
    """It was quick: the others may not have seen it run, and nobody comes in its place. A server that ended is gone."""
    servers = [pod("pserver", 9), pod("pserver", 10)]
    done = [*servers, pod("trainer", 0, "Succeeded"), pod("trainer", 1)]
    assert (peer_status(TRAINER, done).is_complete, peer_status(TRAINER, done).ended) == (True, ())
    assert training_env(TRAINER, done) == training_env(TRAINER, ALL)
    without = peer_status(TRAINER, [servers[0], pod("pserver", 10, "Succeeded"), *done[2:]])
    assert (without.is_complete, without.ended) == (False, ("ctr-pserver-10",))


async def put(cluster: EmbeddedCluster, each: Obj) -> None:
    made = {"metadata": each["metadata"], "spec": {"containers": [{"name": "main", "image": "local"}]}}
    await cluster.create(POD, made, "default")
    patch = {"status": each["status"]}
    await cluster.patch(POD, each["metadata"]["name"], "default", patch=patch, subresource="status")


async def test_too_many_failures_end_the_waiting_though_not_all_run():
    cluster = await EmbeddedCluster.open(":memory:")
    said: list[str] = []
    one_ended = asyncio.Event()

    def report(sentence: str) -> None:
        said.append(sentence)
        one_ended.set() if sentence.startswith("ended") else None

    try:
        for each in (*ALL[:3], pod("trainer", 0, "Failed")):
            await put(cluster, each)
        waiting = asyncio.create_task(wait(cluster, TRAINER, "default", report))
        await one_ended.wait()
        await put(cluster, pod("trainer", 2, "Failed"))
        with pytest.raises(TooManyFailed, match="2 trainers of fluid-ctr have failed, 1 may: not starting"):
            await waiting
    finally:
        await cluster.close()
    assert said[2:] == [
        "paddle-job-pserver=fluid-ctr: 2 of 2 are there",
        "paddle-job=fluid-ctr: 1 of 2 are there",
        "ended and waited for no more: ctr-trainer-0; others have to come in their place",
    ]


async def test_the_last_one_to_run_lets_all_begin():
    cluster = await EmbeddedCluster.open(":memory:")
    try:
        for each in ALL[1:]:
            await put(cluster, each)
        said: list[str] = []
        is_counted = asyncio.Event()

        def report(sentence: str) -> None:
            said.append(sentence)
            is_counted.set() if sentence.endswith("1 of 2 are there") else None

        waiting = asyncio.create_task(wait(cluster, TRAINER, "default", report))
        await is_counted.wait()
        assert not waiting.done()
        await put(cluster, ALL[0])
        assert await waiting == training_env(TRAINER, ALL)
        assert said[-2:] == ["paddle-job-pserver=fluid-ctr: 2 of 2 are there", "paddle-job=fluid-ctr: 2 of 2 are there"]
    finally:
        await cluster.close()

"""`shoal muster`: the start command of a container in a Paddle job."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from shoal.cluster.kubeconfig import ConnectionConfig
    from shoal.launch.paddle_launcher.environment import LauncherConfig

_STARTS = ("start", "start_fluid")


@click.command("muster")
@click.argument("what", type=click.Choice(_STARTS), default="start")
def command(what: str) -> None:
    """Wait for the servers and trainers of a Paddle job, then start this pod's program.

    The start command of containers that run `paddle_k8s start_fluid`. Reads TRAINING_ROLE (PSERVER or TRAINER),
    PADDLE_JOB_NAME, PADDLE_PSERVERS_NUM, PADDLE_TRAINERS_NUM, PADDLE_PORT, POD_NAME, NAMESPACE and ENTRY. Servers are
    the pods with the label paddle-job-pserver=JOB, trainers those with paddle-job=JOB. Servers must be running,
    trainers running or succeeded. Then the shell runs ENTRY, with the addresses and this pod's index in
    PADDLE_PSERVERS, PADDLE_PSERVERS_IP_PORT_LIST, PADDLE_TRAINER_IPS, PADDLE_TRAINER_ID and PADDLE_PSERVER_ID. A
    trainer does not start if more than one trainer has failed.

    Uses the API server of the pod's service account; without one, that of SHOAL_KUBECONFIG or KUBECONFIG.
    """
    from shoal.cluster.kubeconfig import ConnectionConfigError
    from shoal.launch.paddle_launcher import environment
    from shoal.launch.paddle_launcher.peers import TooManyFailed

    del what  # both values mean the same
    try:
        config = environment.read(os.environ)
        env = asyncio.run(wait_for_peers(config))
    except (environment.LauncherEnvironmentInvalid, TooManyFailed, ConnectionConfigError) as problem:
        for line in str(problem).splitlines():
            _print(line)
        raise SystemExit(1) from None
    for name, value in env.items():
        _print(f"export {name}={value}")
    _print(config.entry)
    os.execvpe("sh", ["sh", "-c", config.entry], {**os.environ, **env, "PYTHONUNBUFFERED": "1"})  # noqa: S606


async def wait_for_peers(config: LauncherConfig) -> dict[str, str]:
    from shoal.cluster.kubeconfig import ConnectionConfigError
    from shoal.cluster.kubernetes import open_client
    from shoal.kube.errors import ApiError
    from shoal.launch.paddle_launcher.peer_watch import wait

    connection = find_connection()
    async with open_client(connection) as cluster:
        try:
            return await wait(cluster, config, config.namespace or connection.namespace, _print)
        except ApiError as refused:
            raise ConnectionConfigError(
                f"the pods of {config.job} cannot be listed: {refused.message}. Give the service account of this pod "
                f"the right to list and watch pods in its namespace"
            ) from None


def find_connection() -> ConnectionConfig:
    from shoal.cluster.kubeconfig import ConnectionConfigError, from_kubeconfig, in_cluster

    found = in_cluster(os.environ)
    if found is not None:
        return found
    written = os.environ.get("SHOAL_KUBECONFIG") or os.environ.get("KUBECONFIG")
    if not written:
        raise ConnectionConfigError(
            "no API server is configured: this pod has no service account, and KUBECONFIG is not set"
        )
    return from_kubeconfig(Path(written))


def _print(sentence: str) -> None:
    click.echo(f"muster: {sentence}", err=True)

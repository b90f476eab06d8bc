"""`shoal barrier`: for an init container of a Framework's pod."""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.command("barrier")
@click.option(
    "--to",
    "mount",
    type=click.Path(path_type=Path),
    default=Path("/mnt/frameworkbarrier"),
    show_default=True,
    help="Folder that the application's containers mount; a volume.",
)
@click.option(
    "--in",
    "folder",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Folder the files are written to first.  [default: the current one]",
)
def command(mount: Path, folder: Path) -> None:
    """Wait until every task of a Framework has a pod IP.

    Reads FC_FRAMEWORK_NAMESPACE, FC_FRAMEWORK_NAME, BARRIER_CHECK_INTERVAL_SEC and BARRIER_CHECK_TIMEOUT_SEC. Finds the
    API server by KUBE_APISERVER_ADDRESS, KUBECONFIG, the pod's service account or ~/.kube/config, in this order. Writes
    framework.json and injector.sh; an application sources injector.sh to get the addresses of its peers.

    Exit codes: 0 when all addresses are known, 201 on timeout, 210 when the Framework does not exist or the environment
    is invalid, 1 otherwise.
    """
    from shoal.dialects.framework.barrier import FAILED, HOPELESS
    from shoal.launch.framework_barrier import barrier, connection, environment, framework_client

    try:
        env = environment.read(os.environ)
    except environment.BarrierEnvironmentInvalid as mistakes:
        raise _exit(HOPELESS, str(mistakes)) from None
    try:
        reader = framework_client.FrameworkReader(connection.find(env, os.environ), env.namespace, env.framework)
    except connection.ConnectionConfigError as problem:
        raise _exit(FAILED, str(problem)) from None
    verdict = barrier.wait(
        reader, interval_seconds=env.interval_seconds, timeout_seconds=env.timeout_seconds, report=_print
    )
    if verdict.framework is None:
        raise _exit(verdict.code, verdict.sentence)
    try:
        barrier.write_files(verdict.framework, folder, mount)
    except OSError as problem:
        raise _exit(
            FAILED, f"cannot write to {problem.filename}: {problem.strerror}; mount a volume at {mount}"
        ) from None
    _print(verdict.sentence)


def _print(sentence: str) -> None:
    click.echo(f"barrier: {sentence}", err=True)


def _exit(code: int, sentence: str) -> SystemExit:
    for line in sentence.splitlines():
        _print(line)
    return SystemExit(code)

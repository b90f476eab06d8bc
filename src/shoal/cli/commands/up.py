"""`shoal up`: a cluster on this machine, in this terminal or behind it."""

from __future__ import annotations

import os
import shlex
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from shoal.cli.commands.down import describe_remaining_pods
from shoal.local import gc_tuning
from shoal.local.data_dir import ClusterInfo, DataFolder, data_option
from shoal.local.orphan_cleanup import end_throwaways

if TYPE_CHECKING:
    from shoal.apiserver.serving_certificate import Certificate
    from shoal.kube.objects import Obj
    from shoal.local.cluster import ClusterConfig, RunningCluster

READY = b"ready\n"


def capacity_of(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    from shoal.local.config import wrong_amount

    found: dict[str, str] = {}
    for pair in given:
        name, separator, amount = pair.partition("=")
        if not separator or not name:
            raise click.BadParameter(f"{pair!r} should be NAME=AMOUNT, for example nvidia.com/gpu=4")
        if mistake := wrong_amount(name, amount):
            raise click.BadParameter(mistake)
        found[name] = amount
    return found


@click.command("up")
@data_option
@click.option("--detach", "-d", is_flag=True, help="Run the cluster in the background; return when it is ready.")
@click.option(
    "--nodes",
    type=click.IntRange(1, 64),
    help="Divide the machine into this many nodes.  [default: the previous number, else 1]",
)
@click.option(
    "--capacity", multiple=True, metavar="NAME=AMOUNT", callback=capacity_of,
    help="Declare the capacity of a resource per node, for tests: --capacity nvidia.com/gpu=4",
)  # fmt: skip
@click.option("--network", type=click.Choice(["auto", "isolated", "loopback"]), help="Network of the pods.")
@click.option("--bind", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Listen address of the API.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port of the API.  [default: the previous port, else any free one]"
)
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Certificate to serve.")
@click.option(
    "--tls-key", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Private key of the certificate."
)
@click.option(
    "--config", "file", type=click.Path(dir_okay=False, path_type=Path), envvar="SHOAL_CONFIG", show_envvar=True,
    help="Configuration file.  [default: ./shoal.yaml, then ~/.config/shoal/shoal.yaml]",
)  # fmt: skip
@click.option("--ready-fd", type=int, hidden=True)
def command(folder: Path, detach: bool, ready_fd: int | None, **options: Any) -> None:
    """Start a cluster on this machine.

    The cluster serves the Kubernetes API and runs pods as processes. All its data is in its data folder: a cluster
    that was stopped or killed continues from there. If the cluster is already running, the command reports that and
    exits with 0.

    \b
    shoal up --detach
    export KUBECONFIG=$(shoal kubeconfig --path)
    kubectl get nodes
    """
    began = time.monotonic()
    data = DataFolder(folder)
    data.make()
    end_throwaways()
    if ready_fd is None and (running := data.running()) is not None:
        print_running(data, running)
        return
    with gc_tuning.starting():
        config = configured(options)
    if detach:
        run_detached(data, config, began)
    else:
        _run_foreground(data, config, ready_fd, began)


def configured(options: dict[str, Any], *, job_file: Path | None = None) -> ClusterConfig:
    """The file, overridden by the command line. `job_file`: a job file in whose folder one may lie."""
    from shoal.apiserver.server import ServerListenError, is_loopback
    from shoal.cli.project import warn_of_missing_paths
    from shoal.local.cluster import ClusterConfig
    from shoal.local.config import default_file, load
    from shoal.node.sandbox.interface import Network

    loaded = load(options["file"] or default_file(job_file))
    settings = loaded.settings
    warn_of_missing_paths(loaded.images)
    network = options["network"] or settings.network
    certificate = certificate_of(options["tls_cert"], options["tls_key"])
    if certificate is not None:
        check_names(certificate, options["bind"])
    try:
        open_to_others = not is_loopback(options["bind"])
    except ServerListenError as refused:
        raise click.UsageError(f"--bind: {refused}") from None
    if open_to_others and not certificate:
        raise click.UsageError(
            f"--bind {options['bind']} can be reached from other machines. Give --tls-cert and --tls-key, so that "
            "clients can verify this server, or leave --bind out."
        )
    return ClusterConfig(
        nodes=options["nodes"] or settings.nodes,
        capacity={**settings.capacity, **options["capacity"]},
        network=None if network == "auto" else Network(network),
        pod_pids_limit=settings.pod_pids_limit,
        host=options["bind"],
        port=settings.port if options["port"] is None else options["port"],
        certificate=certificate,
        images=loaded.images,
        dialects=settings.dialects,
        scheduler=settings.scheduler,
        logs=settings.logs.budget,
    )


def certificate_of(certificate: Path | None, key: Path | None) -> Certificate | None:
    from shoal.apiserver.server import ServerListenError
    from shoal.apiserver.serving_certificate import Certificate

    if bool(certificate) != bool(key):
        raise click.UsageError("--tls-cert and --tls-key go together.")
    if certificate is None or key is None:
        return None
    given = Certificate(certificate, key)
    try:
        given.context()
    except ServerListenError as refused:
        raise click.UsageError(str(refused)) from None
    return given


def check_names(certificate: Certificate, host: str) -> None:
    """A certificate no client would take is refused; one that the kubeconfig's readers will not is warned of."""
    from shoal.apiserver.server import ServerListenError

    try:
        is_for_us = certificate.is_for(host)
    except ServerListenError as refused:
        raise click.UsageError(str(refused)) from None
    if not is_for_us:
        click.echo(
            f"Warning: the certificate {certificate.certificate} is for {', '.join(certificate.names())}, but the "
            f"kubeconfig names {host}: clients reject it until `server` in their kubeconfig is one of those names.",
            err=True,
        )


def _run_foreground(data: DataFolder, config: ClusterConfig, ready_fd: int | None, began: float) -> None:
    import asyncio

    from shoal.apiserver.server import ServerListenError
    from shoal.cli.node_format import format_allocatable
    from shoal.cluster.store.sqlite import StoreBroken, StoreInUse
    from shoal.local.cluster import FolderRemoved, NodesInUse, StartInterrupted, host
    from shoal.local.log_setup import log_to
    from shoal.node.heartbeat import NodeRefused
    from shoal.node.sandbox.sandbox_manager import FolderInUse, NetworkUnavailable, SandboxFailed

    up: list[RunningCluster] = []
    stopped: list[Obj] = []

    def ready(hosted: RunningCluster) -> None:
        up.append(hosted)
        gc_tuning.serve()
        if ready_fd is not None:
            os.write(ready_fd, READY)
            os.close(ready_fd)
            return
        click.echo(f"{click.style('Cluster is up', fg='green')} at {hosted.url} after {time.monotonic() - began:.1f} s")
        for node in hosted.nodes:
            click.echo(f"  node {node.name}: {format_allocatable(node.allocatable)}")
        click.echo(f"  pods: {hosted.network} network; data: {data.path}")
        click.echo(f"  export KUBECONFIG={shlex.quote(str(data.kubeconfig))}")
        click.echo(f"Stop it with Ctrl-C or `{data.command('down')}`.")

    def stopping() -> None:
        stopped.extend(up[0].pods())
        if ready_fd is None:
            click.echo("\nStopping; each pod has its grace period to end. Ctrl-C again leaves them running ...")

    refusals = (
        ServerListenError, StoreInUse, StoreBroken, FolderInUse, NetworkUnavailable, SandboxFailed, NodeRefused,
        NodesInUse, FolderRemoved, StartInterrupted,
    )  # fmt: skip
    with data.locked(), log_to(data.log):
        try:
            has_stopped_pods = asyncio.run(host(data, config, on_ready=ready, on_stop=stopping))
        except refusals as refused:
            raise click.ClickException(str(refused)) from None
    if ready_fd is None:
        still_running = f"Its pods still run; `{data.command('up')}` adopts them."
        click.echo(f"Stopped. {describe_remaining_pods(data, stopped) if has_stopped_pods else still_running}")


def print_running(data: DataFolder, running: ClusterInfo) -> None:
    """The cluster is up already, so `shoal up` only prints it. Options that would change it are not applied."""
    click.echo(f"The cluster in {data.path} is already running at {running.url} (pid {running.pid})")
    click.echo(f"  export KUBECONFIG={shlex.quote(str(data.kubeconfig))}")
    click.echo(f"Stop it with `{data.command('down')}`.")
    context = click.get_current_context()
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in ("folder", "detach")
        and context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    ]
    if given:
        click.echo(
            f"Warning: {', '.join(given)} has no effect on a running cluster. Stop it, then start it with that.",
            err=True,
        )


def run_detached(data: DataFolder, config: ClusterConfig, began: float) -> None:
    """Go on in a process of its own, and wait here for its word or its end."""
    click.echo(f"Starting a cluster in {data.path} ...", err=True)
    with data.locked():
        pass  # another cluster there is reported before a process is made
    reading, writing = os.pipe()
    cluster = os.fork()
    if cluster == 0:
        try:
            daemonize(data.log, keep=writing)
            _run_foreground(data, config, writing, began)
        except (click.ClickException, OSError) as failed:
            why = failed.format_message() if isinstance(failed, click.ClickException) else str(failed)
            with suppress(OSError):  # it is closed once the cluster was ready
                os.write(writing, why.encode())
            raise
        return
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    if answer != READY:
        status = os.waitpid(cluster, 0)[1]
        click.echo(f"Error: {answer.decode() or f'the cluster did not start. Its log is {data.log}.'}", err=True)
        sys.exit(os.waitstatus_to_exitcode(status))
    running = data.running()
    where = running.url if running else "its address"
    click.echo(f"{click.style('Cluster is up', fg='green')} at {where} after {time.monotonic() - began:.1f} s")
    click.echo(f"  export KUBECONFIG={shlex.quote(str(data.kubeconfig))}")
    click.echo(f"Stop it with `{data.command('down')}`.")


def daemonize(log: Path, *, keep: int) -> None:
    """A session of its own, output to the log, and nothing held open that a caller may wait to see closed."""
    os.setsid()
    log_fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    devnull = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    for number, place in enumerate((devnull, log_fd, log_fd)):
        os.dup2(place, number)
    os.closerange(3, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))

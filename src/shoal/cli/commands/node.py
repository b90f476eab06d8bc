"""`shoal node`: this machine as a node of a Kubernetes cluster, whose pods run here as processes."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from shoal.cli.commands.up import READY, capacity_of
from shoal.cli.server_options import kubeconfig_options
from shoal.local.data_dir import VARIABLE, DataFolder, FolderLocked, default_folder

if TYPE_CHECKING:
    from shoal.cluster.kubeconfig import ConnectionConfig
    from shoal.kube.objects import Obj
    from shoal.local.node_process import JoinConfig, JoinedNode

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def labels_of(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    from shoal.kube import names

    found: dict[str, str] = {}
    for pair in given:
        name, separator, value = pair.partition("=")
        problems = [*names.qualified_name(name), *names.label_value(value)]
        if not separator or problems:
            raise click.BadParameter(f"{pair!r} should be NAME=VALUE, for example zone=lab{_because(problems)}")
        found[name] = value
    return found


def taints_of(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[Obj, ...]:
    from shoal.kube import names

    taints: list[Obj] = []
    for text in given:
        found = re.fullmatch(r"([^=:]+)(?:=([^:]*))?:(\w+)", text)
        if found is None or found[3] not in EFFECTS:
            example = f"for example lab=true:NoSchedule; effects are {', '.join(EFFECTS)}"
            raise click.BadParameter(f"{text!r} should be NAME=VALUE:EFFECT, {example}")
        problems = [*names.qualified_name(found[1]), *names.label_value(found[2] or "")]
        if problems:
            raise click.BadParameter(f"{text!r} is not a taint{_because(problems)}")
        taints.append({"key": found[1], "effect": found[3], **({"value": found[2]} if found[2] else {})})
    return tuple(taints)


def namespaces_of(_: click.Context, __: click.Parameter, given: str | None) -> frozenset[str]:
    from shoal.kube import names

    # An empty name is a mistake, not every namespace: it may come from a variable that is not set.
    found = [] if given is None else [name.strip() for name in given.split(",")]
    for name in found:
        if problems := names.dns_label(name):
            raise click.BadParameter(f"{name!r} cannot be the name of a namespace{_because(problems)}")
    return frozenset(found)


def _because(problems: list[str]) -> str:
    return f": {problems[0]}" if problems else ""


@click.command("node")
@kubeconfig_options("Path to a kubeconfig with the node's credentials.  [default: KUBECONFIG or ~/.kube/config]")
@click.option("--name", default="", metavar="NAME", help="Name of the node.  [default: from the credentials]")
@click.option(
    "--data", "folder", type=click.Path(file_okay=False, path_type=Path),
    default=lambda: default_folder().with_name("node"), show_default="~/.local/share/shoal/node",
    help="The node's data folder: pods, logs, certificate.",
)  # fmt: skip
@click.option(
    "--capacity", multiple=True, metavar="NAME=AMOUNT", callback=capacity_of,
    help="Override the detected capacity of a resource: --capacity nvidia.com/gpu=4",
)  # fmt: skip
@click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", callback=labels_of, help="Label of the Node.")
@click.option(
    "--taint", "taints", multiple=True, metavar="NAME=VALUE:EFFECT", callback=taints_of,
    help="Taint of the Node, set when it is first registered: --taint lab=true:NoSchedule",
)  # fmt: skip
@click.option(
    "--namespaces", metavar="NAME,...", callback=namespaces_of,
    help="Run pods of these namespaces only; others fail.  [default: all]",
)  # fmt: skip
@click.option(
    "--allow-root", is_flag=True,
    help="If started by root: run pods as root, or as the runAsUser they set. "
    "[default: one unprivileged user per namespace, never an account of this machine]",
)  # fmt: skip
@click.option(
    "--address", default="", metavar="ADDRESS",
    help="Address where the API server reaches this machine for logs and exec.  [default: that of the default route]",
)  # fmt: skip
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port for logs and exec.  [default: 10250, or any free port]"
)
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Certificate to serve.")
@click.option(
    "--tls-key", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Private key of the certificate."
)
@click.option(
    "--config", "file", type=click.Path(dir_okay=False, path_type=Path), envvar="SHOAL_CONFIG", show_envvar=True,
    help="Configuration file, for images.  [default: ./shoal.yaml, then ~/.config/shoal/shoal.yaml]",
)  # fmt: skip
@click.option("--ready-fd", type=int, hidden=True)
def command(kubeconfig: Path | None, context: str, folder: Path, ready_fd: int | None, **options: Any) -> None:
    """Join a Kubernetes cluster as a node that runs pods as processes.

    Runs in the foreground. SIGTERM stops the agent and leaves the pods running, as the restart of a kubelet does;
    the next start with the same --data adopts them. Ctrl-C terminates the pods first, each with its grace period.
    The kubeconfig must hold the credentials of the node itself, user system:node:NAME in group system:nodes;
    docs/node.md shows how to create them. Pods are not isolated in containers: any user who may create pods in the
    cluster, or in --namespaces, can run programs on this machine. If root starts the agent, pods run as separate
    unprivileged users; otherwise they run as you. A --taint does not exclude pods that tolerate every taint.

    \b
    shoal node --kubeconfig node.kubeconfig --namespaces team-a --taint lab=true:NoSchedule
    kubectl get nodes -l shoal.dev/process-node=true
    """
    if os.environ.get(VARIABLE) and DataFolder(folder).path == DataFolder(Path(os.environ[VARIABLE])).path:
        raise click.UsageError(f"--data is the folder of the cluster that {VARIABLE} names; a node needs its own.")
    data = DataFolder(folder)
    data.make()
    connection = find_connection(kubeconfig, context)
    address = urlsplit(connection.url)
    api: tuple[str, int] | None = None  # only the proxy knows it
    if not connection.proxy and address.hostname:
        api = address.hostname, address.port or (443 if address.scheme == "https" else 80)
    secret_files = [*connection.files, *([options["tls_key"]] if options["tls_key"] is not None else [])]
    hidden = tuple(dict.fromkeys(path.resolve() for path in secret_files))
    run_node(data, connection, replace(configured(options), api=api, hidden=hidden), ready_fd)


def configured(options: dict[str, Any]) -> JoinConfig:
    """The settings of the file, overridden by the command line."""
    from shoal.cli.commands.up import certificate_of
    from shoal.kube import names
    from shoal.local.config import default_file, load
    from shoal.local.node_process import JoinConfig

    loaded = load(options["file"] or default_file())
    problems = names.dns_subdomain(options["name"]) if options["name"] else []
    if problems:
        raise click.UsageError(f"--name {options['name']!r} cannot be the name of a node{_because(problems)}")
    return JoinConfig(
        name=options["name"],
        address=options["address"],
        port=options["port"],
        capacity={**loaded.settings.capacity, **options["capacity"]},
        labels=options["labels"],
        taints=options["taints"],
        namespaces=options["namespaces"],
        allow_root=options["allow_root"],
        certificate=certificate_of(options["tls_cert"], options["tls_key"]),
        images=loaded.images,
        pod_pids_limit=loaded.settings.pod_pids_limit,
    )


def find_connection(kubeconfig: Path | None, context: str) -> ConnectionConfig:
    from shoal.cli.context import format_error
    from shoal.cluster.kubeconfig import ConnectionConfigError, default_files, from_kubeconfig

    files = [kubeconfig] if kubeconfig is not None else default_files(os.environ)
    if not files:
        raise click.ClickException(
            "there is no cluster to join: neither KUBECONFIG nor ~/.kube/config names one. Name one with --kubeconfig."
        )
    try:
        return from_kubeconfig(files, context=context)
    except ConnectionConfigError as problem:
        raise click.ClickException(format_error(problem)) from None


def run_node(data: DataFolder, connection: ConnectionConfig, config: JoinConfig, ready_fd: int | None) -> None:
    import asyncio

    from shoal.apiserver.server import ServerListenError
    from shoal.cli.context import format_api_error, format_error
    from shoal.cluster.client import OutcomeUnknown
    from shoal.cluster.kubernetes import open_client
    from shoal.kube.errors import ApiError
    from shoal.local.log_setup import log_to
    from shoal.local.node_process import CannotJoin, join
    from shoal.node.sandbox.sandbox_manager import FolderInUse
    from shoal.node.sandbox.zygote_client import ZygoteFailed

    def ready(joined: JoinedNode) -> None:
        if ready_fd is not None:
            os.write(ready_fd, READY)
            os.close(ready_fd)
            return
        node, allocatable = joined.config, joined.config.allocatable
        gpus = f", {allocatable['nvidia.com/gpu']} GPUs" if "nvidia.com/gpu" in allocatable else ""
        click.echo(f"{click.style(f'Node {node.name} has joined', fg='green')} {connection.url}")
        click.echo(f"  allocatable: {allocatable['cpu']} cpu, {allocatable['memory']} memory{gpus}")
        click.echo(f"  data: {data.path}")
        click.echo(f"  logs and commands: {node.machine.host_ip} port {node.kubelet_port}")
        click.echo("Ctrl-C stops it and its pods; SIGTERM leaves the pods running.")

    def stopping() -> None:
        click.echo("\nStopping; each pod has its grace period to end. Ctrl-C again leaves them running ...", err=True)

    async def run() -> bool:
        async with open_client(connection) as cluster:
            return await join(data, cluster, config, on_ready=ready, on_stop=stopping)

    with ExitStack() as held:
        try:
            held.enter_context(data.locked())
            held.enter_context(log_to(data.log))
            has_stopped_pods = asyncio.run(run())
        except FolderLocked:
            raise click.ClickException(
                f"a node already runs in {data.path}. Stop it with Ctrl-C in its terminal, or choose another folder "
                "with --data DIR."
            ) from None
        except (CannotJoin, ServerListenError, FolderInUse, ZygoteFailed) as refused:
            raise click.ClickException(str(refused)) from None
        except ApiError as refused:
            raise click.ClickException(format_error(format_api_error(refused))) from None
        except (OutcomeUnknown, OSError) as error:
            raise click.ClickException(format_error(error)) from None
    if ready_fd is None:
        click.echo("Stopped." if has_stopped_pods else "Stopped. The pods keep running; the next start adopts them.")

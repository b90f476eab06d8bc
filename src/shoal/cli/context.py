"""Which cluster a command uses, and how.

The order of precedence: --data, --kubeconfig or --context on the command line; SHOAL_DATA; KUBECONFIG; the cluster
that runs in the default data folder; ~/.kube/config. A --context without a file is looked for in KUBECONFIG, else in
the kubeconfig of that running cluster, else in ~/.kube/config. A cluster that was named is used, or the command fails:
there is no fallback to another one. A command is a coroutine that gets the cluster; an error from the cluster becomes
a message and exit code 1. Commands that change something print which cluster they changed.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from shoal.cli.server_options import kubeconfig_options
from shoal.local.data_dir import VARIABLE, DataFolder, data_option
from shoal.local.orphan_cleanup import end_throwaways

if TYPE_CHECKING:
    from shoal.cluster.kubeconfig import ConnectionConfig
    from shoal.cluster.kubernetes import KubernetesCluster

KUBECONFIG = "KUBECONFIG"
_NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EPIPE, errno.EBADF)  # of files of this machine, not of a cluster
T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Choice:
    """What the command line and the environment name as the cluster."""

    folder: Path
    kubeconfig: Path | None
    context: str
    namespace: str
    folder_source: ParameterSource = ParameterSource.DEFAULT

    @property
    def names_folder(self) -> bool:
        """Whether the data folder is the cluster to use: --data, or SHOAL_DATA where nothing more specific is given."""
        if self.folder_source is ParameterSource.ENVIRONMENT:
            return self.kubeconfig is None and not self.context
        return self.folder_source is ParameterSource.COMMANDLINE


def cluster_options(command: Command) -> Command:
    """--data, --kubeconfig, --context and --namespace, given to the command as one `choice`."""

    @wraps(command)
    def wrapped(folder: Path, kubeconfig: Path | None, context: str, namespace: str, **others: Any) -> Any:
        source = click.get_current_context().get_parameter_source("folder") or ParameterSource.DEFAULT
        if source is ParameterSource.COMMANDLINE and kubeconfig is not None:
            raise click.UsageError("--data and --kubeconfig name two clusters: give one of them.")
        return command(choice=Choice(folder, kubeconfig, context, namespace, source), **others)

    options = (
        click.option("-n", "--namespace", default="", metavar="NAME", help="Namespace.  [default: the context's]"),
        kubeconfig_options("Path to the kubeconfig.  [default: SHOAL_DATA, KUBECONFIG, local cluster, ~/.kube/config]"),
        data_option,
    )  # fmt: skip
    made: Command = decorated(wrapped, options)
    return made


def decorated(command: Any, options: Sequence[Callable[[Any], Any]]) -> Any:
    """The command with these options; the last one is shown first."""
    for option in options:
        command = option(command)
    return command


def connection_of(choice: Choice) -> ConnectionConfig:
    from shoal.cluster.kubeconfig import ConnectionConfigError, from_kubeconfig

    try:
        return from_kubeconfig(_kubeconfigs(choice), context=choice.context)
    except ConnectionConfigError as problem:
        raise click.ClickException(format_error(problem)) from None


def _kubeconfigs(choice: Choice) -> list[Path]:
    """The files that describe the chosen cluster."""
    from shoal.cluster.kubeconfig import contexts, default_files

    folder = DataFolder(choice.folder)
    if choice.names_folder:
        if folder.running() is None:
            raise click.ClickException(
                f"no cluster runs in {folder.path}. Start it with `{folder.command('up')}`, or leave out --data and "
                f"{VARIABLE} to use another cluster."
            )
        return [folder.kubeconfig]
    if choice.kubeconfig is not None:
        return [choice.kubeconfig]
    files = default_files(os.environ)
    if os.environ.get(KUBECONFIG):
        if not files:
            raise click.ClickException(
                f"{KUBECONFIG} names {os.environ[KUBECONFIG]}, which does not exist. Correct or unset it, or name a "
                "cluster with --data or --kubeconfig."
            )
        return files
    if folder.running() is not None:
        own = contexts(folder.kubeconfig)
        if not choice.context or choice.context in own:
            return [folder.kubeconfig]
        if not files:
            raise click.ClickException(f"{folder.path} has no context {choice.context}; there is: {', '.join(own)}.")
    if not files:
        raise click.ClickException(
            f"there is no cluster to use: none runs in {folder.path}, and neither KUBECONFIG nor ~/.kube/config "
            f"names one. Start one with `shoal up`, or name one with --kubeconfig."
        )
    return files


def local_folder(choice: Choice) -> DataFolder | None:
    """The data folder of the chosen cluster where it runs on this machine; None for any other cluster."""
    url = connection_of(choice).url
    folders = [DataFolder(choice.folder), *(DataFolder(file.parent) for file in _kubeconfigs(choice))]
    for folder in folders:
        running = folder.running() if folder.path.is_dir() else None
        if running is not None and running.url == url:
            return folder
    return None


def with_cluster(
    choice: Choice,
    work: Callable[[KubernetesCluster, str], Coroutine[Any, Any, T]],
    *,
    is_change: bool = False,
    changed: Sequence[object] = (),
) -> T:
    """Run `work` with the chosen cluster and namespace; errors end the command with a message.
    `changed`: what `work` has changed so far, for a command that fails or is interrupted after that."""
    from shoal.cluster.kubernetes import open_client

    # The command ends with one message; without a handler Python would print each retry of a watch before it.
    logging.getLogger("shoal").addHandler(logging.NullHandler())
    end_throwaways()
    connection = connection_of(choice)

    async def run() -> T:
        async with open_client(connection) as cluster:
            await cluster.require_supported()
            return await work(cluster, choice.namespace or connection.namespace)

    try:
        with report_errors():
            result = asyncio.run(run())
    except (click.ClickException, KeyboardInterrupt) as ending:
        if is_change and changed:
            print_cluster(connection)
        if isinstance(ending, KeyboardInterrupt):
            raise SystemExit(130) from None
        raise
    if is_change:
        print_cluster(connection)
    return result


def print_cluster(connection: ConnectionConfig) -> None:
    """Which cluster was changed. To standard error: what a program reads stays the same for every cluster."""
    context = f"context {connection.name} at " if connection.name else ""
    click.echo(f"Cluster: {context}{connection.url}", err=True)


@contextmanager
def report_errors() -> Iterator[None]:
    """Requests that a cluster rejects or breaks off, and wrongly stored objects, end a command with a message."""
    from shoal.cluster.client import OutcomeUnknown
    from shoal.dialects.dialect import StateUnreadable
    from shoal.kube.errors import ApiError

    try:
        yield
    except ApiError as refused:
        raise click.ClickException(format_api_error(refused)) from None
    except (OutcomeUnknown, OSError, StateUnreadable) as broken:
        if isinstance(broken, OSError) and broken.errno in _NOT_WRITTEN:
            raise
        raise click.ClickException(format_error(broken)) from None


def format_error(problem: object) -> str:
    """The message with its final period, and with the way out where waiting is the only one."""
    from shoal.cluster.client import OutcomeUnknown

    text = str(problem)
    whole = text if text.endswith((".", "?", "!")) else f"{text}."
    return f"{whole} Try again; if that fails too, check the cluster." if isinstance(problem, OutcomeUnknown) else whole


def format_api_error(refused: Any) -> str:
    """A refusal with every mistake on a line of its own."""
    causes = [str(cause) for cause in refused.causes]
    if refused.code >= 500:
        return f"the API server failed: {format_error(refused.message)} Try again; its log has the details."
    if refused.code == 403 and " cannot " in refused.message:  # what Kubernetes answers where a role is missing
        return f"{format_error(refused.message)} Ask for a role that allows it."
    if len(causes) < 2:
        return format_error(refused.message) if refused.code == 401 else str(refused.message)
    head = refused.message
    if refused.reason == "Invalid":  # `Framework.frameworkcontroller.microsoft.com "train"`, as Kubernetes writes
        about = refused.details or {}
        kind = ".".join(part for part in (about.get("kind"), about.get("group")) if part)
        head = f'{kind} "{about.get("name") or ""}"'
    return f"{head} has {len(causes)} mistakes:\n" + "\n".join(f"  {cause}" for cause in causes)

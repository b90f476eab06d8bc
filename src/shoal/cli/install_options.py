"""What `shoal install` and `shoal uninstall` share: which cluster, which installation, and a line per object."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click

from shoal.cli.commands.operator import DIALECTS_HELP, read_dialects
from shoal.cli.context import decorated, format_api_error, format_error, print_cluster
from shoal.cli.server_options import kubeconfig_options

Command = TypeVar("Command", bound=Callable[..., Any])


def installation_options(command: Command) -> Command:
    """--kubeconfig, --context, --name, --namespace and --dialects."""
    options = (
        click.option(
            "--dialects", default="", metavar="NAME,...", callback=read_dialects,
            help=DIALECTS_HELP,
        ),
        click.option(
            "-n", "--namespace", default="shoal-system", show_default=True, metavar="NAME",
            help="Namespace of the operator.",
        ),
        click.option("--name", default="", metavar="NAME", help="Name of the installation."),
        kubeconfig_options("Path to the kubeconfig.  [default: KUBECONFIG or ~/.kube/config]"),
    )  # fmt: skip
    made: Command = decorated(command, options)
    return made


def progress(applied: Any) -> None:
    click.echo(str(applied))


def format_objects(options: Any, output: str) -> str:
    """Everything that would be applied, kinds included; no cluster is queried."""
    from shoal.cli import job_table
    from shoal.install.manifests import definitions, render, scheduler_definitions
    from shoal.kube.objects import name_of

    kinds = [*definitions(options.dialects), *(scheduler_definitions() if options.scheduler else ())]
    objects = [*{name_of(kind): kind for kind in kinds}.values(), *render(options)]
    return job_table.format_objects(objects, "documents" if output == "yaml" else output)


def run_with_cluster(
    kubeconfig: Path | None, context: str, work: Callable[[Any], Coroutine[Any, Any, None]], *, is_change: bool
) -> None:
    """Run `work` with the cluster; an error ends the command with a message."""
    import asyncio

    from shoal.cluster.client import OutcomeUnknown
    from shoal.cluster.kubernetes import open_client
    from shoal.controller_runtime.crd_installer import CrdUnusable
    from shoal.controller_runtime.process import ServerOptions, connection_config
    from shoal.install.apply import NotInstalled
    from shoal.kube.errors import ApiError

    async def run() -> None:
        connection = connection_config(ServerOptions(kubeconfig=kubeconfig, context=context))
        async with open_client(connection) as cluster:
            await cluster.require_unserved()
            await work(cluster)
        if is_change:
            print_cluster(connection)

    try:
        asyncio.run(run())
    except (NotInstalled, CrdUnusable, OutcomeUnknown, OSError) as problem:
        raise click.ClickException(format_error(problem)) from None
    except ApiError as refused:
        raise click.ClickException(format_error(format_api_error(refused))) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None

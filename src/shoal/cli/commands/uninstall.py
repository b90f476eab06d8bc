"""`shoal uninstall`: take the operator off a cluster again. Kinds and jobs stay unless they are named."""

from __future__ import annotations

from pathlib import Path

import click

from shoal.cli.install_options import installation_options, progress, run_with_cluster


@click.command("uninstall")
@installation_options
@click.option(
    "--crds", is_flag=True, help="Delete the CustomResourceDefinitions too, and with them every job of every namespace."
)
@click.option("--dry-run", is_flag=True, help="Print what would be deleted.")
def command(
    kubeconfig: Path | None,
    context: str,
    name: str,
    namespace: str,
    dialects: tuple[str, ...],
    crds: bool,
    dry_run: bool,
) -> None:
    """Remove the operator from a cluster and keep the jobs.

    \b
    shoal uninstall
    shoal uninstall --crds      # also deletes every job

    Pods of running jobs continue; no operator manages them until one is installed again.
    """
    from shoal.install.apply import uninstall
    from shoal.install.options import InstallOptions

    options = InstallOptions(name=name or "shoal", namespace=namespace, dialects=dialects)
    run_with_cluster(
        kubeconfig, context, lambda cluster: uninstall(cluster, options, progress, crds=crds, dry_run=dry_run),
        is_change=not dry_run,
    )  # fmt: skip
    click.echo(
        "Nothing was changed." if dry_run else "Uninstalled." if crds else "Uninstalled; kinds and jobs are kept."
    )

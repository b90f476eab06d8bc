"""`shoal submit`: hand jobs to a cluster and leave."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shoal.cli.manifests import files_argument, load, set_option
from shoal.cli.reaching import Choice, cluster_options, with_cluster

if TYPE_CHECKING:
    from shoal.cluster.kubernetes import KubernetesCluster
    from shoal.kube.objects import Obj


@click.command("submit")
@files_argument
@set_option
@click.option("--dry-run", is_flag=True, help="Let the cluster judge everything and keep nothing.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), help="Print what the cluster stored.")
@cluster_options
def command(
    choice: Choice, files: tuple[Path, ...], changes: tuple[str, ...], dry_run: bool, output: str | None
) -> None:
    """Submit jobs to a cluster.

    Jobs are created; other objects in the files (Services, ConfigMaps) are brought to what the files say. Stops at
    the first object that is refused, with every mistake in it.
    """
    from shoal.cli.submitting import submit
    from shoal.cli.views import printed

    manifests = load(files, changes)

    async def work(cluster: KubernetesCluster, namespace: str) -> list[Obj]:
        return [stored for stored, _ in await submit(cluster, manifests, namespace, dry_run=dry_run)]

    stored = with_cluster(choice, work, is_change=not dry_run)
    if output is not None:
        click.echo(printed(stored, output))
        return
    for obj in stored:
        done = "would be stored" if dry_run else "stored"
        click.echo(f"{obj['kind']} {obj['metadata']['name']} {done}.")

"""`shoal submit`: hand jobs to a cluster and leave."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shoal.cli.context import Choice, cluster_options, local_folder, with_cluster
from shoal.cli.manifest_files import files_argument, job_file, load, set_option

if TYPE_CHECKING:
    from shoal.cluster.kubernetes import KubernetesCluster
    from shoal.kube.objects import Obj


@click.command("submit")
@files_argument
@set_option
@click.option("--dry-run", is_flag=True, help="Server-side dry run: validate and store nothing.")
@click.option(
    "--config", "file", type=click.Path(dir_okay=False, path_type=Path), envvar="SHOAL_CONFIG", show_envvar=True,
    help="Configuration file with the `images:` of these jobs, on a cluster of this machine.  [default: ./shoal.yaml, "
    "then shoal.yaml beside the first FILE, then ~/.config/shoal/shoal.yaml]",
)  # fmt: skip
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), help="Print the stored objects.")
@cluster_options
def command(
    choice: Choice,
    files: tuple[Path, ...],
    changes: tuple[str, ...],
    dry_run: bool,
    file: Path | None,
    output: str | None,
) -> None:
    """Submit jobs to a cluster.

    Creates the jobs and updates other objects (Services, ConfigMaps) to match the files. Stops at the first object
    that is rejected and prints every mistake in it. On a local cluster, jobs run as with `shoal run`: in the
    current folder, with the PATH and Python environment of this command, and with the `images:` of the
    configuration file; if the file has none, the `images:` of the cluster apply. `capacity:`, `network:` and
    `pod_pids_limit:` take effect only when a cluster starts: a warning names the settings that differ.
    """
    from shoal.cli.job_table import format_objects
    from shoal.cli.lint import idle_warnings
    from shoal.cli.project import load_config, project_here, warn_of_images, warn_of_settings, with_project
    from shoal.cli.submit_client import submit
    from shoal.node.projects import Projects

    manifests = load(files, changes)
    for manifest in manifests:
        for warning in idle_warnings(manifest, is_submitted=True):
            click.echo(f"{manifest.where}: warning: {warning}", err=True)
    if (folder := local_folder(choice)) is not None:
        config, running = load_config(file, job_file(files)), folder.running()
        images = config.images
        warn_of_settings(config, running.settings if running is not None else None)
        warn_of_images(manifests, images)
        if not dry_run:
            manifests = with_project(manifests, Projects(folder.path).store(project_here(images)))

    stored: list[Obj] = []

    async def work(cluster: KubernetesCluster, namespace: str) -> None:
        await submit(cluster, manifests, namespace, dry_run=dry_run, on_stored=stored.append)

    try:
        with_cluster(choice, work, is_change=not dry_run, changed=stored)
    finally:
        # Also before the refusal of a later object: what was stored stays.
        if output is None:
            for obj in stored:
                click.echo(f"{obj['kind']} {obj['metadata']['name']} {'would be stored' if dry_run else 'stored'}.")
    if output is not None:
        click.echo(format_objects(stored, output))

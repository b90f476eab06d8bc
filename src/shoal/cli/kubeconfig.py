"""`shoal kubeconfig`: the file kubectl and every Kubernetes client want."""

from __future__ import annotations

from pathlib import Path

import click

from shoal.cli.folders import DataFolder, data_option


@click.command("kubeconfig")
@data_option
@click.option("--path", "only_path", is_flag=True, help="Print where the file is instead of what it says.")
def command(folder: Path, only_path: bool) -> None:
    """Print the kubeconfig of a cluster.

    \b
    export KUBECONFIG=$(shoal kubeconfig --path)
    shoal kubeconfig > ~/.kube/shoal
    """
    file = DataFolder(folder).kubeconfig
    if not file.exists():
        raise click.ClickException(f"there is no cluster in {folder} yet. Start one with `shoal up --data {folder}`.")
    click.echo(str(file) if only_path else file.read_text(), nl=only_path)

"""`shoal kubeconfig`: the file that kubectl and every Kubernetes client require."""

from __future__ import annotations

from pathlib import Path

import click

from shoal.local.data_dir import DataFolder, data_option


@click.command("kubeconfig")
@data_option
@click.option("--path", "only_path", is_flag=True, help="Print the path of the file, not its contents.")
def command(folder: Path, only_path: bool) -> None:
    """Print the kubeconfig of a cluster.

    \b
    export KUBECONFIG=$(shoal kubeconfig --path)
    shoal kubeconfig > ~/.kube/shoal
    """
    data = DataFolder(folder)
    file = data.kubeconfig
    if not data.has_file(file):
        raise click.ClickException(f"there is no cluster in {data.path} yet. Start one with `{data.command('up')}`.")
    click.echo(str(file) if only_path else file.read_text(), nl=only_path)

"""`shoal crds`: the definitions of the job languages, for a cluster that does not have them yet."""

from __future__ import annotations

import click


@click.command("crds")
@click.argument("names", nargs=-1, metavar="[LANGUAGE]...")
@click.option("-o", "--output", type=click.Choice(["yaml", "json", "name"]), default="yaml", show_default=True)
def command(names: tuple[str, ...], output: str) -> None:
    """Print the CustomResourceDefinitions of the job languages.

    \b
    shoal crds | kubectl apply -f -
    """
    from shoal.cli.job_table import format_objects
    from shoal.dialects import NAMES, load
    from shoal.dialects.dialect import definitions_of

    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        raise click.UsageError(f"there is no job language {unknown[0]!r}; there are: {', '.join(NAMES)}.")
    definitions = list(definitions_of(*(load(name) for name in names or NAMES)))
    if output == "name":
        for definition in definitions:
            click.echo(definition["metadata"]["name"])
        return
    click.echo(format_objects(definitions, "documents" if output == "yaml" else output))

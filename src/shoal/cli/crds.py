"""`shoal crds`: the definitions of the job languages, for a cluster that does not know them yet."""

from __future__ import annotations

import click


@click.command("crds")
@click.argument("names", nargs=-1, metavar="[LANGUAGE]...")
@click.option("-o", "--output", type=click.Choice(["yaml", "json", "name"]), default="yaml", show_default=True)
def command(names: tuple[str, ...], output: str) -> None:
    """Print the definitions of job languages.

    \b
    shoal crds | kubectl apply -f -
    """
    from shoal.dialects import NAMES, load

    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        raise click.UsageError(f"there is no job language {unknown[0]!r}; there are: {', '.join(NAMES)}.")
    definitions = [load(name).crd() for name in names or NAMES]
    if output == "name":
        for definition in definitions:
            click.echo(definition["metadata"]["name"])
        return
    click.echo(_printed(definitions, output))


def _printed(definitions: list[dict[str, object]], output: str) -> str:
    import json

    import yaml

    if output == "yaml":
        return "---\n".join(yaml.safe_dump(definition, sort_keys=False) for definition in definitions).rstrip()
    whole = definitions[0] if len(definitions) == 1 else {"apiVersion": "v1", "kind": "List", "items": definitions}
    return json.dumps(whole, indent=2)

"""`shoal doctor`: what this machine allows, in plain English."""

from __future__ import annotations

import json

import click


@click.command("doctor")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(output: str) -> None:
    """Check which features work on this machine, and the effects of those that do not.

    Tries each feature a cluster uses and removes what it created.
    """
    from dataclasses import asdict

    from shoal.node.host_checks import run_checks

    findings = run_checks()
    if output == "json":
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            mark = click.style("yes", fg="green") if finding.works else click.style("no ", fg="yellow")
            click.echo(f"{mark}  {finding.name:<{width}}  {finding.detail}")
            if finding.cost:
                click.echo(f"{'':{width + 5}}  {click.style(finding.cost, dim=True)}")

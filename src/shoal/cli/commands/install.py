"""`shoal install`: put the operator on a Kubernetes cluster, or upgrade it in place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from shoal.cli.commands.operator import GANG_SCHEDULERS
from shoal.cli.install_options import format_objects, installation_options, progress, run_with_cluster


def ranges_of(_: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """As Kubernetes writes them; an address alone is a range of one."""
    from ipaddress import ip_network

    try:
        return tuple(str(ip_network(text)) for text in given)
    except ValueError as wrong:
        raise click.BadParameter(f"{wrong}; for example 10.0.0.0/24", param=parameter) from None


@click.command("install")
@installation_options
@click.option(
    "--image", metavar="IMAGE", required=True, envvar="SHOAL_IMAGE", show_envvar=True,
    help="Image of the operator, in your registry.",
)  # fmt: skip
@click.option("--replicas", type=click.IntRange(1), help="Replicas of the operator; one is the leader.  [default: 2]")
@click.option("--shards", type=click.IntRange(1, 64), help="Distribute jobs over this many shards.  [default: 1]")
@click.option("--watch-namespace", metavar="NAME", help="Watch this namespace only.  [default: all]")
@click.option("--class", "job_class", metavar="NAME", help="Reconcile only jobs with the label shoal.dev/class=NAME.")
@click.option("--webhook", is_flag=True, help="Install an admission webhook that validates and defaults jobs.")
@click.option(
    "--failure-policy", type=click.Choice(["Ignore", "Fail"]), help="failurePolicy of the webhook.  [default: Ignore]"
)
@click.option(
    "--api-server", "api_servers", multiple=True, metavar="CIDR", callback=ranges_of,
    help="Addresses that may call the webhook: those of the API server. May be repeated.  [default: all]",
)  # fmt: skip
@click.option(
    "--gang-scheduler",
    type=click.Choice(GANG_SCHEDULERS),
    help="Gang scheduler; auto: detect it.",
)
@click.option("--gang-scheduler-name", metavar="NAME", help="schedulerName of the pods of gangs.")
@click.option("--ssh-plugin", is_flag=True, help="Support plugin ssh of Volcano Jobs: grants access to Secrets.")
@click.option("--service-monitor", is_flag=True, help="Create a ServiceMonitor for the Prometheus operator.")
@click.option("--scheduler", is_flag=True, help="Install Shoal's gang scheduler too.")
@click.option(
    "--scheduler-sharing",
    type=click.Choice(["proportion", "capacity"]),
    help="How queues share the cluster.  [default: proportion]",
)
@click.option("--scheduler-tiers", metavar="LABEL,...", help="Node labels of the topology tiers (rack, zone, ...).")
@click.option(
    "--scheduler-volcano",
    type=click.Choice(["auto", "yes", "no"]),
    help="Whether to place pods with schedulerName volcano.  [default: auto]",
)
@click.option("--dry-run", is_flag=True, help="Server-side dry run; with -o print the objects instead.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), help="Print the objects; needs --dry-run.")
def command(kubeconfig: Path | None, context: str, dry_run: bool, output: str | None, **given: Any) -> None:
    """Install the operator on a Kubernetes cluster, or upgrade it.

    \b
    export SHOAL_IMAGE=registry.example.com/shoal:VERSION
    shoal install                            # the current context of your kubeconfig
    shoal install --webhook --replicas 3
    shoal install --dry-run -o yaml | less   # without a cluster

    There is no public image: build it from deploy/Dockerfile and push it to your registry.

    Applies the CustomResourceDefinitions of the jobs, a service account with exactly the permissions the operator
    needs, and the operator. Running it again upgrades in place; jobs continue. CustomResourceDefinitions created by
    others are not changed.

    The installation is called shoal, or shoal-NAMESPACE-CLASS with --watch-namespace and --class; --name sets another
    name.
    """
    options = install_options(given)
    if output:
        if not dry_run:
            raise click.UsageError("-o prints instead of applying: add --dry-run.")
        if options.gangScheduler == "auto":
            from shoal.dialects import load
            from shoal.dialects.gang_backends.delegate import has_gangs

            options = replace(options, gangScheduler="shoal")
            if any(has_gangs(load(name)) for name in options.dialects):
                click.echo(
                    "These objects are for --gang-scheduler shoal: -o does not query the cluster. Name the cluster's "
                    "gang scheduler if it has another.",
                    err=True,
                )
        click.echo(format_objects(options, output))
        return

    from shoal.install.apply import install

    run_with_cluster(
        kubeconfig, context, lambda cluster: install(cluster, options, progress, dry_run=dry_run), is_change=not dry_run
    )
    if dry_run:
        click.echo("Nothing was changed.")
    else:
        click.echo(f"Installed. `kubectl -n {options.namespace} get pods` shows the operator start.")


def install_options(given: dict[str, Any]) -> Any:
    from shoal.install.options import InstallOptions, default_name

    if given["api_servers"] and not given["webhook"]:
        raise click.UsageError("--api-server is for the webhook: add --webhook.")
    for name in ("sharing", "tiers", "volcano"):
        if given[f"scheduler_{name}"] is not None and not given["scheduler"]:
            raise click.UsageError(f"--scheduler-{name} is for Shoal's own scheduler: add --scheduler.")
    if (tiers := given["scheduler_tiers"]) is not None:
        given["scheduler_tiers"] = tuple(word.strip() for word in tiers.split(",") if word.strip())
    given["gang_scheduler"] = given["gang_scheduler"] or "auto"
    given["name"] = given["name"] or default_name(given["watch_namespace"] or "", given["job_class"] or "")
    spelled = {
        "watch_namespace": "watchNamespace",
        "job_class": "jobClass",
        "failure_policy": "failurePolicy",
        "api_servers": "apiServers",
        "service_monitor": "serviceMonitor",
        "ssh_plugin": "sshPlugin",
        "scheduler_sharing": "schedulerSharing",
        "scheduler_tiers": "schedulerTiers",
        "scheduler_volcano": "schedulerVolcano",
        "gang_scheduler": "gangScheduler",
        "gang_scheduler_name": "gangSchedulerName",
    }
    return InstallOptions(**{spelled.get(name, name): value for name, value in given.items() if value is not None})

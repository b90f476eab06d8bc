"""`shoal operator`: serve jobs on a Kubernetes cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shoal.cli.server_options import (
    address_option,
    kubeconfig_options,
    leader_election_options,
    log_option,
    option_of,
    run_server,
)

_option = option_of("SHOAL_OPERATOR_")


# A copy of `shoal.operator.gang_scheduler_detection.CHOICES`, for the same reason as below.
GANG_SCHEDULERS = ("auto", "shoal", "volcano", "coscheduling", "kueue", "native", "none")
# A copy of `shoal.dialects.DEFAULT`; reading it would load the engine for a help text.
DIALECTS_HELP = "Job languages to reconcile.  [default: framework]"


def read_dialects(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    """Comma-separated names; if none is given, those that are served without a request."""
    from shoal.dialects import DEFAULT, NAMES

    chosen = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip())) or DEFAULT
    unknown = [word for word in chosen if word not in NAMES]
    if unknown:
        raise click.BadParameter(f"there is no job language {unknown[0]!r}; there are: {', '.join(NAMES)}")
    return chosen


@click.command("operator")
@kubeconfig_options()
@_option(
    "--dialects", default="", metavar="NAME,...", callback=read_dialects,
    help=DIALECTS_HELP,
)  # fmt: skip
@_option("--namespace", default="", metavar="NAME", help="Watch this namespace only.  [default: all]")
@_option(
    "--class",
    "job_class",
    default="",
    metavar="NAME",
    help="Reconcile only jobs with the label shoal.dev/class=NAME.  [default: jobs without the label]",
)
@_option(
    "--name",
    default="",
    metavar="NAME",
    help="Name of Leases, Secret and webhooks, the same for all replicas.  [default: shoal, with namespace and class]",
)
@_option(
    "--shards",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Distribute jobs over this many shards, each with its own Lease.",
)
@leader_election_options(_option)
@_option(
    "--gang-scheduler",
    type=click.Choice(GANG_SCHEDULERS),
    default="auto",
    show_default=True,
    help="Gang scheduler; auto: detect it.",
)
@_option(
    "--gang-scheduler-name",
    default="",
    metavar="NAME",
    help="schedulerName of the pods of gangs.  [default: the gang scheduler's usual name]",
)
@_option(
    "--ssh-plugin",
    is_flag=True,
    help="Support plugin ssh of Volcano Jobs: needs access to Secrets, which store its keys.",
)
@_option(
    "--config", type=click.Path(dir_okay=False, path_type=Path), help="Configuration file; its `dialects` are used."
)
@_option(
    "--history",
    type=click.Choice(["covered", "whole", "off"]),
    default="covered",
    show_default=True,
    help="Log objects before they are retried or deleted; covered: without values of environment variables.",
)
@address_option(_option, "--metrics-address", "127.0.0.1:8080", "Listen address of /metrics")
@address_option(_option, "--health-address", "127.0.0.1:8081", "Listen address of /healthz and /readyz")
@click.option("--webhook", is_flag=True, help="Serve the admission webhook; short for --webhook-address :9443.")
@address_option(_option, "--webhook-address", "off", "Listen address of the webhook")
@log_option(_option)
def command(config: Path | None, log_format: str, webhook: bool, **given: Any) -> None:
    """Reconcile jobs on a Kubernetes cluster.

    \b
    shoal operator                                     # in a pod, or with your kubeconfig
    shoal operator --namespace team-a --dialects framework
    shoal operator --class fast                        # only jobs labelled shoal.dev/class=fast

    Runs until SIGTERM or SIGINT. One of several replicas is the leader; the others are on standby. `shoal install`
    installs it on the cluster with the permissions it needs.
    """
    from shoal.controller_runtime.health import Address
    from shoal.controller_runtime.process import log_to_stderr
    from shoal.install.options import default_name
    from shoal.local.config import load
    from shoal.operator.main import OperatorOptions

    if webhook and given["webhook_address"] is None:
        given["webhook_address"] = Address("", 9443)
    given["leader_election"] = given.pop("leader_election")
    given["name"] = given["name"] or default_name(given["namespace"], given["job_class"])
    settings = load(config).settings.dialects if config is not None else {}
    options = OperatorOptions(settings=settings, **given)
    log_to_stderr(log_format)

    from shoal.operator.main import run_operator

    run_server(run_operator(options))

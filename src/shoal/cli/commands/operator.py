"""`shoal operator`: serve jobs on a Kubernetes cluster."""

from __future__ import annotations

from collections.abc import Mapping
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


# A copy of `shoal.operator.gang_scheduler_detection.WISHES`, for the same reason as below.
GANG_SCHEDULERS = ("auto", "shoal", "volcano", "coscheduling", "kueue", "native", "none")
# A copy of `shoal.dialects.DEFAULT`; reading it would load the engine for a help text.
DIALECTS_HELP = "Job languages served.  [default: framework]"


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
@_option("--namespace", default="", metavar="NAME", help="Serve this namespace alone.  [default: all]")
@_option(
    "--class",
    "job_class",
    default="",
    metavar="NAME",
    help="Serve jobs with the label shoal.dev/class=NAME.  [default: those without that label]",
)
@_option(
    "--name",
    default="",
    metavar="NAME",
    help="Of Leases, Secret and webhooks; the same for replicas.  [default: shoal, with namespace and class]",
)
@_option(
    "--shards",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Share jobs out over replicas, each shard with a Lease of its own.",
)
@leader_election_options(_option)
@_option(
    "--gang-scheduler",
    type=click.Choice(GANG_SCHEDULERS),
    default="auto",
    show_default=True,
    help="Who places gangs; auto: whoever the cluster has.",
)
@_option(
    "--gang-scheduler-name",
    default="",
    metavar="NAME",
    help="schedulerName of pods in gangs.  [default: as that scheduler is usually called]",
)
@_option(
    "--ssh-plugin",
    is_flag=True,
    help="Serve plugin ssh of Volcano Jobs: needs a right to Secrets, which keep its keys.",
)
@_option("--config", type=click.Path(dir_okay=False, path_type=Path), help="Settings: the `dialects` of a shoal.yaml.")
@_option(
    "--history",
    type=click.Choice(["covered", "whole", "off"]),
    default="covered",
    show_default=True,
    help="What the log keeps of objects that are retried or deleted; covered: without values of variables.",
)
@address_option(_option, "--metrics-address", "127.0.0.1:8080", "/metrics")
@address_option(_option, "--health-address", "127.0.0.1:8081", "/healthz and /readyz")
@click.option("--webhook", is_flag=True, help="Check and complete jobs as they are written: --webhook-address :9443.")
@address_option(_option, "--webhook-address", "off", "Where the webhook listens")
@log_option(_option)
def command(config: Path | None, log_format: str, webhook: bool, **given: Any) -> None:
    """Serve jobs on a Kubernetes cluster.

    \b
    shoal operator                                     # in a pod, or with your kubeconfig
    shoal operator --namespace team-a --dialects framework
    shoal operator --class fast                        # only jobs labelled shoal.dev/class=fast

    Runs until SIGTERM or SIGINT. Several may run at once: one leads, the others wait. `shoal install` puts it on the
    cluster together with the rights it needs.
    """
    from shoal.controller_runtime.health import Address
    from shoal.controller_runtime.process import log_to_stderr
    from shoal.install.manifests import default_name
    from shoal.operator.main import OperatorOptions

    if webhook and given["webhook_address"] is None:
        given["webhook_address"] = Address("", 9443)
    given["leader_election"] = given.pop("leader_election")
    given["name"] = given["name"] or default_name(given["namespace"], given["job_class"])
    options = OperatorOptions(settings=_settings(config), **given)
    log_to_stderr(log_format)

    from shoal.operator.main import run_operator

    run_server(run_operator(options))


def _settings(config: Path | None) -> Mapping[str, Any]:
    from shoal.local.config import load

    return load(config).settings.dialects if config is not None else {}

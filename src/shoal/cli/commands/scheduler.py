"""`shoal scheduler`: place pods on a Kubernetes cluster, gangs whole or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from shoal.cli.server_options import (
    address_option,
    kubeconfig_options,
    leader_election_options,
    log_option,
    option_of,
    run_server,
)

if TYPE_CHECKING:
    from shoal.scheduler.planner.gang_types import PlannerSettings

CHOSEN = ("sharing", "profile", "tiers", "enqueue", "preempt", "reclaim")  # also in the file, which has more settings

_option = option_of("SHOAL_SCHEDULER_")


@click.command("scheduler")
@kubeconfig_options()
@_option("--name", default="shoal-scheduler", show_default=True, metavar="NAME", help="Name of its Lease.")
@_option(
    "--scheduler-name", "schedulers", default="shoal", show_default=True, metavar="NAME,...",
    help="Place pods whose schedulerName is one of these.",
)  # fmt: skip
@_option(
    "--volcano", type=click.Choice(["auto", "yes", "no"]), default="auto", show_default=True,
    help="Also place pods with schedulerName volcano; auto: if Volcano is not installed.",
)  # fmt: skip
@_option("--namespace", default="", metavar="NAME", help="Schedule PodGroups of this namespace only.  [default: all]")
@_option(
    "--sharing", type=click.Choice(["proportion", "capacity"]), default="proportion", show_default=True,
    help="How queues share the cluster: by weight, or by `deserved`, with parent queues.",
)  # fmt: skip
@_option(
    "--profile", type=click.Choice(["auto", "pack", "spread"]), default="auto", show_default=True,
    help="How nodes are chosen; auto: pack accelerators, spread everything else.",
)  # fmt: skip
@_option(
    "--tiers",
    default="",
    metavar="LABEL,...",
    help="Node labels of the topology tiers (rack, zone, ...), nearest first.",
)
@_option(
    "--config", type=click.Path(dir_okay=False, path_type=Path),
    help="Configuration file; its `scheduler` is used. Options take precedence.",
)  # fmt: skip
@_option("--enqueue/--no-enqueue", default=True, show_default=True, help="Admit PodGroups only if they fit.")
@_option(
    "--preempt/--no-preempt", default=True, show_default=True, help="Evict pods of lower priority in the same queue."
)
@_option(
    "--reclaim/--no-reclaim", default=True, show_default=True, help="Evict pods of queues that exceed their share."
)
@leader_election_options(_option)
@address_option(_option, "--metrics-address", "127.0.0.1:8080", "Listen address of /metrics")
@address_option(_option, "--health-address", "127.0.0.1:8081", "Listen address of /healthz and /readyz")
@log_option(_option)
def command(log_format: str, config: Path | None, **given: Any) -> None:
    """Schedule pods on a Kubernetes cluster, gangs all at once or not at all.

    Respects queues, fair shares, priorities, and the constraints of pods and nodes.

    \b
    shoal scheduler                                    # in a pod, or with your kubeconfig
    shoal scheduler --volcano no --sharing capacity

    Places pods whose schedulerName is `shoal`, and those of `volcano` if Volcano is not installed. Runs until
    SIGTERM or SIGINT. One of several replicas is the leader; the others are on standby. `shoal install --scheduler`
    installs it on the cluster with the permissions it needs.
    """
    from shoal.controller_runtime.process import ServerOptions, log_to_stderr
    from shoal.scheduler.main import run_scheduler
    from shoal.scheduler.manager import SchedulerOptions

    chosen = {name: given.pop(name) for name in CHOSEN}
    settings = planner_settings(config, {**chosen, "tiers": _split_list(chosen["tiers"])})
    schedulers = _split_list(given.pop("schedulers"))
    if not schedulers:
        raise click.UsageError("--scheduler-name needs a name: pods ask for their scheduler by it.")
    charge = SchedulerOptions(
        given.pop("name"), schedulers, given.pop("volcano"), given.pop("namespace") or None, settings
    )
    options = ServerOptions(leader_election=given.pop("leader_election"), **given)
    log_to_stderr(log_format)
    run_server(run_scheduler(options, charge))


def planner_settings(config: Path | None, chosen: dict[str, Any]) -> PlannerSettings:
    """The settings of the file, overridden by the command line and the environment."""
    from shoal.local.config import load
    from shoal.scheduler.planner.gang_types import PlannerSettings

    from_file = load(config).settings.scheduler if config is not None else None
    context = click.get_current_context()
    given = [name for name in chosen if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
    return replace(from_file or PlannerSettings(), **{name: chosen[name] for name in given})


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))

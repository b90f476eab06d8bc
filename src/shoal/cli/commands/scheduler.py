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
@_option("--name", default="shoal-scheduler", show_default=True, metavar="NAME", help="Of its Lease.")
@_option(
    "--scheduler-name", "schedulers", default="shoal", show_default=True, metavar="NAME,...",
    help="Place pods that ask for one of these.",
)  # fmt: skip
@_option(
    "--volcano", type=click.Choice(["auto", "yes", "no"]), default="auto", show_default=True,
    help="Answer for Volcano's scheduler too; auto: where Volcano is not installed.",
)  # fmt: skip
@_option("--namespace", default="", metavar="NAME", help="Serve groups of this namespace alone.  [default: all]")
@_option(
    "--sharing", type=click.Choice(["proportion", "capacity"]), default="proportion", show_default=True,
    help="How queues share: by weight, or by what each deserves, with parents.",
)  # fmt: skip
@_option(
    "--profile", type=click.Choice(["auto", "pack", "spread"]), default="auto", show_default=True,
    help="How nodes are chosen; auto: accelerators are packed, everything else is spread.",
)  # fmt: skip
@_option("--tiers", default="", metavar="LABEL,...", help="Node labels that name racks, zones, ...; the nearest first.")
@_option(
    "--config", type=click.Path(dir_okay=False, path_type=Path),
    help="Settings: the `scheduler` of a shoal.yaml. Options that are given win.",
)  # fmt: skip
@_option("--enqueue/--no-enqueue", default=True, show_default=True, help="Let groups in only where there is room.")
@_option("--preempt/--no-preempt", default=True, show_default=True, help="Evict lower priorities within a queue.")
@_option("--reclaim/--no-reclaim", default=True, show_default=True, help="Take back what other queues borrowed.")
@leader_election_options(_option)
@address_option(_option, "--metrics-address", "127.0.0.1:8080", "/metrics")
@address_option(_option, "--health-address", "127.0.0.1:8081", "/healthz and /readyz")
@log_option(_option)
def command(log_format: str, config: Path | None, **given: Any) -> None:
    """Place pods on a Kubernetes cluster, gangs whole or not at all.

    By queues, shares, priorities and the rules that pods and nodes have.

    \b
    shoal scheduler                                    # in a pod, or with your kubeconfig
    shoal scheduler --volcano no --sharing capacity

    Places pods whose schedulerName is `shoal`, and those for `volcano` where Volcano is not installed. Runs until
    SIGTERM or SIGINT. Several may run at once: one leads, the others wait. `shoal install --scheduler` puts it on the
    cluster together with the rights it needs.
    """
    from shoal.controller_runtime.process import ServerOptions, log_to_stderr
    from shoal.scheduler.main import run_scheduler
    from shoal.scheduler.manager import SchedulerOptions

    chosen = {name: given.pop(name) for name in CHOSEN}
    settings = _settings(config, {**chosen, "tiers": _split_list(chosen["tiers"])})
    schedulers = _split_list(given.pop("schedulers"))
    if not schedulers:
        raise click.UsageError("--scheduler-name needs a name: pods ask for their scheduler by it.")
    charge = SchedulerOptions(
        given.pop("name"), schedulers, given.pop("volcano"), given.pop("namespace") or None, settings
    )
    options = ServerOptions(leader_election=given.pop("leader_election"), **given)
    log_to_stderr(log_format)
    run_server(run_scheduler(options, charge))


def _settings(config: Path | None, chosen: dict[str, Any]) -> PlannerSettings:
    """The settings of the file, overridden by the command line and the environment."""
    from shoal.local.config import load
    from shoal.scheduler.planner.gang_types import PlannerSettings

    from_file = load(config).settings.scheduler if config is not None else None
    context = click.get_current_context()
    given = [name for name in chosen if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
    return replace(from_file or PlannerSettings(), **{name: chosen[name] for name in given})


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))

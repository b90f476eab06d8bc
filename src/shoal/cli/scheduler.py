"""`shoal scheduler`: place pods on a Kubernetes cluster, gangs whole or not at all."""

from __future__ import annotations

from typing import Any

import click

from shoal.cli.programs import kubeconfig_options, listening, log_option, option_of, serving, turn_options

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
@_option("--enqueue/--no-enqueue", default=True, show_default=True, help="Let groups in only where there is room.")
@_option("--preempt/--no-preempt", default=True, show_default=True, help="Evict lower priorities within a queue.")
@_option("--reclaim/--no-reclaim", default=True, show_default=True, help="Take back what other queues borrowed.")
@turn_options(_option)
@listening(_option, "--metrics-address", "127.0.0.1:8080", "/metrics")
@listening(_option, "--health-address", "127.0.0.1:8081", "/healthz and /readyz")
@log_option(_option)
def command(log_format: str, **said: Any) -> None:
    """Place pods on a Kubernetes cluster, gangs whole or not at all.

    By queues, shares, priorities and the rules that pods and nodes have.

    \b
    shoal scheduler                                    # in a pod, or with your kubeconfig
    shoal scheduler --volcano no --sharing capacity

    Places pods whose schedulerName is `shoal`, and those for `volcano` where Volcano is not installed. Runs until
    SIGTERM or SIGINT. Several may run at once: one leads, the others wait. `shoal install --scheduler` puts it on the
    cluster together with the rights it needs.
    """
    from shoal.cli.operating import Orders, log_to_stderr
    from shoal.cli.scheduling import schedule
    from shoal.operator.scheduler.program import Charge
    from shoal.scheduling.groups import Settings

    chosen = {name: said.pop(name) for name in ("sharing", "profile", "enqueue", "preempt", "reclaim")}
    settings = Settings(tiers=_words(said.pop("tiers")), **chosen)
    schedulers = _words(said.pop("schedulers"))
    if not schedulers:
        raise click.UsageError("--scheduler-name needs a name: pods ask for their scheduler by it.")
    charge = Charge(said["name"], schedulers, said.pop("volcano"), said["namespace"] or None, settings)
    orders = Orders(elects=said.pop("leader_election"), **said)
    log_to_stderr(log_format)
    serving(schedule(orders, charge))


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))

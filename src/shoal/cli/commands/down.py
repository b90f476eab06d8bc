"""`shoal down`: stop the process that runs a cluster, and wait until the kernel reports its end."""

from __future__ import annotations

import os
import select
import signal
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from shoal.cli.quick_get import NoAnswer, items
from shoal.local.data_dir import DataFolder, data_option
from shoal.local.orphan_cleanup import end_pods, end_throwaways

NOT_RESTARTED = "Pods with restartPolicy Never are not restarted; the retry policy of their job applies"


@click.command("down")
@data_option
@click.option(
    "--timeout", default=60.0, show_default=True, metavar="SECONDS", help="Seconds to wait for the cluster to stop."
)
def command(folder: Path, timeout: float) -> None:
    """Stop a cluster and keep its data.

    The processes of its pods are terminated with their grace periods, as at the shutdown of a machine. After the next
    `shoal up` each pod's restartPolicy decides whether it restarts. Pods left running by a cluster that was killed are
    terminated too.
    """
    end_throwaways()
    data = DataFolder(folder)
    running = data.running()
    if running is None:
        if not data.count_sandboxes():
            click.echo(f"No cluster runs in {data.path}.")
            return
        with data.locked():
            click.echo(f"No cluster runs in {data.path}. Stopping the pods it left running when it was killed ...")
            count, pods = end_pods(data)
        click.echo(f"Stopped {_plural(count, 'pod', 'pods')}. {describe_remaining_pods(data, pods)}")
        if ending := jobs_that_end(pods):
            click.echo(f"{NOT_RESTARTED}: {ending}.")
        return
    try:
        process = os.pidfd_open(running.pid)
    except ProcessLookupError:
        click.echo(f"The cluster in {data.path} has just stopped.")
        return
    try:
        if data.running() != running:  # it has ended, and the number may be another process's by now
            click.echo(f"The cluster in {data.path} has just stopped.")
            return
        try:
            stopped: list[dict[str, Any]] | None = items(data, running, "pods", timeout_seconds=5)
        except NoAnswer:
            stopped = None  # which is no reason not to stop it
        signal.pidfd_send_signal(process, signal.SIGTERM)
        click.echo(f"Stopping the cluster in {data.path}; each pod has its grace period to end ...")
        if ending := jobs_that_end(stopped or ()):
            click.echo(f"{NOT_RESTARTED}: {ending}.")
        ended, _, _ = select.select([process], [], [], timeout)
    finally:
        os.close(process)
    if not ended:
        raise click.ClickException(
            f"process {running.pid} is still stopping its pods after {timeout:g} s. "
            f"Run `{data.command('down')}` again to wait longer, "
            f"or kill -9 {running.pid}: no data is lost, and the next `shoal up` adopts the pods that still run."
        )
    click.echo(f"Stopped. {describe_remaining_pods(data, stopped)}")


def jobs_that_end(pods: Iterable[Mapping[str, Any]]) -> str:
    """Jobs and single pods with running pods that are not restarted: `Framework pet (2 pods), Pod x`."""
    from shoal.dialects import dialects

    counts: Counter[str] = Counter()
    single: list[str] = []
    for pod in pods:
        if (pod.get("status") or {}).get("phase") != "Running" or pod["spec"].get("restartPolicy") != "Never":
            continue
        owners = ((dialect.kind.kind, dialect.owner_of(dict(pod))) for dialect in dialects())
        if name := next((f"{kind} {owner.key.name}" for kind, owner in owners if owner is not None), ""):
            counts[name] += 1
        else:
            single.append(f"Pod {pod['metadata']['name']}")
    jobs = (f"{name} ({_plural(count, 'pod', 'pods')})" for name, count in counts.items())
    return ", ".join(sorted((*jobs, *single)))


def describe_remaining_pods(data: DataFolder, pods: Iterable[Mapping[str, Any]] | None) -> str:
    """What the next start finds of the pods that were stopped with their cluster."""
    up = f"`{data.command('up')}` starts it again"
    if pods is None:
        return f"{up} and restarts the pods that ran, except those with restartPolicy Never."
    running = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"]
    ended = sum(pod["spec"].get("restartPolicy") == "Never" for pod in running)
    left = len(running) - ended
    restarts = f" and restarts {_plural(left, 'pod', 'pods')}" if left else ""
    if not ended:
        return f"{up}{restarts}."
    others = "1 pod with restartPolicy Never is" if ended == 1 else f"{ended} pods with restartPolicy Never are"
    return f"{up}{restarts}. {others} not restarted."


def _plural(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def describe_orphans(data: DataFolder) -> str:
    """What to say of pods that go on without their cluster."""
    count = data.count_sandboxes()
    if not count:
        return ""
    up, down = data.command("up"), data.command("down")
    return f" {_plural(count, 'pod', 'pods')} of it may still run: `{up}` adopts them, `{down}` stops them."

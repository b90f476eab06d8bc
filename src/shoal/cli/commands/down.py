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
from shoal.local.data_dir import ClusterInfo, DataFolder, data_option
from shoal.local.orphan_cleanup import end_pods, end_throwaways


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
        _end_orphans(data)
        return
    try:
        process = os.pidfd_open(running.pid)
    except ProcessLookupError:
        click.echo(f"The cluster in {data.path} has just ended.")
        return
    try:
        if data.running() != running:  # it has ended, and the number may be another process's by now
            click.echo(f"The cluster in {data.path} has just ended.")
            return
        stopped = _pods(data, running)
        signal.pidfd_send_signal(process, signal.SIGTERM)
        click.echo(f"Stopping the cluster in {data.path}; each pod has its grace period to end ...")
        if ending := jobs_that_end(stopped or ()):
            click.echo(f"Pods of these jobs are terminated; their retry policies apply: {ending}.")
        ended, _, _ = select.select([process], [], [], timeout)
    finally:
        os.close(process)
    if not ended:
        raise click.ClickException(
            f"process {running.pid} still stops its pods after {timeout:g} s. "
            f"Run `{data.command('down')}` again to wait on, "
            f"or kill -9 {running.pid}: nothing is lost, the next `shoal up` finds what is left."
        )
    click.echo(f"Stopped. {describe_remaining_pods(data, stopped)}")


def _end_orphans(data: DataFolder) -> None:
    if not data.count_sandboxes():
        click.echo(f"No cluster runs in {data.path}.")
        return
    with data.locked():
        click.echo(f"No cluster runs in {data.path}. Ending the pods it left running when it was killed ...")
        count, pods = end_pods(data)
    click.echo(f"Ended {_plural(count, 'pod', 'pods')}. {describe_remaining_pods(data, pods)}")
    if ending := jobs_that_end(pods):
        click.echo(f"Pods of these jobs were terminated; their retry policies apply: {ending}.")


def jobs_that_end(pods: Iterable[Mapping[str, Any]]) -> str:
    """Jobs and single pods with running pods that are not started again: `Framework pet (2 pods), Pod x`."""
    from shoal.dialects import dialects

    counts: Counter[str] = Counter()
    for pod in pods:
        if (pod.get("status") or {}).get("phase") != "Running" or pod["spec"].get("restartPolicy") != "Never":
            continue
        owners = ((dialect.kind.kind, dialect.owner_of(dict(pod))) for dialect in dialects())
        name = next((f"{kind} {owner.key.name}" for kind, owner in owners if owner is not None), "")
        counts[name or f"Pod {pod['metadata']['name']}"] += 1
    return ", ".join(
        name if name.startswith("Pod ") else f"{name} ({_plural(count, 'pod', 'pods')})"
        for name, count in sorted(counts.items())
    )


def _pods(data: DataFolder, running: ClusterInfo) -> list[dict[str, Any]] | None:
    """Those it is about to stop; None where it does not answer, which is no reason not to stop it."""
    try:
        return items(data, running, "pods", timeout_seconds=5)
    except NoAnswer:
        return None


def describe_remaining_pods(data: DataFolder, pods: Iterable[Mapping[str, Any]] | None) -> str:
    """What the next start finds of the pods that were stopped with their cluster."""
    up = f"`{data.command('up')}` starts it again"
    if pods is None:
        return f"{up}; pods that ran are restarted, except those with restartPolicy Never, which have ended."
    running = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"]
    ended = sum(pod["spec"].get("restartPolicy") == "Never" for pod in running)
    if not running:
        return f"{up} where it was."
    if not ended:
        return f"{up}, and {_plural(len(running), 'pod that ran is restarted', 'pods that ran are restarted')}."
    for_good = f"{_plural(ended, 'pod that ran has', 'pods that ran have')} ended for good (restartPolicy Never)"
    left = len(running) - ended
    rest = f"; {_plural(left, 'is restarted', 'are restarted')}" if left else ""
    return f"{up}. {for_good}{rest}."


def _plural(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def describe_orphans(data: DataFolder) -> str:
    """What to say of pods that go on without their cluster."""
    count = data.count_sandboxes()
    if not count:
        return ""
    pods = "1 pod" if count == 1 else f"{count} pods"
    up, down = data.command("up"), data.command("down")
    return f" {pods} of it may still run: `{up}` finds them again, `{down}` ends them."

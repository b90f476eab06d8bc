"""`shoal down`: ask the process that runs a cluster to end, and wait until the kernel says it has."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path

import click

from shoal.cli.folders import DataFolder, data_option


@click.command("down")
@data_option
@click.option("--timeout", default=60.0, show_default=True, metavar="SECONDS", help="How long to wait for the end.")
def command(folder: Path, timeout: float) -> None:
    """Stop a cluster; what it stores stays.

    The processes of its pods are stopped with their grace periods, as when a machine is shut down. After the next
    `shoal up` each pod's restartPolicy decides whether it starts again.
    """
    data = DataFolder(folder)
    running = data.running()
    if running is None:
        click.echo(f"No cluster runs in {data.path}.{left_behind(data)}")
        return
    try:
        process = os.pidfd_open(running.pid)
    except ProcessLookupError:
        click.echo(f"The cluster in {data.path} has just ended.")
        return
    try:
        if data.running() != running:  # it ended meanwhile, and the number may be another process's by now
            click.echo(f"The cluster in {data.path} has just ended.")
            return
        signal.pidfd_send_signal(process, signal.SIGTERM)
        click.echo(f"Stopping the cluster in {data.path}; each pod has its grace period to end ...")
        ended, _, _ = select.select([process], [], [], timeout)
    finally:
        os.close(process)
    if not ended:
        raise click.ClickException(
            f"process {running.pid} still stops its pods after {timeout:g} s. "
            f"Run `{data.command('down')}` again to wait on, "
            f"or kill -9 {running.pid}: nothing is lost, the next `shoal up` finds what is left."
        )
    click.echo(f"Stopped. `{data.command('up')}` starts it again where it was.")


def left_behind(data: DataFolder) -> str:
    """What to say of pods that go on without their cluster."""
    count = data.kept_pods()
    if not count:
        return ""
    pods = "1 pod" if count == 1 else f"{count} pods"
    return f" {pods} of it may still run: `{data.command('up')}` finds them again."

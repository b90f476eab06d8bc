"""`shoal validate`: what a cluster would say to a manifest, without one."""

from __future__ import annotations

from pathlib import Path

import click

from shoal.cli.manifests import Unreadable, files_argument, read, set_option


@click.command("validate")
@files_argument
@set_option
@click.option("--strict", is_flag=True, help="Count warnings as mistakes.")
def command(files: tuple[Path, ...], changes: tuple[str, ...], strict: bool) -> None:
    """Check manifests without a cluster.

    Says everything a cluster would say when they are submitted and when the first pods are made of them: every
    mistake with its path and what would be right. Ends with 0 where all are in order, with 1 otherwise.
    """
    from shoal.cli.validating import judge, judge_room, told

    machinery = judge_room()
    is_good = True
    for found in read(files, changes):
        if isinstance(found, Unreadable):
            click.echo(found.why)
            is_good = False
            continue
        verdict = judge(machinery, found)
        click.echo("\n".join(told(found, verdict)))
        is_good = is_good and not verdict.mistakes and not (strict and verdict.warnings)
    raise SystemExit(0 if is_good else 1)

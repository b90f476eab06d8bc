"""`shoal validate`: what a cluster would say to a manifest, without one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shoal.cli.manifests import Unreadable, files_argument, read, set_option

if TYPE_CHECKING:
    from shoal.cli.manifests import Manifest
    from shoal.cli.validating import Verdict


@click.command("validate")
@files_argument
@set_option
@click.option("--strict", is_flag=True, help="Count warnings as mistakes.")
def command(files: tuple[Path, ...], changes: tuple[str, ...], strict: bool) -> None:
    """Check manifests without a cluster.

    Says everything a cluster would say when they are submitted and when the first pods are made of them: every
    mistake with its path and what would be right. Ends with 0 where all are in order, with 1 otherwise.
    """
    from shoal.cli.validating import judge, judge_room

    machinery = judge_room()
    is_good = True
    for found in read(files, changes):
        if isinstance(found, Unreadable):
            click.echo(found.why)
            is_good = False
            continue
        verdict = judge(machinery, found)
        _tell(found, verdict)
        is_good = is_good and not verdict.mistakes and not (strict and verdict.warnings)
    raise SystemExit(0 if is_good else 1)


def _tell(manifest: Manifest, verdict: Verdict) -> None:
    if not verdict.mistakes:
        click.echo(f"{manifest.where}: {manifest} is in order.")
    else:
        count = len(verdict.mistakes)
        click.echo(f"{manifest.where}: {manifest} has {count} mistake{'s' * (count > 1)}:")
        for mistake in verdict.mistakes:
            click.echo(f"  {mistake}")
    for warning in verdict.warnings:
        click.echo(f"  warning: {warning}")

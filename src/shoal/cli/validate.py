"""`shoal validate`: what a cluster would say to a manifest, without one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shoal.cli.manifests import Manifest, files_argument, load, set_option

if TYPE_CHECKING:
    pass


@click.command("validate")
@files_argument
@set_option
@click.option("--strict", is_flag=True, help="Count warnings as mistakes.")
def command(files: tuple[Path, ...], changes: tuple[str, ...], strict: bool) -> None:
    """Check manifests without a cluster.

    Says everything a cluster would say when they are submitted: every mistake with its path and what would be right.
    Ends with 0 where all are in order, with 1 otherwise.
    """
    from shoal.cli.validating import judge, judge_room

    machinery = judge_room()
    verdicts = [(manifest, judge(machinery, manifest)) for manifest in load(files, changes)]
    for manifest, verdict in verdicts:
        _tell(manifest, verdict)
    bad = [v for _, v in verdicts if v.mistakes or (strict and v.warnings)]
    raise SystemExit(1 if bad else 0)


def _tell(manifest: Manifest, verdict: object) -> None:
    from shoal.cli.validating import Verdict

    assert isinstance(verdict, Verdict)
    if not verdict.mistakes:
        click.echo(f"{manifest.where}: {manifest} is in order.")
    else:
        count = len(verdict.mistakes)
        click.echo(f"{manifest.where}: {manifest} has {count} mistake{'s' * (count > 1)}:")
        for mistake in verdict.mistakes:
            click.echo(f"  {mistake}")
    for warning in verdict.warnings:
        click.echo(f"  warning: {warning}")

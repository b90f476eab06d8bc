"""`shoal validate`: what a cluster would say to a manifest, without one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from shoal.cli.manifest_files import UnreadableFile, files_argument, job_file, read, set_option


@click.command("validate")
@files_argument
@set_option
@click.option("--strict", is_flag=True, help="Count warnings as mistakes.")
@click.option(
    "--config", "file", type=click.Path(dir_okay=False, path_type=Path), envvar="SHOAL_CONFIG", show_envvar=True,
    help="Configuration file with the images.  [default: as for `shoal run`]",
)  # fmt: skip
def command(files: tuple[Path, ...], changes: tuple[str, ...], strict: bool, file: Path | None) -> None:
    """Check manifests without a cluster.

    Prints every mistake that a cluster would report when they are submitted and when the first pods are created, each
    with its path and what would be right. A field that no schema declares is a mistake. Warnings are about what is
    accepted and does not start as written, such as a container without a command on this machine, and those about
    images are the same as `shoal run` and `shoal submit` print. Ends with 0 where
    there are no mistakes, with 1 otherwise.
    """
    from shoal.cli.offline_validation import format_result, make_machinery, validate, without_command
    from shoal.cli.project import images_without_entry, load_config

    machinery = make_machinery()
    images = replace(load_config(file, job_file(files)).images, retry_hint="submit the job")
    is_good = not (strict and images.missing_paths())
    for found in read(files, changes):
        if isinstance(found, UnreadableFile):
            click.echo(found.why)
            is_good = False
            continue
        verdict = validate(machinery, found)
        if not verdict.mistakes:
            verdict = verdict.with_warnings(
                [*without_command(found.obj, images), *images_without_entry(found.obj, images)]
            )
        click.echo("\n".join(format_result(found, verdict)))
        is_good = is_good and not verdict.mistakes and not (strict and verdict.warnings)
    raise SystemExit(0 if is_good else 1)

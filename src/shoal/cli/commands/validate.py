"""`shoal validate`: what a cluster would say to a manifest, without one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from shoal.cli.manifest_files import UnreadableFile, files_argument, job_file, read, set_option


@click.command("validate")
@files_argument
@set_option
@click.option("--strict", is_flag=True, help="Treat warnings as mistakes.")
@click.option(
    "--config", "file", type=click.Path(dir_okay=False, path_type=Path), envvar="SHOAL_CONFIG", show_envvar=True,
    help="Configuration file with `images:`.  [default: as for `shoal run`]",
)  # fmt: skip
def command(files: tuple[Path, ...], changes: tuple[str, ...], strict: bool, file: Path | None) -> None:
    """Check manifests without a cluster.

    Prints every mistake that a cluster would report on submission and on creation of the first pods, each with its
    path and the correction. Unknown fields are mistakes. Warnings are about manifests that are accepted but do not
    start as written, such as a container without a command; about images, they are the same as those of `shoal run`
    and `shoal submit`. Exits with 0 if there are no mistakes, 1 otherwise.
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

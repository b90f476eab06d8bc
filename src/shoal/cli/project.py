"""The project that a command is called in: the working folder, the environment and the configuration beside a job."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shoal.kube.job_annotations import PROJECT

if TYPE_CHECKING:
    from shoal.cli.manifest_files import Manifest
    from shoal.kube.objects import Obj
    from shoal.local.config import Config
    from shoal.node.images import Images
    from shoal.node.projects import Project


def load_config(file: Path | None, job_file: Path | None) -> Config:
    """The configuration that holds for a job file, with a warning for what it names and this machine does not have."""
    from shoal.local.config import default_file, load

    config = load(file or default_file(job_file))
    warn_of_missing_paths(config.images)
    return config


def warn_of_missing_paths(images: Images) -> None:
    """A warning for every folder and Python environment that the entries name and this machine does not have."""
    for line in images.missing_paths():
        click.echo(f"Warning: {images.config_file}: {line}. Pods of that image wait or fail for it.", err=True)


def warn_of_settings(config: Config, cluster: Mapping[str, Any] | None) -> None:
    """A warning for settings of nodes and network that a project's file has and the running cluster does not."""
    if cluster is None:
        return
    path = config.images.config_file
    wanted = config.settings.model_dump(exclude_unset=True, include=set(cluster))
    ignored = [name for name, value in wanted.items() if not has_setting(cluster[name], value)]
    if ignored:
        click.echo(
            f"Warning: {', '.join(ignored)} in {path} {'differs' if len(ignored) == 1 else 'differ'} from the running "
            f"cluster's and {'has' if len(ignored) == 1 else 'have'} no effect here. Stop the cluster (`shoal down`) "
            f"and start it with `shoal up --config {path}` to use it.",
            err=True,
        )


def has_setting(running: Any, wanted: Any) -> bool:
    """A cluster with more resources than the file declares has those of the file."""
    return wanted.items() <= running.items() if isinstance(wanted, dict) else wanted in ("auto", running)


def project_here(images: Images) -> Project:
    from shoal.node.projects import VARIABLES, Project

    entries = {name: entry.model_dump(exclude_defaults=True) for name, entry in images.entries.items()}
    env = {name: os.environ.get(name) for name in VARIABLES}
    return Project(str(Path.cwd()), env, entries or None, images.config_file if entries else "")


def with_project(manifests: Sequence[Manifest], name: str) -> list[Manifest]:
    """Jobs and Pods with an annotation that names the project."""
    from shoal.dialects import dialect_of

    annotated: list[Manifest] = []
    for each in manifests:
        is_pod = (each.api_version, each.kind) == ("v1", "Pod")
        metadata = each.obj.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else ""
        # Metadata or annotations of another type are rejected by the cluster, with the path.
        if isinstance(annotations, dict | None) and (is_pod or dialect_of(each.api_version, each.kind) is not None):
            metadata = {**(metadata or {}), "annotations": {**(annotations or {}), PROJECT: name}}
            each = replace(each, obj={**each.obj, "metadata": metadata})
        annotated.append(each)
    return annotated


def warn_of_images(manifests: Sequence[Manifest], images: Images) -> None:
    """A warning for every image without an entry, on standard error."""
    for manifest in manifests:
        for warning in images_without_entry(manifest.obj, images):
            click.echo(f"{manifest.where}: warning: {warning}", err=True)


def images_without_entry(obj: Obj, images: Images) -> Iterator[str]:
    """Only where there are entries: a misspelt name runs without its mounts."""
    for image in dict.fromkeys(_images_in(obj)) if images.entries else ():
        if images.entry(image) is None:
            near = get_close_matches(image, list(images.entries), n=1, cutoff=0.5)
            meant = f'; did you mean "{near[0]}"?' if near else f"; there are: {', '.join(images.entries)}."
            yield (
                f'image "{image}" has no entry under `images:` in {images.config_file}{meant} '
                "Its command runs in your own environment."
            )


def _images_in(node: Any) -> Iterator[str]:
    """Of every list of containers, however deep a job language keeps it."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("containers", "initContainers") and isinstance(value, list):
                yield from (str(each["image"]) for each in value if isinstance(each, dict) and each.get("image"))
            else:
                yield from _images_in(value)
    elif isinstance(node, list):
        for item in node:
            yield from _images_in(item)

"""The configuration file, `shoal.yaml`: read strictly, every mistake listed with its path.

    nodes: 2                        # split the machine
    capacity: {nvidia.com/gpu: 4}   # declare resources, per node
    network: isolated               # or loopback; auto picks the better one that works here
    port: 6443
    pod_pids_limit: 4096            # processes and threads of one pod
    dialects:                       # settings of the dialects, or the file that holds them
      framework: {frameworkCompletedRetainSec: 86400}
    scheduler: {sharing: capacity}  # how pods are placed, and which are evicted
    logs: {keep: 2Gi, days: 14}     # of pods that no longer exist
    images:
      "acme/trainer:*": {mounts: {/workspace: ./trainer}, python: ~/venvs/trainer}

Command-line options override the file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import click
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from shoal.kube import names
from shoal.kube.quantity import BadQuantity, Quantity
from shoal.node.config_errors import error_lines
from shoal.node.images import Images, ImagesInvalid, read_images
from shoal.node.log_archive import DEFAULT_DAYS, ArchiveBudget

MEASURED = ("cpu", "memory", "ephemeral-storage", "pods")  # what every node has, under Kubernetes' own names


class LogSettings(BaseModel):
    """How much is kept of the logs of pods that are gone, and how long."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    keep: str = Field(default="2Gi", description="an amount of bytes such as 2Gi; 0 keeps none")
    days: float = Field(default=DEFAULT_DAYS, gt=0, description="a number of days, such as 14")

    @field_validator("keep", mode="before")
    @classmethod
    def _amount(cls, written: Any) -> Any:
        text = str(written) if isinstance(written, int | float) and not isinstance(written, bool) else written
        if isinstance(text, str) and wrong_amount("memory", text):
            raise ValueError(f": {text!r} is not an amount; write for example 2Gi")
        return text

    @property
    def budget(self) -> ArchiveBudget:
        return ArchiveBudget(Quantity.parse(self.keep).value(), self.days)


class ClusterSettings(BaseModel):
    """What the file may say, apart from `images`, `dialects` and `scheduler`, which others read."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    nodes: int | None = Field(default=None, ge=1, le=64, description="a whole number from 1 to 64")
    capacity: dict[str, str] = Field(
        default_factory=dict, description="resources with amounts, such as {nvidia.com/gpu: 4}"
    )
    network: Literal["auto", "isolated", "loopback"] = Field(default="auto", description="auto, isolated or loopback")
    pod_pids_limit: int | None = Field(
        default=None, ge=0, description="a whole number of processes and threads; 0 is no limit"
    )
    port: int = Field(default=0, ge=0, le=65535, description="a whole number from 0 to 65535; 0 is any free one")
    dialects: dict[str, Any] = Field(default_factory=dict)  # as each language has read its own
    scheduler: Any = None  # the planner's settings; None: its own
    logs: LogSettings = Field(default_factory=LogSettings)

    @field_validator("capacity", mode="before")
    @classmethod
    def _amounts(cls, written: Any) -> Any:
        if not isinstance(written, dict):
            return written  # reported as any other wrong type
        amounts = {str(name): str(amount) for name, amount in written.items()}
        mistakes = [wrong for name, amount in amounts.items() if (wrong := wrong_amount(name, amount))]
        if mistakes:
            raise ValueError("\n".join(f".{wrong}" for wrong in mistakes))
        return amounts


class Config(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True, frozen=True)

    settings: ClusterSettings
    images: Images


def wrong_amount(name: str, amount: str) -> str:
    """What is wrong with a declared capacity, '' if nothing is: it is a quantity, and whole where it is handed out in
    pieces."""
    if names.qualified_name(name) or not ("/" in name or name in MEASURED or name.startswith("hugepages-")):
        known = ", ".join(MEASURED)
        return f"{name}: this is not the name of a resource; write {known}, or for example nvidia.com/gpu"
    try:
        value = Quantity.parse(amount)
    except BadQuantity:
        return f"{name}: {amount!r} is not an amount; write for example 4 or 64Gi"
    if value.milli() < 0 or (("/" in name or name == "pods") and value.milli() % 1000):
        return f"{name}: {amount!r} must be a whole number that is not negative"
    return ""


def default_file(job_file: Path | None = None) -> Path | None:
    """./shoal.yaml, else the one beside a job file, else the user's own; None where there is none."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    folder = () if job_file is None else (job_file if job_file.is_dir() else job_file.parent,)
    candidates = [Path(each) / "shoal.yaml" for each in (Path(), *folder, Path(base) / "shoal")]
    return next((path for path in candidates if path.exists()), None)


def load(path: Path | None) -> Config:
    """The configuration in `path`; without one, the defaults."""
    if path is None:
        return Config(settings=ClusterSettings(), images=Images({}, str(Path("shoal.yaml").absolute()), Path.cwd()))
    written, mistakes = _read(path)
    images = written.pop("images", None)
    dialect_settings, dialect_mistakes = read_dialects(written.pop("dialects", None) or {}, path.absolute().parent)
    mistakes += dialect_mistakes
    scheduler_settings: Any = None
    if (given_scheduler := written.pop("scheduler", None)) is not None:
        from shoal.local.scheduler_settings import read as read_scheduler

        scheduler_settings, scheduler_mistakes = read_scheduler(given_scheduler)
        mistakes += scheduler_mistakes
    log_settings, given_logs = LogSettings(), written.pop("logs", None)
    if isinstance(given_logs, dict | None):
        try:
            log_settings = LogSettings.model_validate(given_logs or {})
        except ValidationError as invalid:
            mistakes += [f"logs{line}" for line in error_lines(invalid, LogSettings)]
    else:
        mistakes.append("logs: must be a mapping such as {keep: 2Gi, days: 14}")
    settings = ClusterSettings()
    given = {key: value for key, value in written.items() if value is not None}
    try:
        settings = ClusterSettings.model_validate(
            {**given, "dialects": dialect_settings, "scheduler": scheduler_settings, "logs": log_settings}
        )
    except ValidationError as invalid:
        mistakes += [line.removeprefix(".") for line in error_lines(invalid, ClusterSettings, also=["images"])]
    entries = Images()
    try:
        # Pods will name the file, to people who may be anywhere.
        entries = read_images(images, config_file=str(path.absolute()), base=path.absolute().parent)
    except ImagesInvalid as invalid_images:
        mistakes += [line.removeprefix(f"{path.absolute()}: ") for line in str(invalid_images).splitlines()]
    if mistakes:
        listed = "\n".join(f"  {mistake}" for mistake in mistakes)
        raise click.ClickException(f"{path} has {len(mistakes)} mistake{'s' * (len(mistakes) > 1)}:\n{listed}")
    return Config(settings=settings, images=entries)


def read_dialects(written: Any, base: Path) -> tuple[dict[str, Any], list[str]]:
    """Settings of job languages, each read by the language itself, and every mistake with its path.

    A text in place of a mapping is the name of a file that holds it: people have a frameworkcontroller.yaml already.
    """
    from shoal.dialects import NAMES
    from shoal.dialects import load as dialect
    from shoal.dialects.capabilities import OperatorSettings
    from shoal.dialects.dialect import SettingsInvalid

    if not isinstance(written, dict):
        return {}, ["dialects: must be a mapping from job languages to their settings"]
    dialect_settings: dict[str, Any] = {}
    mistakes: list[str] = []
    for name, given in written.items():
        if name not in NAMES:
            mistakes.append(f"dialects.{name}: there is no such job language; there are: {', '.join(NAMES)}")
            continue
        try:
            settings = dialect_settings[name] = dialect(name).settings(load_settings(given, base))
            found = dialect(name).capability(OperatorSettings)
            for key, why in (found.idle(settings) if found is not None else {}).items():
                click.echo(f"Warning: dialects.{name}.{key} has no effect: {why}.", err=True)
        except SettingsInvalid as invalid:
            mistakes += [f"dialects.{name}.{cause}" for cause in invalid.causes]
        except ValueError as wrong:
            mistakes.append(f"dialects.{name}: {wrong}")
    return dialect_settings, mistakes


def load_settings(given: Any, base: Path) -> dict[str, Any]:
    if isinstance(given, str):
        given, duplicates = _read(base / Path(given).expanduser())
        if duplicates:
            raise ValueError(", ".join(duplicates))
    if not isinstance(given, dict | None):
        raise ValueError("must be a mapping of settings, or the name of a file that holds one")
    return given or {}


def _read(path: Path) -> tuple[dict[str, Any], list[str]]:
    from shoal.apiserver.request_body import MalformedBody, decode_yaml

    try:
        body = decode_yaml(path.read_bytes())
    except OSError as refused:
        raise click.ClickException(f"cannot read {path}: {refused.strerror}") from None
    except MalformedBody as malformed:
        raise click.ClickException(f"{path} is not YAML: {malformed}") from None
    if not isinstance(body.value, dict | None):
        raise click.ClickException(f"{path} must be a mapping with keys such as `images:` or `nodes:`")
    return body.value or {}, [f"{key}: occurs twice" for key in body.duplicates]

"""Images, where there are no containers: a name selects an entry of `images:` in the configuration.

    images:
      "ghcr.io/acme/trainer:*":
        mounts: {/workspace: ./trainer}
        python: ~/venvs/trainer
        command: [python, -m, trainer]
        env: {OMP_NUM_THREADS: "4"}
        working_dir: /workspace

A mount without a folder (`/scratch: ~`) is a fresh one in memory, there for as long as the container's process: what a
container's own writable layer would be.

The most specific pattern wins: the one with the most letters that are not wildcards, then the one written first. An
image without an entry runs its command in the caller's environment. A container that has neither a command nor an entry
with one cannot run: it stays waiting with the reason ImageNotConfigured, whatever the restart policy, and the message
has what to add where. A kubelet does the same with an image it cannot pull. A job that was submitted brings the
`images:` found beside it, so a corrected file takes effect with the next submission; entries of the cluster or of a
node are read when that starts.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, TypeGuard

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from shoal.kube.messages import Message
from shoal.node.config_errors import error_lines, format_value
from shoal.node.sandbox.interface import Mount

_WILDCARD = re.compile(r"[*?]|\[[^]]*\]")


class ImagesInvalid(ValueError):
    """The `images:` section of the configuration has errors; the message lists every one with its path."""


class ImageEntry(BaseModel):
    """What replaces an image."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    mounts: dict[str, str | None] = Field(
        default_factory=dict,
        description="paths in the pod with folders of this machine (without one: a fresh folder), "
        "such as {/workspace: ./trainer}",
    )
    python: str | None = Field(
        default=None, description="the folder of a virtual environment, whose bin is first on PATH: ~/venvs/trainer"
    )
    command: list[str] = Field(
        default_factory=list, description="a list of texts, for containers that name no command: [python, main.py]"
    )
    env: dict[str, str] = Field(
        default_factory=dict, description='names with texts in quotes, such as {OMP_NUM_THREADS: "4"}'
    )
    working_dir: str | None = Field(default=None, description="an absolute path in the pod, such as /workspace")

    @field_validator("mounts")
    @classmethod
    def _targets_are_absolute(cls, mounts: dict[str, str | None]) -> dict[str, str | None]:
        wrong = [target for target in mounts if not PurePosixPath(target).is_absolute() or target == "/"]
        if wrong:
            problem = "is not right; write where the folder appears as an absolute path below /"
            raise ValueError("\n".join(f".{target}: {format_value(target)} {problem}" for target in wrong))
        return mounts

    @field_validator("working_dir")
    @classmethod
    def _folder_is_absolute(cls, folder: str | None) -> str | None:
        if folder is not None and not PurePosixPath(folder).is_absolute():
            raise ValueError(
                f": {format_value(folder)} is not right; write an absolute path in the pod, such as /workspace"
            )
        return folder

    @field_validator("env", mode="before")
    @classmethod
    def _values_are_text(cls, env: Any) -> Any:
        not_text = {name: value for name, value in env.items() if not isinstance(value, str)} if _is_dict(env) else {}
        if not_text:
            problem = "is not text; put the value in quotes"
            raise ValueError("\n".join(f".{name}: {format_value(value)} {problem}" for name, value in not_text.items()))
        return env


def _is_dict(value: Any) -> TypeGuard[dict[Any, Any]]:
    return isinstance(value, dict)


@dataclass(frozen=True, slots=True)
class Images:
    """The entries, and the file they came from so that messages can name it. Relative paths start at `base`."""

    entries: Mapping[str, ImageEntry] = field(default_factory=dict)
    config_file: str = "shoal.yaml"
    base: Path = field(default_factory=Path)
    retry_hint: Message | str = ""  # what has a corrected file read, where that is not a new start of the cluster
    job_file: str = ""  # the configuration that the next submission of the job reads, where it has no `images:` yet

    def entry(self, image: str) -> ImageEntry | None:
        matching = [pattern for pattern in self.entries if fnmatch.fnmatchcase(image, pattern)]
        if not matching:
            return None
        return self.entries[max(matching, key=lambda pattern: len(_WILDCARD.sub("", pattern)))]

    def command(self, image: str) -> tuple[str, ...]:
        entry = self.entry(image)
        return tuple(entry.command) if entry else ()

    def working_dir(self, image: str) -> str | None:
        entry = self.entry(image)
        return entry.working_dir if entry else None

    def mounts(self, image: str) -> tuple[Mount, ...]:
        entry = self.entry(image)
        if entry is None:
            return ()
        return tuple(
            Mount(target, None if source is None else self.resolve(source))
            for target, source in sorted(entry.mounts.items())
        )

    def env(self, image: str, path: str) -> dict[str, str]:
        """The entry's variables. A python environment is made active: first on PATH, VIRTUAL_ENV set."""
        entry = self.entry(image)
        if entry is None:
            return {}
        home = self.python(image)
        if home is None:
            return dict(entry.env)
        return {"PATH": f"{home / 'bin'}:{path}", "VIRTUAL_ENV": str(home), **entry.env}

    def resolve(self, written: str) -> Path:
        return (self.base / Path(written).expanduser()).absolute()

    def python(self, image: str) -> Path | None:
        """The folder of the python environment that the image's programs run in."""
        entry = self.entry(image)
        return self.resolve(entry.python) if entry and entry.python is not None else None

    def missing_python(self, image: str) -> Message:
        retry = self.retry_hint or Message("Retry.Start")
        parameters = {"image": image, "python": str(self.python(image)), "file": self.config_file, "retry": retry}
        return Message("Image.NoPython", parameters)

    def missing_paths(self) -> list[str]:
        """What the entries name and this machine does not have, or not yet: `path: message`."""
        lines = []
        for pattern, entry in self.entries.items():
            place = f'images."{pattern}"'
            if entry.python is not None and not (self.resolve(entry.python) / "bin").is_dir():
                lines.append(f"{place}.python: {self.resolve(entry.python)} is no Python environment: it has no bin")
            sources = [(target, self.resolve(source)) for target, source in entry.mounts.items() if source is not None]
            lines += [f"{place}.mounts.{target}: {path} is not there" for target, path in sources if not path.exists()]
        return lines

    def missing_command(self, image: str, container: str) -> Message:
        """The message for a container that has nothing to run."""
        has_entry = self.entry(image) is not None
        file, retry = self.config_file, self.retry_hint or Message("Retry.Restart")
        if self.job_file and not has_entry:
            file, retry = self.job_file, Message("Retry.Resubmit")
        code = "Image.NoCommandInEntry" if has_entry else "Image.NoCommand"
        return Message(code, {"container": container, "image": image, "file": file, "retry": retry})


def read_images(written: Any, *, config_file: str, base: Path) -> Images:
    """The `images:` mapping of a configuration; raises ImagesInvalid with every mistake in it."""
    if written is None:
        return Images({}, config_file, base)
    if not isinstance(written, Mapping):
        raise ImagesInvalid(
            f"{config_file}: images: {format_value(written)} is not right; write a mapping from image names or "
            "patterns to entries, such as {'acme/trainer:*': {python: ~/venvs/trainer}}"
        )
    entries: dict[str, ImageEntry] = {}
    mistakes: list[str] = []
    for pattern, entry in written.items():
        try:
            if _is_dict(entry):  # a key with nothing behind it is as good as none
                entry = {key: value for key, value in entry.items() if value is not None}
            entries[str(pattern)] = ImageEntry.model_validate(entry or {})
        except ValidationError as invalid:
            mistakes += [f'{config_file}: images."{pattern}"{line}' for line in error_lines(invalid, ImageEntry)]
    if mistakes:
        raise ImagesInvalid("\n".join(mistakes))
    return Images(entries, config_file, base)

"""Images, where there are no containers: a name selects an entry of `images:` in the configuration.

    images:
      "ghcr.io/acme/trainer:*":
        mounts: {/workspace: ./trainer}
        python: ~/venvs/trainer
        command: [python, -m, trainer]
        env: {OMP_NUM_THREADS: "4"}
        working_dir: /workspace

A mount without a folder (`/scratch: ~`) is a fresh one in memory, there for as long as the container's process: what
a container's own writable layer would be.

The most specific pattern wins: the one with the most letters that are not wildcards, then the one written
first. An image without an entry runs its command in the caller's environment. A container that has neither a
command nor an entry with one cannot run: it stays waiting with the reason ImageNotConfigured, whatever the
restart policy, and the message says what to add where. That is what a kubelet does with an image it cannot
have; the pod can still be saved by a corrected configuration and a restart of the node.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from shoal.node.sandbox.port import Mount

_WILDCARD = re.compile(r"[*?]|\[[^]]*\]")


class ImagesInvalid(ValueError):
    """The `images:` part of the configuration has mistakes; the message lists every one with its path."""


class ImageEntry(BaseModel):
    """What stands in for an image."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mounts: dict[str, str | None] = Field(
        default_factory=dict, description="where in the pod -> folder on this machine; without one, a fresh folder"
    )
    python: str | None = Field(default=None, description="a virtual environment: its bin comes first on PATH")
    command: list[str] = Field(default_factory=list, description="for containers that name no command")
    env: dict[str, str] = Field(default_factory=dict)
    working_dir: str | None = None

    @field_validator("mounts")
    @classmethod
    def _targets_are_absolute(cls, mounts: dict[str, str | None]) -> dict[str, str | None]:
        wrong = [target for target in mounts if not PurePosixPath(target).is_absolute() or target == "/"]
        if wrong:
            raise ValueError(f"{', '.join(wrong)}: write where the folder appears as an absolute path below /")
        return mounts

    @field_validator("env", mode="before")
    @classmethod
    def _values_are_text(cls, env: Any) -> Any:
        if isinstance(env, dict):
            odd = [str(name) for name, value in env.items() if not isinstance(value, str)]
            if odd:
                raise ValueError(f"{', '.join(odd)}: put the value in quotes, variables are text")
        return env


@dataclass(frozen=True, slots=True)
class Images:
    """The entries, and the file they came from so that messages can name it. Relative paths start at `base`."""

    entries: Mapping[str, ImageEntry] = field(default_factory=dict)
    config_file: str = "shoal.yaml"
    base: Path = field(default_factory=Path)

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
        if entry.python is None:
            return dict(entry.env)
        home = self.resolve(entry.python)
        return {"PATH": f"{home / 'bin'}:{path}", "VIRTUAL_ENV": str(home), **entry.env}

    def resolve(self, written: str) -> Path:
        return (self.base / Path(written).expanduser()).absolute()

    def missing_command(self, image: str, container: str) -> str:
        """What to tell a person whose container has nothing to run."""
        has_entry = self.entry(image) is not None
        add = f'`command:` to the entry that matches "{image}"' if has_entry else f'an entry "{image}" with `command:`'
        return (
            f'container {container} names no command and image "{image}" has none here. '
            f"Set `command` in the pod, or add {add} under `images:` in {self.config_file}, "
            f"for example: images: {{{image!r}: {{command: [python, main.py]}}}}; "
            "then stop the cluster and start it again"
        )


def read_images(written: Any, *, config_file: str, base: Path) -> Images:
    """The `images:` mapping of a configuration; raises ImagesInvalid with every mistake in it."""
    if written is None:
        return Images({}, config_file, base)
    if not isinstance(written, Mapping):
        raise ImagesInvalid(f"{config_file}: images: must be a mapping from image patterns to entries")
    entries: dict[str, ImageEntry] = {}
    mistakes: list[str] = []
    for pattern, entry in written.items():
        try:
            entries[str(pattern)] = ImageEntry.model_validate(entry or {})
        except ValidationError as invalid:
            mistakes += [f'{config_file}: images."{pattern}"{_where(e["loc"])}: {e["msg"]}' for e in invalid.errors()]
    if mistakes:
        raise ImagesInvalid("\n".join(mistakes))
    return Images(entries, config_file, base)


def _where(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)

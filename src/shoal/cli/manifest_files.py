"""Job files as people write them: YAML or JSON, several documents in a file, changed by `--set` on the way.

Read as strictly as the API reads them, so that a mistake is named with its file and document before anything is sent.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from shoal.kube.objects import Obj, name_of

SUFFIXES = (".yaml", ".yml", ".json")
CONFIG_FILE = "shoal.yaml"  # our settings, which people keep beside their jobs
_DOCUMENT = re.compile(rb"^---[ \t\r]*(?:#.*)?$", re.MULTILINE)
_STEP = re.compile(r"([^.\[\]]+)|\[([^\[\]]*)\]")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object and where it was written."""

    obj: Obj
    where: str

    @property
    def kind(self) -> str:
        return str(self.obj.get("kind") or "")

    @property
    def api_version(self) -> str:
        return str(self.obj.get("apiVersion") or "")

    def __str__(self) -> str:
        named = isinstance(self.obj.get("metadata"), dict)
        return f"{self.kind} {name_of(self.obj) if named else 'without a name'}"


files_argument = click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path, allow_dash=True)
)
set_option = click.option(
    "--set", "changes", multiple=True, metavar="PATH=VALUE",
    help="Override a field of the job: --set spec.taskRoles[worker].taskNumber=2. In [] is the index or the name of a "
    "list item; VALUE is YAML.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    """A file or document that holds no manifest, with a message that names it."""

    why: str


def job_file(files: Iterable[Path]) -> Path | None:
    """The file in whose folder a configuration may lie; None where all is read from standard input."""
    return next((file for file in files if str(file) != "-"), None)


def load(files: Sequence[Path], changes: Sequence[str] = ()) -> list[Manifest]:
    """Every document of every file, in order; folders stand for the manifests in them, - for standard input.

    Raises with everything that cannot be read.
    """
    found = read(files, changes)
    bad = [each.why for each in found if isinstance(each, UnreadableFile)]
    if bad:
        raise click.ClickException("\n".join(bad))
    return [each for each in found if isinstance(each, Manifest)]


def read(files: Sequence[Path], changes: Sequence[str] = ()) -> list[Manifest | UnreadableFile]:
    """As `load`, with what cannot be read in its place among the others."""
    found = [each for file in files for each in read_file(file)]
    if not found:
        raise click.ClickException(f"there is no manifest in {', '.join(map(str, files))}.")
    return [override(each, changes) if isinstance(each, Manifest) else each for each in found] if changes else found


def read_file(file: Path) -> Iterable[Manifest | UnreadableFile]:
    if str(file) == "-":
        yield from _documents(sys.stdin.buffer.read(), "standard input")
        return
    try:
        if file.is_dir():
            for inner in sorted(
                path for path in file.iterdir() if path.suffix in SUFFIXES and path.name != CONFIG_FILE
            ):
                yield from _documents(inner.read_bytes(), str(inner))
        else:
            yield from _documents(file.read_bytes(), str(file))
    except OSError as refused:
        yield UnreadableFile(f"cannot read {file}: {refused.strerror}.")


def _documents(text: bytes, where: str) -> Iterable[Manifest | UnreadableFile]:
    from shoal.apiserver.request_body import MalformedBody, decode_yaml

    pieces = list(split_documents(text))
    for number, (line, piece) in enumerate(pieces, 1):
        place = f"{where}, document {number}" if len(pieces) > 1 else where
        try:
            body = decode_yaml(piece)
        except MalformedBody as problem:
            # Lines are counted from the beginning of the document, as kubectl does.
            begins = f" (it begins at line {line})" if line > 1 else ""
            yield UnreadableFile(f"{place}{begins} is not YAML: {problem}")
            continue
        if body.duplicates:
            yield UnreadableFile(f"{place}: {', '.join(body.duplicates)} occurs twice; remove one.")
        elif body.value is not None:  # else comments alone
            yield from _objects(body.value, place)


def split_documents(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Each document that is not empty, with the line of the file at which it begins."""
    line = 1
    for piece in _DOCUMENT.split(text):
        if piece.strip():
            after = piece.removeprefix(b"\n")  # that of the line with the separator
            yield line + len(piece) - len(after), after
        line += piece.count(b"\n")


def _objects(value: Any, place: str) -> Iterable[Manifest | UnreadableFile]:
    if isinstance(value, dict) and str(value.get("kind", "")).endswith("List") and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _objects(item, place)
        return
    if not isinstance(value, dict) or not value.get("apiVersion") or not value.get("kind"):
        yield UnreadableFile(f"{place} is no manifest: apiVersion and kind are missing.")
    else:
        yield Manifest(value, place)


# --- changes -------------------------------------------------------------------------------------------------------


def override(manifest: Manifest, changes: Sequence[str]) -> Manifest:
    """Changes are about jobs; other objects in the same file stay as they are."""
    from shoal.apiserver.request_body import MalformedBody, decode_yaml
    from shoal.dialects import dialect_of

    if dialect_of(manifest.api_version, manifest.kind) is None:
        return manifest
    obj = manifest.obj
    for change in changes:
        path, separator, value = change.partition("=")
        if not separator or not path:
            raise click.BadParameter(f"{change!r} should be PATH=VALUE, for example spec.executionType=Create")
        try:
            obj = changed(obj, path, decode_yaml(value.encode()).value)
        except MalformedBody as problem:
            raise click.BadParameter(f"{value!r} is not YAML: {problem}") from None
    return Manifest(obj, manifest.where)


def changed(obj: Any, path: str, value: Any) -> Any:
    """A copy of `obj` with the value at `path`; missing fields on the way are made, list members must be there."""
    return _set_at(obj, parse_path(path), value, path)


def parse_path(path: str) -> list[str]:
    """The fields and members on the way; raises where a bracket has no other half or nothing in it."""
    rest = _STEP.sub("", path)
    if "[" in rest:
        raise click.BadParameter(f"{path!r}: the bracket is not closed; a member is written [worker]")
    if "]" in rest:
        raise click.BadParameter(f"{path!r}: the bracket is not opened; a member is written [worker]")
    steps = [name or index for name, index in _STEP.findall(path)]
    if not steps:
        raise click.BadParameter(f"{path!r} names no field")
    if not all(steps):
        raise click.BadParameter(f"{path!r}: there is nothing in the brackets; a member is written [worker]")
    return steps


def _set_at(here: Any, steps: list[str], value: Any, path: str) -> Any:
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(here, list):
        index = position_of(here, step, path)
        return [*here[:index], _set_at(here[index], rest, value, path), *here[index + 1 :]]
    if here is not None and not isinstance(here, dict):
        raise click.BadParameter(f"{path!r} leads below {here!r}, which has no fields")
    holder = here or {}
    return {**holder, step: _set_at(holder.get(step), rest, value, path)}


def position_of(members: list[Any], step: str, path: str) -> int:
    if step.isdigit() and int(step) < len(members):
        return int(step)
    names = [member.get("name") if isinstance(member, dict) else None for member in members]
    if step in names:
        return names.index(step)
    known = ", ".join(str(name) for name in names if name) or f"0 to {len(members) - 1}"
    raise click.BadParameter(f"{path!r}: there is no member {step!r} here; there are: {known}")

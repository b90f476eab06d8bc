"""The image without a builder: its Dockerfile read, and what it installs put together on this machine.

`installed` builds the package from the files the image copies and lays beside it exactly the packages it declares,
taken from the environment of the tests: whether they suffice can be seen without a network and without a container.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"


@dataclass(frozen=True)
class Line:
    """One instruction: `COPY`, and what stands behind it."""

    word: str
    rest: str


def stages() -> list[list[Line]]:
    """The instructions of each stage; lines that go on are joined, and arguments before the first are left out."""
    text = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^#.*\n", "", DOCKERFILE.read_text()))
    found: list[list[Line]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append([])
        elif not found:
            continue
        found[-1].append(Line(word, rest.strip()))
    return found


def copied() -> list[tuple[str, str]]:
    """What is copied from the checkout: source and target."""
    pairs: list[tuple[str, str]] = []
    for line in (line for stage in stages() for line in stage if line.word == "COPY"):
        *sources, target = line.rest.split()
        if not line.rest.startswith("--from="):
            pairs += [(source, target) for source in sources]
    return pairs


def checkout(folder: Path) -> Path:
    """A folder with what the image copies and nothing else."""
    made = folder / "src"
    made.mkdir()
    for source, target in copied():
        place = made / target
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, place / Path(source).name)
    return made


def installed(folder: Path) -> Path:
    """The site-packages of the image: the package, and what it declares to need."""
    site = folder / "site-packages"
    site.mkdir()
    for distribution in needed("shoal"):
        for name in {file.parts[0] for file in distribution.files or () if ".." not in file.parts}:
            if not (site / name).exists():
                (site / name).symlink_to(Path(str(distribution.locate_file(name))))
    building = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder / "dist")]
    subprocess.run(building, cwd=checkout(folder), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (wheel,) = (folder / "dist").glob("*.whl")
    shutil.unpack_archive(wheel, site, "zip")
    return site


def needed(name: str) -> Iterator[metadata.Distribution]:
    """Everything a package needs, and what that needs, itself left out; extras nobody asked for left out too."""
    seen: set[str] = set()
    waiting = [(name, frozenset[str]())]
    while waiting:
        current, extras = waiting.pop()
        for text in metadata.distribution(current).requires or ():
            requirement = Requirement(text)
            is_wanted = requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in (*extras, "")
            )
            if is_wanted and requirement.name not in seen:
                seen.add(requirement.name)
                waiting.append((requirement.name, frozenset(requirement.extras)))
                yield metadata.distribution(requirement.name)


def command(site: Path, *words: str) -> list[str]:
    """`shoal` as the image has it: only what is in `site` can be imported besides Python's own."""
    start = "import sys; sys.argv[0] = 'shoal'; sys.path.append(sys.argv.pop(1)); from shoal.cli import main; main()"
    return [base_python(), "-I", "-S", "-c", start, str(site), *words]


def base_python() -> str:
    """Python without the environment of the tests."""
    return str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SHOAL_", "KUBE", "PYTHON"))}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}

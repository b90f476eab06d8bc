"""`tools/control-plane` and `tools/helm` build what is missing: once, whole, and with a word where they cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
NEEDED = ("bash", "cat", "chmod", "cut", "dirname", "env", "flock", "head", "mkdir", "mv", "sed", "sha256sum")
BUILDS = {"control-plane": ("etcd",), "helm": ()}  # what they are asked for

# Says in a file that it was called, and makes what it is told to; or, where `broken` lies beside it, half of it.
GO = """#!/usr/bin/env bash
here=$(dirname "$0")
echo called >> "$here/calls"
while [ "$1" != -o ]; do shift; done
echo made > "$2"
if [ -e "$here/broken" ]; then echo 'go: connection reset by peer' >&2; exit 1; fi
chmod +x "$2"
"""


@dataclass(frozen=True)
class Machine:
    """One with no Helm, and with a Go of our own."""

    path: Path
    tool: str
    cache: Path

    def begin(self) -> subprocess.Popen[str]:
        command = [str(TOOLS / self.tool), *BUILDS[self.tool]]
        env = {"PATH": str(self.path), "HOME": "/nowhere", "SHOAL_CACHE": str(self.cache)}
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self) -> tuple[int, str, list[str]]:
        asked = self.begin()
        said, told = asked.communicate()
        return asked.returncode, said.strip(), told.splitlines()

    @property
    def calls(self) -> int:
        return len((self.path / "calls").read_text().splitlines())


@pytest.fixture(params=BUILDS)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    path = tmp_path / "bin"
    path.mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        assert found is not None, f"{name} is not installed"
        (path / name).symlink_to(found)
    (path / "go").write_text(GO)
    (path / "go").chmod(0o755)
    return Machine(path, request.param, tmp_path / "cache")


def test_two_that_ask_at_once_build_once(machine: Machine) -> None:
    both = [machine.begin(), machine.begin()]
    answers = [asked.communicate()[0].strip() for asked in both]
    assert [asked.returncode for asked in both] == [0, 0]
    assert answers[0] == answers[1]
    built = Path(answers[0]) / "etcd" if machine.tool == "control-plane" else Path(answers[0])
    assert (machine.calls, built.read_text(), os.access(built, os.X_OK)) == (1, "made\n", True)
    assert machine.run() == (0, answers[0], [])
    assert machine.calls == 1


def test_a_build_that_broke_off_is_taken_up_again(machine: Machine) -> None:
    (machine.path / "broken").touch()
    code, said, told = machine.run()
    assert (code, said) == (1, "")
    assert told[-2] == "go: connection reset by peer"
    assert told[-1].endswith("could not be built. What was fetched is kept: the same command goes on from there.")
    (machine.path / "broken").unlink()
    assert machine.run()[0] == 0
    assert machine.calls == 2


def test_a_cache_that_cannot_be_written_is_named(machine: Machine) -> None:
    machine.cache.write_text("a file, and no folder")
    code, said, told = machine.run()
    assert (code, said) == (1, "")
    assert told[-1].startswith(f"{machine.tool}: what is built cannot be kept in {machine.cache}/{machine.tool}/")
    assert told[-1].endswith("; name another folder with SHOAL_CACHE")


def test_what_is_built_is_used_where_nothing_can_be_written(machine: Machine) -> None:
    built = machine.run()[1]
    (machine.path / "mkdir").unlink()
    (machine.path / "go").unlink()
    assert machine.run() == (0, built, [])

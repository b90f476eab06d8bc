"""The image, as far as it can be tried without building it: what it copies, who runs in it, and what it is made of.

No container is started: the package is built from the files the image copies, beside the packages it declares and no
others, and run where nothing but /tmp can be written to.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit import image
from kit.embedded_api_server import Running, serve
from shoal import __version__
from shoal.apiserver.responses import object_bytes_response, write


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return image.installed(tmp_path_factory.mktemp("image"))


# --- the Dockerfile --------------------------------------------------------------------------------------------------


def test_everything_it_copies_is_there_and_reaches_the_builder() -> None:
    wanted = [source for source, _ in image.copied()]
    ignored = image.DOCKERFILE.with_name("Dockerfile.dockerignore").read_text().splitlines()
    let_through = [line[1:] for line in ignored if line.startswith("!")]
    assert [source for source in wanted if not (image.ROOT / source).exists()] == []
    assert sorted(wanted) == sorted(let_through)
    assert [line for line in ignored if fnmatch("src/shoal/__init__.py", line)] == ["*"]


def test_what_runs_is_nobody_and_what_was_needed_to_build_it_stays_behind() -> None:
    *_, last = image.stages()
    words = [line.word for line in last]
    user = next(line.rest for line in last if line.word == "USER")
    assert [int(number) > 0 for number in user.split(":")] == [True, True]
    assert words.index("USER") > max(index for index, word in enumerate(words) if word in ("RUN", "COPY"))
    assert [line.rest for line in last if line.word == "COPY"] == ["--from=build /opt/shoal /opt/shoal"]
    assert {line.word for stage in image.stages() for line in stage}.isdisjoint({"ADD", "ARG", "VOLUME", "EXPOSE"})


def test_it_is_called_what_is_installed() -> None:
    build = next(line for line in image.DOCKERFILE.read_text().splitlines() if "docker build" in line)
    assert build.split()[-2:] == [f"shoal:{__version__}", "."]


# --- what is in it ---------------------------------------------------------------------------------------------------


def run(site: Path, *words: str, under: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [*under, *image.command(site, *words)]
    return subprocess.run(command, env=image.environment(), capture_output=True, text=True, check=False)


def test_the_packages_it_declares_are_all_it_needs(site: Path) -> None:
    """Every module can be imported where nothing else is installed."""
    every = (
        "import sys, pkgutil, importlib; sys.path.append(sys.argv[1]); import shoal\n"
        "names = [found.name for found in pkgutil.walk_packages(shoal.__path__, 'shoal.')]\n"
        "for name in names:\n"
        "    if not name.endswith('__main__'): importlib.import_module(name)\n"
        "print(len(names), shoal.__file__)"
    )
    command = [image.base_python(), "-I", "-S", "-c", every, str(site)]
    ran = subprocess.run(command, env=image.environment(), capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    number, file = ran.stdout.split()
    assert int(number) > 200
    assert file == str(site / "shoal" / "__init__.py")


def test_it_has_the_commands_the_cluster_calls(site: Path) -> None:
    (entry,) = [line for line in (site / f"shoal-{__version__}.dist-info" / "entry_points.txt").read_text().splitlines()
                if line.startswith("shoal")]  # fmt: skip
    assert entry == "shoal = shoal.cli:main"
    *_, last = image.stages()
    said = {line.word: json.loads(line.rest) for line in last if line.word in ("ENTRYPOINT", "CMD")}
    assert said == {"ENTRYPOINT": ["shoal"], "CMD": ["operator"]}
    drawn = run(site, "install", "--image", "i", "--dry-run", "-o", "yaml")
    assert drawn.returncode == 0, drawn.stderr
    kinds = {obj["kind"] for obj in yaml.safe_load_all(drawn.stdout)}
    assert {"CustomResourceDefinition", "Deployment", "ServiceAccount"} <= kinds


# --- where nothing can be written ------------------------------------------------------------------------------------

READ_ONLY = """
set -e
mount --make-rprivate /
mount --rbind / /
for place in $(awk '{print $2}' /proc/self/mounts | sort -u); do
  case $place in /proc*|/sys*|/dev*) ;; *) mount -o remount,bind,ro "$place" 2>/dev/null || true ;; esac
done
for place in /etc /tmp "$HOME"; do
  if touch "$place/shoal-was-here" 2>/dev/null; then echo "$place can be written to" >&2; exit 9; fi
done
exec "$@"
"""


def read_only() -> tuple[str, ...]:
    """What to put before a command so that it sees a file system it cannot write to; what it tries fails."""
    if shutil.which("unshare") is None:
        pytest.skip("a read-only file system is made with unshare, which is not installed here")
    under = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", READ_ONLY, "sh")
    tried = subprocess.run([*under, "true"], capture_output=True, text=True, check=False)
    assert tried.returncode != 9, tried.stderr
    if tried.returncode:
        pytest.skip(f"this machine allows no mounts of one's own: {tried.stderr.strip()}")
    return under


def test_its_help_needs_no_file_to_be_written(site: Path) -> None:
    ran = run(site, "operator", "--help", under=read_only())
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("Usage: shoal operator [OPTIONS]")


async def test_the_operator_works_where_nothing_can_be_written(site: Path, tmp_path: Path) -> None:
    """From its start to its end, against a cluster on this machine that is nobody's yet."""
    under = read_only()
    with serve(tmp_path, behind=AsKubernetes) as server:
        code, said = await asyncio.wait_for(operated(site, under, server), 240)
    assert code == 0, said
    assert [line["event"] for line in said if line["event"] in ("prepared", "leading", "stopped")] == [
        "prepared", "leading", "stopped",
    ]  # fmt: skip
    assert [line for line in said if line["level"] != "info"] == []


class AsKubernetes:
    """Our own server, but for the version it tells: operators refuse to serve a cluster that serves itself."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.end_streams = app.end_streams

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") == "/version":
            await write(object_bytes_response({"major": "1", "minor": "36", "gitVersion": "v1.36.3"}), send, {})
        else:
            await self._app(scope, receive, send)


async def operated(site: Path, under: tuple[str, ...], server: Running) -> tuple[int, list[dict[str, str]]]:
    words = ["operator", "--kubeconfig", str(server.kubeconfig), "--log-format", "json"]
    words += ["--metrics-address", "127.0.0.1:0", "--health-address", "127.0.0.1:0"]
    process = await asyncio.create_subprocess_exec(
        *under, *image.command(site, *words), env=image.environment(), stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    said: list[dict[str, str]] = []
    try:
        async for line in process.stderr:
            said.append(json.loads(line))
            if said[-1]["event"] == "leading":
                process.send_signal(signal.SIGTERM)
        return await process.wait(), said
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

"""The image is made of pinned packages, and no name that others could own stands for it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kit import image
from shoal.cli.commands.install import command as install
from shoal.install.manifests import render
from shoal.install.options import NO_IMAGE, InstallOptions

DEPLOY = image.ROOT / "deploy"
PINNED = re.compile(r"([A-Za-z0-9._-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)")


def pinned(file: Path) -> dict[str, str]:
    """Versions by package; every line of the file belongs to one that has hashes."""
    text = file.read_text()
    rest = PINNED.sub("", text)
    assert [line for line in rest.splitlines() if not line.startswith("#")] == []
    return {canonicalize_name(found[1]): found[2] for found in PINNED.finditer(text)}


def test_10_every_package_of_the_image_is_pinned_with_hashes():
    versions = pinned(DEPLOY / "requirements.txt")
    declared = tomllib.loads((image.ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    wanted = [Requirement(text) for text in declared]

    assert [str(each) for each in wanted if versions.get(canonicalize_name(each.name), "") not in each.specifier] == []
    assert {canonicalize_name(each.metadata["Name"]) for each in image.needed("shoal")} <= versions.keys()


def test_10_what_builds_the_image_is_pinned_with_hashes():
    assert "hatchling" in pinned(DEPLOY / "build-requirements.txt")


def test_10_the_image_installs_nothing_that_is_not_pinned():
    commands = [line.rest for stage in image.stages() for line in stage if line.word == "RUN"]
    installs = [part for command in commands for part in command.split("&&") if "pip install" in part]

    assert installs
    assert [part for part in installs if "--require-hashes" not in part and "--no-index" not in part] == []


def test_10_the_base_image_is_pinned_by_digest():
    (base,) = re.findall(r"^ARG BASE=(.*)$", image.DOCKERFILE.read_text(), re.MULTILINE)
    assert re.fullmatch(r"python:3\.11-slim@sha256:[0-9a-f]{64}", base)
    assert {line.rest.split()[0] for stage in image.stages() for line in stage if line.word == "FROM"} == {"${BASE}"}


def test_10_an_installation_names_no_image_of_others():
    (deployment,) = [each for each in render(InstallOptions()) if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]

    assert container["image"] == NO_IMAGE
    assert NO_IMAGE.partition("/")[0].endswith(".invalid")


def test_10_install_asks_for_the_image():
    ran = CliRunner().invoke(install, ["--dry-run", "-o", "yaml"], env={"SHOAL_IMAGE": None})
    named = CliRunner().invoke(install, ["--dry-run", "-o", "yaml"], env={"SHOAL_IMAGE": "example.com/shoal:1"})

    assert (ran.exit_code, "Missing option '--image'" in ran.output) == (2, True)
    assert "image: example.com/shoal:1" in named.output


@pytest.mark.parametrize("answer", ['{"dependencies": []}', ""], ids=["no packages", "no answer"])
def test_10_an_audit_of_nothing_fails(answer: str, tmp_path: Path):
    program = tmp_path / "pip-audit"
    program.write_text(f"#!/bin/sh\necho '{answer}'\n")
    program.chmod(0o755)
    ran = subprocess.run(
        [sys.executable, image.ROOT / "tools" / "audit", sys.prefix],
        env={"PIP_AUDIT": str(program), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ran.returncode == 2
    assert "nothing was audited" in ran.stdout

"""What the documentation shows can be typed: commands with their options, manifests and settings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from shoal.cli.main import ALIASES, COMMANDS, shoal
from shoal.cli.manifest_files import Manifest
from shoal.cli.offline_validation import ValidationResult, make_machinery, validate
from shoal.local.config import load

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "examples" / "pytorch-elastic" / "README.md"]
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^ *(?:\$ )?(shoal [a-z].*)$", re.MULTILINE)
INLINE = re.compile(r"`(shoal [a-z][^`]*)`")

# Kinds that Kubernetes has and a cluster of our own does not; tests/kubernetes_node uses what is shown of them.
ELSEWHERE = ("rbac.authorization.k8s.io/v1",)


def blocks(page: Path, *languages: str) -> Iterator[str]:
    for _, language, text in BLOCK.findall(page.read_text()):
        if language in languages:
            yield text


def commands() -> list[str]:
    found = [line for page in PAGES for text in blocks(page, "console", "") for line in TYPED.findall(text)]
    # In a table a bar has to be written as \|.
    found += [line.replace("\\|", "|") for page in PAGES for line in INLINE.findall(page.read_text())]
    return sorted(set(found))


@pytest.mark.parametrize("line", commands())
def test_a_command_is_understood(line: str) -> None:
    words = shlex.split(line.partition("|")[0], comments=True)
    assert words[1] in (*COMMANDS, *ALIASES)
    command = shoal.get_command(click.Context(shoal), words[1])
    assert command is not None
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"-h", "--help"}
    asked = [word.partition("=")[0] for word in words[2:] if word.startswith("-") and word != "-"]
    assert [name for name in asked if name not in known] == []


def manifests() -> list[tuple[str, str]]:
    return [(page.name, text) for page in PAGES for text in blocks(page, "yaml")]


@pytest.mark.parametrize(("page", "text"), manifests(), ids=lambda value: value.splitlines()[0][:30])
def test_what_is_written_is_in_order(tmp_path: Path, page: str, text: str) -> None:
    (tmp_path / "frameworkcontroller.yaml").write_text("workerNumber: 10\n")
    for written in yaml.safe_load_all(text):
        if written.get("apiVersion") in ELSEWHERE:
            continue
        if "kind" in written:
            assert validate(make_machinery(), Manifest(written, page)) == ValidationResult()
        else:
            (tmp_path / "shoal.yaml").write_text(yaml.safe_dump(written))
            load(tmp_path / "shoal.yaml")


def test_the_smallest_job_is_in_order() -> None:
    (job,) = yaml.safe_load_all((ROOT / "examples" / "hello" / "hello.yaml").read_text())
    assert validate(make_machinery(), Manifest(job, "hello.yaml")) == ValidationResult()

"""Two clusters side by side: a command uses the one that was named, and no other where that one does not run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from kit.cli_runner import SHOAL
from kit.framework_notation import fw, role
from kit.local_cluster import LocalCluster
from kit.pod_behavior import runs

pytestmark = pytest.mark.processes


@dataclass
class Shell:
    """A login with a running cluster in the default data folder and another one in ~/.kube/config."""

    home: Path
    default: Path
    other: Path

    @property
    def stopped(self) -> Path:
        return self.home / "stopped"

    def __call__(self, *words: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SHOAL_", "KUBE"))}
        env = {**kept, "HOME": str(self.home), "XDG_DATA_HOME": str(self.home / "data"), **environment}
        ended = subprocess.run([SHOAL, *words], env=env, capture_output=True, text=True)
        assert ended.returncode == code, ended.stdout + ended.stderr
        return ended

    def jobs(self, data: Path) -> str:
        return self("get", "-o", "name", "--data", str(data)).stdout


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    home = tmp_path_factory.mktemp("home")
    made = Shell(home, home / "data" / "shoal" / "default", home / "other")
    clusters = [LocalCluster(data) for data in (made.default, made.other)]
    for cluster in clusters:
        cluster.start()
    (home / ".kube").mkdir()
    (home / ".kube" / "config").write_text((made.other / "kubeconfig").read_text())
    try:
        for name, data in (("atdefault", made.default), ("atother", made.other)):
            file = home / f"{name}.yaml"
            file.write_text(yaml.safe_dump(fw(name, role("worker", 1, fate=runs()), start="Create")))
            made("submit", str(file), "--data", str(data))
        yield made
    finally:
        for cluster in clusters:
            cluster.stop()


def test_a_stopped_cluster_that_was_named_is_an_error(shell: Shell) -> None:
    by_option = shell("delete", "--data", str(shell.stopped), "atother", code=1).stderr
    by_variable = shell("delete", "atother", code=1, SHOAL_DATA=str(shell.stopped)).stderr
    assert by_option == (
        f"Error: no cluster runs in {shell.stopped}. Start it with `shoal up --data {shell.stopped}`, or leave out "
        "--data and SHOAL_DATA to use another cluster.\n"
    )
    assert by_variable == by_option.replace(f" --data {shell.stopped}`", "`")
    assert (shell.jobs(shell.default), shell.jobs(shell.other)) == ("framework/atdefault\n", "framework/atother\n")


def test_kubeconfig_wins_over_a_cluster_that_happens_to_run(shell: Shell) -> None:
    named = shell("get", "-o", "name", KUBECONFIG=str(shell.other / "kubeconfig"))
    assert named.stdout == "framework/atother\n"
    assert shell("get", "-o", "name").stdout == "framework/atdefault\n"


def test_a_kubeconfig_that_does_not_exist_is_an_error(shell: Shell) -> None:
    said = shell("get", code=1, KUBECONFIG="/nowhere/config").stderr
    assert said.startswith("Error: KUBECONFIG names /nowhere/config, which does not exist.")


def test_the_command_line_wins_over_the_environment(shell: Shell) -> None:
    environment = {"SHOAL_DATA": str(shell.stopped), "KUBECONFIG": "/nowhere/config"}
    named = shell("get", "-o", "name", "--kubeconfig", str(shell.other / "kubeconfig"), **environment)
    assert named.stdout == "framework/atother\n"
    assert shell("get", "-o", "name", "--data", str(shell.default), **environment).stdout == "framework/atdefault\n"


def test_two_names_for_the_cluster_are_refused(shell: Shell) -> None:
    words = ("--data", str(shell.default), "--kubeconfig", str(shell.other / "kubeconfig"))
    assert "--data and --kubeconfig name two clusters" in shell("get", *words, code=2).stderr


def test_every_changing_command_names_the_cluster_it_changed(shell: Shell) -> None:
    file = shell.home / "changed.yaml"
    file.write_text(yaml.safe_dump(fw("changed", role("worker", 1, fate=runs()), start="Create")))
    url = yaml.safe_load((shell.other / "kubeconfig").read_text())["clusters"][0]["cluster"]["server"]
    commands = (
        ("submit", str(file)), ("scale", "changed", "worker=2"), ("start", "changed"), ("stop", "changed"),
        ("delete", "changed"),
    )  # fmt: skip
    for words in commands:
        assert shell(*words, "--data", str(shell.other)).stderr == f"Cluster: context shoal-other at {url}\n"


def test_a_command_that_fails_after_a_part_names_the_cluster_and_the_part(shell: Shell) -> None:
    url = yaml.safe_load((shell.other / "kubeconfig").read_text())["clusters"][0]["cluster"]["server"]
    named = f"Cluster: context shoal-other at {url}\n"
    part = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "part"}}
    mistaken = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "_"}}
    file = shell.home / "partly.yaml"
    file.write_text(yaml.safe_dump_all([part, mistaken]))
    submitted = shell("submit", str(file), "--data", str(shell.other), code=1)
    assert (submitted.stdout, submitted.stderr.startswith(f"{named}Error: ")) == ("ConfigMap part stored.\n", True)
    file.write_text(yaml.safe_dump(fw("partly", role("worker", 1, fate=runs()), start="Create")))
    shell("submit", str(file), "--data", str(shell.other))
    deleted = shell("delete", "partly", "nosuch", "--data", str(shell.other), code=1)
    assert (deleted.stdout, deleted.stderr.startswith(f"{named}Error: ")) == ("Framework partly deleted.\n", True)


def test_the_context_of_the_running_cluster_selects_it(shell: Shell) -> None:
    assert shell("get", "-o", "name", "--context", "shoal-default").stdout == "framework/atdefault\n"
    assert shell("get", "-o", "name", "--context", "shoal-other").stdout == "framework/atother\n"


def test_a_context_that_does_not_exist_is_an_error_with_those_there_are(shell: Shell) -> None:
    alone = shell.home / "alone"
    alone.mkdir()
    data = {"HOME": str(alone), "XDG_DATA_HOME": str(shell.home / "data")}
    assert shell("get", "--context", "foo", code=1, **data).stderr == (
        f"Error: {shell.default} has no context foo; there is: shoal-default.\n"
    )

"""What the commands say when there is nothing to do, when something is wrong, and in their help."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kit.odd_certificates import nameless
from shoal.cli.main import COMMANDS, shoal
from shoal.local.data_dir import ClusterInfo, DataFolder


def said(*words: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner(env=env).invoke(shoal, list(words))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    result = said(name, "--help")
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: shoal {name}")
    assert COMMANDS[name].rstrip(".") in result.output.replace("\n  ", " ")


def test_a_mistyped_command_is_answered_with_the_nearest() -> None:
    result = said("stauts")
    assert (result.exit_code, "Did you mean `shoal status`?" in result.output) == (2, True)


def test_status_without_a_cluster_exits_with_three(tmp_path: Path) -> None:
    folder = f"{tmp_path}/none"
    result = said("status", "--data", folder)
    assert (result.exit_code, result.output) == (
        3,
        f"No cluster runs in {folder}. Start it: shoal up --data {folder}\n",
    )
    as_json = said("status", "--data", str(tmp_path / "none"), "-o", "json")
    assert json.loads(as_json.output) == {"running": False, "data": f"{tmp_path}/none"}


def test_down_without_a_cluster_is_no_error(tmp_path: Path) -> None:
    result = said("down", "--data", str(tmp_path))
    assert (result.exit_code, result.output) == (0, f"No cluster runs in {tmp_path}.\n")


def test_kubeconfig_before_the_first_start_names_the_way_out(tmp_path: Path) -> None:
    usual = said("kubeconfig", env={"SHOAL_DATA": str(tmp_path)})
    other = said("kubeconfig", "--data", str(tmp_path))
    assert (usual.exit_code, other.exit_code) == (1, 1)
    assert usual.output == f"Error: there is no cluster in {tmp_path} yet. Start one with `shoal up`.\n"
    assert other.output == (
        f"Error: there is no cluster in {tmp_path} yet. Start one with `shoal up --data {tmp_path}`.\n"
    )


def test_a_folder_has_one_cluster_at_a_time(tmp_path: Path) -> None:
    with DataFolder(tmp_path).locked():
        result = said("up", "--data", str(tmp_path))
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: a cluster already runs in {tmp_path}.")


def test_a_cluster_that_is_starting_is_not_taken_for_the_last_one(tmp_path: Path) -> None:
    folder, last = DataFolder(tmp_path), ClusterInfo(os.getpid() + 1, "https://127.0.0.1:1", 0.0)
    folder.write_info(last)
    with folder.locked():
        assert folder.running() is None
        folder.write_info(mine := replace(last, pid=os.getpid()))
        assert folder.running() == mine


REFUSED = [
    pytest.param(["--capacity", "gpu"], "'gpu' should be NAME=AMOUNT, for example nvidia.com/gpu=4", id="no amount"),
    pytest.param(["--capacity", "a b=1"], "a b: this is not the name of a resource", id="not a name"),
    pytest.param(["--capacity", "gpu=4"], "gpu: this is not the name of a resource; write", id="nobody asks for it"),
    pytest.param(["--capacity", "pods=1.5"], "pods: '1.5' must be a whole number", id="half a pod"),
    pytest.param(["--capacity", "cpu=many"], "'many' is not an amount", id="not an amount"),
    pytest.param(["--nodes", "0"], "0 is not in the range 1<=x<=64", id="no nodes"),
    pytest.param(["--bind", "0.0.0.0"], "can be reached from other machines. Give --tls-cert", id="open to others"),
    pytest.param(
        ["--tls-cert", "/etc/hostname", "--tls-key", "/etc/hostname"],
        "cannot use the certificate /etc/hostname with the key /etc/hostname",
        id="no certificate at all",
    ),
    pytest.param(["--tls-cert", "/etc/hostname"], "--tls-cert and --tls-key go together", id="a certificate alone"),
]


@pytest.mark.parametrize(("words", "sentence"), REFUSED)
def test_up_refuses_what_it_cannot_do(tmp_path: Path, words: list[str], sentence: str) -> None:
    result = said("up", "--data", str(tmp_path), *words)
    assert result.exit_code == 2
    assert sentence in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = said("up", "--data", str(tmp_path / "file" / "below"))
    assert result.exit_code == 1
    assert result.output.startswith(
        f"Error: cannot use {tmp_path}/file/below as the cluster's folder: Not a directory."
    )


def test_up_refuses_a_certificate_that_every_client_would_refuse(tmp_path: Path) -> None:
    made = nameless(tmp_path)
    result = said("up", "--data", f"{tmp_path}/d", "--tls-cert", str(made.certificate), "--tls-key", str(made.key))
    assert result.exit_code == 2
    assert f"the certificate {made.certificate} has no subjectAltName" in " ".join(result.output.split())


@pytest.mark.parametrize("name", ["up", "down", "status", "kubeconfig"])
def test_every_command_reports_what_is_no_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    told = {
        "": "the name of the folder is empty. Leave --data out for the default folder, or name one.",
        f"{tmp_path}/file": f"{tmp_path}/file is not a folder. Choose a new or empty folder, or that of a cluster.",
    }
    for folder, sentence in told.items():
        result = said(name, "--data", folder)
        assert (result.exit_code, sentence in " ".join(result.output.split())) == (2, True), result.output


@pytest.mark.parametrize("name", ["down", "status"])
def test_a_folder_below_a_file_has_no_cluster(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    result = said(name, "--data", f"{tmp_path}/file/below")
    assert result.output.startswith(f"No cluster runs in {tmp_path}/file/below.")


def test_a_folder_whose_lock_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()  # as good as somebody else's: also root may not write to it
    result = said("status", "--data", str(tmp_path))
    assert (result.exit_code, result.output) == (
        1,
        f"Error: cannot use {tmp_path} as the cluster's folder: Is a directory. Choose another with --data DIR.\n",
    )


def test_a_folder_of_other_things_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    tmp_path.chmod(0o755)
    result = said("up", "--data", str(tmp_path))
    assert (result.exit_code, result.output.startswith(f"Error: {tmp_path} is not empty and holds no cluster.")) == (
        1,
        True,
    )
    assert tmp_path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_each_shell(shell: str) -> None:
    result = said("completion", shell)
    assert (result.exit_code, "_SHOAL_COMPLETE" in result.output) == (0, True)


def test_doctor_speaks_plainly_and_as_json() -> None:
    text, as_json = said("doctor"), said("doctor", "-o", "json")
    findings = json.loads(as_json.output)
    assert (text.exit_code, as_json.exit_code) == (0, 0)
    assert {"name", "works", "detail", "cost"} <= set(findings[0])
    assert all(finding["name"] in text.output for finding in findings)

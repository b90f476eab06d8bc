"""An operator that cannot serve a cluster: one sentence with the way out, exit code 1, no stack trace.

What every command says of a cluster that cannot be reached is in tests/cli.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from kit.operator_namespace import Ground
from kit.operator_process import kubeconfig_of
from kit.shoal_command import Outcome, shoal
from shoal.cli.main import shoal as shoal_command
from shoal.kube.kinds import NAMESPACE, SERVICE_ACCOUNT

OPERATOR = ("operator", "--metrics-address", "off", "--health-address", "off")
COMMANDS = {"operator": OPERATOR, "install": ("install", "--image", "i"), "uninstall": ("uninstall",)}


@pytest.fixture(params=COMMANDS.values(), ids=COMMANDS)
def command(request: pytest.FixtureRequest) -> tuple[str, ...]:
    words: tuple[str, ...] = request.param
    return words


def typed(*words: str, **environment: str) -> Outcome:
    """In this process, where no server is needed: starting one takes longer than the test."""
    unset = {name: None for name in os.environ if name.startswith(("SHOAL_", "KUBE"))}
    told = CliRunner().invoke(shoal_command, words, env={**unset, **environment})
    return Outcome(told.exit_code, told.stdout, told.stderr)


def sentence(told: Outcome) -> str:
    """The one line on standard error; nothing else was said."""
    assert (told.code, told.out) == (1, ""), told
    assert "Traceback" not in told.err
    return told.err.removeprefix("Error: ").rstrip("\n")


def test_no_kubeconfig_at_all(command: tuple[str, ...], tmp_path: Path) -> None:
    assert sentence(typed(*command, HOME=str(tmp_path))) == (
        "there is no cluster to speak to: this is no pod, and neither KUBECONFIG nor ~/.kube/config names one. "
        "Name one with --kubeconfig."
    )


def kubeconfig(folder: Path, server: str) -> Path:
    file = folder / "config"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "x", "context": {"cluster": "c"}}],
        "current-context": "x",
    }
    file.write_text(json.dumps(config))
    return file


@pytest.mark.kubernetes
async def test_an_account_without_rights_is_told_every_one_that_is_missing(ground: Ground) -> None:
    await ground.admin.create(NAMESPACE, {"metadata": {"name": ground.own}})
    await ground.admin.create(SERVICE_ACCOUNT, {"metadata": {"name": "nobody"}}, ground.own)
    file = str(kubeconfig_of(ground.plane, ground.folder, "nobody", ground.own))
    told = await shoal(*OPERATOR, "--kubeconfig", file, "--namespace", ground.jobs)
    assert (told.code, told.out) == (1, "")
    first, *listed, last = told.err.splitlines()
    assert first == "Error: this account lacks 23 of the 23 rights the operator needs:"
    assert f"  create pods in namespace {ground.jobs}, to run the tasks" in listed
    assert f"  patch leases.coordination.k8s.io in namespace {ground.own}, to lead, and to see who does" in listed
    assert len(listed) == 23
    assert last == "`shoal install` grants exactly these; `shoal install --dry-run -o yaml` shows them."


@pytest.mark.kubernetes
async def test_an_account_that_may_not_install_is_told_so(ground: Ground) -> None:
    await ground.admin.create(NAMESPACE, {"metadata": {"name": ground.own}})
    await ground.admin.create(SERVICE_ACCOUNT, {"metadata": {"name": "nobody"}}, ground.own)
    file = str(kubeconfig_of(ground.plane, ground.folder, "nobody", ground.own))
    told = sentence(await shoal("install", "--image", "i", "--kubeconfig", file))
    assert told.startswith("customresourcedefinitions.apiextensions.k8s.io ")
    assert told.endswith(" at the cluster scope. Ask for a role that allows it.")


def test_options_that_cannot_be_are_refused(tmp_path: Path) -> None:
    wrong = typed("operator", "--dialects", "esperanto")
    assert wrong.code == 2
    assert wrong.err.endswith("there is no job language 'esperanto'; there are: framework, volcano, kubedl, kubeflow\n")
    where = typed("operator", "--metrics-address", "here")
    assert where.code == 2
    assert where.err.endswith("'here' should be HOST:PORT, for example 127.0.0.1:8080 or :8080; `off` for none\n")


def test_an_address_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        address = f"127.0.0.1:{port}"
        told = sentence(typed("operator", "--kubeconfig", str(kubeconfig(tmp_path, "http://127.0.0.1:1")),
                                    "--metrics-address", address, "--health-address", "off"))  # fmt: skip
    assert told == f"cannot listen on {address} for metrics: Address already in use."

"""examples/two-pods: its script from start to end, as a person would run it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from kit.elastic_group import EXAMPLE

pytestmark = pytest.mark.processes


def test_the_visitor_is_greeted_and_nothing_is_left() -> None:
    script = EXAMPLE.parent / "two-pods" / "demo.py"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SHOAL_", "KUBE"))}
    told = subprocess.run(
        [sys.executable, script], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert told.returncode == 0, told.stdout
    asked = [line for line in told.stdout.splitlines() if line.startswith("$ ")]
    assert [" ".join(shlex.split(line)[1:4]) for line in asked] == [
        "shoal up --detach",
        "kubectl get nodes",
        "kubectl apply -f",
        "kubectl wait --for=jsonpath={.status.phase}=Succeeded",
        "kubectl wait --for=jsonpath={.status.phase}=Succeeded",
        "kubectl get pods",
        "kubectl logs visitor",
        "shoal down",
    ]
    assert "visitor asks http://greeter:8000\nhello from greeter\n" in told.stdout

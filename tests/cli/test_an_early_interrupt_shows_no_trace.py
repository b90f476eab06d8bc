"""Ctrl-C while a command is still being loaded ends it, and shows nothing of its inside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

# Stands where a module of ours would be loaded, and is interrupted there as by a person.
INTERRUPTED = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Interrupt(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
        return None

sys.meta_path.insert(0, Interrupt())
from shoal.cli import main
sys.argv[:] = ["shoal", "status", "--data", "/nonexistent"]
main()
"""


def interrupted(module: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.replace("sys.argv[1]", repr(module))],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("module", "ending"),
    [
        pytest.param("shoal.cli.main", (-signal.SIGINT, ""), id="before there is a command"),
        pytest.param("shoal.cli.status", (130, ""), id="while the command is loaded"),
    ],
)
def test_an_interrupt_at_the_start_is_quiet(module: str, ending: tuple[int, str]) -> None:
    assert interrupted(module) == ending

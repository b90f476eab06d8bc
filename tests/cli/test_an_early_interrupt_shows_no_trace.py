"""Ctrl-C while a command is still being loaded ends it, and shows nothing of its inside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import shoal

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


def interrupted(module: str, number: str = "SIGINT", *words: str) -> tuple[int, str]:
    script = INTERRUPTED.replace("sys.argv[1]", repr(module)).replace("SIGINT", number)
    if words:
        script = script.replace('"status", "--data", "/nonexistent"', ", ".join(map(repr, words)))
    done = subprocess.run(
        [sys.executable, "-c", script],
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
        pytest.param("shoal.cli.commands.status", (130, ""), id="while the command is loaded"),
    ],
)
def test_an_interrupt_at_the_start_is_quiet(module: str, ending: tuple[int, str]) -> None:
    assert interrupted(module) == ending


def test_a_run_that_is_terminated_before_it_has_read_its_file_ends_as_with_an_interrupt() -> None:
    assert interrupted("shoal.cli.progress", "SIGTERM", "run", "/nonexistent.yaml") == (130, "")


def test_the_entry_point_imports_nothing_slow_before_interrupts_have_their_default() -> None:
    source = Path(shoal.__file__).parents[1]
    script = f"import sys; sys.path.insert(0, {str(source)!r}); import shoal.cli; print('enum' in sys.modules)"
    assert subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True).stdout == "False\n"

"""Mutated requests of every kind, mutated manifests and YAML bombs: no 5xx, no traceback, bounded memory.

The examples are the same on every run. `make fuzz` makes more of them, from a seed it prints; SHOAL_FUZZ_SEED and
SHOAL_FUZZ_ROUNDS repeat one.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

from kit.yaml_bombs import BOMBS

SEED = os.environ.get("SHOAL_FUZZ_SEED", "1")
ROUNDS = os.environ.get("SHOAL_FUZZ_ROUNDS", "3000")
MEMORY_MIB = 300
ADDRESS_BYTES = 3 * 1024**3  # the machine survives what the test is there to find


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def test_wrong_requests_and_manifests_get_an_error_message() -> None:
    print(f"SHOAL_FUZZ_SEED={SEED} SHOAL_FUZZ_ROUNDS={ROUNDS}")
    ended = subprocess.run(
        [sys.executable, "-m", "kit.fuzzing", SEED, ROUNDS],
        cwd=Path(__file__).parents[1], preexec_fn=limit, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, f"seed {SEED}: {ended.stderr[-3000:]}"
    found = json.loads(ended.stdout)
    assert (found["refused"][:5], found["tracebacks"][:3]) == ([], []), f"seed {SEED}"
    assert found["memory"] < MEMORY_MIB, f"seed {SEED}: {found['memory']} MiB"
    assert found["answers"].get("201", 0) > 0, "no request was right: what is mutated is wrong from the beginning"
    assert found["validated"] > len(BOMBS)

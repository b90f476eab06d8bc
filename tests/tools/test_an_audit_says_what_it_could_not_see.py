"""`tools/audit` fails for known weaknesses, and where it audited nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

AUDIT = Path(__file__).parents[2] / "tools" / "audit"


def package(name: str, *advisories: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "version": "1.0", "vulns": list(advisories)}


def unknown(name: str) -> dict[str, Any]:
    return {"name": name, "skip_reason": f"Dependency not found on PyPI and could not be audited: {name}"}


WEAK = {"id": "PYSEC-1", "fix_versions": ["1.1", "2.0"], "description": "long"}
HOPELESS = {"id": "PYSEC-2", "fix_versions": [], "description": "long"}
UNSEEN = "audit: no advisories could be had, nothing was audited: "
CASES: dict[str, tuple[Any, int, int, str]] = {
    "all sound": ([package("a"), package("b")], 0, 0, "audit: 0 of 2 packages have known weaknesses\n"),
    "one is unknown": (
        [package("a"), unknown("b")],
        0,
        0,
        "audit: 0 of 1 packages have known weaknesses; 1 are not known to the service\n",
    ),
    "two weaknesses": (
        [package("a", WEAK, HOPELESS), package("b")],
        1,
        1,
        "a 1.0: PYSEC-1, mended in 1.1, 2.0\na 1.0: PYSEC-2, mended in no version yet\n"
        "audit: 1 of 2 packages have known weaknesses\n",
    ),
    "none is known": (
        [unknown("a"), unknown("b")],
        0,
        2,
        UNSEEN + "the service knows none of these 2 packages\n",
    ),
    "no package": ([], 0, 2, UNSEEN + "the service knows none of these 0 packages\n"),
    "no answer": (None, 1, 2, UNSEEN + "pip-audit says: ConnectionError: nobody is there\n"),
}


@pytest.mark.parametrize(("found", "rc", "code", "words"), CASES.values(), ids=list(CASES))
def test_the_report_of_the_audit(found: Any, rc: int, code: int, words: str, tmp_path: Path) -> None:
    program = tmp_path / "pip-audit"
    told = "" if found is None else json.dumps({"dependencies": found, "fixes": []})
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{told}\nEND\necho 'ConnectionError: nobody is there' >&2\nexit {rc}\n")
    program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name != "GITHUB_ACTIONS"}
    ran = subprocess.run(
        [sys.executable, AUDIT, sys.prefix],
        env={**kept, "PIP_AUDIT": str(program)}, stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (code, words)

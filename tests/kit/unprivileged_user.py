"""A user without any powers, and an interpreter that user may run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NOBODY = 65534
# An interpreter counts when it has the modules we use and can be started again by the name it has for itself.
BY_ITSELF = "import ssl, sqlite3, subprocess, sys; subprocess.run([sys.executable, '-c', ''], check=True)"
POWERLESS = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def usable_python() -> str | None:
    """An interpreter of this version that an ordinary user may run (root's own may lie in root's home)."""
    if subprocess.run([*POWERLESS, "ls", str(Path(__file__).parent)], capture_output=True).returncode:
        return None  # the checkout is in a folder that only root may enter
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        command = [*POWERLESS, candidate, "-c", BY_ITSELF]
        try:
            if subprocess.run(command, capture_output=True, timeout=60, cwd="/").returncode == 0:
                return candidate
        except FileNotFoundError:
            return None
    return None

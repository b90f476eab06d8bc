"""Everything in this folder holds for a user without any powers; root runs it all again as one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import shoal

pytestmark = pytest.mark.processes

NOBODY = 65534
HERE = Path(__file__).parent


def usable_python() -> str | None:
    """An interpreter of this version that an ordinary user may run (root's own may lie in root's home)."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        command = ["setpriv", *POWERLESS, candidate, "-c", BY_ITSELF]
        try:
            if subprocess.run(command, capture_output=True, timeout=60, cwd="/").returncode == 0:
                return candidate
        except FileNotFoundError:
            return None
    return None


# An interpreter counts when it has the modules we use and can be started again by the name it has for itself.
BY_ITSELF = "import ssl, sqlite3, subprocess, sys; subprocess.run([sys.executable, '-c', ''], check=True)"
POWERLESS = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


@pytest.mark.skipif(os.getuid() != 0, reason="these tests already run as an ordinary user")
@pytest.mark.timeout(1800)
def test_all_of_it_as_an_ordinary_user() -> None:
    python = usable_python()
    if python is None:
        pytest.skip("no interpreter of this version that an ordinary user may run")
    home = Path("/tmp") / f"shoal-nobody-{os.getpid()}"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    site = next(path for path in sys.path if path.endswith("site-packages"))
    env = {
        "HOME": str(home),
        "TMPDIR": str(home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": f"{Path(shoal.__file__).parents[1]}:{site}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    pytest_of_their_own = [
        python,
        "-m",
        "pytest",
        str(HERE),
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        f"--basetemp={home}/t",
    ]
    done = subprocess.run(
        ["setpriv", *POWERLESS, *pytest_of_their_own], env=env, cwd=HERE.parents[1], capture_output=True, text=True
    )
    subprocess.run(["rm", "-rf", str(home)], check=True)

    assert done.returncode == 0, done.stdout + done.stderr

"""Everything in this folder holds for a user without any powers; root runs it all again as one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import shoal
from kit.unprivileged_user import NOBODY, POWERLESS, usable_python

pytestmark = pytest.mark.processes

HERE = Path(__file__).parent


@pytest.mark.skipif(os.getuid() != 0, reason="these tests already run as an ordinary user")
@pytest.mark.timeout(1800)
def test_all_of_it_as_an_ordinary_user() -> None:
    python = usable_python()
    if python is None:
        pytest.skip("no interpreter of this version, or no checkout, that an ordinary user may read")
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
        [*POWERLESS, *pytest_of_their_own], env=env, cwd=HERE.parents[1], capture_output=True, text=True
    )
    subprocess.run(["rm", "-rf", str(home)], check=True)

    assert done.returncode == 0, done.stdout + done.stderr

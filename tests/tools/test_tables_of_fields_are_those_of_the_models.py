"""The tables of fields in the docs follow from the models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_has_the_fields_of_the_models() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools" / "render-field-tables", "--check"], check=False)
    assert done.returncode == 0, "run tools/render-field-tables"

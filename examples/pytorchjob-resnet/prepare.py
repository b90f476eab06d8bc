"""Prepares the example: what it uses is that of examples/pytorch-elastic, a Python environment with torch and etcd."""

from __future__ import annotations

import runpy
from pathlib import Path

if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).resolve().parents[1] / "pytorch-elastic" / "prepare.py"), run_name="__main__")

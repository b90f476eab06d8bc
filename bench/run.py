"""`make bench`: every bench, or those named: python bench/run.py cluster apiserver."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from harness import RUNS, measure

BENCHES = ("apiserver", "binding", "client", "cluster", "engine", "jobs", "kubernetes", "scheduling")


def main() -> None:
    chosen = sys.argv[1:] or BENCHES
    unknown = sorted(set(chosen) - set(BENCHES))
    if unknown:
        sys.exit(f"bench: no such bench: {', '.join(unknown)}. There are: {', '.join(BENCHES)}")
    for name in chosen:
        bench = import_module(name)
        measure(name, bench.METRICS, bench.run, runs=getattr(bench, "RUNS", RUNS))


if __name__ == "__main__":
    main()

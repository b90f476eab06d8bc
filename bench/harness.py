"""How every figure is taken: five runs, the median and the spread, the machine's load beside them.

A bench is a module with `METRICS` and a function `run() -> dict[str, float]` that takes each metric once. Goals are
printed beside the medians; nothing here passes or fails.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

RUNS = 5
ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "bench"
sys.path.insert(0, str(ROOT / "tests"))  # benches share the tools of the tests, as `kit.<module>`


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    unit: str
    goal: float | None = None  # None: told beside the others, to judge them by
    better: str = "lower"  # or higher

    def shown_goal(self) -> str:
        return "" if self.goal is None else f"goal {'<=' if self.better == 'lower' else '>='} {self.goal:g}"


@dataclass(frozen=True, slots=True)
class Figure:
    metric: Metric
    values: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def row(self) -> str:
        spread = f"{min(self.values):g} to {max(self.values):g}"
        metric = self.metric
        return f"{metric.name:<52}{self.median:>12g} {metric.unit:<9}{spread:>26}   {metric.shown_goal()}".rstrip()


def measure(
    title: str, metrics: list[Metric], run: Callable[[], dict[str, float]], *, runs: int = RUNS
) -> list[Figure]:
    """Take every metric `runs` times; print the table and write the JSON."""
    load_before = os.getloadavg()[0]
    taken: list[dict[str, float]] = []
    for number in range(runs):
        print(f"{title}: run {number + 1} of {runs}", flush=True)
        taken.append({name: float(f"{value:.4g}") for name, value in run().items()})
    figures = [Figure(metric, [values[metric.name] for values in taken]) for metric in metrics]
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, load {load_before:.2f} before"
    print(f"\n{title} ({machine}; median of {runs}, smallest to largest)")
    for figure in figures:
        print(figure.row())
    print(flush=True)
    _write(title, machine, figures)
    return figures


def _write(title: str, machine: str, figures: list[Figure]) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    content = {
        "title": title,
        "machine": machine,
        "figures": [{**asdict(f.metric), "median": f.median, "values": f.values} for f in figures],
    }
    (OUT / f"{title.replace(' ', '-')}.json").write_text(json.dumps(content, indent=2) + "\n")

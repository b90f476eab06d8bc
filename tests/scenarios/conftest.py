"""The Kubernetes that some scenarios are played on, and, at the end, how many disturbed runs there were."""

from __future__ import annotations

from typing import Any

from kit.kubernetes_plane import kubernetes_plane

__all__ = ["kubernetes_plane"]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [report for several in terminalreporter.stats.values() for report in several]
    runs = [
        value
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == "disturbed runs"
    ]
    if runs:
        terminalreporter.write_sep("-", f"{sum(runs)} disturbed runs of {len(runs)} scenarios, all with the same end")

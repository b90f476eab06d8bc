"""What holds for every test: no verdict of hypothesis depends on how busy the machine is.

And what is told after the last: how often scenarios were played with something going wrong.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


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
        ends = f"{sum(runs)} disturbed runs of {len(runs)} scenarios kept every promise and ended alike"
        terminalreporter.write_sep("-", ends)

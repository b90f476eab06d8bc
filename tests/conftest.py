"""What holds for every test: no verdict of hypothesis depends on how busy the machine is, nor, unless chance is asked
for (`--hypothesis-profile=chance`), on luck.

And what is told after the last: how often scenarios were played with something going wrong.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings

settings.register_profile("chance", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("plain", settings.get_profile("chance"), derandomize=True)
settings.load_profile("plain")


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

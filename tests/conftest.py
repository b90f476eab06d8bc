"""What holds for every test: no verdict of hypothesis depends on how busy the machine is, nor, unless chance is asked
for (`--hypothesis-profile=chance`), on luck.

In which order several workers take them up (`kit.worksteal_order`). And what is told after the last: how often
scenarios were played with something going wrong.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from kit.worksteal_order import dealt

settings.register_profile("chance", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("plain", settings.get_profile("chance"), derandomize=True)
settings.load_profile("plain")

# `nohup make test &` starts the run with these ignored, and every program it starts would ignore them too. A handler
# that does nothing keeps the run alive the same way but is reset to the default in the programs it starts.
for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is not None:
        # Those that wait for processes before those that compute, of which two are enough for two processors.
        computing_last = sorted(items, key=lambda item: item.get_closest_marker("disturbed") is not None)
        items[:] = dealt(computing_last, worker["workercount"], is_long)


@pytest.fixture(scope="session", autouse=True)
def _output_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where `shoal run` leaves its output folders, unless a test says otherwise: not in the checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOAL_OUT", str(tmp_path_factory.getbasetemp() / "shoal-out"))
        yield


def is_long(item: pytest.Item) -> bool:
    """Whoever asks for another limit than the common one."""
    return item.get_closest_marker("timeout") is not None


def pytest_collection_finish() -> None:
    """What was read stays to the end. Looking through it for garbage again and again cost a tenth of the run."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


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

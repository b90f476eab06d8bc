"""`pytest tests/golden --update-golden` writes the golden files anew. The diff is the review."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FILES = Path(__file__).with_name("files")
Golden = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="Write the golden files instead of comparing them.")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares a text with the file of that name, or writes the file."""
    is_update = request.config.getoption("--update-golden", default=False)

    def check(name: str, text: str) -> None:
        path = FILES / name
        if is_update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
        written = path.read_text() if path.exists() else ""
        assert f"{text}\n" == written, f"{path} differs; `pytest tests/golden --update-golden` writes it anew"

    return check


@pytest.fixture
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pages show local time."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()

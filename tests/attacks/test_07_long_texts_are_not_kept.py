"""What is remembered of texts that others write is short: thousands of them, a megabyte each, would fill the memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from shoal.apiserver import request_info
from shoal.kube.defaults.pod_defaults import pull_policy

READERS: dict[str, Callable[[str], Any]] = {
    "image": pull_policy,
    "path": request_info.read,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_long_text_is_not_kept(read: Callable[[str], Any]) -> None:
    text = "/" + "a" * 1_000_000
    before = sys.getrefcount(text)
    read(text)
    assert sys.getrefcount(text) == before

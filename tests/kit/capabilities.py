"""Capabilities of a dialect, for tests that need one of them."""

from __future__ import annotations

from typing import TypeVar

from shoal.dialects.capabilities import Capability
from shoal.dialects.dialect import Dialect

C = TypeVar("C", bound=Capability)


def capability(dialect: Dialect, wanted: type[C]) -> C:
    """The capability, which the dialect must have."""
    found = dialect.capability(wanted)
    assert found is not None, f"{dialect.kind} has no {wanted.__name__}"
    return found

"""Settings of these languages: none. What was read of a spec is remembered beside them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from shoal.dialects.dialect import SettingsInvalid
from shoal.dialects.mistakes import StrictModel, causes


class Settings(StrictModel):
    @cached_property
    def understood(self) -> dict[bytes, Any]:
        """What was made of specs, by their digest."""
        return {}


def settings(written: Mapping[str, Any] | None = None, **_: Any) -> Settings:
    """There is nothing to set, and whoever tries is told."""
    try:
        return Settings.model_validate(dict(written or {}))
    except ValidationError as problems:
        raise SettingsInvalid(causes(problems, prefix="", right={})) from None

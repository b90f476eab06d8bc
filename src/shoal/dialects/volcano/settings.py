"""Settings of the language: few, because a Job says nearly everything itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from shoal.dialects.dialect import SettingsInvalid
from shoal.dialects.mistakes import StrictModel, causes


class Settings(StrictModel):
    resume_counts: bool = False  # a resume costs a retry, as it does with Volcano's own controller

    @cached_property
    def understood(self) -> dict[bytes, Any]:
        """What `reading` made of specs under these settings, by their digest: a pass rarely meets a new one."""
        return {}


def settings(written: Mapping[str, Any] | None = None, **_: Any) -> Settings:
    """The settings a configuration file asks for."""
    try:
        return Settings.model_validate(dict(written or {}))
    except ValidationError as problems:
        raise SettingsInvalid(causes(problems, prefix="", right={})) from None

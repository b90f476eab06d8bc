"""Settings of languages whose jobs say nearly everything themselves: read strictly, every mistake with its path."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

from pydantic import ValidationError

from shoal.dialects.dialect import SettingsInvalid
from shoal.dialects.validation_errors import StrictModel, causes


class BaseSettings(StrictModel):
    @cached_property
    def understood(self) -> dict[bytes, Any]:
        """What was made of specs under these settings, by their digest: a pass rarely has a new one."""
        return {}

    @classmethod
    def read(cls, written: Mapping[str, Any] | None = None, **_: Any) -> Self:
        """The settings a configuration file specifies."""
        try:
            return cls.model_validate(dict(written or {}))
        except ValidationError as problems:
            raise SettingsInvalid(causes(problems, prefix="", right={})) from None

"""Settings of these languages: none, and whoever tries is told. What was read of a spec is remembered beside them."""

from __future__ import annotations

from shoal.dialects.base_settings import BaseSettings


class NativeSettings(BaseSettings):
    """Nothing."""


settings = NativeSettings.read

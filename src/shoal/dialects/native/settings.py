"""Settings of these dialects: none; any key is an error. Parsed specs are cached beside them."""

from __future__ import annotations

from shoal.dialects.base_settings import BaseSettings


class NativeSettings(BaseSettings):
    """Nothing."""


settings = NativeSettings.read

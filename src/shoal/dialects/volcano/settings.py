"""Settings of the dialect: few, because a Job configures nearly everything itself."""

from __future__ import annotations

from shoal.dialects.base_settings import BaseSettings


class VolcanoSettings(BaseSettings):
    resume_counts: bool = False  # a resume costs a retry, as it does with Volcano's own controller


settings = VolcanoSettings.read

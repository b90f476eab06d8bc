"""The controller's configuration, `frameworkcontroller.yaml`: its keys, defaults and limits.

Validation is strict: any mistake keeps the controller from starting, and all of them are listed at once. The address of
the API server and the request rate are read and have no effect; setting them causes a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from shoal.dialects.dialect import SettingsInvalid
from shoal.dialects.framework.pod_failure_spec import DEFAULT_SPEC, PodFailureSpec, rules
from shoal.dialects.validation_errors import StrictModel, causes
from shoal.engine.policies import FailureRule
from shoal.kube.errors import Cause
from shoal.kube.validation.errors import duplicate, invalid

_EXPECTED = {
    "code": "the completion code of the entry",
    "podPatterns": "at least one pattern of the pods the entry is for",
}


# What the reference needs and we do not, by field, and what does it here.
_PACE = "requests follow the pace at which the API server answers"
_CONNECTION = "`--kubeconfig` and `--context` say which cluster is meant, else KUBECONFIG"
_ESTABLISHED = "a watch shows when the definition is ready"
_IDLE = {
    "kube_api_server_address": _CONNECTION,
    "kube_config_file_path": _CONNECTION,
    "kube_client_qps": _PACE,
    "kube_client_burst": _PACE,
    "crd_established_check_interval_sec": _ESTABLISHED,
    "crd_established_check_timeout_sec": _ESTABLISHED,
}


class FrameworkSnapshots(StrictModel):
    on_framework_retry: bool = True
    on_framework_deletion: bool = True


class TaskSnapshots(StrictModel):
    on_task_retry: bool = True
    on_task_deletion: bool = True


class PodSnapshots(StrictModel):
    on_pod_deletion: bool = True


class Snapshots(StrictModel):
    """Which moments leave a line in the history log."""

    framework: FrameworkSnapshots = FrameworkSnapshots()
    task: TaskSnapshots = TaskSnapshots()
    pod: PodSnapshots = PodSnapshots()


class FrameworkSettings(StrictModel):
    kube_api_server_address: str | None = None
    kube_config_file_path: str | None = None
    kube_client_qps: Annotated[float, Field(gt=0, le=10_000, strict=False)] = 80
    kube_client_burst: Annotated[int, Field(ge=0, le=10_000)] = 120
    worker_number: Annotated[int, Field(gt=0)] = 16
    large_framework_compression: bool = False
    crd_established_check_interval_sec: Annotated[int, Field(ge=1)] = 1
    crd_established_check_timeout_sec: Annotated[int, Field(ge=10)] = 60
    object_local_cache_creation_timeout_sec: Annotated[int, Field(ge=1)] = 300
    framework_completed_retain_sec: Annotated[int, Field(ge=0)] = 30 * 24 * 3600
    framework_min_retry_delay_sec_for_transient_conflict_failed: Annotated[int, Field(ge=0)] = 60
    framework_max_retry_delay_sec_for_transient_conflict_failed: Annotated[int, Field(ge=0)] = 900
    log_object_snapshot: Snapshots = Snapshots()
    pod_failure_spec: list[PodFailureSpec] = Field(
        default_factory=lambda: [PodFailureSpec.model_validate(entry) for entry in DEFAULT_SPEC]
    )

    @cached_property
    def rules(self) -> tuple[FailureRule, ...]:
        """The failure table as the engine's rules; compiled once for all Frameworks."""
        return rules(tuple(self.pod_failure_spec))

    @cached_property
    def understood(self) -> dict[bytes, Any]:
        """Cache of what `job_spec` parsed from specs under these settings, by digest: most passes hit it."""
        return {}

    @field_validator("object_local_cache_creation_timeout_sec")
    @classmethod
    def _leaves_time_to_appear(cls, seconds: int, info: ValidationInfo) -> int:
        if seconds < 60 and not (info.context or {}).get("relaxed"):
            raise ValueError("must be 60 or more: a slow cache would otherwise look like a lost object")
        return seconds


def settings(written: Mapping[str, Any] | None = None, *, relaxed: bool = False) -> FrameworkSettings:
    """The settings a configuration file specifies; `relaxed` allows the short time-outs of tests."""
    found = dict(written or {})
    try:
        read = FrameworkSettings.model_validate(found, context={"relaxed": relaxed})
    except ValidationError as problems:
        raise SettingsInvalid([*causes(problems, prefix="", right=_EXPECTED), *_across(found)]) from None
    mistakes = [*_across(found), *_delays(read)]
    if mistakes:
        raise SettingsInvalid(mistakes)
    return read


def workers(read: FrameworkSettings) -> int:
    """How many Frameworks are looked at side by side."""
    return read.worker_number


def idle_settings(read: FrameworkSettings) -> dict[str, str]:
    """Return the keys of a configuration that have no effect, and why."""
    fields = FrameworkSettings.model_fields
    return {fields[name].alias or name: why for name, why in _IDLE.items() if name in read.model_fields_set}


def _across(found: dict[str, Any]) -> list[Cause]:
    """Mistakes that no single entry shows: the same code twice."""
    table = found.get("podFailureSpec")
    entries = table if isinstance(table, list) else []
    codes = [entry.get("code") if isinstance(entry, dict) else None for entry in entries]
    counts = Counter(code for code in codes if code is not None)
    return [
        duplicate(f"podFailureSpec[{index}].code", code, "give every entry a code of its own")
        for index, code in enumerate(codes)
        if code is not None and counts[code] > 1 and code in codes[:index]
    ]


def _delays(read: FrameworkSettings) -> list[Cause]:
    low = read.framework_min_retry_delay_sec_for_transient_conflict_failed
    high = read.framework_max_retry_delay_sec_for_transient_conflict_failed
    if high >= low:
        return []
    words = f"must be {low} or more, as frameworkMinRetryDelaySecForTransientConflictFailed says"
    return [invalid("frameworkMaxRetryDelaySecForTransientConflictFailed", high, words)]

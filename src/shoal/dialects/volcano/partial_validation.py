"""What can be read of a spec that does not fit its model, so that one mistake hides no other.

What does not fit is reported and removed, until the rest can be read. Rules between fields are then applied to that
rest; those that would compare with a removed value are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from shoal.dialects.validation_errors import causes
from shoal.dialects.volcano.spec import JobSpec
from shoal.kube.errors import Cause
from shoal.kube.schema_errors import is_at_or_below

_PASSES = 8  # each moves up at least one level where something is missing; no spec is as deep
_OBJECTS = ("model_type", "model_attributes_type", "dict_type")
_SIZE = re.compile(r"(spec\.tasks\[\d+\])\.replicas")


def validate_partially(written: Any, right: Mapping[str, str]) -> tuple[JobSpec, Any, list[Cause]]:
    """The rest of a spec, parsed and as written, and what does not fit with its path and what would be right."""
    rest = written
    found: list[Cause] = []
    for _ in range(_PASSES):
        try:
            return JobSpec.model_validate(rest), rest, found
        except ValidationError as problems:
            reported = [cause.field for cause in found]
            found += [
                each
                for each in causes(problems, prefix="spec", right=right)
                if not is_at_or_below(each.field, reported)
            ]
            # From the back, so that places in lists stay what they are called.
            for error in reversed(problems.errors(include_url=False)):
                rest = _without(rest, error, error["loc"])
    return JobSpec(), {}, found


def _without(value: Any, error: ErrorDetails, steps: tuple[str | int, ...]) -> Any:
    """A copy without what is wrong: of an object without something it needs, without the object."""
    if not steps or (len(steps) == 1 and error["type"] == "missing"):
        return {}
    step, below = steps[0], steps[1:]
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if key != step}
        is_needy = len(below) == 1 and error["type"] == "missing" and not isinstance(value.get(step), list)
        return (
            kept if not below or is_needy or step not in value else {**kept, step: _without(value[step], error, below)}
        )
    if not isinstance(value, list) or not isinstance(step, int) or step >= len(value):
        return value
    if below or error["type"] in _OBJECTS:
        changed = _without(value[step], error, below) if below else {}
        return [*value[:step], changed, *value[step + 1 :]]
    return [*value[:step], *value[step + 1 :]]


def is_consequential(cause: Cause, reported: list[Cause]) -> bool:
    """Whether a mistake compares with a value that is reported as wrong, or is below it."""
    sized = [match[1] for each in reported if (match := _SIZE.fullmatch(each.field))]
    compares = [f"{task}.{field}" for task in sized for field in ("minAvailable", "partitionPolicy")]
    places = [each.field for each in reported]
    of_all = ["spec.minAvailable", "metadata.name"] if sized or "spec.tasks" in places else []
    return is_at_or_below(cause.field, places) or cause.field in (*compares, *of_all)


def breaks_consequentially(cause: Cause, reported: list[Cause]) -> bool:
    """The same of a rule that is broken: it may read what is reported as wrong below its place."""
    reads_it = cause.reason != "FieldValueDuplicate" and any(
        is_at_or_below(each.field, [cause.field]) for each in reported
    )
    return reads_it or is_consequential(cause, reported)

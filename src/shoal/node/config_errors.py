"""The errors in a configuration, in Shoal's own wording: the path, what was found, and what would be right.

The model that reads a configuration describes in each field's description what belongs there; the library that checks
it only reports where something else was found.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

MAX_SHOWN = 60  # letters of what was found


def error_lines(invalid: ValidationError, model: type[BaseModel], *, also: Iterable[str] = ()) -> list[str]:
    """One line for each error, `path: what is wrong`. `also`: keys that are right but read by another component."""
    known = [*model.model_fields, *also]
    return [line for error in invalid.errors(include_url=False) for line in _lines(error, model, known)]


def format_value(value: Any) -> str:
    """The value found, as it would be written."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _lines(error: ErrorDetails, model: type[BaseModel], known: list[str]) -> list[str]:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error["loc"])
    if error["type"] == "extra_forbidden":
        near = get_close_matches(str(error["loc"][-1]), known, n=1)
        suggestion = f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(known)}"
        return [f"{path}: there is no such key; {suggestion}"]
    if error["type"] == "value_error":  # our own checks: a line for each mistake
        return [f"{path}{line}" for line in str(error["ctx"]["error"]).splitlines()]
    if not error["loc"]:
        return [f": {format_value(error['input'])} is not right; write a mapping with keys such as {', '.join(known)}"]
    expected = model.model_fields[str(error["loc"][0])].description
    return [f"{path}: {format_value(error['input'])} is not right; write {expected}"]

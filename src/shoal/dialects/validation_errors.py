"""The mistakes a model finds in a manifest or a configuration, each with its path and what would be right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from shoal.kube.errors import Cause
from shoal.kube.schema_errors import display_value, path_of
from shoal.kube.validation.errors import forbidden, invalid, not_supported, required

_TYPES = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text; put it in quotes",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


class Model(BaseModel):
    """Strict about types; a null where none is meant counts as absent, as in every Kubernetes object."""

    model_config = ConfigDict(alias_generator=to_camel, strict=True, frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _nulls_are_absent(cls, written: Any) -> Any:
        if not isinstance(written, dict) or None not in written.values():
            return written
        return {key: value for key, value in written.items() if value is not None}


class StrictModel(Model):
    """For configuration: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid")


def causes(invalid_model: ValidationError, *, prefix: str, right: Mapping[str, str]) -> list[Cause]:
    """`right` describes, by field name, which value would be valid there."""
    return [_cause(error, prefix, right) for error in invalid_model.errors(include_url=False, include_context=True)]


def _cause(error: ErrorDetails, prefix: str, right: Mapping[str, str]) -> Cause:
    path, value, kind = path_of(prefix, error["loc"]), display_value(error["input"]), error["type"]
    meaning = right.get(str(error["loc"][-1]), "") if error["loc"] else ""
    context = error.get("ctx") or {}
    if kind == "missing":
        return required(path, meaning)
    if kind == "extra_forbidden":
        return forbidden(path, "there is no such key")
    if kind == "literal_error":
        choices = (choice.strip("' ") for choice in context["expected"].replace(" or ", ", ").split(", "))
        return not_supported(path, value, [choice for choice in choices if choice])
    if kind in _TYPES:
        words = _joined(f"must be {_TYPES[kind]}", meaning)
        return Cause("FieldValueTypeInvalid", invalid(path, value, words).message, path)
    if kind == "value_error":
        words, given = str(context.get("error")), error["input"]  # a rule of Shoal's, with its own message
        if isinstance(given, str | int | float):
            return invalid(path, given, words)
        return Cause("FieldValueInvalid", words, path)
    message = error["msg"]
    limit = _LIMITS[kind](context) if kind in _LIMITS else message[:1].lower() + message[1:]
    return invalid(path, value, _joined(limit, meaning))


_LIMITS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than_equal": lambda context: f"must be {_plain(context['ge'])} or more",
    "less_than_equal": lambda context: f"must be {_plain(context['le'])} or less",
    "greater_than": lambda context: f"must be more than {_plain(context['gt'])}",
    "less_than": lambda context: f"must be less than {_plain(context['lt'])}",
    "string_pattern_mismatch": lambda context: f"must match {context['pattern']}",
    "too_short": lambda context: f"must have {context['min_length']} or more",
    "too_long": lambda context: f"must have {context['max_length']} or fewer",
}


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def _joined(words: str, meaning: str) -> str:
    return f"{words}: {meaning}" if meaning else words

"""Selecting objects by label and by field, in the query language of Kubernetes.

A label selector is a conjunction of requirements (`app=web,tier in (a,b),!old`); a field selector a conjunction of
comparisons (`status.phase!=Running`). Both are values: equal when they have the same requirements in the same text, and
`str` returns a text that parses to an equal one. Which fields a kind can be selected by is decided by the component
that holds the objects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shoal.kube import names
from shoal.kube.errors import ApiError, bad_request

_INTEGER = re.compile(r"[+-]?[0-9]+")


def _int64(text: str) -> int | None:
    if not _INTEGER.fullmatch(text) or len(text) > 20:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One claim about one label. `operator`: = == != in notin exists ! > <"""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        have = labels.get(self.key)
        match self.operator:
            case "=" | "==" | "in":
                return have is not None and have in self.values
            case "!=" | "notin":
                return have is None or have not in self.values
            case "exists":
                return have is not None
            case "!":
                return have is None
        number, bound = _int64(have or ""), _int64(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == ">" else number < bound

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(self.values)})"
        return f"{self.key}{self.operator}{self.values[0]}"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold; none at all matches everything. `matches_nothing` is an absent selector: it matches
    nothing.
    """

    requirements: tuple[Requirement, ...] = ()
    matches_nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.matches_nothing:
            return False
        return all(requirement.matches(labels) for requirement in self.requirements)  # fast enough: usually one

    def exact(self, key: str) -> str | None:
        """The one value the label must have, where the selector allows only one."""
        for requirement in self.requirements:
            if requirement.key == key and requirement.operator in ("=", "==", "in") and len(requirement.values) == 1:
                return requirement.values[0]
        return None

    def __bool__(self) -> bool:
        """Whether it excludes anything."""
        return self.matches_nothing or bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING = LabelSelector()
NOTHING = LabelSelector(matches_nothing=True)


def parse_labels(text: str) -> LabelSelector:
    """The selector in a `labelSelector` query parameter; a bad one raises 400 BadRequest."""
    if not text:
        return EVERYTHING
    return _selector(_Parser(text).requirements())


def from_label_selector(selector: Mapping[str, Any] | None) -> LabelSelector:
    """The selector in an object's field (matchLabels, matchExpressions). Absent chooses nothing, empty everything."""
    if selector is None:
        return NOTHING
    found = [_requirement(key, "=", (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        operator = _EXPRESSION_OPERATORS.get(expression.get("operator", ""))
        if operator is None:
            raise bad_request(f"{_quoted(expression.get('operator', ''))} is not a valid label selector operator")
        found.append(_requirement(expression.get("key", ""), operator, tuple(expression.get("values") or ())))
    return _selector(found)


def from_labels(labels: Mapping[str, str] | None) -> LabelSelector:
    """The selector of a plain map (a Service's): every label must have that value; an empty map chooses nothing."""
    if not labels:
        return NOTHING
    return _selector(Requirement(key, "=", (value,)) for key, value in labels.items())


_EXPRESSION_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def _selector(requirements: Iterable[Requirement]) -> LabelSelector:
    return LabelSelector(tuple(sorted(requirements, key=lambda requirement: requirement.key)))


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _requirement(key: str, operator: str, values: Iterable[str]) -> Requirement:
    kept = tuple(sorted(set(values)))
    problems = (
        [f"key: Invalid value: {_quoted(key)}: {'; '.join(found)}"] if (found := names.qualified_name(key)) else []
    )
    if operator in ("in", "notin") and not kept:
        problems.append("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")
    if operator in ("exists", "!") and kept:
        shown = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
        problems.append(f"values: Invalid value: {shown}: values set must be empty for exists and does not exist")
    if operator in (">", "<") and _int64(kept[0]) is None:
        why = "for 'Gt', 'Lt' operators, the value must be an integer"
        problems.append(f"values[0]: Invalid value: {_quoted(kept[0])}: {why}")
    for position, value in enumerate(kept):
        if found := names.label_value(value):
            problems.append(f"values[{position}][{key}]: Invalid value: {_quoted(value)}: {'; '.join(found)}")
    if problems:
        raise bad_request(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return Requirement(key, operator, kept)


_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^=!(),<>\x20\t\r\n]+")
_SYMBOLS = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">"))
_BINARY = ("=", "==", "!=", "in", "notin", ">", "<")
_BINARY_LISTED = "in, notin, =, ==, !=, gt, lt"


class _Parser:
    """Reads requirements left to right. An empty token is the end; `in` and `notin` may also be values."""

    def __init__(self, text: str) -> None:
        self._words = _TOKEN.findall(text.partition("\0")[0])
        self._position = 0

    def _peek(self) -> str:
        return self._words[self._position] if self._position < len(self._words) else ""

    def _next(self) -> str:
        lexeme = self._peek()
        self._position += 1
        return lexeme

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while lexeme := self._peek():
            if lexeme in _SYMBOLS and lexeme != "!":
                raise bad_request(f"found '{lexeme}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except ApiError as refused:
                raise bad_request(f"unable to parse requirement: {refused.message}") from None
            after = self._next()
            if after not in ("", ","):
                raise bad_request(f"found '{after}', expected: ',' or 'end of string'")
            following = self._peek()
            if after and (not following or (following in _SYMBOLS and following != "!")):
                raise bad_request(f"found '{following}', expected: identifier after ','")
        return found

    def _requirement(self) -> Requirement:
        key = self._next()
        absent = key == "!"
        if absent:
            key = self._next()
        if not key or key in _SYMBOLS:
            raise bad_request(f"found '{key}', expected: identifier")
        if problems := names.qualified_name(key):
            raise bad_request(f"<nil>: Invalid value: {_quoted(key)}: {'; '.join(problems)}")
        if absent:
            return _requirement(key, "!", ())
        if self._peek() in ("", ","):
            return _requirement(key, "exists", ())
        operator = self._next()
        if operator not in _BINARY:
            raise bad_request(f"found '{operator}', expected: {_BINARY_LISTED}")
        if operator in ("in", "notin"):
            return _requirement(key, operator, self._set())
        value = "" if self._peek() in ("", ",") else self._next()
        if value in _SYMBOLS:
            raise bad_request(f"found '{value}', expected: identifier")
        return _requirement(key, operator, [value])

    def _set(self) -> list[str]:
        opening = self._next()
        if opening != "(":
            raise bad_request(f"found '{opening}' expected: '('")
        first = self._peek()
        if not first or (first in _SYMBOLS and first not in (",", ")")):
            raise bad_request(f"found '{first}', expected: ',', ')' or identifier")
        values: list[str] = []
        value_expected = True  # between two commas, or a comma and a bracket, is the empty value
        while (lexeme := self._next()) != ")":
            if lexeme == ",":
                if value_expected:
                    values.append("")
                value_expected = True
            elif lexeme in _SYMBOLS or not lexeme:
                expected = "',', or identifier" if value_expected else "',' or ')'"
                raise bad_request(f"found '{lexeme}', expected: {expected}")
            elif not value_expected:
                raise bad_request(f"found '{lexeme}', expected: ',' or ')'")
            else:
                values.append(lexeme)
                value_expected = False
        return [*values, ""] if value_expected else values


@dataclass(frozen=True, slots=True, order=True)
class Comparison:
    """One claim about one field."""

    field: str
    equal: bool
    value: str

    def __str__(self) -> str:
        escaped = re.sub(r"([\\,=])", r"\\\1", self.value)
        return f"{self.field}{'=' if self.equal else '!='}{escaped}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All comparisons must hold; a field an object does not have reads as ''."""

    comparisons: tuple[Comparison, ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all((fields.get(c.field, "") == c.value) is c.equal for c in self.comparisons)

    def keys(self) -> frozenset[str]:
        return frozenset(c.field for c in self.comparisons)

    def exact(self, field: str) -> str | None:
        """The value the field must have, where the selector requires one."""
        return next((c.value for c in self.comparisons if c.equal and c.field == field), None)

    def renamed(self, name: Callable[[str], str]) -> FieldSelector:
        """The same comparisons on other field names (`name` may raise to refuse one)."""
        return FieldSelector(tuple(Comparison(name(c.field), c.equal, c.value) for c in self.comparisons))

    def __bool__(self) -> bool:
        return bool(self.comparisons)

    def __str__(self) -> str:
        return ",".join(map(str, self.comparisons))


_TERM = re.compile(r"(?:[^\\,]|\\.)*\\?", re.DOTALL)
_OPERATOR = re.compile("!=|==|=")


def parse_fields(text: str) -> FieldSelector:
    """The selector in a `fieldSelector` query parameter; a bad one raises 400 BadRequest."""
    terms = []
    position = 0
    while position <= len(text):  # the terms between commas that no backslash escapes
        match = _TERM.match(text, position)
        assert match is not None, "the pattern matches the empty string"
        if match[0]:
            terms.append(match[0])
        position = match.end() + 1
    found = []
    for term in sorted(terms):
        operator = _OPERATOR.search(term)
        if operator is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        value = _unescaped(term[operator.end() :])
        field = term[: operator.start()]
        if field or value:  # an empty field and value require nothing
            found.append(Comparison(field, operator[0] != "!=", value))
    return FieldSelector(tuple(sorted(found)))


def _unescaped(value: str) -> str:
    letters = iter(value)
    plain = []
    for letter in letters:
        if letter in ",=":
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(letter)}")
        if letter == "\\":
            letter = next(letters, "")
            if not letter or letter not in "\\,=":
                raise bad_request(f"invalid field selector: invalid escape sequence: \\{letter}")
        plain.append(letter)
    return "".join(plain)

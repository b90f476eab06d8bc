"""Which names Kubernetes accepts, and the message it rejects the others with.

Each rule takes a value and returns messages about what is wrong with it; an empty list means nothing is. The caller
adds the field. `generate` is what an API server does with metadata.generateName.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Protocol

Rule = Callable[[str], list[str]]

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_UNDERSCORED_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_ENDS = "and must start and end with an alphanumeric character"


def too_long(limit: int, unit: str = "characters") -> str:
    """The message for a value that is too long; of labels Kubernetes counts and reports the bytes."""
    return f"must be no more than {limit} {unit}"


def not_matching(rule: str, pattern: str, *examples: str) -> str:
    """The message for a value that does not match, with examples that would."""
    if not examples:
        return f"{rule} (regex used for validation is '{pattern}')"
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {listed}regex used for validation is '{pattern}')"


def out_of_range(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def _length(value: str) -> int:
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def _format_rule(limit: int | None, rule: str, pattern: str, *examples: str, unit: str = "characters") -> Rule:
    """The rule most names follow: at most so long, and matching a pattern."""
    matches = re.compile(pattern).fullmatch
    refusal = not_matching(rule, pattern, *examples)

    def problems(value: str) -> list[str]:
        found = [too_long(limit, unit)] if limit is not None and _length(value) > limit else []
        return found if matches(value) else [*found, refusal]

    return problems


_SUBDOMAIN_RULE = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}"
)
dns_subdomain = _format_rule(SUBDOMAIN_LENGTH, _SUBDOMAIN_RULE, _SUBDOMAIN, "example.com")
_label_prefix = _format_rule(SUBDOMAIN_LENGTH, _SUBDOMAIN_RULE, _SUBDOMAIN, "example.com", unit="bytes")
dns_subdomain_with_underscores = _format_rule(
    SUBDOMAIN_LENGTH,
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', {_ENDS}",
    rf"{_UNDERSCORED_LABEL}(\.{_UNDERSCORED_LABEL})*",
    "example.com",
)
dns_1035_label = _format_rule(
    LABEL_LENGTH,
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
label_value = _format_rule(
    LABEL_LENGTH,
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS}",
    f"({_QUALIFIED})?",
    "MyValue",
    "my_value",
    "12345",
    unit="bytes",
)
http_header_name = _format_rule(
    None, "a valid HTTP header must consist of alphanumeric characters or '-'", "[-A-Za-z0-9]+", "X-Header-Name"
)
_dns_label_shape = _format_rule(
    LABEL_LENGTH,
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}",
    _LABEL,
    "my-name",
    "123-abc",
)
_config_key_shape = _format_rule(
    SUBDOMAIN_LENGTH,
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    "[-._a-zA-Z0-9]+",
    "key.name",
    "KEY_NAME",
    "key-name",
)
_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch
_QUALIFIED_REFUSAL = not_matching(
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}", _QUALIFIED, "MyName", "my.name", "123-abc"
)


def dns_label(value: str) -> list[str]:
    """A lowercase RFC 1123 label: the names of namespaces, containers and volumes."""
    if not _is_label(value) and _is_subdomain(value):
        return [*([too_long(LABEL_LENGTH)] if _length(value) > LABEL_LENGTH else []), "must not contain dots"]
    return _dns_label_shape(value)


def path_segment(value: str) -> list[str]:
    """What can be one segment of a URL path."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in value]


def qualified_name(value: str) -> list[str]:
    """The key of a label, an annotation or a taint: an optional DNS prefix, a slash, a name."""
    prefix, slash, name = value.rpartition("/")
    # More than one slash fails as a whole; API servers give no details then.
    if "/" in prefix:
        with_prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_QUALIFIED_REFUSAL} {with_prefix}"]
    found = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash:
        found += [f"prefix part {problem}" for problem in _label_prefix(prefix)]
    if not name:
        found.append("name part must be non-empty")
    elif _length(name) > LABEL_LENGTH:
        found.append(f"name part {too_long(LABEL_LENGTH, 'bytes')}")
    if not _is_qualified(name):
        found.append(f"name part {_QUALIFIED_REFUSAL}")
    return found


def config_key(value: str) -> list[str]:
    """A key in a ConfigMap or a Secret: it becomes a file name, so it may not climb out of its folder."""
    problems = list(_config_key_shape(value))
    if value in (".", ".."):
        problems.append(f"must not be '{value}'")
    elif value.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def env_var_name(value: str) -> list[str]:
    """The name of an environment variable: printable ASCII without the equals sign."""
    if not value:
        return ["environment variable name must be non-empty"]
    if all(" " <= letter <= "~" and letter != "=" for letter in value):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def port_name(value: str) -> list[str]:
    found = [too_long(15)] if _length(value) > 15 else []
    if not re.fullmatch("[-a-z0-9]+", value):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", value):
        found.append("must contain at least one letter (a-z)")
    if "--" in value:
        found.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


class RandomChooser(Protocol):
    """The interface of `random.Random` that name generation uses."""

    def choices(self, population: Sequence[str], *, k: int) -> list[str]: ...


# Without vowels and digits that resemble them, so that no random suffix is a word.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_RANDOM_LENGTH = 5
_HASH_LENGTH = 10


def generate(prefix: str, random: RandomChooser) -> str:
    """A name from metadata.generateName: the prefix, cut to leave room, and five random letters."""
    return prefix[: LABEL_LENGTH - _RANDOM_LENGTH] + "".join(random.choices(_LETTERS, k=_RANDOM_LENGTH))


def hashed(data: bytes) -> str:
    """Letters for a name that follow from `data`: the same for the same data, always."""
    number = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())
    letters = []
    for _ in range(_HASH_LENGTH):
        number, rest = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[rest])
    return "".join(letters)

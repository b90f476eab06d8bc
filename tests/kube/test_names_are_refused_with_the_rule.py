"""Names: the rule a bad one breaks is said in full, and generated ones are always good."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kube import names

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
    "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
    "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
QUALIFIED = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)

CASES: list[tuple[names.Rule, str, list[str]]] = [
    (names.dns_label, "web-0", []),
    (names.dns_label, "Web", [LABEL]),
    (names.dns_label, "web\n", [LABEL]),
    (names.dns_label, "", [LABEL]),
    (names.dns_label, "a.b", ["must not contain dots"]),
    (names.dns_label, "a" * 64, ["must be no more than 63 characters"]),
    (names.dns_subdomain, "a.b-c.d", []),
    (names.dns_subdomain, "a..b", [SUBDOMAIN]),
    (names.dns_subdomain, "a" * 254, ["must be no more than 253 characters"]),
    (names.qualified_name, "example.com/Name_1", []),
    (names.qualified_name, "/a", ["prefix part must be non-empty"]),
    (names.qualified_name, "a/", ["name part must be non-empty", f"name part {QUALIFIED}"]),
    (names.qualified_name, "A/b", [f"prefix part {SUBDOMAIN}"]),
    (
        names.qualified_name,
        "a/b/c",
        [f"a valid label key {QUALIFIED} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"],
    ),
    (names.label_value, "", []),
    (names.label_value, "é" * 32, ["must be no more than 63 bytes", names.label_value("é")[0]]),
    (names.config_key, "a.b", []),
    (names.config_key, "..", ["must not be '..'"]),
    (names.config_key, "..a", ["must not start with '..'"]),
    (names.env_var_name, "my.VAR 1", []),
    (names.env_var_name, "", ["environment variable name must be non-empty"]),
    (
        names.env_var_name,
        "A=B",
        ["a valid environment variable name must consist only of printable ASCII characters other than '='"],
    ),
    (names.port_name, "http", []),
    (names.port_name, "8080", ["must contain at least one letter (a-z)"]),
    (names.port_name, "-a--", ["must not contain consecutive hyphens", "must not begin or end with a hyphen"]),
    (names.port_name, "this-is-too-long", ["must be no more than 15 characters"]),
]


@pytest.mark.parametrize(("rule", "value", "problems"), CASES, ids=[f"{r.__name__}-{v[:20]!r}" for r, v, _ in CASES])
def test_a_name_is_validated_by_its_rule(rule: names.Rule, value: str, problems: list[str]) -> None:
    assert rule(value) == problems


@given(st.from_regex("[a-z]([-a-z0-9]*)", fullmatch=True), st.integers())
def test_a_generated_name_is_a_name_and_begins_as_asked(prefix: str, seed: int) -> None:
    name = names.generate(prefix, Random(seed))
    assert names.dns_label(name) == []
    assert name[:-5] == prefix[:58]

"""Label and field selectors: what they choose, what they are written as, how bad ones are refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kube.errors import ApiError
from shoal.kube.selectors import (
    EVERYTHING,
    NOTHING,
    Comparison,
    FieldSelector,
    LabelSelector,
    Requirement,
    from_label_selector,
    from_labels,
    parse_fields,
    parse_labels,
)

READ = {
    "": (),
    "  ": (),
    "a": (Requirement("a", "exists"),),
    "!a": (Requirement("a", "!"),),
    "! a": (Requirement("a", "!"),),
    "a=b": (Requirement("a", "=", ("b",)),),
    "a = b": (Requirement("a", "=", ("b",)),),
    "a==b": (Requirement("a", "==", ("b",)),),
    "a=": (Requirement("a", "=", ("",)),),
    "a!=b": (Requirement("a", "!=", ("b",)),),
    "a in (c,b)": (Requirement("a", "in", ("b", "c")),),
    "a in ()": (Requirement("a", "in", ("",)),),
    "a in (,b,)": (Requirement("a", "in", ("", "b")),),
    "a notin (in)": (Requirement("a", "notin", ("in",)),),
    "in in (notin)": (Requirement("in", "in", ("notin",)),),
    "a>1": (Requirement("a", ">", ("1",)),),
    "z,a=,x.io/b!=c": (Requirement("a", "=", ("",)), Requirement("x.io/b", "!=", ("c",)), Requirement("z", "exists")),
}


@pytest.mark.parametrize(("text", "expected"), READ.items(), ids=READ)
def test_a_label_selector_reads_as_its_requirements(text: str, expected: tuple[Requirement, ...]) -> None:
    assert parse_labels(text) == LabelSelector(expected)


NAME = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
REFUSED = {
    ",": "found ',', expected: !, identifier, or 'end of string'",
    "=a": "found '=', expected: !, identifier, or 'end of string'",
    "a,": "found '', expected: identifier after ','",
    "a,,b": "found ',', expected: identifier after ','",
    "a b": "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    "a=b c": "found 'c', expected: ',' or 'end of string'",
    "!": "unable to parse requirement: found '', expected: identifier",
    "!a=b": "found '=', expected: ',' or 'end of string'",
    "a in b": "unable to parse requirement: found 'b' expected: '('",
    "a in (": "unable to parse requirement: found '', expected: ',', ')' or identifier",
    "a in (b": "unable to parse requirement: found '', expected: ',' or ')'",
    "a in (b c)": "unable to parse requirement: found 'c', expected: ',' or ')'",
    "a in (b,=)": "unable to parse requirement: found '=', expected: ',', or identifier",
    "a=(": "unable to parse requirement: found '(', expected: identifier",
    "a=$": f'unable to parse requirement: values[0][a]: Invalid value: "$": {VALUE}',
    "@=b": f'unable to parse requirement: <nil>: Invalid value: "@": name part {NAME}',
    "/a": 'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty',
    "a>x": "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, "
    "the value must be an integer",
}


@pytest.mark.parametrize(("text", "why"), REFUSED.items(), ids=REFUSED)
def test_a_bad_label_selector_is_rejected_with_the_message_of_kubernetes(text: str, why: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_labels(text)
    assert (refused.value.code, refused.value.reason, refused.value.message) == (400, "BadRequest", why)


def test_a_selector_field_that_is_absent_chooses_nothing_and_an_empty_one_everything() -> None:
    assert from_label_selector(None) == NOTHING
    assert from_label_selector({}) == EVERYTHING
    assert from_labels({}) == NOTHING
    assert not NOTHING.matches({"a": "b"})
    assert EVERYTHING.matches({})


def test_a_selector_field_reads_as_the_same_requirements_as_a_query() -> None:
    field = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["b", "a"]},
            {"key": "old", "operator": "DoesNotExist"},
            {"key": "zone", "operator": "Exists"},
            {"key": "env", "operator": "NotIn", "values": ["test"]},
        ],
    }
    assert from_label_selector(field) == parse_labels("app=web,tier in (a,b),!old,zone,env notin (test)")


BAD_FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "operator": (
        {"matchExpressions": [{"key": "a", "operator": "Near"}]},
        '"Near" is not a valid label selector operator',
    ),
    "no values": (
        {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]},
        "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
    ),
    "values too many": (
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
        'values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
    ),
}


@pytest.mark.parametrize(("field", "why"), BAD_FIELDS.values(), ids=BAD_FIELDS)
def test_a_bad_selector_field_is_refused(field: dict[str, Any], why: str) -> None:
    with pytest.raises(ApiError) as refused:
        from_label_selector(field)
    assert refused.value.message == why


keys = st.sampled_from(["a", "b", "x.io/c", "in"])
values = st.sampled_from(["", "1", "2", "10", "v", "in"])
requirements = st.one_of(
    st.builds(Requirement, keys, st.sampled_from(["exists", "!"])),
    st.builds(lambda k, o, v: Requirement(k, o, (v,)), keys, st.sampled_from(["=", "==", "!="]), values),
    st.builds(lambda k, o, v: Requirement(k, o, (v,)), keys, st.sampled_from([">", "<"]), st.sampled_from(["1", "5"])),
    st.builds(
        lambda k, o, v: Requirement(k, o, tuple(sorted(v))),
        keys,
        st.sampled_from(["in", "notin"]),
        st.sets(values, min_size=1),
    ),
)
selectors = st.builds(
    lambda found: LabelSelector(tuple(sorted(found, key=lambda r: r.key))), st.lists(requirements, max_size=4)
)
labels = st.dictionaries(keys, values)


def naive(requirement: Requirement, have: dict[str, str]) -> bool:
    there = requirement.key in have
    value = have.get(requirement.key, "")
    match requirement.operator:
        case "exists":
            return there
        case "!":
            return not there
        case "=" | "==" | "in":
            return there and value in requirement.values
        case "!=" | "notin":
            return not there or value not in requirement.values
        case ">":
            return value.isdigit() and int(value) > int(requirement.values[0])
    return value.isdigit() and int(value) < int(requirement.values[0])


@given(selectors)
def test_a_label_selector_is_written_so_that_it_reads_as_itself(selector: LabelSelector) -> None:
    assert parse_labels(str(selector)) == selector


@given(selectors, labels)
def test_a_label_selector_chooses_what_all_requirements_allow(selector: LabelSelector, have: dict[str, str]) -> None:
    assert selector.matches(have) == all(naive(r, have) for r in selector.requirements)


@given(st.text(st.sampled_from("ab=!(),<> in/.\t"), max_size=12))
def test_no_text_breaks_the_label_selector_reader(text: str) -> None:
    try:
        selector = parse_labels(text)
    except ApiError:
        return
    assert parse_labels(str(selector)) == selector


comparisons = st.builds(
    Comparison, st.sampled_from(["metadata.name", "status.phase"]), st.booleans(), st.text("a,=\\!", max_size=4)
)


@given(st.lists(comparisons, max_size=3))
def test_a_field_selector_is_written_so_that_it_reads_as_itself(found: list[Comparison]) -> None:
    selector = FieldSelector(tuple(sorted(found)))
    assert parse_fields(str(selector)) == selector


@given(
    st.lists(comparisons, max_size=3),
    st.dictionaries(st.sampled_from(["metadata.name", "status.phase"]), st.text("a,=")),
)
def test_a_field_selector_reads_absent_fields_as_empty(found: list[Comparison], fields: dict[str, str]) -> None:
    expected = all((fields.get(c.field, "") == c.value) == c.equal for c in found)
    assert FieldSelector(tuple(found)).matches(fields) == expected


def test_a_field_selector_reads_as_its_comparisons() -> None:
    selector = parse_fields(r"status.phase!=Running,,metadata.name==a\,b,spec.x=")
    assert selector == FieldSelector(
        (
            Comparison("metadata.name", True, "a,b"),
            Comparison("spec.x", True, ""),
            Comparison("status.phase", False, "Running"),
        )
    )
    assert selector.keys() == {"metadata.name", "spec.x", "status.phase"}
    assert (selector.exact("metadata.name"), selector.exact("status.phase")) == ("a,b", None)


BAD_TERMS = {
    "metadata.name": "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
    "a=b=c": "invalid field selector: unescaped character in value: 61",
    r"a=\x": r"invalid field selector: invalid escape sequence: \x",
    "a=b\\": "invalid field selector: invalid escape sequence: \\",
}


@pytest.mark.parametrize(("text", "why"), BAD_TERMS.items(), ids=BAD_TERMS)
def test_a_bad_field_selector_is_rejected_with_the_message_of_kubernetes(text: str, why: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_fields(text)
    assert (refused.value.code, refused.value.message) == (400, why)

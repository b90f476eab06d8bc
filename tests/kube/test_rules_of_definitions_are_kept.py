"""Rules in CEL: which definitions are refused for them, which objects break them, and what they cost."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest

from kit.crd_builders import definition, version
from shoal.kube.objects import Obj
from shoal.kube.structural_schema import broken_rules, crd_problems, kinds_of, validation_rules

NUMBER: Obj = {"type": "integer"}
TEXT: Obj = {"type": "string"}


def spec_of(schema: Obj, *rules: Obj | str) -> Obj:
    """A definition whose spec has the schema and the rules."""
    written = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    spec = {**schema, **({"x-kubernetes-validations": written} if written else {})}
    return definition(version({"type": "object", "properties": {"spec": spec}}))


def fields(**properties: Obj) -> Obj:
    return {"type": "object", "properties": properties}


def broken(crd: Obj, spec: Any, old: Any = None) -> list[str]:
    assert crd_problems(crd) == []
    (kind,) = kinds_of(crd)
    before = {"metadata": {"name": "a"}, "spec": old} if old is not None else None
    return [str(cause) for cause in broken_rules(kind, {"metadata": {"name": "a"}, "spec": spec}, before)]


RANGE = fields(low=NUMBER, high=NUMBER)


def test_a_rule_between_fields_is_kept() -> None:
    crd = spec_of(RANGE, {"rule": "self.low <= self.high", "message": "low is above high"})
    assert broken(crd, {"low": 1, "high": 2}) == []
    assert broken(crd, {"low": 3, "high": 2}) == ["spec: Invalid value: low is above high"]


def test_what_cannot_be_evaluated_is_refused() -> None:
    (found,) = broken(spec_of(RANGE, "self.low <= self.high"), {"low": 1})
    assert found.startswith("spec: Invalid value: rule evaluation error: ")
    assert found.endswith('"high" (rule: self.low <= self.high)')


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"rule": "false"}, "spec: Invalid value: failed rule: false"),
        ({"rule": "false", "message": "no"}, "spec: Invalid value: no"),
        ({"rule": "false", "messageExpression": "'low ' + string(self.low)"}, "spec: Invalid value: low 1"),
        ({"rule": "false", "message": "no", "messageExpression": "''"}, "spec: Invalid value: no"),
        ({"rule": "false", "message": "no", "messageExpression": "string(self.high)"}, "spec: Invalid value: no"),
        ({"rule": "false", "message": "no", "reason": "FieldValueForbidden"}, "spec: Forbidden: no"),
        (
            {"rule": "false", "message": "no", "reason": "FieldValueRequired", "fieldPath": ".high"},
            "spec.high: Required value: no",
        ),
    ],
)  # fmt: skip
def test_a_broken_rule_says_what_its_author_wrote(rule: Obj, words: str) -> None:
    assert broken(spec_of(RANGE, rule), {"low": 1}) == [words]


def test_every_broken_rule_is_reported_with_its_path() -> None:
    positive = {**NUMBER, "x-kubernetes-validations": [{"rule": "self > 0"}]}
    crd = spec_of(
        fields(items={"type": "array", "items": positive}, by={"type": "object", "additionalProperties": positive})
    )
    assert broken(crd, {"items": [1, 0, -1], "by": {"a": 0}}) == [
        "spec.items[1]: Invalid value: failed rule: self > 0",
        "spec.items[2]: Invalid value: failed rule: self > 0",
        "spec.by[a]: Invalid value: failed rule: self > 0",
    ]


# --- changes -------------------------------------------------------------------------------------------------------


def test_a_rule_about_a_change_waits_for_one() -> None:
    crd = spec_of(RANGE, "self.low >= oldSelf.low")
    assert broken(crd, {"low": 1}) == []
    assert broken(crd, {"low": 2}, {"low": 1}) == []
    assert broken(crd, {"low": 1}, {"low": 2}) == ["spec: Invalid value: failed rule: self.low >= oldSelf.low"]


def test_an_optional_old_value_is_asked_for_at_creation_too() -> None:
    crd = spec_of(
        RANGE, {"rule": "oldSelf.hasValue() ? self.low >= oldSelf.value().low : self.low == 0", "optionalOldSelf": True}
    )
    assert (broken(crd, {"low": 0}), broken(crd, {"low": 2}, {"low": 1})) == ([], [])
    assert len(broken(crd, {"low": 1})) == len(broken(crd, {"low": 1}, {"low": 2})) == 1


def test_items_of_a_list_with_keys_are_compared_with_themselves() -> None:
    item = {
        **fields(name=TEXT, size=NUMBER),
        "required": ["name"],
        "x-kubernetes-validations": [{"rule": "self.size >= oldSelf.size"}],
    }
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    crd = spec_of(fields(items=keyed))
    old = {"items": [{"name": "a", "size": 1}, {"name": "b", "size": 5}]}
    assert (
        broken(crd, {"items": [{"name": "b", "size": 5}, {"name": "a", "size": 2}, {"name": "c", "size": 0}]}, old)
        == []
    )
    assert broken(crd, {"items": [{"name": "b", "size": 4}]}, old) == [
        "spec.items[0]: Invalid value: failed rule: self.size >= oldSelf.size"
    ]


def test_what_did_not_change_is_not_asked_again() -> None:
    crd = spec_of(fields(a={**RANGE, "x-kubernetes-validations": [{"rule": "self.low < 1"}]}, b=NUMBER))
    assert broken(crd, {"a": {"low": 5}, "b": 2}, {"a": {"low": 5}, "b": 1}) == []
    assert len(broken(crd, {"a": {"low": 6}, "b": 2}, {"a": {"low": 5}, "b": 1})) == 1


# --- values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "value", "rule"),
    [
        (fields(**{"a-b": TEXT}), {"a-b": "x"}, "self.a__dash__b == 'x'"),
        (fields(namespace=TEXT), {"namespace": "x"}, "self.__namespace__ == 'x'"),
        (fields(a={"type": "number"}), {"a": 1}, "self.a * 2.0 == 2.0"),
        (fields(a={"type": "string", "format": "byte"}), {"a": "aGk="}, "self.a == b'hi'"),
        (fields(a={"x-kubernetes-int-or-string": True}), {"a": 3}, "type(self.a) == int"),
        (fields(a={**TEXT, "nullable": True}), {"a": None}, "!has(self.a)"),
        (fields(a={"type": "object", "x-kubernetes-preserve-unknown-fields": True}), {"a": {"b": 1}}, "has(self.a)"),
        (fields(a=TEXT), {"a": "é"}, "self.a.size() == 1"),
        (fields(a={"type": "array", "items": NUMBER}), {"a": [1, 2]}, "self.a.sum() == 3 && self.a.isSorted()"),
        (fields(a=TEXT), {"a": "1Gi"}, "quantity(self.a).isGreaterThan(quantity('1G'))"),
        (fields(a=TEXT), {"a": "https://h:8/p"}, "isURL(self.a) && url(self.a).getPort() == '8'"),
        (fields(a={"type": "array", "items": TEXT}), {"a": ["x", "y"]}, "sets.contains(self.a, ['y'])"),
        (fields(a={"type": "array", "items": TEXT}), {"a": ["x", "y"]}, "self.a.indexOf('y') == 1"),
        (fields(a=TEXT), {}, "self.?a.orValue('none') == 'none'"),
        (fields(a=TEXT), {"a": "cel.bind(a, b)"}, "self.a == 'cel.bind(a, b)' // cel.bind(a, b)"),
        (fields(a=TEXT), {"a": "ab12"}, "self.a.find('[0-9]+') == '12' && self.a.upperAscii().substring(0, 1) == 'A'"),
    ],
)  # fmt: skip
def test_rules_see_what_the_schema_declares(schema: Obj, value: Obj, rule: str) -> None:
    assert broken(spec_of(schema, rule), value) == []


def test_the_root_has_a_name() -> None:
    schema = {
        "type": "object",
        "properties": {"spec": RANGE},
        "x-kubernetes-validations": [{"rule": "self.metadata.name != 'a'"}],
    }
    assert broken(definition(version(schema)), {}) == ["<nil>: Invalid value: failed rule: self.metadata.name != 'a'"]


# --- definitions ---------------------------------------------------------------------------------------------------

OPTIONALS = "optional.of('a').optMap(a, " * 20 + "a + a" + " + a).orValue('')" * 20 + ".size() == 1"
AT = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]"


@pytest.mark.parametrize(
    ("rule", "field", "words"),
    [
        ({"rule": "self.low >"}, "rule", "compilation failed: ERROR: <input>:1:11: Syntax error"),
        ({"rule": "nothing(self)"}, "rule", "undeclared reference to 'nothing'"),
        ({"rule": "self.low + 1"}, "rule", "must evaluate to a bool"),
        ({"rule": "'a' < 1"}, "rule", "no matching overload"),
        ({"rule": "size(self)"}, "rule", "must evaluate to a bool"),
        ({"rule": ""}, "rule", "Required value"),
        ({"rule": "true", "reason": "Nonsense"}, "reason", "Unsupported value"),
        ({"rule": "true", "fieldPath": ".nowhere"}, "fieldPath", "must refer to a declared field"),
        ({"rule": "true", "messageExpression": "1"}, "messageExpression", "must evaluate to a string"),
        ({"rule": "true", "message": "a\nb"}, "message", "line breaks"),
        ({"rule": "true || " * 1300 + "true"}, "rule", "longer than 10000 characters"),
        ({"rule": "(" * 100 + "true" + ")" * 100}, "rule", "recursion limit"),
        ({"rule": "[self.low]" + ".map(a, a + a)" * 20 + ".size() == 1"}, "rule", "too large to evaluate"),
        ({"rule": "true // '\n && " + "[1]" + ".map(a, a + a)" * 20 + ".size() == 1 // '"}, "rule", "too large"),
        ({"rule": "'''a'b''' == 'x' || [1]" + ".map(a, a + a)" * 20 + " == [1] || 'y' == ''"}, "rule", "too large"),
        ({"rule": OPTIONALS}, "rule", "too large to evaluate"),
        ({"rule": "cel.bind(v, 'a', v + v).size() == 2"}, "rule", "cel.bind is not supported"),
        ({"rule": "cel . // comment\n bind(v, 1, v) == 1"}, "rule", "cel.bind is not supported"),
        ({"rule": "cel.bind(v, 1, v) == 1", "optionalOldSelf": True}, "rule", "cel.bind is not supported"),
    ],
)  # fmt: skip
def test_a_definition_is_refused_for_its_rules(rule: Obj, field: str, words: str) -> None:
    found = [str(cause) for cause in crd_problems(spec_of(RANGE, rule))]
    assert len(found) == 1, found
    assert found[0].startswith(f"{AT}.{field}: ")
    assert words in found[0]


def test_a_rule_about_changes_needs_something_to_compare_with() -> None:
    item = {**NUMBER, "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}
    (problem,) = crd_problems(spec_of(fields(a={"type": "array", "items": item})))
    assert "oldSelf cannot be used on the uncorrelatable portion of the schema" in str(problem)


# --- limits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "size"),
    [
        ("self.all(a, self.all(b, a + b >= 0))", 2_000),
        ("self.all(a, self.all(b, self.all(c, a + b + c >= 0)))", 2_000),
        ("self.all(a, self.indexOf(a) >= 0)", 3_000),
        ("self.all(a, a >= 0)", 30_000),
        ("self.all(a, self == self)", 30_000),
        ("self.all(a, self == self" + " && self == self" * 500 + ")", 5_000),
        ("self.all(a, self.indexOf(a) >= 0" + " && self.indexOf(a) >= 0" * 300 + ")", 5_000),
    ],
)
def test_a_costly_rule_is_an_error_of_the_object(rule: str, size: int) -> None:
    started = time.monotonic()
    (found,) = broken(spec_of({"type": "array", "items": NUMBER}, rule), list(range(size)))
    assert found.startswith("spec: ")
    assert time.monotonic() - started < 30


WORDS = "the validation rules of the object need more work than one check may take"


def test_the_rules_of_an_object_share_the_work_of_functions() -> None:
    item = {**TEXT, "x-kubernetes-validations": [{"rule": "self.lowerAscii() == self"}]}
    crd = spec_of(fields(a={"type": "array", "items": item}))
    assert broken(crd, {"a": ["a" * 50_000] * 150}) == []
    assert broken(crd, {"a": ["a" * 50_000] * 300})[-1] == f"spec.a[200]: Forbidden: {WORDS}"


@pytest.mark.parametrize("rules", [1, 2])
def test_the_rules_of_an_object_share_the_time_of_loops(monkeypatch: pytest.MonkeyPatch, rules: int) -> None:
    monkeypatch.setattr(validation_rules, "MAX_STEPS", 10_000_000)
    row = {
        "type": "array",
        "items": NUMBER,
        "x-kubernetes-validations": [{"rule": "self.all(a, self == self)"}] * rules,
    }
    crd = spec_of(fields(a={"type": "array", "items": row}))
    started = time.monotonic()
    (found,) = broken(crd, {"a": [list(range(1_000))] * 1_000})
    assert found == f"spec.a[{9 // rules}]: Forbidden: {WORDS}"
    assert time.monotonic() - started < 5


def test_the_rules_of_an_object_are_evaluated_a_limited_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation_rules, "MAX_EVALUATIONS", 100)
    crd = spec_of(fields(a={"type": "array", "items": {**NUMBER, "x-kubernetes-validations": [{"rule": "self >= 0"}]}}))
    assert broken(crd, {"a": list(range(100))}) == []
    assert broken(crd, {"a": list(range(200))}) == [f"spec.a[100]: Forbidden: {WORDS}"]


def test_a_large_old_value_is_not_compared_either() -> None:
    schema = {"type": "array", "items": NUMBER}
    (found,) = broken(spec_of(schema, "oldSelf.all(a, a in oldSelf)"), [1], list(range(30_000)))
    assert "more than 20000 values" in found


def test_a_made_message_is_bounded_like_its_rule() -> None:
    rule = {"rule": "false", "messageExpression": "string(self.all(a, self == self))"}
    (found,) = broken(spec_of({"type": "array", "items": NUMBER}, rule), list(range(30_000)))
    assert "more than 20000 values" in found


def test_joining_is_bounded_before_it_is_done() -> None:
    rule = "[self, self, self].map(a, a).map(a, [a, a, a]).all(a, a.join().size() > 0)"
    (found,) = broken(spec_of(TEXT, rule), "a" * 500_000)
    assert "a text of more than 1048576 characters" in found


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("'aaa'.findAll('^a')", "['a']"),
        (r"'xfoo foo'.findAll('\\bfoo')", "['foo']"),
        ("'baac'.findAll('a*')", "['', 'aa', '']"),
        ("'é漢'.findAll('x*')", "['', '', '']"),
        ("'é漢é'.findAll('é')", "['é', 'é']"),
        ("'a1b2'.findAll('[0-9]')", "['1', '2']"),
        ("'a1b2'.findAll('[0-9]', 1)", "['1']"),
        ("'a1b2'.findAll('[0-9]', 0)", "[]"),
        ("'a1b2'.findAll('[0-9]', -1)", "['1', '2']"),
        ("''.findAll('a')", "[]"),
        ("''.findAll('a*')", "['']"),
    ],
)
def test_find_all_finds_what_go_finds(call: str, found: str) -> None:
    assert broken(spec_of(RANGE, f"{call} == {found}"), {}) == []


@pytest.mark.parametrize("pattern", ["a", "a(.*b)?"])
def test_the_searches_of_find_all_are_bounded(pattern: str) -> None:
    started = time.monotonic()
    (found,) = broken(spec_of(TEXT, f"self.findAll('{pattern}').size() > 0"), "a" * 200_000)
    assert "called too often" in found
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("function", ["contains", "equivalent", "intersects"])
def test_sets_are_compared_in_time_linear_in_their_sizes(function: str) -> None:
    spec = fields(a={"type": "array", "items": NUMBER}, b={"type": "array", "items": NUMBER})
    rule = f"sets.{function}(self.a, self.b)"
    started = time.monotonic()
    found = broken(spec_of(spec, rule), {"a": list(range(16_000)), "b": list(range(16_000, 32_000))})
    assert found == [f"spec: Invalid value: failed rule: {rule}"]
    assert time.monotonic() - started < 1


@pytest.mark.parametrize(
    "rule",
    [
        "sets.contains([1, 2, 2.0], [2.0, 1, 1])",
        "!sets.contains([dyn(1)], [dyn(true)])",
        "!sets.contains([dyn(1)], [dyn('1')])",
        "sets.contains([1], [])",
        "sets.equivalent([{'a': [1], 'b': 2}], [{'b': 2, 'a': [1]}])",
        "!sets.equivalent([1, 2], [1])",
        "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2]) && !sets.intersects([], [])",
    ],
)
def test_sets_hold_each_value_once(rule: str) -> None:
    assert broken(spec_of(RANGE, rule), {}) == []


def test_nulls_in_rules_do_not_wear_out() -> None:
    """The evaluator drops references to None that it does not own, which ends an interpreter before 3.12."""
    code = (
        "from shoal.kube.cel.program import Program\n"
        "program = Program('[null, null, null].indexOf(1) == -1 && dyn(null) == null')\n"
        "null = Program('dyn(null)')\n"
        "for _ in range(20_000):\n"
        "    assert program.evaluate(program.bind(None)) is True\n"
        "    assert null.evaluate(null.bind(None)) is None\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_evaluator_is_loaded_when_a_rule_is() -> None:
    code = (
        "import sys, shoal.dialects, shoal.cluster.apimachinery\n"
        "assert [name for name in sys.modules if name.startswith('cel_')] == []"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)

"""The rules of a schema (x-kubernetes-validations): whether they are valid, and whether an object satisfies them.

A rule sees what its place declares, as in Kubernetes: fields that no schema declares do not exist for it, null counts
as absent, and names that are no CEL identifiers are escaped. Values of the formats date-time and duration are strings
here, where Kubernetes makes timestamps and durations of them.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.kube.errors import Cause, bounded
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj
from shoal.kube.structural_schema.schema_validation import NO_FIELD
from shoal.kube.validation.errors import forbidden, invalid, not_supported, required

if TYPE_CHECKING:  # the evaluator is loaded when a rule is
    from shoal.kube.cel.program import Program

RULES = "x-kubernetes-validations"
# For one object:
MAX_STEPS = 10**9  # that the evaluations can take, see `program.Budget`
MAX_FUNCTION_WORK = 10_000_000  # elements and characters that functions are given
MAX_EVALUATIONS = 100_000
# After such mistakes in its schema, an API server does not apply rules to an object: they could read what is not there.
BLOCKING = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
_PREFIXES = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueRequired": "Required value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueDuplicate": "Duplicate value",
}
_LONGEST_MESSAGE = 5 * 1024
_KEYWORDS = frozenset((
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
))  # fmt: skip
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_METADATA: Obj = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("name", "generateName")},
}
_TYPE_META: Obj = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _METADATA}
_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled rule."""

    text: str
    program: Program
    message: str
    message_program: Program | None
    reason: str
    path: str  # of the field it is reported at, below its place
    needs_old: bool

    @property
    def is_linear(self) -> bool:
        return self.program.is_linear and (self.message_program is None or self.message_program.is_linear)


@dataclass(frozen=True, slots=True)
class RuleTree:
    """A place of a schema with rules at it or below it."""

    rules: tuple[Rule, ...] = ()
    all_of: Program | None = None  # of all rules about a value alone, for objects that break none
    fields: dict[str, RuleTree] = field(default_factory=dict)
    items: RuleTree | None = None
    values: RuleTree | None = None
    list_keys: tuple[str, ...] = ()  # of a list whose items are identified by keys

    def is_empty(self) -> bool:
        return not (self.rules or self.fields or self.items or self.values)


# --- reading a schema ----------------------------------------------------------------------------------------------


def rule_problems(openapi: Obj, path: str) -> list[Cause]:
    """What is wrong with the rules of a schema, as an API server that loads it finds."""
    problems: list[Cause] = []
    _read(openapi, path, problems, correlates=True, is_resource=True)
    return problems


def rules_of(openapi: Obj) -> RuleTree:
    """The rules of a schema; those that cannot be compiled are left out, because no server accepted them."""
    return _read(openapi, "", [], correlates=True, is_resource=True)


def _read(props: Obj, path: str, problems: list[Cause], *, correlates: bool, is_resource: bool = False) -> RuleTree:
    """`correlates`: whether an item here has a counterpart in the old object."""
    rules = [
        _rule(each, props, f"{path}.{RULES}[{index}]", problems, correlates=correlates, is_resource=is_resource)
        for index, each in enumerate(props.get(RULES) or ())
    ]
    below = correlates and props.get("x-kubernetes-map-type") != "atomic"
    fields = {
        name: _read(child, f"{path}.properties[{name}]", problems, correlates=below)
        for name, child in (props.get("properties") or {}).items()
        if not (is_resource and name in _TYPE_META)
    }
    items, values = props.get("items"), props.get("additionalProperties")
    keyed = props.get("x-kubernetes-list-type") == "map"
    item_tree = value_tree = None
    if isinstance(items, dict):
        item_tree = _read(items, f"{path}.items", problems, correlates=correlates and keyed)
    if isinstance(values, dict):
        value_tree = _read(values, f"{path}.additionalProperties", problems, correlates=below)
    kept = tuple(rule for rule in rules if rule is not None)
    fields = {name: tree for name, tree in fields.items() if not tree.is_empty()}
    return RuleTree(
        kept,
        _all_of(kept, _type_of(props, is_resource=is_resource)),
        fields,
        None if item_tree is None or item_tree.is_empty() else item_tree,
        None if value_tree is None or value_tree.is_empty() else value_tree,
        tuple(props.get("x-kubernetes-list-map-keys") or ()) if keyed else (),
    )


def _rule(
    written: Obj, props: Obj, path: str, problems: list[Cause], *, correlates: bool, is_resource: bool
) -> Rule | None:
    from shoal.kube.cel.program import InvalidExpression, compile_expression

    text = written.get("rule") or ""
    count = len(problems)
    problems += _written_problems(written, props, path)
    if len(problems) > count:
        return None
    optional_old = bool(written.get("optionalOldSelf"))
    compile_ = partial(
        compile_expression, self_type=_type_of(props, is_resource=is_resource), optional_old=optional_old
    )
    program = message_program = None
    try:
        program = compile_(text)
        if program.type_name not in ("BOOL", "DYN"):
            problems.append(invalid(f"{path}.rule", text, "cel expression must evaluate to a bool"))
        if (program.uses_old or optional_old) and not correlates:
            what = "oldSelf cannot be used on the uncorrelatable portion of the schema"
            problems.append(invalid(f"{path}.rule", text, what))
    except InvalidExpression as problem:
        problems.append(invalid(f"{path}.rule", text, f"compilation failed: {problem}"))
    if expression := written.get("messageExpression"):
        message_program = _message_program(expression, compile_, f"{path}.messageExpression", problems)
    if program is None or len(problems) > count:
        return None
    needs_old = program.uses_old and not optional_old
    message = written.get("message") or f"failed rule: {text.strip()}"
    reason, field_path = written.get("reason") or "FieldValueInvalid", written.get("fieldPath") or ""
    return Rule(text, program, message, message_program, reason, field_path, needs_old)


def _written_problems(written: Obj, props: Obj, path: str) -> Iterator[Cause]:
    """What is wrong beside the expressions."""
    message, reason, field_path = written.get("message") or "", written.get("reason"), written.get("fieldPath")
    if not (written.get("rule") or "").strip():
        yield required(f"{path}.rule", "rule is not specified")
    if message and not message.strip():
        yield invalid(f"{path}.message", message, "message must be non-empty if specified")
    if "\n" in message:
        yield invalid(f"{path}.message", message, "message must not contain line breaks")
    if reason is not None and reason not in _PREFIXES:
        yield not_supported(f"{path}.reason", reason, sorted(_PREFIXES))
    if field_path and not _is_declared(props, field_path):
        yield invalid(f"{path}.fieldPath", field_path, "must refer to a declared field of the object")


def _message_program(
    expression: str, compile_: Callable[[str], Program], path: str, problems: list[Cause]
) -> Program | None:
    from shoal.kube.cel.program import InvalidExpression

    try:
        program = compile_(expression)
    except InvalidExpression as problem:
        problems.append(invalid(path, expression, f"messageExpression compilation failed: {problem}"))
        return None
    if program.type_name not in ("STRING", "DYN"):
        problems.append(invalid(path, expression, "messageExpression must evaluate to a string"))
    return program


def _all_of(rules: Sequence[Rule], self_type: str) -> Program | None:
    from shoal.kube.cel.program import InvalidExpression, compile_expression

    texts = [f"({rule.text}\n)" for rule in rules if not rule.program.uses_old]
    try:
        return compile_expression(" && ".join(texts), self_type) if len(texts) > 1 else None
    except InvalidExpression:  # too long, or too deep, together
        return None


def _is_declared(props: Obj, path: str) -> bool:
    """Whether a fieldPath such as .a.b['c.d'] leads to a declared field."""
    steps = re.findall(r"\.([^.\[\]]+)|\['([^']+)'\]", path)
    if "".join(f".{name}" if name else f"['{quoted}']" for name, quoted in steps) != path:
        return False
    for name, quoted in steps:
        more = props.get("additionalProperties")
        child = (props.get("properties") or {}).get(name or quoted) or (more if isinstance(more, dict) else None)
        if child is None:
            return False
        props = child
    return True


def _type_of(props: Obj, *, is_resource: bool = False) -> str:
    """The type that `self` has for the compiler; objects with fields are maps whose values may be anything."""
    if props.get("x-kubernetes-int-or-string") or props.get("nullable"):
        return "dyn"
    kind, more = props.get("type"), props.get("additionalProperties")
    if kind == "array":
        items = props.get("items")
        return f"list<{_type_of(items) if isinstance(items, dict) else 'dyn'}>"
    if kind == "object" or is_resource:
        return f"map<string, {_type_of(more) if isinstance(more, dict) else 'dyn'}>"
    if kind == "string":
        return "bytes" if props.get("format") == "byte" else "string"
    return {"integer": "int", "number": "double", "boolean": "bool"}.get(str(kind), "dyn")


# --- values --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _escaped(name: str) -> str:
    if name in _KEYWORDS:
        return f"__{name}__"
    return re.sub(r"__|[.\-/]", lambda found: _ESCAPES[found[0]], name)


def _value(props: Obj, value: Any, *, is_resource: bool = False) -> Any:
    """What a rule sees of a value. One of another type than is declared stays as it is: rules fail on it."""
    if isinstance(value, dict):
        fields, more = props.get("properties") or {}, props.get("additionalProperties")
        if is_resource or props.get("x-kubernetes-embedded-resource"):
            fields = {**fields, **_TYPE_META}
        if isinstance(more, dict):
            return {name: _value(more, child) for name, child in value.items() if child is not None}
        return {
            _escaped(name): _value(fields[name], child)
            for name, child in value.items()
            if child is not None and name in fields
        }
    if isinstance(value, list):
        items = props.get("items")
        return [_value(items, child) for child in value] if isinstance(items, dict) else value
    if value.__class__ is int and props.get("type") == "number":
        return float(value)
    if value.__class__ is str and props.get("format") == "byte":
        try:
            return base64.b64decode(value)
        except ValueError:
            return value
    return value


def _size(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_size, value.values()))
    if isinstance(value, list):
        return 1 + sum(map(_size, value))
    return 1 + len(value) // 100 if isinstance(value, str | bytes) else 1


# --- checking an object --------------------------------------------------------------------------------------------

_MOST_KNOWN = 256
# By identity, because a program and the server may know one kind by two schemas; with the digest of the schema.
_known: dict[int, tuple[Obj, RuleTree, bytes]] = {}
# By digest, because one object is warned about, admitted, stored and read one after the other.
_verdicts: dict[bytes, list[Cause]] = {}


def broken_rules(kind: Kind, obj: Obj, old: Obj | None = None) -> list[Cause]:
    """The rules of its definition that an object breaks; with `old`, only where something changed.

    In Kubernetes a rule about a change sees values that did not change, too. Here a write of the status costs nothing.
    """
    openapi = kind.openapi or {}
    known = _known.get(id(openapi))
    if known is None or known[0] is not openapi:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _known[id(openapi)] = (
            openapi,
            rules_of(openapi),
            blake2b(msgspec.json.encode(openapi), digest_size=16).digest(),
        )
    _, tree, schema_digest = known
    if tree.is_empty():
        return []
    if not tree.rules:  # then no rule sees any other field, such as the status
        before_it = old or {}
        changed = [name for name in tree.fields if name in obj and before_it.get(name, _MISSING) != obj[name]]
        if not changed:
            return []
        obj = {name: obj[name] for name in changed}
        old = None if old is None else {name: old[name] for name in changed if name in old}
    digest = blake2b(schema_digest + msgspec.json.encode((obj, old)), digest_size=16).digest()
    found = _verdicts.get(digest)
    if found is None:
        if len(_verdicts) >= _MOST_KNOWN:
            _verdicts.clear()
        value = _value(openapi, obj, is_resource=True)
        before = _MISSING if old is None else _value(openapi, old, is_resource=True)
        found = _verdicts[digest] = bounded(_Check().run(tree, value, before, ""))
    return list(found)


class _Check:
    """One walk over an object."""

    def __init__(self) -> None:
        from shoal.kube.cel.program import Budget

        self._budget = Budget(MAX_STEPS, MAX_FUNCTION_WORK, MAX_EVALUATIONS)
        self._is_over = False

    def run(self, tree: RuleTree, value: Any, old: Any, path: str) -> Iterator[Cause]:
        if old is not _MISSING and old == value:
            return
        rules = [rule for rule in tree.rules if not (rule.needs_old and old is _MISSING)]
        if rules:
            yield from self._broken(tree, rules, value, old, path)
        if isinstance(value, dict):
            was = old if isinstance(old, dict) else {}
            for name, below in tree.fields.items():
                key = _escaped(name)
                if key in value:
                    yield from self.run(below, value[key], was.get(key, _MISSING), f"{path}.{name}" if path else name)
            if tree.values is not None:
                for name, child in value.items():
                    yield from self.run(tree.values, child, was.get(name, _MISSING), f"{path}[{name}]")
        elif isinstance(value, list) and tree.items is not None:
            is_compared = tree.list_keys and isinstance(old, list)
            before = {_key(tree, item): item for item in old} if is_compared else {}
            for index, child in enumerate(value):
                counterpart = before.get(_key(tree, child), _MISSING) if before else _MISSING
                yield from self.run(tree.items, child, counterpart, f"{path}[{index}]")

    def _broken(self, tree: RuleTree, rules: list[Rule], value: Any, old: Any, path: str) -> Iterator[Cause]:
        from shoal.kube.cel.program import MAX_VALUES, BudgetSpent

        if self._is_over:
            return
        size = max(_size(value), _size(old))
        if size > MAX_VALUES and not all(rule.is_linear for rule in rules):
            yield forbidden(path, f"more than {MAX_VALUES} values, and a validation rule compares them with each other")
            return
        try:
            yield from self._evaluated(tree, rules, value, old, path, size)
        except BudgetSpent:
            self._is_over = True
            yield forbidden(path, "the validation rules of the object need more work than one check may take")

    def _evaluated(
        self, tree: RuleTree, rules: list[Rule], value: Any, old: Any, path: str, size: int
    ) -> Iterator[Cause]:
        from shoal.kube.cel.program import EvaluationError

        has_old = old is not _MISSING
        variables = rules[0].program.bind(value, old if has_old else None, has_old=has_old)
        if tree.all_of is not None:
            try:
                steps = sum(rule.program.steps(size) for rule in rules if not rule.program.uses_old)
                if tree.all_of.evaluate(variables, self._budget, steps) is True:
                    rules = [rule for rule in rules if rule.program.uses_old]
            except EvaluationError:
                pass  # reported below, with the rule
        for rule in rules:
            try:
                if rule.program.evaluate(variables, self._budget, rule.program.steps(size)) is True:
                    continue
                message = rule.message
            except EvaluationError as problem:
                what = f"rule evaluation error: {problem} (rule: {rule.text})"
                yield Cause("FieldValueInvalid", f"Invalid value: {what}", path or NO_FIELD)
                continue
            if rule.message_program is not None:
                try:
                    steps = rule.message_program.steps(size)
                    made = rule.message_program.evaluate(variables, self._budget, steps)
                except EvaluationError:
                    made = None  # the message of the rule serves
                if isinstance(made, str) and made.strip() and "\n" not in made and len(made) <= _LONGEST_MESSAGE:
                    message = made
            yield Cause(rule.reason, f"{_PREFIXES[rule.reason]}: {message}", _joined(path, rule.path))


def _key(tree: RuleTree, item: Any) -> Any:
    return tuple(str(item.get(_escaped(name))) for name in tree.list_keys) if isinstance(item, dict) else None


def _joined(path: str, below: str) -> str:
    below = re.sub(r"\['([^']+)'\]", r"[\1]", below)
    return f"{path}{below}" if path else below.removeprefix(".") or NO_FIELD

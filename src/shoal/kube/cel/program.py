"""Expressions: compiled against the types of their variables, and evaluated within limits.

An expression that cannot be compiled raises `InvalidExpression`, one that cannot be evaluated `EvaluationError`.
The parser bounds the depth of an expression, the evaluator the iterations of all its loops (9,999), and this module its
length, what it can grow its values to, and the work of the functions it calls. The evaluator counts nothing else and
cannot be interrupted: a loop that compares large values in each of its iterations may take seconds. Therefore its
caller asks with `steps` for the most that an evaluation can take, and a `Budget` refuses what is too much for it.
"""

from __future__ import annotations

import ctypes
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_math, ext_optional

from shoal.kube.cel.functions import CALLS, NAMES, declarations

LONGEST_EXPRESSION = 10_000  # characters
MAX_VALUES = 20_000  # in a value that an expression with nested or several loops is applied to
MAX_ITERATIONS = 9_999  # of the evaluator
_MAX_GROWTH = 10_000
_FUNCTION_WORK = 1_000_000  # elements and characters that the functions of one evaluation are given

# Comments and string literals, as the lexer of the language finds them. Of one without an end the rest is part.
_OPAQUE = re.compile(
    r"""//[^\n]*
    | (?<!\w)[bB]?[rR](?: '''.*?(?:'''|\Z) | \"{3}.*?(?:\"{3}|\Z) | '[^'\n\r]*'? | "[^"\n\r]*"? )
    | '''(?:[^\\]|\\.)*?(?:'''|\Z) | \"{3}(?:[^\\]|\\.)*?(?:\"{3}|\Z)
    | '(?:[^'\\\n\r]|\\.)*'? | "(?:[^"\\\n\r]|\\.)*"?
    """,
    re.DOTALL | re.VERBOSE,
)
# Macros that evaluate an expression for each item. Those of optional values have one item, and can grow it as well.
_LOOP = re.compile(
    r"\.\s*(?:all|exists|exists_one|existsOne|map|filter|transformList|transformMap|optMap|optFlatMap)\s*\("
)
_STEPS_OF_ITERATION = 6
# What can read all parts of a value at once.
_COMPARISON = re.compile(rf"==|!=|\bin\b|\b(?:{'|'.join(map(re.escape, sorted(NAMES)))})\s*\(")
_BINDING = re.compile(r"\bcel\s*\.\s*bind\s*\(")

if sys.version_info < (3, 12):
    # cel-expr-python 0.1 returns None without a new reference wherever it converts a null, and drops one later. None is
    # immortal from Python 3.12 on. Before, a rule could free it and end the process.
    ctypes.c_ssize_t.from_address(id(None)).value += 2**40


class InvalidExpression(ValueError):
    """An expression that cannot be compiled; the message shows the place."""


class EvaluationError(ValueError):
    """An expression that has no value for these variables."""


class BudgetSpent(Exception):
    """No further evaluation is made."""


@dataclass(slots=True)
class Budget:
    """What several evaluations may take together."""

    steps: int  # of about 50 ns, 150 where functions are given lists; the most that evaluations can take
    function_work: int  # elements and characters that functions are given
    evaluations: int

    def charge(self, steps: int) -> None:
        self.steps -= steps
        self.evaluations -= 1
        if self.steps < 0 or self.evaluations < 0 or self.function_work <= 0:
            raise BudgetSpent


class Program:
    """A compiled expression over `self` and `oldSelf`, which have the type `self_type`, for example list<string>."""

    __slots__ = ("_cost", "_environment", "_expression", "is_linear", "type_name", "uses_old")

    def __init__(self, text: str, self_type: str = "dyn", *, optional_old: bool = False) -> None:
        if len(text) > LONGEST_EXPRESSION:
            raise InvalidExpression(f"the expression is longer than {LONGEST_EXPRESSION} characters")
        code = _OPAQUE.sub(lambda found: " " if found[0].startswith("//") else "''", text)
        _check_growth(code)
        self.uses_old = re.search(r"\boldSelf\b", code) is not None
        self.is_linear = _is_linear(code)
        self._cost = _cost(code)
        if optional_old:
            text = f"cel.bind(oldSelf, hasOld ? optional.of(old) : optional.none(), {text}\n)"
        self._environment = _environment(self_type)
        try:
            self._expression = self._environment.compile(text)
        except RuntimeError as problem:
            message = str(problem).removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
            raise InvalidExpression(message) from None
        self.type_name: str = self._expression.return_type().name()

    def bind(self, value: Any, old: Any = None, *, has_old: bool = False) -> cel.Activation:
        """The variables, for all programs of one `self_type`: converting them takes longer than most expressions."""
        variables = {"self": value, "hasOld": has_old}
        return self._environment.Activation(variables | {"oldSelf": old, "old": old} if has_old else variables)

    def steps(self, size: int) -> int:
        """The most that an evaluation takes where the values have `size` parts."""
        loops, depth, own_items, comparisons = self._cost
        if self.is_linear:
            return _STEPS_OF_ITERATION * (1 + loops * (size + own_items)) + comparisons * size
        iterations: int = min(loops * (size + own_items) ** depth, MAX_ITERATIONS)
        return iterations * (_STEPS_OF_ITERATION + comparisons * size)

    def evaluate(self, variables: cel.Activation, budget: Budget | None = None, steps: int = 0) -> Any:
        """Its value, plain; raises EvaluationError, and BudgetSpent before it would take too much."""
        if budget is not None:
            budget.charge(steps)
        work = CALLS.left = _FUNCTION_WORK if budget is None else min(_FUNCTION_WORK, budget.function_work)
        try:
            result = self._expression.eval(variables)
        except RuntimeError as problem:
            message = str(problem)
            if "Iteration budget exceeded" in message:
                message = "its loops have more than 9,999 iterations"
            raise EvaluationError(message) from None
        finally:
            if budget is not None:
                budget.function_work -= min(work - CALLS.left, work)
        type_ = result.type()
        if type_ == cel.Type.ERROR:
            raise EvaluationError(str(result.value()))
        return None if type_ == cel.Type.NULL else result.plain_value()


@lru_cache(maxsize=1024)  # a definition is checked, and then its kind is served
def compile_expression(text: str, self_type: str = "dyn", *, optional_old: bool = False) -> Program:
    return Program(text, self_type, optional_old=optional_old)


def _is_linear(code: str) -> bool:
    """Whether it visits each part of a value once: no loop, or one that reads nothing but its own items."""
    _, *more = _LOOP.split(code)
    return not more or (len(more) == 1 and re.search(r"\b(?:self|oldSelf)\b", more[0]) is None)


def _cost(code: str) -> tuple[int, int, int, int]:
    """Its loops, how deep they are nested, the items of lists it makes itself, and its comparisons."""
    depth = 0
    open_calls: list[bool] = []
    for found in re.finditer(rf"({_LOOP.pattern})|[(\[{{]|[)\]}}]", code):
        if found[0] in (")", "]", "}"):
            del open_calls[-1:]
        else:
            open_calls.append(found[1] is not None)
            depth = max(depth, sum(open_calls))
    own_items = MAX_ITERATIONS if re.search(r"\b(?:split|findAll)\s*\(", code) else code.count(",")
    return len(_LOOP.findall(code)), depth, own_items, len(_COMPARISON.findall(code))


def _check_growth(code: str) -> None:
    if _BINDING.search(code):  # each could double a value, and Kubernetes does not have it
        raise InvalidExpression("cel.bind is not supported in rules")
    loops = len(_LOOP.findall(code))
    # Each of nested or chained loops can multiply a value by what its body joins with + or lists with commas.
    joined = max(code.count("+") + code.count(",") - loops, 0)
    if loops > 1 and (1 + joined / loops) ** loops > _MAX_GROWTH:
        raise InvalidExpression("the expression could build values too large to evaluate; use fewer loops")


@lru_cache(maxsize=256)
def _environment(self_type: str) -> cel.Env:
    type_ = cel.Type(self_type)
    variables = {"self": type_, "oldSelf": type_, "old": type_, "hasOld": cel.Type.BOOL}
    extensions = [ext_optional.ExtOptional(), ext_bindings.ExtBindings(), ext_math.ExtMath()]
    return cel.NewEnv(variables=variables, extensions=extensions, functions=declarations())

"""The functions that Kubernetes adds to CEL: strings, lists, sets, regular expressions, quantities, URLs.

Quantities and URLs have types of their own in Kubernetes. Here they are maps with one key that no object has by chance;
a quantity is stored in its canonical form, so that equal amounts are equal values.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from cel_expr_python import cel

from shoal.kube.quantity import BadQuantity, Quantity
from shoal.kube.re2 import compiled

_ANY, _BOOL, _INT, _TEXT = cel.Type.DYN, cel.Type.BOOL, cel.Type.INT, cel.Type.STRING
_LIST, _TEXTS = cel.Type.List(_ANY), cel.Type.List(_TEXT)
_QUANTITY = _URL = cel.Type.Map(_TEXT, _TEXT)
_ITEMS = (_TEXT, _INT, cel.Type.DOUBLE, _BOOL)  # an overload of its own each: no argument is passed as dyn
_SEARCHED_AT_ONCE = 64  # characters, in the time of one call; each match of findAll may have to read the whole text
_LONGEST_TEXT = 2**20  # that `replace`, `join` or `quote` may build


def _quantity(text: str) -> dict[str, str]:
    return {"quantity": str(Quantity(Quantity.parse(text).nanos))}


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except BadQuantity:
        return False
    return True


def _nanos(quantity: dict[str, str]) -> int:
    return Quantity.parse(quantity["quantity"]).nanos


def _is_whole(quantity: dict[str, str]) -> bool:
    return _nanos(quantity) % 10**9 == 0 and -(2**63) <= _nanos(quantity) // 10**9 < 2**63


def _as_integer(quantity: dict[str, str]) -> int:
    if not _is_whole(quantity):
        raise ValueError("cannot convert value to integer")
    return _nanos(quantity) // 10**9


def _sum_of(quantity: dict[str, str], other: dict[str, str] | int, sign: int = 1) -> dict[str, str]:
    more = other * 10**9 if isinstance(other, int) else _nanos(other)
    return {"quantity": str(Quantity(_nanos(quantity) + sign * more))}


def _compared(left: int, right: int) -> int:
    return (left > right) - (left < right)


def _url(text: str) -> dict[str, str]:
    parts = urlsplit(text)
    if not (parts.scheme and parts.netloc) and not text.startswith("/"):
        raise ValueError(f"URL parse error: {text!r} is neither absolute nor a path")
    return {"url": text}


def _is_url(text: str) -> bool:
    try:
        return bool(_url(text))
    except ValueError:
        return False


def _part_of_url(part: Callable[[SplitResult], Any]) -> Callable[[dict[str, str]], Any]:
    return lambda url: part(urlsplit(url["url"]))


def _join(texts: Sequence[str], by: str = "") -> str:
    if sum(map(len, texts)) + len(texts) * len(by) > _LONGEST_TEXT:
        raise ValueError(f"a text of more than {_LONGEST_TEXT} characters")
    return by.join(texts)


def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    if max(len(text), 1) * max(len(new), 1) > _LONGEST_TEXT:
        raise ValueError(f"a text of more than {_LONGEST_TEXT} characters")
    return text.replace(old, new, most)


def _index(items: Sequence[Any], item: Any) -> int:
    return items.index(item) if item in items else -1


def _last_index(items: Sequence[Any], item: Any) -> int:
    return len(items) - 1 - _index(items[::-1], item) if item in items else -1


def _members(items: Sequence[Any]) -> set[str]:
    return set(map(_canonical, items))


def _canonical(value: Any) -> str:
    """The same for equal values. A text, because the hashes of numbers and tuples can be made to collide."""
    if isinstance(value, dict):
        return "{" + ",".join(sorted(f"{_canonical(name)}:{_canonical(child)}" for name, child in value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return repr(value)


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= start <= stop <= len(text):
        raise ValueError(f"index out of range: {start}, {stop}")
    return text[start:stop]


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise ValueError(f"index out of range: {index}")
    return text[index : index + 1]


def _find_all(text: str, pattern: str, most: int | None = None) -> list[str]:
    found: list[str] = []
    for match in islice(compiled(pattern).find_all(text), most if most is None or most >= 0 else None):
        CALLS.charge(1 + len(text) // _SEARCHED_AT_ONCE)
        found.append(match)
    return found


# name: (receiver and other parameters, result, what it does); the first parameter is the receiver of a method
_Overload = tuple[list[Any], Any, Callable[..., Any]]
_METHODS: dict[str, list[_Overload]] = {
    # strings
    "charAt": [([_TEXT, _INT], _TEXT, _char_at)],
    "lowerAscii": [([_TEXT], _TEXT, lambda text: "".join(c.lower() if c.isascii() else c for c in text))],
    "upperAscii": [([_TEXT], _TEXT, lambda text: "".join(c.upper() if c.isascii() else c for c in text))],
    "trim": [([_TEXT], _TEXT, str.strip)],
    "replace": [([_TEXT, _TEXT, _TEXT], _TEXT, _replace), ([_TEXT, _TEXT, _TEXT, _INT], _TEXT, _replace)],
    "split": [
        ([_TEXT, _TEXT], _TEXTS, lambda text, by: text.split(by) if by else list(text)),
        ([_TEXT, _TEXT, _INT], _TEXTS, lambda text, by, most: text.split(by, most - 1) if most else []),
    ],
    "substring": [([_TEXT, _INT], _TEXT, _substring), ([_TEXT, _INT, _INT], _TEXT, _substring)],
    "join": [([_TEXTS], _TEXT, _join), ([_TEXTS, _TEXT], _TEXT, _join)],
    # strings and lists
    "indexOf": [([_TEXT, _TEXT], _INT, str.find), *(([_LIST, item], _INT, _index) for item in _ITEMS)],
    "lastIndexOf": [([_TEXT, _TEXT], _INT, str.rfind), *(([_LIST, item], _INT, _last_index) for item in _ITEMS)],
    # lists
    "isSorted": [([_LIST], _BOOL, lambda items: all(a <= b for a, b in pairwise(items)))],
    "sum": [([_LIST], _ANY, sum)],
    "min": [([_LIST], _ANY, min)],
    "max": [([_LIST], _ANY, max)],
    # regular expressions
    "find": [([_TEXT, _TEXT], _TEXT, lambda text, pattern: compiled(pattern).search(text) or "")],
    "findAll": [([_TEXT, _TEXT], _TEXTS, _find_all), ([_TEXT, _TEXT, _INT], _TEXTS, _find_all)],
    # quantities
    "isInteger": [([_QUANTITY], _BOOL, _is_whole)],
    "asInteger": [([_QUANTITY], _INT, _as_integer)],
    "asApproximateFloat": [([_QUANTITY], cel.Type.DOUBLE, lambda quantity: _nanos(quantity) / 1e9)],
    "sign": [([_QUANTITY], _INT, lambda quantity: _compared(_nanos(quantity), 0))],
    "add": [([_QUANTITY, _QUANTITY], _QUANTITY, _sum_of), ([_QUANTITY, _INT], _QUANTITY, _sum_of)],
    "sub": [
        ([_QUANTITY, _QUANTITY], _QUANTITY, lambda left, right: _sum_of(left, right, -1)),
        ([_QUANTITY, _INT], _QUANTITY, lambda left, right: _sum_of(left, right, -1)),
    ],
    "compareTo": [([_QUANTITY, _QUANTITY], _INT, lambda left, right: _compared(_nanos(left), _nanos(right)))],
    "isGreaterThan": [([_QUANTITY, _QUANTITY], _BOOL, lambda left, right: _nanos(left) > _nanos(right))],
    "isLessThan": [([_QUANTITY, _QUANTITY], _BOOL, lambda left, right: _nanos(left) < _nanos(right))],
    # URLs
    "getScheme": [([_URL], _TEXT, _part_of_url(lambda parts: parts.scheme))],
    "getHost": [([_URL], _TEXT, _part_of_url(lambda parts: parts.netloc.rpartition("@")[2]))],
    "getHostname": [([_URL], _TEXT, _part_of_url(lambda parts: parts.hostname or ""))],
    "getPort": [([_URL], _TEXT, _part_of_url(lambda parts: str(parts.port or "")))],
    "getEscapedPath": [([_URL], _TEXT, _part_of_url(lambda parts: parts.path))],
    "getQuery": [([_URL], cel.Type.Map(_TEXT, _TEXTS), _part_of_url(lambda parts: parse_qs(parts.query)))],
}
_FUNCTIONS: dict[str, list[_Overload]] = {
    "quantity": [([_TEXT], _QUANTITY, _quantity)],
    "isQuantity": [([_TEXT], _BOOL, _is_quantity)],
    "url": [([_TEXT], _URL, _url)],
    "isURL": [([_TEXT], _BOOL, _is_url)],
    "sets.contains": [([_LIST, _LIST], _BOOL, lambda items, others: _members(items) >= _members(others))],
    "sets.intersects": [
        ([_LIST, _LIST], _BOOL, lambda items, others: not _members(items).isdisjoint(_members(others)))
    ],
    "sets.equivalent": [([_LIST, _LIST], _BOOL, lambda items, others: _members(items) == _members(others))],
}


class _Calls(threading.local):  # webhooks review in threads
    """Counts what functions in Python are given while one expression is evaluated.

    The evaluator bounds its own loops, but not the work of a function that is called in one.
    """

    left = 0

    def counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.charge(1)
            self.charge(sum(len(each) if isinstance(each, str) else _parts(each) for each in arguments))
            return function(*arguments)

        return call

    def charge(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise ValueError("the functions of the rule are called too often, or with too much")


def _parts(value: Any) -> int:
    if isinstance(value, str):
        return 1 + len(value) // 64  # texts within lists are only compared and copied
    if isinstance(value, dict):
        return 1 + sum(map(_parts, value.values()))
    return 1 + sum(map(_parts, value)) if isinstance(value, list) else 1


CALLS = _Calls()
NAMES = frozenset(_METHODS) | frozenset(_FUNCTIONS)


def declarations() -> list[cel.FunctionDecl]:
    """Of all functions, for an environment."""
    return [
        cel.FunctionDecl(
            name,
            [
                cel.Overload(
                    f"kubernetes_{name.replace('.', '_')}_{number}", result, parameters, is_method, CALLS.counted(body)
                )
                for number, (parameters, result, body) in enumerate(overloads)
            ],
        )
        for declared, is_method in ((_METHODS, True), (_FUNCTIONS, False))
        for name, overloads in declared.items()
    ]

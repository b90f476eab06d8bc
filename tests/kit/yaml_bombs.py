"""Small documents that cost a naive YAML reader its stack, its memory or its time, and values JSON does not have."""

from __future__ import annotations

_LEVELS = 100_000


def _merge_bomb(levels: int) -> bytes:
    """535 bytes at 11 levels; each doubles what the one before it merges four times over."""
    lines = ["a0: &a0 {k: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 4)}]}}" for n in range(1, levels)]
    return "\n".join(lines).encode()


def _alias_bomb() -> bytes:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    return "\n".join(lines).encode()


def _directives(line_break: str) -> str:
    return "".join(f"%TAG !a{n}! b{line_break}" for n in range(80_000)) + f"---{line_break}a: 1"


BOMBS: dict[str, bytes] = {
    "deep lists": b"[" * _LEVELS,
    "deep mappings": b"{a: " * _LEVELS,
    "deep blocks": b"- " * _LEVELS,
    "deep by aliases": b"\n".join(b"a%d: &a%d [%s]" % (n, n, b"*a%d" % (n - 1) if n else b"") for n in range(200)),
    "merges": _merge_bomb(14),
    "aliases": _alias_bomb(),
    "a long text many times": b'a: &a "' + b"x" * 1_000_000 + b'"\nb: [' + b"*a," * 300_000 + b"]",
    "many values": b"[" + b"{a}," * 500_000 + b"]",
    "many directives": b"%TAG !a! b\n" * 200_000 + b"--- {}",
    "many directives after returns": _directives("\r").encode(),
    "many directives after other breaks": _directives("\u2028").encode(),
    "many directives in UTF-16": _directives("\n").encode("utf-16"),
    "itself": b"&a [*a]",
}
TEXTS: dict[str, bytes] = {
    "base 60": b"a: " + b":".join([b"59"] * 300_000),
    "a long number": b"a: " + b"1" * 1_000_000,
}
ODD: dict[str, bytes] = {
    "python": b"a: 1\nb: !!python/object/apply:os.system [x]",
    "own tag": b"a: 1\nb: !Ref x",
    "set": b"a: 1\nb: !!set {x, y}",
    "omap": b"a: 1\nb: !!omap [x: 1]",
    "binary": b"a: 1\nb: !!binary '*'",
    "timestamp": b"a: 1\nb: !!timestamp x",
    "bool": b"a: 1\nb: !!bool x",
    "int": b"a: 1\nb: !!int x",
    "float": b"a: 1\nb: !!float x",
    "null": b"a: 1\nb: !!null x",
    "not a number": b"a: 1\nb: .nan",
    "infinity": b"a: 1\nb: -.inf",
    "list as a key": b"a: 1\n? [x]\n: y",
    "unknown anchor": b"a: 1\nb: *x",
    "merge of text": b"a: 1\n<<: x",
    "surrogate": b'a: 1\nb: "\\uD800"',
    "control character": b"a: 1\nb: \x01",
    "second document": b"a: 1\n--- b",
}

"""Messages about invalid JSON, as a Kubernetes API server phrases them.

The server is written in Go, and people search for its messages: `invalid character '}' looking for beginning
of object key string`. This scanner walks a document that already failed to decode, to report where and why.
"""

from __future__ import annotations

_SPACE = b" \t\r\n"
_ESCAPES = frozenset(b'bfnrt\\/"')
_HEXADECIMAL = frozenset(b"0123456789abcdefABCDEF")
_LITERALS = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_END = "unexpected end of JSON input"


class _Malformed(Exception):
    pass


def explain(data: bytes) -> str:
    """The first thing wrong with the document."""
    scanner = _Scanner(data)
    try:
        scanner.value()
        scanner.space()
        if scanner.at < len(data):
            scanner.fail("after top-level value")
    except _Malformed as problem:
        return str(problem)
    except RecursionError:
        return "exceeded max depth"
    return "invalid UTF-8 or number out of range"


def _shown(byte: int) -> str:
    if byte == ord("'"):
        return r"'\''"
    if byte == ord('"'):
        return "'\"'"
    char = chr(byte)
    return f"'{char}'" if char.isprintable() and byte < 0x7F else repr(char)


class _Scanner:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def fail(self, where: str) -> None:
        if self.at >= len(self.data):
            raise _Malformed(_END)
        raise _Malformed(f"invalid character {_shown(self.data[self.at])} {where}")

    def peek(self) -> int:
        return self.data[self.at] if self.at < len(self.data) else -1

    def space(self) -> None:
        while self.at < len(self.data) and self.data[self.at] in _SPACE:
            self.at += 1

    def value(self) -> None:
        self.space()
        byte = self.peek()
        if byte == ord("{"):
            self.members()
        elif byte == ord("["):
            self.elements()
        elif byte == ord('"'):
            self.string()
        elif byte == ord("-") or 48 <= byte <= 57:
            self.number()
        elif byte in _LITERALS:
            self.literal(_LITERALS[byte])
        else:
            self.fail("looking for beginning of value")

    def members(self) -> None:
        self.at += 1
        self.space()
        if self.peek() == ord("}"):
            self.at += 1
            return
        while True:
            self.space()
            if self.peek() != ord('"'):
                self.fail("looking for beginning of object key string")
            self.string()
            self.space()
            if self.peek() != ord(":"):
                self.fail("after object key")
            self.at += 1
            self.value()
            self.space()
            if self.peek() == ord("}"):
                self.at += 1
                return
            if self.peek() != ord(","):
                self.fail("after object key:value pair")
            self.at += 1

    def elements(self) -> None:
        self.at += 1
        self.space()
        if self.peek() == ord("]"):
            self.at += 1
            return
        while True:
            self.value()
            self.space()
            if self.peek() == ord("]"):
                self.at += 1
                return
            if self.peek() != ord(","):
                self.fail("after array element")
            self.at += 1

    def string(self) -> None:
        self.at += 1
        while (byte := self.peek()) != ord('"'):
            if byte < 0x20:
                self.fail("in string literal")
            self.at += 1
            if byte == ord("\\"):
                self.escape()
        self.at += 1

    def escape(self) -> None:
        if self.peek() == ord("u"):
            self.at += 1
            for _ in range(4):
                if self.peek() not in _HEXADECIMAL:
                    self.fail("in \\u hexadecimal character escape")
                self.at += 1
        elif self.peek() in _ESCAPES:
            self.at += 1
        else:
            self.fail("in string escape code")

    def number(self) -> None:
        if self.peek() == ord("-"):
            self.at += 1
        if self.peek() == ord("0"):
            self.at += 1
        else:
            self.digits("in numeric literal")
        if self.peek() == ord("."):
            self.at += 1
            self.digits("after decimal point in numeric literal")
        if self.peek() in (ord("e"), ord("E")):
            self.at += 1
            if self.peek() in (ord("+"), ord("-")):
                self.at += 1
            self.digits("in exponent of numeric literal")

    def digits(self, where: str) -> None:
        if not 48 <= self.peek() <= 57:
            self.fail(where)
        while 48 <= self.peek() <= 57:
            self.at += 1

    def literal(self, literal: bytes) -> None:
        for letter in literal:
            if self.peek() != letter:
                self.fail(f"in literal {literal.decode()} (expecting {_shown(letter)})")
            self.at += 1

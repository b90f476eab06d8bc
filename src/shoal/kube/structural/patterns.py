"""Regular expressions of custom schemas: written for Go, matched by Python.

Most patterns mean the same in both. The differences that matter are translated: `$` and `\\z` mean the very end, POSIX
classes exist, and \\d, \\w, \\s know ASCII only. What Go refuses (look-around, back references) is refused with
Go's words. What only Go can match (\\p{...}) is `Unmatchable`: the rule is kept and not enforced, and a warning
says so.
"""

from __future__ import annotations

import re
from functools import lru_cache

_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7F", "blank": r"\t ", "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ",
    "upper": "A-Z", "word": r"0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_PIECE = re.compile(
    r"\\Q.*?(?:\\E|$)|\\[pP](?:\{[^}]*\}|.)|\\.|\[:\^?\w+:\]|\(\?[a-zA-Z-]+[:)]|\(\?[^:)]{1,3}|\[\^?\]?|\]|\$|.",
    re.DOTALL,
)
_FLAGS = re.compile(r"\(\?[imsU-]+[:)]")
_MULTILINE = re.compile(r"\(\?[is]*m[ims]*\)")  # `$` then means the end of any line, in both languages


class BadPattern(ValueError):
    """Not a regular expression the API accepts; the words are those of Go."""


class Unmatchable(ValueError):
    """A sound pattern that Python has no way to match."""


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, ready to search with. Raises BadPattern or Unmatchable."""
    translated = "".join(_translate(pattern))
    try:
        return re.compile(translated, re.ASCII)
    except re.error as problem:
        raise BadPattern(f"error parsing regexp: {_in_words_of_go(problem, pattern)}") from None
    except (OverflowError, RecursionError):
        raise BadPattern(f"error parsing regexp: expression nests too deeply: `{pattern}`") from None


def _in_words_of_go(problem: re.error, pattern: str) -> str:
    at = pattern[problem.pos or 0 :]
    words, shown = problem.msg, pattern
    if words.startswith("missing )"):
        words = "missing closing )"
    elif words.startswith("unbalanced parenthesis"):
        words = "unexpected )"
    elif words.startswith("unterminated character set"):
        words, shown = "missing closing ]", at
    elif words.startswith("nothing to repeat"):
        words, shown = "missing argument to repetition operator", at[:1]
    elif words.startswith("multiple repeat"):
        words, shown = "invalid nested repetition operator", pattern[(problem.pos or 1) - 1 :][:2]
    elif words.startswith("bad character range"):
        words, shown = "invalid character class range", words.removeprefix("bad character range ")
    return f"{words}: `{shown}`"


def _translate(pattern: str) -> list[str]:
    translated: list[str] = []
    in_class = False
    multiline = _MULTILINE.match(pattern) is not None
    for match in _PIECE.finditer(pattern):
        piece = match.group()
        if in_class:
            in_class = piece != "]"
            translated.append(_class_piece(piece))
        elif piece.startswith("["):
            in_class = True
            translated.append(piece.replace("]", r"\]"))
        else:
            translated.append(_plain_piece(piece, at_start=match.start() == 0, multiline=multiline))
    return translated


def _class_piece(piece: str) -> str:
    if piece.startswith("[:"):
        name = piece[2:-2].lstrip("^")
        if "^" in piece or name not in _POSIX:
            raise Unmatchable(piece)
        return _POSIX[name]
    return r"\[" + piece[1:] if piece.startswith("[") else _escape(piece)


def _plain_piece(piece: str, *, at_start: bool, multiline: bool) -> str:
    if piece == "$":
        return "$" if multiline else r"\Z"
    if _FLAGS.fullmatch(piece):
        unknown = set("U-") if at_start and multiline else set("mU-")
        if set(piece) & unknown or (piece.endswith(")") and not at_start):
            raise Unmatchable(piece)
        return piece
    if piece.startswith("(?"):
        if piece[2] in "=!" or piece.startswith(("(?<=", "(?<!", "(?P=", "(?#", "(?(", "(?>")):
            shown = piece[:4] if piece.startswith(("(?<", "(?P")) else piece[:3]
            raise BadPattern(f"error parsing regexp: invalid or unsupported Perl syntax: `{shown}`")
        return piece.replace("(?<", "(?P<") if piece.startswith("(?<") else piece
    return _escape(piece)


def _escape(piece: str) -> str:
    if not piece.startswith("\\") or len(piece) < 2:
        return piece
    if piece[1] == "Q":
        return re.escape(piece[2:].removesuffix("\\E"))
    if piece[1] in "pPC":
        raise Unmatchable(piece)
    if piece[1] in "123456789Z":
        raise BadPattern(f"error parsing regexp: invalid escape sequence: `{piece}`")
    return r"\Z" if piece == r"\z" else piece

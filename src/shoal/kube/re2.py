"""Regular expressions written by users: patterns of custom schemas, of failure tables, of HyperNodes.

They are Go's, and RE2 matches them: in time linear in the text whatever the pattern, and with Go's syntax. Programs
are bounded, too: a pattern that expands beyond `_MAX_PROGRAM_BYTES` is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

_MAX_PROGRAM_BYTES = 2**20

# Where the messages of Go and RE2 differ for one error.
_GO_MESSAGES = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "pattern too large - compile failed": "expression too large",
    "trailing \\": "trailing backslash at end of expression",
}


class BadPattern(ValueError):
    """Not a regular expression the API accepts; the message is Go's."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled expression. Two of the same text are equal."""

    text: str
    _engine: Any = field(compare=False, repr=False)

    def search(self, text: str) -> str | None:
        """The first match in `text`, None where there is none. An empty match is ''."""
        found = self._engine.search(text.encode(errors="replace"))
        return None if found is None else found[0].decode(errors="replace")

    def find_all(self, text: str) -> Iterator[str]:
        """The matches in `text`, one after the other; as in Go, no empty one right behind another."""
        encoded, end = text.encode(errors="replace"), -1
        for found in self._engine.finditer(encoded):
            start, stop = found.span()
            # The engine finds empty matches between the bytes of a character, too.
            splits_character = start < len(encoded) and encoded[start] & 0xC0 == 0x80
            if start < stop or (start != end and not splits_character):
                yield found[0].decode(errors="replace")
            end = stop

    def matches(self, text: str) -> bool:
        return self._engine.search(text.encode(errors="replace")) is not None


@lru_cache(maxsize=512)
def compiled(pattern: str) -> Pattern:
    import re2  # takes longer to load than most commands of the CLI need to run

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_PROGRAM_BYTES
    try:
        return Pattern(pattern, re2.compile(pattern.encode(), options))
    except re2.error as problem:
        message, colon, where = problem.args[0].decode(errors="replace").partition(": ")
        message = _GO_MESSAGES.get(message, message)
        raise BadPattern(f"error parsing regexp: {message}" + (f": `{where}`" if colon else "")) from None
    except UnicodeEncodeError:
        raise BadPattern("error parsing regexp: invalid UTF-8") from None

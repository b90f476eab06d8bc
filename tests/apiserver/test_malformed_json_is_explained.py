"""JSON that is none is explained in the words Go has for it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.apiserver import json_errors

WORDS = {
    b"": "unexpected end of JSON input",
    b"{": "unexpected end of JSON input",
    b'{"a"': "unexpected end of JSON input",
    b'{"a":': "unexpected end of JSON input",
    b"{,": "invalid character ',' looking for beginning of object key string",
    b'{"a" 1}': "invalid character '1' after object key",
    b'{"a":1 "b":2}': "invalid character '\"' after object key:value pair",
    b'{"a":1,}': "invalid character '}' looking for beginning of object key string",
    b"[1 2]": "invalid character '2' after array element",
    b"{} x": "invalid character 'x' after top-level value",
    b"hello": "invalid character 'h' looking for beginning of value",
    b"nul!": "invalid character '!' in literal null (expecting 'l')",
    b"1.x": "invalid character 'x' after decimal point in numeric literal",
    b"-x": "invalid character 'x' in numeric literal",
    b"1e!": "invalid character '!' in exponent of numeric literal",
    b'"\\q"': "invalid character 'q' in string escape code",
    b'"\\u00g0"': "invalid character 'g' in \\u hexadecimal character escape",
    b'"a\nb"': "invalid character '\\n' in string literal",
    b"'a'": "invalid character '\\'' looking for beginning of value",
}


@pytest.mark.parametrize(("data", "message"), WORDS.items(), ids=[d.decode() or "empty" for d in WORDS])
def test_the_first_mistake_is_named(data: bytes, message: str) -> None:
    assert json_errors.explain(data) == message


@given(st.text(alphabet='{}[]",:0-1.eE+tfn ulras\\', max_size=20))
def test_whatever_a_parser_rejects_has_an_explanation(text: str) -> None:
    try:
        json.loads(text)
    except ValueError:
        assert json_errors.explain(text.encode()).startswith(("invalid character", "unexpected end"))

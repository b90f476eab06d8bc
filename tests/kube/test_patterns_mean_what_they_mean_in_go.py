from __future__ import annotations

import pytest

from shoal.kube.re2 import BadPattern, compiled

MATCHES = [
    (r"^a$", "a", True),
    (r"^a$", "a\n", False),
    (r"^a\z", "a", True),
    (r"[[:alpha:]]+", "12a", True),
    (r"^[[:digit:]x]+$", "1x2", True),
    (r"^\d+$", "١٢", False),
    (r"^[^]a]$", "b", True),
    (r"^[]a]$", "]", True),
    (r"^\Qa.b\E$", "a.b", True),
    (r"^\Qa.b\E$", "axb", False),
    (r"(?i)^ABC$", "abc", True),
    (r"^(?i:A)b$", "ab", True),
    (r"(?m)^a$", "b\na\nc", True),
    (r"(?msi)^A.*c$", "b\na\nc\nd", True),
    (r"(?s)^a$", "a\nb", False),
    (r"^(?P<x>a)(?<y>b)$", "ab", True),
    (r"^(?:a|b)$", "b", True),
    (r"[$]", "cost: $", True),
    (r"\$$", "5$", True),
    (r"^\p{Greek}$", "λ", True),
    (r"^[\pL]$", "1", False),
    (r"^a(?i)b$", "aB", True),
    (r"^a(?i)b$", "AB", False),
    (r"(?m:^a$)", "b\na", True),
    (r"^[[:^alpha:]]$", "a", False),
    (r"^.$", "é", True),
    (r"^.$", "\ud800", True),
]


@pytest.mark.parametrize(("pattern", "text", "expected"), MATCHES, ids=[f"{p} on {t!r}" for p, t, _ in MATCHES])
def test_a_pattern_matches(pattern: str, text: str, expected: bool) -> None:
    assert compiled(pattern).matches(text) is expected


REFUSED = [
    (r"(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
    (r"(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
    (r"(?<=a)b", "invalid or unsupported Perl syntax: `(?<=`"),
    (r"(a)\1", r"invalid escape sequence: `\1`"),
    (r"a(", "missing closing ): `a(`"),
    (r"a)", "unexpected ): `a)`"),
    (r"a[b", "missing closing ]: `[b`"),
    (r"*a", "missing argument to repetition operator: `*`"),
    (r"a**", "invalid nested repetition operator: `**`"),
    (r"[z-a]", "invalid character class range: `z-a`"),
    ("a{1001}", "invalid repeat count: `{1001}`"),
    ("\ud800", "invalid UTF-8"),
]


@pytest.mark.parametrize(("pattern", "message"), REFUSED, ids=[case[0] for case in REFUSED])
def test_what_go_rejects_is_rejected_with_its_message(pattern: str, message: str) -> None:
    with pytest.raises(BadPattern) as refused:
        compiled(pattern)
    assert str(refused.value) == f"error parsing regexp: {message}"


def test_what_matched_is_returned() -> None:
    assert [compiled("b+|^$").search(text) for text in ("abba", "", "a")] == ["bb", "", None]

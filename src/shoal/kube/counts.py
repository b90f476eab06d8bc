"""Counts in labels and annotations, which any client that may change an object may write."""

from __future__ import annotations

_MAX_DIGITS = 18  # within 64 bits; Python itself refuses to read more than 4300


def parse_count(text: str | None) -> int | None:
    """The count that the text writes in plain digits; None where it is missing, none, or too large."""
    is_count = text is not None and text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    return int(text) if text is not None and is_count else None

"""The rules by which a Job by index has succeeded before every index has: which of them, and how many.

Indexes are written as rising ranges, `0-2,5`. Errors in them have the messages of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.kube.validation.errors import NEGATIVE, entries, invalid
from shoal.kube.validation.errors import required as missing

Spans = tuple[tuple[int, int], ...]  # first and last of each


class IndexesUnreadable(ValueError):
    """The message quotes the part that cannot be read."""


def success_policy(policy: Obj, completions: int) -> Iterator[Cause]:
    rules, path = entries(policy.get("rules")), "spec.successPolicy.rules"
    if not rules:
        yield missing(path, "at least one rules must be specified when the successPolicy is specified")
    for place, rule in enumerate(rules):
        here = f"{path}[{place}]"
        written, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        if written is None and count is None:
            yield missing(here, "at least one of succeededCount or succeededIndexes must be specified")
        most, what = completions, "specified completions"
        if written is not None:
            try:
                spans = spans_of(written, completions)
            except IndexesUnreadable as wrong:
                yield invalid(f"{here}.succeededIndexes", written, f"error parsing succeededIndexes: {wrong}")
                continue
            most, what = size_of(spans), "indexes in the specified succeededIndexes field"
        if count is not None and count < 0:
            yield invalid(f"{here}.succeededCount", count, NEGATIVE)
        elif count is not None and count > most:
            detail = f"must be less than or equal to {most} (the number of {what})"
            yield invalid(f"{here}.succeededCount", count, detail)


def spans_of(text: str, completions: int) -> Spans:
    """Raises IndexesUnreadable for anything but rising ranges of indexes that there are."""
    found: list[tuple[int, int]] = []
    last: int | None = None
    for fragment in text.split(",") if text else ():
        ends = fragment.split("-")
        if len(ends) > 2:
            raise IndexesUnreadable(
                f'the fragment "{fragment}" violates the requirement that an index interval can have at most two '
                "parts separated by '-'"
            )
        numbers = []
        for end in ends:
            if not (end.isascii() and end.isdigit()):
                raise IndexesUnreadable(f'cannot convert string to integer for index: "{end}"')
            number = int(end)
            if last is not None and number <= last:
                raise IndexesUnreadable(f"non-increasing order, previous: {last}, current: {number}")
            if number >= completions:
                raise IndexesUnreadable(f'too large index: "{end}"')
            numbers.append(number)
            last = number
        found.append((numbers[0], numbers[-1]))
    return tuple(found)


def size_of(spans: Spans) -> int:
    return sum(last - first + 1 for first, last in spans)

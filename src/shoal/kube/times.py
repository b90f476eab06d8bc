"""Moments as the API writes them: RFC 3339 in UTC, to the second or, for leases and events, to the microsecond.

Inside the program a moment is an aware datetime in UTC. Nothing here reads the clock.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_FORM = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})", re.ASCII)


def rfc3339(moment: datetime) -> str:
    """`2026-11-16T04:12:00Z`: the form of creationTimestamp and of conditions; fractions are cut off."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return f"{moment.isoformat(timespec='seconds')[:-6]}Z"


def rfc3339_micro(moment: datetime) -> str:
    """`2026-11-16T04:12:00.000000Z`: the form of a Lease's renewTime and of an Event's eventTime."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return f"{moment.isoformat(timespec='microseconds')[:-6]}Z"


def parse(text: str) -> datetime:
    """The moment in UTC. Digits finer than a microsecond are cut off; anything but RFC 3339 raises ValueError."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise ValueError(f'parsing time "{text}": write it as RFC 3339, for example "2026-11-16T04:12:00Z"')
    fraction = form[1] or ""
    if len(fraction) > 7:
        text = text.replace(fraction, fraction[:7], 1)
    return datetime.fromisoformat(text).astimezone(UTC)

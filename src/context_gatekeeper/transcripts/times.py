"""Points in time as conversation files write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

__all__ = ["parse_time"]

_SPOKEN = re.compile(r"(\d{1,2}):(\d{2})\s*(am|pm) on (\d{1,2}) ([A-Za-z]+),? (\d{4})", re.IGNORECASE)
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:\s*\([A-Za-z]+\))?\Z")
_NOON = 12


def parse_time(value: object) -> float | None:
    """Seconds since the epoch (UTC) of a time in a conversation file; None when it is none.

    Understands numbers (seconds), ISO 8601 (naive = UTC), ``2025-12-19 (Friday)`` (noon) and
    ``1:56 pm on 8 May, 2023``.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    date = _DATE.match(text)
    try:
        if date:
            year, month, day = (int(part) for part in date.groups())
            return datetime(year, month, day, _NOON, tzinfo=UTC).timestamp()
        spoken = _SPOKEN.search(text)
        if spoken:
            hour, minute, half, day_text, month_name, year_text = spoken.groups()
            moment = datetime.strptime(f"{day_text} {month_name[:3].title()} {year_text}", "%d %b %Y")
            hours = int(hour) % 12 + (12 if half.lower() == "pm" else 0)
            return moment.replace(hour=hours, minute=int(minute), tzinfo=UTC).timestamp()
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

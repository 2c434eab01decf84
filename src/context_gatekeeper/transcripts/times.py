"""Points in time as conversation files write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from context_gatekeeper.types import FIRST_SECOND, LAST_SECOND

__all__ = ["parse_time"]

_SPOKEN = re.compile(r"(\d{1,2}):(\d{2})\s*(am|pm) on (\d{1,2}) ([A-Za-z]+),? (\d{4})", re.IGNORECASE)
_DATE = re.compile(r"(\d{4})[-/年](\d{1,2})[-/月](\d{1,2})日?(?:\s*\([^()]+\))?\Z")
_NUMBER = re.compile(r"\d{9,13}(?:\.\d+)?\Z")
_NOON = 12
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def parse_time(value: object) -> float | None:
    """Seconds since the epoch (UTC) of a time in a conversation file; None when it is none of the years 5 to 5138.

    Understands numbers (seconds; milliseconds from 1e11 up), also as texts, ISO 8601 (naive =
    UTC), a bare date, ``2025-12-19 (Friday)`` or ``2023年5月8日`` (noon) and ``1:56 pm on 8 May, 2023``.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _from_number(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    if _NUMBER.match(text):
        return _from_number(float(text))
    try:
        moment = _moment(text)
    except ValueError:
        return None
    return _in_range((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _from_number(number: float) -> float | None:
    """Numbers too large for seconds are milliseconds."""
    is_near = -LAST_SECOND < number < LAST_SECOND
    return _in_range(number if is_near else number / 1000) if abs(number) < 1000 * LAST_SECOND else None


def _in_range(seconds: float) -> float | None:
    return float(seconds) if FIRST_SECOND <= seconds < LAST_SECOND else None  # NaN compares false


def _moment(text: str) -> datetime:
    """Raises ValueError when ``text`` is no time."""
    date = _DATE.match(text)
    if date:
        year, month, day = (int(part) for part in date.groups())
        return datetime(year, month, day, _NOON, tzinfo=UTC)
    spoken = _SPOKEN.search(text)
    if spoken:
        hour, minute, half, day_text, month_name, year_text = spoken.groups()
        month = _MONTHS.index(month_name[:3].lower()) + 1
        hours = int(hour) % 12 + (12 if half.lower() == "pm" else 0)
        return datetime(int(year_text), month, int(day_text), hours, int(minute), tzinfo=UTC)
    return datetime.fromisoformat(text)

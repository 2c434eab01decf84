"""Times as conversation files write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from context_gatekeeper.transcripts.times import parse_time


def epoch(*parts: int) -> float:
    return datetime(*parts, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("1:56 pm on 8 May, 2023", epoch(2023, 5, 8, 13, 56)),
        ("12:05 am on 1 January, 2024", epoch(2024, 1, 1, 0, 5)),
        ("12:05 pm on 1 January 2024", epoch(2024, 1, 1, 12, 5)),
        ("2025-12-19 (Friday)", epoch(2025, 12, 19, 12)),
        ("2025-12-19", epoch(2025, 12, 19, 12)),
        ("2025年3月2日", epoch(2025, 3, 2, 12)),
        ("2025/3/2", epoch(2025, 3, 2, 12)),
        ("2026-01-22T18:39:49.808Z", epoch(2026, 1, 22, 18, 39, 49) + 0.808),
        ("2026-01-22T18:39:49+08:00", epoch(2026, 1, 22, 10, 39, 49)),
        ("2026-01-22 18:39", epoch(2026, 1, 22, 18, 39)),
        (1_700_000_000, 1_700_000_000.0),
        (1_700_000_000.25, 1_700_000_000.25),
        (1_700_000_000_250, 1_700_000_000.25),
        ("1700000000", 1_700_000_000.0),
        (0, 0.0),
        (-6.2e10, -6.2e10),
        (9.99e10, 9.99e10),
        (1e11, 1e8),
        (9.99e13, 9.99e10),
        (-6e13, -6e10),
    ],
)
def test_a_time_becomes_seconds_since_the_epoch_in_utc(written: object, seconds: float) -> None:
    assert parse_time(written) == pytest.approx(seconds, abs=1e-3)


@pytest.mark.parametrize(
    "written",
    [
        *("", "tomorrow", "2025-13-40", "25:99 pm on 8 May, 2023", None, True, [], 10**400, float("nan"), float("inf")),
        *(1e14, -6.3e10, -9e10, -9e13, "0001-01-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"),
    ],
)
def test_what_is_no_time_gives_none(written: object) -> None:
    assert parse_time(written) is None

"""Times and token counts."""

from __future__ import annotations

from typing import Any

import pytest

from context_gatekeeper.transcripts.session_fields import as_count, as_name, read_time, read_usage
from context_gatekeeper.types import Usage


@pytest.mark.parametrize(
    ("value", "count"),
    [(0, 0), (7, 7), (7.0, 7), (-1, None), (1.5, None), (float("nan"), None), (True, None), ("7", None), (None, None)],
)
def test_only_whole_numbers_from_zero_are_counts(value: object, count: int | None) -> None:
    assert as_count(value) == count


@pytest.mark.parametrize(("value", "name"), [("a", "a"), (7, "7"), (True, ""), (None, ""), ([], "")])
def test_names_are_texts_or_whole_numbers(value: object, name: str) -> None:
    assert as_name(value) == name


def test_a_time_that_is_none_is_told_and_a_missing_one_is_not() -> None:
    warnings: list[str] = []
    assert read_time("2026-01-22T19:06:29.808Z", "line 1", warnings) == 1769108789.808
    assert [read_time(value, "line 2", warnings) for value in (None, "")] == [None, None]
    assert warnings == []
    assert read_time("soon", "line 3", warnings) is None
    assert warnings == ["line 3: 'soon' is no time; it is left out"]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {"input_tokens": 4, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 6, "output_tokens": 9},
            Usage(4, 50, 6, 9),
        ),
        ({"input_tokens": 4}, Usage(4, 0, 0, None)),
        ({"input": 1, "cache_read": 2, "cache_creation": 3, "output": 4, "output_final": True}, Usage(1, 2, 3, 4)),
        ({"input": 1, "output": 4, "output_final": False}, Usage(1, 0, 0, None)),
        ({"input": 1, "output": 4}, Usage(1, 0, 0, None)),
        ({"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 5}, Usage(40, 60, 0, 5)),
        ({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}}, Usage(100, 0, 0, None)),
        (
            {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 64}, "completion_tokens": 3},
            Usage(36, 64, 0, 3),
        ),
        ({"prompt_tokens": 100, "prompt_tokens_details": None}, Usage(100, 0, 0, None)),
        ({"input_tokens": 10, "cached_input_tokens": 60}, Usage(0, 10, 0, None)),
    ],
)
def test_each_providers_counts_are_read(usage: dict[str, Any], expected: Usage) -> None:
    warnings: list[str] = []
    assert read_usage(usage, True, "line 1", warnings) == expected
    assert warnings == []


def test_an_output_count_that_is_not_final_is_left_out() -> None:
    assert read_usage({"input_tokens": 4, "output_tokens": 9}, False, "", []) == Usage(4, 0, 0, None)
    assert read_usage({"prompt_tokens": 4, "completion_tokens": 9}, False, "", []) == Usage(4, 0, 0, None)


@pytest.mark.parametrize("usage", [7, {}, {"input_tokens": "4"}, {"input_tokens": None, "prompt_tokens": -1}])
def test_a_usage_without_counts_is_told(usage: object) -> None:
    warnings: list[str] = []
    assert read_usage(usage, True, "line 8", warnings) is None
    assert warnings == ["line 8: its usage holds no counts that are known; it is left out"]
    assert read_usage(None, True, "line 9", warnings) is None
    assert len(warnings) == 1

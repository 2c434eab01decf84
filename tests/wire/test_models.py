"""What a model's name tells."""

from __future__ import annotations

import pytest

from context_gatekeeper.wire import binds_whole_prefix, min_cached_tokens


@pytest.mark.parametrize(
    "model",
    [
        "claude-fable-5-1",
        "claude-fable-5.2",
        "claude-mythos-5-1-20260401",
        "claude-opus-5-5",
        "anthropic/claude-opus-5.5",
        "us.anthropic.claude-sonnet-5-5-20260801-v1:0",
        "claude-haiku-5-5@20260901",
        "Claude-Opus-5-5[1m]",
        "claude-opus-5-6",
        "claude-sonnet-6",
    ],
)
def test_thinking_of_the_newest_models_binds_all_before_it(model: str) -> None:
    assert binds_whole_prefix(model)


@pytest.mark.parametrize(
    "model",
    [
        "claude-opus-5",
        "claude-opus-5-20260301",
        "claude-fable-5",
        "claude-opus-4-8",
        "claude-sonnet-5",
        "claude-sonnet-4-20250514",
        "claude-3-5-sonnet-20241022",
        "claude-3-opus-20240229",
        "gpt-5.6",
        "deepseek-chat",
        "",
    ],
)
def test_thinking_of_older_and_other_models_does_not(model: str) -> None:
    assert not binds_whole_prefix(model)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-opus-5", 512),
        ("claude-fable-5-1", 512),
        ("mythos-5", 512),
        ("claude-opus-4-8", 1024),
        ("claude-opus-4-1-20250805", 1024),
        ("claude-opus-4-20250514", 1024),
        ("claude-sonnet-5", 1024),
        ("claude-sonnet-4-5", 1024),
        ("claude-opus-4.7", 2048),
        ("claude-sonnet-4-6", 2048),
        ("claude-opus-4-6", 4096),
        ("claude-opus-4-5-20251101", 4096),
        ("claude-haiku-4-5@20251001", 4096),
        ("claude-3-5-sonnet-20241022", 1024),
        ("gpt-5", 1024),
    ],
)
def test_the_shortest_cached_prefix_is_the_providers(model: str, tokens: int) -> None:
    assert min_cached_tokens(model) == tokens

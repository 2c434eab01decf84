"""The provider's log, its bill, and the breaks of prefixes it counts."""

from __future__ import annotations

from typing import Any

import pytest

from context_gatekeeper.core.economics import PRICES, PriceProfile, PriceStep
from context_gatekeeper.testing import FakeProvider, PrefixBreak, RequestUsage
from tests.testing.asking import CHAT, MESSAGES, OPUS, ask, chat, said, send

ANSWER = {"role": "assistant", "content": "a"}


def test_the_log_keeps_bytes_headers_and_status_of_everything() -> None:
    with FakeProvider() as provider:
        send(
            provider,
            f"{MESSAGES}?beta=true",
            b'{"model": "claude-x",  "max_tokens": 1, "messages": []}',
            **{"X-Odd": "Ä"},
        )
        send(provider, MESSAGES, ask())
    refused, good = provider.log
    assert refused.raw.startswith(b'{"model": "claude-x",  ')
    assert (refused.status, refused.method, refused.target) == (400, "POST", "/v1/messages?beta=true")
    assert (b"X-Odd", "Ä".encode("latin-1")) in refused.raw_headers
    assert provider.requests == [good]
    assert provider.refusals == ["messages: a list of at least one message is needed"]


def test_the_bill_is_the_sum_over_requests_at_a_profiles_prices() -> None:
    mark = [{"type": "text", "text": "word " * 1500, "cache_control": {"type": "ephemeral"}}]
    with FakeProvider(["four words of output"] * 2) as provider:
        for _ in range(2):
            send(provider, MESSAGES, ask(system=mark))
    first, second = (request.usage for request in provider.requests)
    assert (first.read, second.written) == (0, 0)
    assert provider.totals == first + second
    expected = (
        1.25 * first.written + 0.1 * second.read + first.plain + second.plain + 5 * (first.output + second.output)
    )
    assert provider.bill(PRICES["anthropic-5m"]) == pytest.approx(expected)
    stepped = PriceProfile("s", 1, 1, 0, 0, steps=(PriceStep(10, 2.0), PriceStep(1_000_000, 9.0)))
    assert provider.bill(stepped) == 2 * provider.totals.prompt


def test_usages_add_up() -> None:
    total = RequestUsage(1, 2, 3, 4, 1) + RequestUsage(10, 20, 30, 40, 10)
    assert total == RequestUsage(11, 22, 33, 44, 11)
    assert total.prompt == 66


def test_a_growing_conversation_has_no_prefix_break() -> None:
    with FakeProvider() as provider:
        listed: list[Any] = [said("a")]
        for _ in range(3):
            send(provider, MESSAGES, ask(messages=listed))
            listed = [*listed, ANSWER, said("b")]
    assert provider.prefix_breaks() == []


def test_a_changed_dropped_or_moved_block_is_a_prefix_break_with_its_place() -> None:
    with FakeProvider() as provider:
        send(provider, MESSAGES, ask(messages=[said("a"), ANSWER, said("b")]))
        send(provider, MESSAGES, ask(messages=[said("a"), ANSWER, said("changed"), ANSWER, said("c")]))
        send(provider, MESSAGES, ask(messages=[said("a"), ANSWER]))
        send(provider, MESSAGES, ask(messages=[said("a"), ANSWER], system="new"))
    breaks = provider.prefix_breaks()
    assert [(one.request, one.block, one.place) for one in breaks] == [
        (1, 2, "messages[2].content[0]"),
        (2, 2, "messages[2].content[0]"),
        (3, 0, "messages[0].content[0]"),
    ]
    assert breaks[0] == PrefixBreak(1, 2, "messages[2].content[0]", provider.requests[0].blocks[2].tokens)


def test_conversations_are_told_apart_by_session_model_and_first_text_or_as_the_test_says() -> None:
    with FakeProvider() as provider:
        send(provider, MESSAGES, ask("a"), **{"x-claude-code-session-id": "s1"})
        send(provider, MESSAGES, ask("b"), **{"x-claude-code-session-id": "s2"})
        send(provider, MESSAGES, ask("b", model="claude-sonnet-5"), **{"x-claude-code-session-id": "s2"})
        send(provider, CHAT, chat("c"))
        send(provider, CHAT, chat("d"))
    assert provider.prefix_breaks() == []
    assert len(provider.prefix_breaks(lambda request: request.model == OPUS)) == 3


def test_waiting_ends_in_time_when_nothing_comes() -> None:
    with FakeProvider() as provider:
        assert not provider.wait_until(lambda p: p.finished > 0, 0.0)
        send(provider, CHAT, chat())
        assert provider.wait_until(lambda p: p.finished == 1)

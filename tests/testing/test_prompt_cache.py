"""The simulated prompt caches, with arithmetic that can be followed by hand."""

from __future__ import annotations

from hashlib import sha256
from threading import Event, Thread
from typing import Any

import pytest

from context_gatekeeper.testing import FakeProvider, ReceivedRequest
from context_gatekeeper.testing.prompt_cache import CacheCharge, MarkedCache, PrefixCache, minimum_prefix_tokens
from context_gatekeeper.testing.rendering import RenderedBlock
from tests.testing.asking import CHAT, GPT, MESSAGES, OPUS, ask, chat, said, send

MARK = {"type": "ephemeral"}
WORDS = "word " * 1500
"""Some 1,500 tokens."""


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def block(name: str, tokens: int, ttl: str = "", section: str = "messages") -> RenderedBlock:
    return RenderedBlock(sha256(name.encode()).digest(), tokens, section, name, "text", ttl)


def charge(cache: Any, *blocks: RenderedBlock, commits: bool = True, **body: Any) -> tuple[int, int, int]:
    """(plain, written, read)."""
    charged: CacheCharge = cache.charge({"model": OPUS, **body}, blocks)
    if commits:
        cache.commit(charged)
    return (charged.usage.plain, charged.usage.written, charged.usage.read)


SYSTEM, FIRST = block("system", 2000, "5m", "system"), block("first", 500)


# -- breakpoints ----------------------------------------------------------------------------------


def test_what_stands_before_a_breakpoint_is_written_once_and_read_from_then_on() -> None:
    cache = MarkedCache(Clock())
    assert charge(cache, SYSTEM, FIRST) == (500, 2000, 0)
    assert charge(cache, SYSTEM, block("other", 70)) == (70, 0, 2000)
    assert charge(cache, SYSTEM, FIRST, block("second", 300, "5m"), block("tail", 10)) == (10, 800, 2000)
    assert charge(cache, SYSTEM, FIRST, block("second", 300, "5m"), block("tail", 10)) == (10, 0, 2800)


def test_without_a_breakpoint_nothing_is_cached() -> None:
    cache = MarkedCache(Clock())
    for _ in range(2):
        assert charge(cache, block("system", 9000), FIRST) == (9500, 0, 0)


def test_a_breakpoint_below_the_models_minimum_counts_for_nothing() -> None:
    cache = MarkedCache(Clock())
    small = block("small", 1023, "5m")
    for _ in range(2):
        assert charge(cache, small, FIRST) == (1523, 0, 0)
    assert charge(cache, small, block("one", 1, "5m")) == (0, 1024, 0)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-opus-5", 512),
        ("claude-fable-5-1", 512),
        ("claude-opus-4-8", 1024),
        ("claude-sonnet-5", 1024),
        ("claude-opus-4-7", 2048),
        ("claude-opus-4-6", 4096),
        ("claude-haiku-4-5-20251001", 4096),
    ],
)
def test_the_minimum_depends_on_the_model(model: str, tokens: int) -> None:
    assert minimum_prefix_tokens(model) == tokens


@pytest.mark.parametrize(("new_blocks", "is_found"), [(19, True), (20, False)])
def test_a_breakpoint_looks_back_twenty_places_its_own_included(new_blocks: int, is_found: bool) -> None:
    cache = MarkedCache(Clock())
    charge(cache, SYSTEM)
    added = [block(f"b{number}", 10) for number in range(new_blocks - 1)]
    bare_system = block("system", 2000, "", "system")
    total = 10 * new_blocks
    expected = (0, total, 2000) if is_found else (0, total + 2000, 0)
    assert charge(cache, bare_system, *added, block("last", 10, "5m")) == expected


def test_every_breakpoint_looks_back_for_itself() -> None:
    cache = MarkedCache(Clock())
    charge(cache, SYSTEM)
    many = [block(f"b{number}", 10) for number in range(40)]
    assert charge(cache, SYSTEM, *many, block("last", 10, "5m")) == (0, 410, 2000)


def test_an_entry_lives_five_minutes_or_an_hour_from_its_last_use() -> None:
    clock = Clock()
    cache = MarkedCache(clock)
    charge(cache, SYSTEM)
    for _ in range(3):
        clock.now += 299
        assert charge(cache, SYSTEM) == (0, 0, 2000)
    clock.now += 300
    assert charge(cache, SYSTEM) == (0, 2000, 0)
    hour = block("system", 2000, "1h")
    clock.now += 300
    charge(cache, hour)
    clock.now += 3599
    assert charge(cache, hour) == (0, 0, 2000)


def test_tokens_up_to_the_last_mark_of_an_hour_are_written_at_its_price() -> None:
    cache = MarkedCache(Clock())
    blocks = [block("a", 1000, "1h"), block("b", 200, "1h"), block("c", 30, "5m"), block("d", 4)]
    usage = cache.charge({"model": OPUS}, blocks).usage
    assert (usage.plain, usage.written, usage.written_1h, usage.read) == (4, 1230, 1000 + 200, 0)


def test_an_entry_cannot_be_read_before_the_answer_that_writes_it_begins() -> None:
    cache = MarkedCache(Clock())
    first = cache.charge({"model": OPUS}, [SYSTEM])
    assert charge(cache, SYSTEM, commits=False) == (0, 2000, 0)
    cache.commit(first)
    assert charge(cache, SYSTEM, commits=False) == (0, 0, 2000)


def test_a_changed_block_loses_what_stands_behind_it() -> None:
    cache = MarkedCache(Clock())
    charge(cache, SYSTEM, block("a", 100), block("b", 100, "5m"))
    assert charge(cache, SYSTEM, block("A", 100), block("b", 100, "5m")) == (0, 200, 2000)


def test_model_changes_lose_all_and_switches_the_messages_alone() -> None:
    cache = MarkedCache(Clock())
    blocks = [SYSTEM, block("b", 100, "5m")]
    charge(cache, *blocks)
    assert charge(cache, *blocks, tool_choice={"type": "any"}) == (0, 100, 2000)
    assert charge(cache, *blocks, thinking={"type": "adaptive"}) == (0, 100, 2000)
    bound = {"type": "adaptive", "display": "omitted", "block_binding": {}}
    assert charge(cache, *blocks, thinking=bound) == (0, 0, 2100)
    assert charge(cache, *blocks) == (0, 0, 2100)
    assert charge(cache, *blocks, model="claude-sonnet-5") == (0, 2100, 0)


# -- automatic ------------------------------------------------------------------------------------


def test_the_automatic_cache_counts_in_steps_of_128_from_1024() -> None:
    cache = PrefixCache(Clock())
    assert charge(cache, block("a", 1023)) == (1023, 0, 0)
    assert charge(cache, block("a", 1023), block("b", 100)) == (99, 1024, 0)
    assert charge(cache, block("a", 1023), block("b", 100), block("c", 200)) == (1323 - 1280, 256, 1024)
    assert charge(cache, block("a", 1023), block("b", 100), block("d", 200)) == (1323 - 1280, 256, 1024)
    assert charge(cache, block("x", 1023), block("b", 100)) == (99, 1024, 0)


def test_the_automatic_cache_forgets_after_ten_minutes_and_is_apart_for_each_key() -> None:
    clock = Clock()
    cache = PrefixCache(clock)
    charge(cache, block("a", 2048))
    clock.now += 599
    assert charge(cache, block("a", 2048)) == (0, 0, 2048)
    assert charge(cache, block("a", 2048), prompt_cache_key="k") == (0, 2048, 0)
    clock.now += 600
    assert charge(cache, block("a", 2048)) == (0, 2048, 0)


def test_requests_without_blocks_cost_nothing() -> None:
    assert charge(MarkedCache(Clock())) == charge(PrefixCache(Clock())) == (0, 0, 0)


# -- through the server ---------------------------------------------------------------------------


def marked(*messages: Any, **more: Any) -> dict[str, Any]:
    return ask(messages=list(messages), system=[{"type": "text", "text": WORDS, "cache_control": MARK}], **more)


def usage_of(provider: FakeProvider, body: dict[str, Any]) -> tuple[int, int, int]:
    usage = send(provider, MESSAGES, body).json["usage"]
    return (usage["input_tokens"], usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"])


def test_usage_of_the_messages_api_tells_plain_written_and_read_tokens() -> None:
    clock = Clock()
    with FakeProvider(clock=clock) as provider:
        plain, written, read = usage_of(provider, marked(said("hi")))
        assert (written > 1024, read) == (True, 0)
        assert usage_of(provider, marked(said("hi"))) == (plain, 0, written)
        clock.now += 301
        assert usage_of(provider, marked(said("hi"))) == (plain, written, 0)
        assert provider.totals.read == written
        assert provider.totals.written == 2 * written
        hour = {"type": "ephemeral", "ttl": "1h"}
        body = ask(system=[{"type": "text", "text": f"other {WORDS}", "cache_control": hour}], stream=True)
        start = send(provider, MESSAGES, body).events[0]["message"]["usage"]
    assert start["cache_creation"]["ephemeral_1h_input_tokens"] == start["cache_creation_input_tokens"] > 1024
    assert start["cache_creation"]["ephemeral_5m_input_tokens"] == 0


def test_the_mark_at_the_top_of_the_request_moves_with_its_end() -> None:
    with FakeProvider() as provider:
        first = ask(WORDS, cache_control=MARK)
        plain, written, read = usage_of(provider, first)
        assert (plain, read) == (0, 0)
        first["messages"] += [{"role": "assistant", "content": "a"}, said("b")]
        plain, more, read = usage_of(provider, first)
        assert (plain, read) == (0, written)
        assert 0 < more < 20


def test_requests_that_fan_out_before_the_first_byte_all_write() -> None:
    arrived, go = Event(), Event()

    def script(request: ReceivedRequest) -> str:
        if request.query == "slow":
            arrived.set()
            assert go.wait(30)
        return "ok"

    with FakeProvider(script) as provider:
        slow = Thread(target=send, args=(provider, MESSAGES, marked(said("slow"))))
        slow.start()
        assert arrived.wait(30)
        assert usage_of(provider, marked(said("fast")))[2] == 0
        assert usage_of(provider, marked(said("fast")))[2] > 1024
        go.set()
        slow.join()
    assert [bool(request.usage.read) for request in provider.requests] == [False, False, True]


def test_usage_of_the_openai_apis_tells_cached_and_written_tokens() -> None:
    with FakeProvider() as provider:
        first, second = (send(provider, CHAT, chat(WORDS)).json["usage"] for _ in range(2))
    total = first["prompt_tokens"]
    steps = total // 128 * 128
    assert first["prompt_tokens_details"] == {"cached_tokens": 0, "cache_write_tokens": steps}
    assert second["prompt_tokens_details"] == {"cached_tokens": steps, "cache_write_tokens": 0}
    assert provider.requests[1].model == GPT
    assert provider.requests[1].usage.plain == total - steps


def test_spaces_marks_and_lists_of_one_text_do_not_change_the_prompt_but_the_order_in_arguments_does() -> None:
    def called(arguments: dict[str, int]) -> list[Any]:
        use = {"type": "tool_use", "id": "t", "name": "n", "input": arguments}
        answer = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x"}]}
        return [said("a"), {"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]

    def blocks(*messages: Any) -> list[bytes]:
        with FakeProvider() as provider:
            assert send(provider, MESSAGES, ask(messages=list(messages))).status == 200
        return [one.digest for one in provider.requests[0].blocks]

    listed = {"content": [{"text": "a", "cache_control": MARK, "type": "text"}], "role": "user"}
    assert blocks(said("a")) == blocks(listed) != blocks(said("b"))
    inner = called({"x": 1, "y": 2})
    inner[2]["content"][0]["content"][0]["cache_control"] = MARK
    assert blocks(*called({"x": 1, "y": 2})) == blocks(*inner) != blocks(*called({"y": 2, "x": 1}))

"""Cache breakpoints: never more than four, the client's kept, ours where the unchanged prefix ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.gateway.breakpoints import MOST_MARKS, layout_of, next_changes, place_marks, tail_start
from context_gatekeeper.gateway.live_session import LiveSession
from context_gatekeeper.testing.prompt_cache import MarkedCache
from context_gatekeeper.testing.rendering import render_request
from context_gatekeeper.wire import decode_request, encode_request
from context_gatekeeper.wire.pairing import find_violations
from context_gatekeeper.wire.records import PartKey, RequestEdits, WireApi, WireRequest
from tests.gateway.histories import OLDER_MODEL, Size, grow
from tests.gateway.test_rendering import EAGER

MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def request_of(count: int, marks: dict[int, Any], system: Any = None, **more: Any) -> WireRequest:
    """Messages of one text each; ``marks`` by their number."""
    told = []
    for number in range(count):
        block: dict[str, Any] = {"type": "text", "text": f"text {number}"}
        if number in marks:
            block["cache_control"] = marks[number]
        told.append({"role": ("user", "assistant")[number % 2], "content": [block]})
    body = {"model": OLDER_MODEL, "max_tokens": 5, "messages": told, **({"system": system} if system else {}), **more}
    return decode_request(WireApi.MESSAGES, json.dumps(body).encode())


def placed(request: WireRequest, common: int, edits: RequestEdits | None = None) -> RequestEdits:
    edits = edits or RequestEdits()
    return place_marks(request, edits, layout_of(request, edits), common)


def test_a_break_far_in_front_of_the_end_gets_one_on_the_last_block_in_common() -> None:
    edits = placed(request_of(41, {40: MARK}), 10)
    assert edits.marked == {PartKey(9, 0)}
    assert edits.mark_ttl == "5m"


def test_a_break_near_the_end_gets_none() -> None:
    assert placed(request_of(41, {40: MARK}), 30).marked == frozenset()


def test_nothing_in_common_gets_none() -> None:
    assert placed(request_of(41, {40: MARK}), 0).marked == frozenset()


@pytest.mark.parametrize(
    ("marks", "system"),
    [
        ({}, None),
        ({}, [{"type": "text", "text": "s", "cache_control": MARK}]),
        ({40: MARK, 0: HOUR}, None),
        ({40: MARK, 38: MARK, 36: MARK, 34: MARK}, None),
        ({40: MARK, 9: MARK}, None),
    ],
)
def test_ours_are_left_out_where_they_would_not_fit(marks: dict[int, Any], system: Any) -> None:
    """None of the client's in the conversation, two kinds of them, no room, and one that stands there already."""
    assert placed(request_of(41, marks, system), 10).marked == frozenset()


def test_ours_live_as_long_as_the_clients() -> None:
    assert placed(request_of(41, {40: HOUR}), 10).mark_ttl == "1h"
    assert placed(request_of(41, {}, cache_control=HOUR), 10).mark_ttl == "1h"


def test_thinking_blank_texts_and_system_messages_bear_none() -> None:
    told: list[dict[str, Any]] = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"}, {"type": "text", "text": "Yes."}
        ]},
        {"role": "user", "content": "On."},
        {"role": "system", "content": "A note."},
    ]  # fmt: skip
    told += [{"role": ("assistant", "user")[n % 2], "content": f"text {n}"} for n in range(24)]
    told[-1]["content"] = [{"type": "text", "text": "last", "cache_control": MARK}]
    body = {"model": OLDER_MODEL, "max_tokens": 5, "messages": told}
    request = decode_request(WireApi.MESSAGES, json.dumps(body).encode())
    assert placed(request, 5).marked == {PartKey(2, 0)}
    assert placed(request, 2).marked == {PartKey(0, 0)}


def test_a_text_added_behind_the_clients_last_one_gets_one_too() -> None:
    added = RequestEdits(added={4: ("a page",)})
    assert placed(request_of(5, {4: MARK}), 4, added).marks_added == {4}
    assert placed(request_of(5, {2: MARK}), 4, added).marks_added == frozenset()


def test_other_apis_have_none() -> None:
    raw = json.dumps({"model": "g", "messages": [{"role": "user", "content": [{"type": "text", "text": "a",
                      "cache_control": MARK}]}]}).encode()  # fmt: skip
    edits = RequestEdits(added={0: ("x",)})
    assert placed(decode_request(WireApi.CHAT, raw), 0, edits) is edits


def test_where_texts_are_joined_a_message_with_one_is_another_block() -> None:
    raw = json.dumps({"model": "g", "messages": [{"role": "user", "content": "a"}]}).encode()
    request = decode_request(WireApi.CHAT, raw)
    plain, joined = (layout_of(request, RequestEdits(added=added)) for added in ({}, {0: ("x",)}))
    assert len(plain) == len(joined) == 1
    assert plain[0].identity != joined[0].identity
    [alone] = layout_of(request, RequestEdits(dropped=frozenset({PartKey(0, 0)}), added={0: ("x",)}))
    assert alone.key is None


@pytest.mark.parametrize("seed", range(3))
def test_what_is_unchanged_is_read_from_the_cache(seed: int) -> None:
    """Behind a rewrite all in front of it is read, as far as the provider finds it, and later all that was sent."""
    growth = grow(WireApi.MESSAGES, seed, Size((16, 18), (300, 2500)), model=OLDER_MODEL, is_claude_code=True, ttl="5m")
    session = LiveSession("s", PRICES["anthropic-5m"], resident_tokens=100, secret=b"x" * 16, params=EAGER)
    cache = MarkedCache(lambda: 0.0)
    before: list[bytes] = []
    missed = 0
    for number in range(len(growth.requests)):
        request = decode_request(WireApi.MESSAGES, growth.raw(number))
        planned = session.plan(request, now=float(number))
        body = json.loads(encode_request(request, planned.edits))
        assert find_violations(WireApi.MESSAGES, body) == []
        assert json.dumps(body).count("cache_control") <= MOST_MARKS
        blocks = render_request(WireApi.MESSAGES, body)
        charged = cache.charge(body, blocks)
        cache.commit(charged)
        common = 0
        for block, known in zip(blocks, before, strict=False):
            if block.digest != known:
                break
            common += block.tokens
        unread = common - charged.usage.read
        if not planned.is_rewrite and common >= 2048:
            assert unread <= 300, number  # nothing but a text behind the last breakpoint
        missed += max(0, unread) if common >= 2048 else 0
        before = [block.digest for block in blocks]
        session.look_ahead()
    assert session.rewrites
    assert missed <= 6000


def test_places_where_a_rewrite_may_begin_are_marked_one_after_the_other() -> None:
    assert next_changes(0, 3) == ()
    told = [next_changes(100, requests) for requests in range(4)]
    assert told == [(95,), (100, 90), (85, 80), (75, 70)]
    assert next_changes(9, 4) == ()


def test_what_is_free_marks_where_a_rewrite_may_begin_and_never_more_than_four() -> None:
    told: list[dict[str, Any]] = [
        {"role": ("user", "assistant")[n % 2], "content": [{"type": "text", "text": f"text {n}"}]} for n in range(40)
    ]
    told[-1]["content"][0]["cache_control"] = MARK
    told.append({"role": "user", "content": "more"})
    request = decode_request(WireApi.MESSAGES, json.dumps({"model": "m", "messages": told}).encode())
    edits = RequestEdits(texts={PartKey(0, 0): "x"}, added={4: ("one", "two")})
    layout = layout_of(request, edits)
    assert tail_start(layout) == 7, "behind what is added to the fifth message"
    placed = place_marks(request, edits, layout, 3, (7, 20, 30))
    assert placed.marks_added == {4}
    assert len(placed.marked) == 2

"""What is asked of the providers themselves, and what their answers tell of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.errors import WireFormatError
from context_gatekeeper.types import BlockKind, NativeMode
from context_gatekeeper.wire import decode_request, encode_request
from context_gatekeeper.wire.native import (
    CLEAR_TOOLS,
    COMPACT,
    COMPACT_BETA,
    CONTEXT_BETA,
    KEEP_THINKING,
    NativeApplied,
    NativePlan,
    holds_compaction,
    is_about_native,
    native_applied,
    native_edits,
    paying_clearance,
    with_betas,
)
from context_gatekeeper.wire.pairing import find_violations
from context_gatekeeper.wire.records import PartKey, RequestEdits, WireApi, WireRequest
from tests.wire.requests import UNHURRIED, SampleRequest, sample_requests

MESSAGES, CHAT, RESPONSES = WireApi.MESSAGES, WireApi.CHAT, WireApi.RESPONSES
OFF, AUTO, PREFER = NativeMode.OFF, NativeMode.AUTO, NativeMode.PREFER
BOUND, FREE, GPT = "claude-opus-5-5", "claude-opus-4-8", "gpt-5.6"
TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]
ADAPTIVE = {"type": "adaptive"}
CLEARING = {
    "type": "clear_tool_uses_20250919",
    "trigger": {"type": "input_tokens", "value": 100_000},
    "keep": {"type": "tool_uses", "value": 12},
    "clear_at_least": {"type": "input_tokens", "value": 32_000},
}
KEEPING = {"type": "clear_thinking_20251015", "keep": "all"}
SUMMARY = {"type": "compaction", "content": "They fixed the lock.", "encrypted_content": "YQ", "signature": "c2ln"}


def messages(model: str = BOUND, **more: Any) -> WireRequest:
    body = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "tools": TOOLS, **more}
    return decode_request(MESSAGES, json.dumps(body).encode())


def responses(model: str = GPT, **more: Any) -> WireRequest:
    return decode_request(RESPONSES, json.dumps({"model": model, "input": "hi", **more}).encode())


def planned(request: WireRequest, mode: NativeMode = AUTO, **more: Any) -> NativePlan:
    settings = {"is_own_api": True, "clear_at_least": 31_905, "window_tokens": None, "takes_compaction": True, **more}
    return native_edits(request, mode, **settings)


def asked_of(plan: NativePlan, request: WireRequest) -> Any:
    """The value of ``context_management`` as it is sent."""
    return json.loads(plan.added_to(request.source.encode()))["context_management"]


# -- what is asked --------------------------------------------------------------------------------------


def test_nothing_is_asked_when_the_setting_is_off() -> None:
    plan = planned(messages(thinking=ADAPTIVE), OFF, window_tokens=200_000)
    assert (plan, plan.added_to(b'{"a": 1}')) == (NativePlan(), b'{"a": 1}')


def test_auto_leaves_clearing_to_the_provider_where_thinking_is_bound_to_its_prefix() -> None:
    request = messages(thinking=ADAPTIVE)
    plan = planned(request)
    assert asked_of(plan, request) == {"edits": [KEEPING, CLEARING]}
    assert (plan.asked, plan.betas, plan.delegates) == ((KEEP_THINKING, CLEAR_TOOLS), (CONTEXT_BETA,), True)


def test_auto_keeps_clearing_to_ourselves_elsewhere() -> None:
    request = messages(FREE, thinking={"type": "enabled", "budget_tokens": 1024})
    plan = planned(request)
    assert asked_of(plan, request) == {"edits": [KEEPING]}
    assert not plan.delegates


@pytest.mark.parametrize("thinking", [None, {"type": "disabled"}, "adaptive"])
def test_thinking_is_not_mentioned_where_it_is_off(thinking: object) -> None:
    assert planned(messages(thinking=thinking)).asked == (CLEAR_TOOLS,)
    assert planned(messages()).asked == (CLEAR_TOOLS,)
    assert planned(messages(FREE)) == NativePlan()


def test_prefer_clears_with_every_model_that_can() -> None:
    for model in (FREE, BOUND, "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001", "claude-fable-6"):
        assert planned(messages(model), PREFER, takes_compaction=False).asked == (CLEAR_TOOLS,)
    for model in ("claude-opus-4-1-20250805", "claude-sonnet-4-20250514", "claude-mythos-preview", "MiniMax-M3"):
        assert planned(messages(model, thinking=ADAPTIVE), PREFER, window_tokens=200_000) == NativePlan()


def test_a_request_without_tools_has_nothing_to_clear() -> None:
    assert planned(messages(tools=[]), PREFER, takes_compaction=False) == NativePlan()


def test_history_is_compacted_at_the_limit_of_the_window_as_the_last_resort() -> None:
    request = messages(FREE)
    plan = planned(request, window_tokens=200_000)
    trigger = {"type": "input_tokens", "value": 160_000}
    assert asked_of(plan, request) == {"edits": [{"type": "compact_20260112", "trigger": trigger}]}
    assert (plan.asked, plan.betas, plan.delegates) == ((COMPACT,), (COMPACT_BETA,), False)
    both = planned(messages(), window_tokens=1_000_001)
    assert both.betas == (CONTEXT_BETA, COMPACT_BETA)
    assert '"value":800000}' in both.member


@pytest.mark.parametrize(
    ("mode", "window", "threshold"),
    [
        (AUTO, None, None),
        (AUTO, 62_000, None),
        (AUTO, 63_000, 50_000),
        (AUTO, 272_000, 217_000),
        (PREFER, None, 150_000),
        (PREFER, 128_000, 102_000),
        (PREFER, 1_000_000, 150_000),
        (PREFER, 32_000, None),
    ],
)
def test_the_threshold_of_compaction_follows_the_window_in_thousands(
    mode: NativeMode, window: int | None, threshold: int | None
) -> None:
    request = responses()
    plan = planned(request, mode, window_tokens=window)
    if threshold is None:
        assert plan == NativePlan()
    else:
        assert asked_of(plan, request) == [{"type": "compaction", "compact_threshold": threshold}]
        assert (plan.asked, plan.betas, plan.delegates) == ((COMPACT,), (), mode is PREFER)


def test_a_client_that_would_drop_a_summary_gets_none() -> None:
    assert planned(responses(), PREFER, takes_compaction=False) == NativePlan()
    assert planned(messages(), window_tokens=200_000, takes_compaction=False).asked == (CLEAR_TOOLS,)


def test_models_that_cannot_compact_are_not_asked() -> None:
    for model in ("gpt-5", "gpt-5.1-codex", "gpt-4.1", "o3", "deepseek-chat", ""):
        assert planned(responses(model), PREFER) == NativePlan()
    for model in ("gpt-5.2", "gpt-5.3-codex", "openai/gpt-5.6", "gpt-6"):
        assert planned(responses(model), PREFER).asked == (COMPACT,)
    assert planned(messages("claude-haiku-4-5"), PREFER, window_tokens=200_000).asked == (CLEAR_TOOLS,)


def test_chat_completions_have_nothing_native() -> None:
    body = {"model": GPT, "messages": [{"role": "user", "content": "hi"}]}
    assert planned(decode_request(CHAT, json.dumps(body).encode()), PREFER, window_tokens=200_000) == NativePlan()


def test_nothing_is_asked_of_services_that_only_speak_the_same_form() -> None:
    for request in (messages(), responses()):
        assert planned(request, PREFER, window_tokens=200_000, is_own_api=False) == NativePlan()


@pytest.mark.parametrize("own", [{"context_management": {"edits": []}}, {"context_management": None}])
def test_what_a_client_asks_for_itself_is_not_touched(own: dict[str, Any]) -> None:
    assert planned(messages(**own), PREFER) == NativePlan()
    assert planned(responses(**own), PREFER) == NativePlan()


def test_a_client_that_compacts_on_demand_is_left_alone() -> None:
    # The API refuses the two together.
    assert planned(messages(compaction={"type": "summarize"}), PREFER) == NativePlan()


def test_words_inside_the_conversation_are_no_settings() -> None:
    talk = [{"role": "user", "content": [{"type": "text", "text": 'a } "context_management": {'}]}]
    request = messages(messages=[*talk, {"role": "assistant", "content": "ok"}, *talk], system='"compaction": {}')
    assert asked_of(planned(request), request) == {"edits": [CLEARING]}
    empty = decode_request(MESSAGES, b'{"model": "claude-opus-5-5", "messages": [], "tools": [1]}')
    assert planned(empty).asked == (CLEAR_TOOLS,)


# -- how it is sent -------------------------------------------------------------------------------------


def test_the_numbers_do_not_move_with_an_estimate() -> None:
    assert planned(messages(), clear_at_least=31_001) == planned(messages(), clear_at_least=32_000)
    assert '"value":1000}' in planned(messages(), clear_at_least=0).member


def test_spaces_behind_the_request_stay() -> None:
    plan = NativePlan(member='"b":2')
    assert plan.added_to(b' {"a": "}"\n} \n') == b' {"a": "}"\n,"b":2} \n'


@UNHURRIED
@given(sample=sample_requests(), mode=st.sampled_from([AUTO, PREFER]))
def test_everything_else_keeps_its_bytes_and_the_same_request_gives_the_same(
    sample: SampleRequest, mode: NativeMode
) -> None:
    def plan_of(known: WireRequest | None) -> NativePlan:
        request = replace(
            decode_request(sample.api, sample.raw, known), model=GPT if sample.api is RESPONSES else BOUND
        )
        return planned(request, mode, window_tokens=400_000)

    plan = plan_of(None)
    assert plan == plan_of(decode_request(sample.api, sample.raw))
    assert bool(plan.asked) is (sample.api is not CHAT)
    sent, end = plan.added_to(sample.raw), sample.raw.rindex(b"}")
    assert sent[:end] == sample.raw[:end]
    assert sent.endswith(sample.raw[end:])
    value = json.loads(sent)
    assert value.keys() - json.loads(sample.raw).keys() == ({"context_management"} if plan.asked else set())
    assert find_violations(sample.api, value) == find_violations(sample.api, json.loads(sample.raw))


def test_it_is_added_to_an_edited_request_too() -> None:
    request = messages()
    edited = encode_request(request, RequestEdits(texts={PartKey(0, 0): "bye"}))
    sent = json.loads(planned(request).added_to(edited))
    assert (sent["messages"][0]["content"], sent["context_management"]) == ("bye", {"edits": [CLEARING]})


@pytest.mark.parametrize(
    ("value", "names", "sent"),
    [
        ("", (), ""),
        ("", (CONTEXT_BETA,), CONTEXT_BETA),
        (" ", (CONTEXT_BETA, COMPACT_BETA), f"{CONTEXT_BETA},{COMPACT_BETA}"),
        ("b, a,b", (), "b, a,b"),
        ("b, a,b", ("a",), "b, a,b"),
        ("b, a,b", ("c", "a", "c"), "b, a,b,c"),
    ],
)
def test_names_of_betas_come_behind_the_clients(value: str, names: tuple[str, ...], sent: str) -> None:
    assert with_betas(value, names) == sent


@pytest.mark.parametrize(
    ("refusal", "is_ours"),
    [
        ("context_management: Extra inputs are not permitted", True),
        ("`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive", True),
        ("Unexpected value(s) `compact-2026-01-12` for the `anthropic-beta` header.", True),
        ("Unknown parameter: 'context_management[0].compact_threshold'.", True),
        ("messages.3.content.0: Invalid `signature` in `thinking` block.", False),
        ("messages.1: clear_text must be compact_ed", False),
        ("", False),
    ],
)
def test_a_refusal_of_what_was_asked_is_known_by_its_text(refusal: str, *, is_ours: bool) -> None:
    assert is_about_native(refusal) is is_ours


def test_a_clearing_must_free_what_its_rewrite_costs() -> None:
    found = {name: paying_clearance(PRICES[name]) for name in ("anthropic-5m", "anthropic-1h", "none", "local")}
    assert found == {"anthropic-5m": 32_000, "anthropic-1h": 39_000, "none": 1_000, "local": 100_000}
    freed, prices = found["anthropic-5m"], PRICES["anthropic-5m"]
    calls = freed / 1_300
    assert (prices.write - prices.read) * (100_000 - freed) <= prices.read * freed * calls


# -- what answers tell ----------------------------------------------------------------------------------

CLEARED = [
    {"type": "clear_thinking_20251015", "cleared_input_tokens": 500, "cleared_thinking_turns": 2},
    {"type": "clear_tool_uses_20250919", "cleared_input_tokens": 40_000, "cleared_tool_uses": 7},
]


def stream(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)


def test_a_whole_answer_and_a_stream_tell_what_was_cleared() -> None:
    body = {"type": "message", "content": [], "context_management": {"applied_edits": CLEARED}}
    end = {"type": "message_delta", "delta": {}, "context_management": {"applied_edits": CLEARED}}
    start = {"type": "message_start", "message": {"context_management": {"applied_edits": CLEARED[:1]}}}
    applied = NativeApplied(40_500, 7)
    assert native_applied(json.dumps(body).encode()) == applied
    assert native_applied(b"\xef\xbb\xbf " + json.dumps(body, indent=1).encode()) == applied
    assert native_applied(stream(start, {"type": "ping"}, end)) == applied
    assert native_applied(stream(start)) == NativeApplied(500)
    assert applied


@pytest.mark.parametrize(
    "told",
    [
        {"type": "message", "content": [SUMMARY]},
        {"type": "message", "content": [], "usage": {"iterations": [{"type": "compaction", "input_tokens": 3}]}},
        {"object": "response", "output": [{"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}]},
    ],
)
def test_a_whole_answer_tells_that_history_was_compacted(told: dict[str, Any]) -> None:
    assert native_applied(json.dumps(told).encode()) == NativeApplied(compacted=True)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
        {"type": "message_delta", "usage": {"iterations": [{"type": "compaction"}, {"type": "message"}]}},
        {"type": "response.output_item.added", "item": {"type": "compaction", "id": "cmp_1"}},
        {"type": "response.completed", "response": {"output": [{"type": "compaction"}]}},
    ],
)
def test_a_stream_tells_that_history_was_compacted(event: dict[str, Any]) -> None:
    assert native_applied(stream({"type": "ping"}, event)).compacted


def test_other_answers_tell_nothing() -> None:
    said = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": '"compaction" applied_edits'}}
    kept = {"type": "message_delta", "context_management": {"applied_edits": []}}
    assert not native_applied(stream(said, kept))
    assert not native_applied(b"")
    assert not native_applied(b"data: [DONE]\n\n")
    assert not native_applied(stream({"type": "message_stop"}))


def test_answers_of_any_shape_are_read() -> None:
    odd = [{"cleared_input_tokens": "x", "cleared_tool_uses": True}, "x"]
    event = {"type": "message_delta", "context_management": {"applied_edits": odd}, "message": 1, "usage": []}
    assert not native_applied(stream(event) + b'data: {"applied_edits"\n\ndata: {"half": "applied_edits')
    assert not native_applied(b'{"applied_edits": ')
    assert not native_applied(b'{"context_management": "applied_edits"}')


# -- summaries in a history -----------------------------------------------------------------------------


def history(*, middle: str = "middle") -> dict[str, Any]:
    return {
        "model": BOUND,
        "messages": [
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": [SUMMARY, {"type": "text", "text": middle}]},
            {"role": "user", "content": "last"},
        ],
    }


def test_a_summary_in_a_history_is_a_unit_that_edits_beside_it_leave_alone() -> None:
    request = decode_request(MESSAGES, json.dumps(history()).encode())
    part = request.messages[1].parts[0]
    assert (part.block.kind, part.block.name, part.text_span) == (BlockKind.OTHER, "compaction", None)
    assert json.loads(part.block.text) == SUMMARY
    edits = RequestEdits(texts={PartKey(1, 1): "shorter"}, marked=frozenset({PartKey(1, 0)}))
    assert json.loads(encode_request(request, edits)) == history(middle="shorter")
    with pytest.raises(WireFormatError, match="no text that can be replaced"):
        encode_request(request, RequestEdits(texts={PartKey(1, 0): "other"}))
    assert holds_compaction(request)


def test_a_compaction_item_is_a_unit_too() -> None:
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}
    said = {"role": "user", "content": "hi"}
    body = {"model": GPT, "input": [item, said]}
    request = decode_request(RESPONSES, json.dumps(body).encode())
    sent = encode_request(request, RequestEdits(texts={PartKey(1, 0): "bye"}))
    assert json.loads(sent)["input"] == [item, {**said, "content": "bye"}]
    assert holds_compaction(request)
    assert not holds_compaction(responses())
    assert not holds_compaction(messages(messages=[{"role": "user", "content": [{"type": "future"}]}]))

"""The provider's own context editing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_gatekeeper.testing import FakeProvider, FakeReply
from context_gatekeeper.testing.context_editing import PLACEHOLDER
from context_gatekeeper.testing.records import ReceivedRequest
from context_gatekeeper.types import NativeMode
from context_gatekeeper.wire import decode_request
from context_gatekeeper.wire.native import (
    NativeApplied,
    is_about_native,
    native_applied,
    native_edits,
    with_betas,
)
from context_gatekeeper.wire.records import WireApi
from tests.testing.asking import BOUND, CHAT, KEYS, MESSAGES, RESPONSES, ask, chat, responses, said, send

CONTEXT = {"anthropic-beta": "a-1, context-management-2025-06-27"}
COMPACT = {"anthropic-beta": "compact-2026-01-12"}
BOTH = {"anthropic-beta": "compact-2026-01-12,context-management-2025-06-27"}
CLEAR, THINK, SUMMARIZE = "clear_tool_uses_20250919", "clear_thinking_20251015", "compact_20260112"
ADAPTIVE = {"type": "adaptive"}
COUNT = f"{MESSAGES}/count_tokens"
WORDS = "word " * 400
"""Some 400 tokens."""
MARK = {"type": "ephemeral"}


def tokens(value: int) -> dict[str, Any]:
    return {"type": "input_tokens", "value": value}


def uses(value: int) -> dict[str, Any]:
    return {"type": "tool_uses", "value": value}


def editing(*edits: dict[str, Any], **more: Any) -> dict[str, Any]:
    return ask(context_management={"edits": list(edits)}, **more)


def clearing(**settings: Any) -> dict[str, Any]:
    """An edit that clears above 1,000 tokens all but the newest result."""
    return {"type": CLEAR, "trigger": tokens(1000), "keep": uses(1), **settings}


def looks(calls: int, *, is_marked: bool = False, name: str = "read") -> list[dict[str, Any]]:
    """A conversation in which the model has read so many pages."""
    talk: list[dict[str, Any]] = [said("Look at the pages.")]
    for number in range(calls):
        call = {"type": "tool_use", "id": f"t{number}", "name": f"{name}{number % 2}", "input": {"page": WORDS[:50]}}
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number} {WORDS}"}
        if is_marked and number == calls - 1:
            result["cache_control"] = MARK
        talk += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return talk


def prompt(request: ReceivedRequest) -> list[int]:
    """Numbers of the results that the model did not get."""
    sent = {block.place: block.digest for block in request.sent_blocks}
    changed = [
        block.place for block in request.blocks if block.digest != sent[block.place] and "content" in block.place
    ]
    return [(int(place.split("[")[1].split("]")[0]) - 2) // 2 for place in changed]


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "betas", "part"),
    [
        ({"edits": []}, {}, "context_management: Extra inputs are not permitted"),
        ({"edits": []}, {"anthropic-beta": "context-management"}, "context_management: Extra inputs"),
        ([], CONTEXT, "Input should be a valid list"),
        ({"edits": {}}, CONTEXT, "Input should be a valid list"),
        ({"edit": []}, CONTEXT, "context_management.edit: Extra inputs"),
        ({"edits": ["x"]}, CONTEXT, "edits.0: Input tag None"),
        ({"edits": [{"type": ["x"]}]}, CONTEXT, "edits.0: Input tag"),
        ({"edits": [{"type": CLEAR}, {"type": "clear_all"}]}, CONTEXT, "edits.1: Input tag 'clear_all'"),
        ({"edits": [{"type": SUMMARIZE}]}, CONTEXT, f"edits.0: Input tag '{SUMMARIZE}'"),
        ({"edits": [{"type": CLEAR}]}, COMPACT, f"edits.0: Input tag '{CLEAR}'"),
        ({"edits": [{"type": CLEAR, "least": 1}]}, CONTEXT, "edits.0.least: Extra inputs"),
        ({"edits": [{"type": CLEAR, "trigger": 5}]}, CONTEXT, "edits.0.trigger: Input should be valid"),
        ({"edits": [{"type": CLEAR, "trigger": tokens(0)}]}, CONTEXT, "edits.0.trigger"),
        ({"edits": [{"type": CLEAR, "trigger": {"type": "input_tokens"}}]}, CONTEXT, "edits.0.trigger"),
        ({"edits": [{"type": CLEAR, "keep": tokens(3)}]}, CONTEXT, "edits.0.keep"),
        ({"edits": [{"type": CLEAR, "keep": uses(True)}]}, CONTEXT, "edits.0.keep"),
        ({"edits": [{"type": CLEAR, "clear_at_least": uses(3)}]}, CONTEXT, "edits.0.clear_at_least"),
        ({"edits": [{"type": CLEAR, "exclude_tools": "read"}]}, CONTEXT, "edits.0.exclude_tools"),
        ({"edits": [{"type": CLEAR, "clear_tool_inputs": 1}]}, CONTEXT, "edits.0.clear_tool_inputs"),
        ({"edits": [{"type": THINK, "keep": "none"}]}, CONTEXT, "edits.0.keep"),
        ({"edits": [{"type": THINK, "keep": "all"}]}, CONTEXT, "requires `thinking` to be enabled or adaptive"),
        ({"edits": [{"type": SUMMARIZE, "trigger": tokens(49_999)}]}, COMPACT, "edits.0.trigger"),
        ({"edits": [{"type": SUMMARIZE, "instructions": 1}]}, COMPACT, "edits.0.instructions"),
    ],
)
def test_edits_of_an_unknown_form_or_without_their_beta_are_refused(
    asked: Any, betas: dict[str, str], part: str
) -> None:
    with FakeProvider() as provider:
        answers = [
            send(provider, path, ask(context_management=asked), headers={**KEYS, **betas}) for path in (MESSAGES, COUNT)
        ]
    for answer in answers:
        assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")
        assert part in answer.json["error"]["message"]


def test_edits_must_stand_in_their_order_and_not_beside_a_compaction_on_demand() -> None:
    late = editing({"type": CLEAR}, {"type": THINK}, thinking=ADAPTIVE)
    both = editing({"type": CLEAR}, compaction={"type": "summarize"})
    with FakeProvider() as provider:
        said_back = [send(provider, MESSAGES, body, **CONTEXT).json["error"]["message"] for body in (late, both)]
    assert "must be the first edit" in said_back[0]
    assert "cannot be combined" in said_back[1]


def test_every_field_of_the_types_is_taken() -> None:
    every = (
        {"type": THINK, "keep": {"type": "thinking_turns", "value": 2}},
        clearing(clear_at_least=tokens(9), exclude_tools=["a"], clear_tool_inputs=["b"]),
        {"type": SUMMARIZE, "trigger": tokens(50_000), "instructions": None, "pause_after_compaction": False},
    )
    plain = ({"type": THINK, "keep": {"type": "all"}}, {"type": CLEAR, "clear_at_least": None}, {"type": SUMMARIZE})
    with FakeProvider() as provider:
        for edits in (every, plain, ()):
            assert send(provider, MESSAGES, editing(*edits, thinking=ADAPTIVE), **BOTH).status == 200
        assert send(provider, MESSAGES, ask(context_management=None)).status == 200
        assert send(provider, MESSAGES, ask(context_management={}), **COMPACT).status == 200


def test_the_responses_api_takes_compaction_by_threshold_and_chat_nothing() -> None:
    entry = {"type": "compaction", "compact_threshold": 100_000}
    with FakeProvider() as provider:
        for good in ([entry], [{"type": "compaction"}], [], None):
            assert send(provider, RESPONSES, responses(context_management=good)).status == 200
        for bad in (entry, ["x"], [{"type": "clear"}], [{**entry, "keep": 1}], [{**entry, "compact_threshold": 0}]):
            assert send(provider, RESPONSES, responses(context_management=bad)).status == 400
        refused = send(provider, CHAT, chat(context_management=[entry]))
    assert "Unrecognized request argument" in refused.json["error"]["message"]


def test_a_summary_of_the_providers_may_stand_in_a_history() -> None:
    summary = {"type": "compaction", "content": "They fixed the lock.", "encrypted_content": "YQ"}
    talk = [said("hi"), {"role": "assistant", "content": [summary, {"type": "text", "text": "Yes."}]}, said("go")]
    with FakeProvider() as provider:
        assert send(provider, MESSAGES, ask(messages=talk)).status == 200


# -- clearing -------------------------------------------------------------------------------------


def test_above_the_trigger_all_but_the_newest_results_are_cleared() -> None:
    with FakeProvider() as provider:
        below, above = (
            send(provider, MESSAGES, editing(clearing(), messages=looks(calls)), **CONTEXT).json for calls in (2, 4)
        )
    assert below["context_management"] == {"applied_edits": []}
    (row,) = above["context_management"]["applied_edits"]
    assert (row["type"], row["cleared_tool_uses"]) == (CLEAR, 2)
    request = provider.requests[1]
    assert prompt(request) == [0, 1]  # at the third call, when the prompt had grown above the trigger
    sent = sum(block.tokens for block in request.sent_blocks)
    assert above["usage"]["input_tokens"] == sent - row["cleared_input_tokens"]
    assert row["cleared_input_tokens"] > 700
    assert request.results[0][1].startswith("0 word")


def test_the_stream_tells_it_at_its_end() -> None:
    with FakeProvider() as provider:
        whole = send(provider, MESSAGES, editing(clearing(), messages=looks(4)), **CONTEXT).json
        stream = send(provider, MESSAGES, editing(clearing(), messages=looks(4), stream=True), **CONTEXT)
        silent = send(provider, MESSAGES, ask(messages=looks(4), stream=True))
    assert stream.events[0]["message"]["context_management"] is None
    assert stream.events[-2]["context_management"] == whole["context_management"]
    assert stream.events[-2]["usage"]["input_tokens"] == whole["usage"]["input_tokens"]
    assert not any("context_management" in event for event in silent.events)


def test_the_count_of_tokens_tells_both_sides_of_the_edit() -> None:
    with FakeProvider() as provider:
        plain = send(provider, COUNT, ask(messages=looks(4))).json
        counted = send(provider, COUNT, editing(clearing(), messages=looks(4)), **CONTEXT).json
        usage = send(provider, MESSAGES, editing(clearing(), messages=looks(4)), **CONTEXT).json["usage"]
    assert counted["context_management"] == {"original_input_tokens": plain["input_tokens"]}
    assert counted["input_tokens"] == usage["input_tokens"] < plain["input_tokens"]


@pytest.mark.parametrize(
    ("settings", "cleared"),
    [
        # One at the third call; with two left the fourth is above the trigger again.
        ({"keep": uses(2)}, [0, 1]),
        ({"keep": uses(9)}, []),
        ({"keep": uses(0)}, [0, 1, 2]),
        ({"clear_at_least": tokens(5_000)}, []),
        # Two results of some 400 tokens are too little at the third call, three are enough at the fourth.
        ({"clear_at_least": tokens(1_000)}, [0, 1, 2]),
        ({"exclude_tools": ["read0"]}, [1]),
        ({"trigger": uses(3)}, [0, 1, 2]),
        ({"trigger": uses(4)}, []),
        ({"trigger": tokens(100_000)}, []),
    ],
)
def test_the_settings_of_a_clearing_are_honoured(settings: dict[str, Any], cleared: list[int]) -> None:
    with FakeProvider() as provider:
        send(provider, MESSAGES, editing(clearing(**settings), messages=looks(4)), **CONTEXT)
    assert prompt(provider.requests[0]) == cleared


def test_the_defaults_are_the_providers() -> None:
    with FakeProvider() as provider:
        send(provider, MESSAGES, editing({"type": CLEAR}, messages=looks(4)), **CONTEXT)
        send(provider, MESSAGES, editing({"type": CLEAR, "trigger": tokens(1)}, messages=looks(5)), **CONTEXT)
    assert [prompt(request) for request in provider.requests] == [[], [0, 1]]


@pytest.mark.parametrize(("inputs", "calls"), [(True, 2), (["read1"], 1), (["other"], 0), (False, 0)])
def test_arguments_leave_with_their_results_where_that_is_asked(inputs: Any, calls: int) -> None:
    with FakeProvider() as provider:
        send(provider, MESSAGES, editing(clearing(clear_tool_inputs=inputs), messages=looks(4)), **CONTEXT)
    request = provider.requests[0]
    changed = [one for one, other in zip(request.blocks, request.sent_blocks, strict=True) if one != other]
    assert sum(block.kind == "tool_use" for block in changed) == calls
    assert sum(block.kind == "tool_result" for block in changed) == 2


def test_a_result_that_is_shorter_than_its_placeholder_stays() -> None:
    talk = looks(4)
    for message in talk[2::2]:
        message["content"][0]["content"] = PLACEHOLDER[:3]
    with FakeProvider() as provider:
        body = editing(clearing(trigger=uses(1), keep=uses(0)), messages=talk)
        assert send(provider, MESSAGES, body, **CONTEXT).json["context_management"] == {"applied_edits": []}


def test_the_cache_is_broken_once_and_reads_what_was_cleared_from_then_on() -> None:
    edit = clearing(trigger=tokens(3_800), keep=uses(4), clear_at_least=tokens(2_000))
    with FakeProvider() as provider:
        for calls in range(9, 14):
            send(provider, MESSAGES, editing(edit, messages=looks(calls, is_marked=True)), **CONTEXT)
    assert [len(prompt(request)) for request in provider.requests] == [0, 6, 6, 6, 6]
    assert [request.usage.read > 1_000 for request in provider.requests] == [False, False, True, True, True]
    assert [found.request for found in provider.prefix_breaks()] == [1]


def test_thinking_is_bound_to_what_was_sent_not_to_what_was_left_of_it() -> None:
    edit = clearing()
    with FakeProvider([FakeReply("I see.")]) as provider:
        more: dict[str, Any] = {"model": BOUND, "thinking": ADAPTIVE}
        first = send(provider, MESSAGES, editing(edit, messages=looks(4), **more), **CONTEXT).json
        talk = [*looks(4), {"role": "assistant", "content": first["content"]}, said("go on")]
        again = send(provider, MESSAGES, editing(edit, messages=talk, **more), **CONTEXT)
        plain = send(provider, MESSAGES, ask(messages=talk, **more))
        talk[2]["content"][0]["content"] = PLACEHOLDER
        edited = send(provider, MESSAGES, editing(edit, messages=talk, **more), **CONTEXT)
    assert first["context_management"]["applied_edits"]
    assert (again.status, plain.status, edited.status) == (200, 200, 400)
    assert "bound to a different conversation" in edited.json["error"]["message"]


def test_thinking_that_is_dropped_and_results_that_are_cleared_go_together() -> None:
    drops = {**ADAPTIVE, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    betas = {"anthropic-beta": f"{CONTEXT['anthropic-beta']},thinking-binding-controls-2026-08-01"}
    with FakeProvider() as provider:
        thought = send(provider, MESSAGES, ask(model=BOUND, thinking=ADAPTIVE)).json["content"][0]
        talk = looks(4)
        talk[1]["content"].insert(0, thought)
        answer = send(provider, MESSAGES, editing(clearing(), messages=talk, model=BOUND, thinking=drops), **betas).json
    assert len(answer["input_transformations"]) == 1
    assert answer["context_management"]["applied_edits"][0]["cleared_tool_uses"] == 2


def test_what_the_gateway_asks_for_is_understood() -> None:
    body = {**ask(model=BOUND, thinking=ADAPTIVE, messages=looks(4), stream=True), "tools": [{"name": "read0"}]}
    request = decode_request(WireApi.MESSAGES, json.dumps(body).encode())
    plan = native_edits(
        request,
        NativeMode.PREFER,
        is_own_api=True,
        clear_at_least=1,
        window_tokens=200_000,
        takes_compaction=True,
    )
    content = plan.added_to(request.source.encode()).replace(b"100000", b"1500").replace(b'"value":12', b'"value":1')
    with FakeProvider() as provider:
        refused = send(provider, MESSAGES, content)
        answer = send(provider, MESSAGES, content, **{"anthropic-beta": with_betas("a-1", plan.betas)})
    assert (refused.status, is_about_native(refused.json["error"]["message"])) == (400, True)
    (row,) = provider.requests[0].applied_edits
    assert native_applied(answer.content) == NativeApplied(row["cleared_input_tokens"], row["cleared_tool_uses"])
    assert row["cleared_tool_uses"] == 3


def test_minimax_knows_nothing_of_it() -> None:
    with FakeProvider() as provider:
        body = {**editing(clearing(), messages=looks(4)), "model": "MiniMax-M3"}
        answer = send(provider, f"/anthropic{MESSAGES}", body)
    assert (answer.status, "context_management" in answer.json) == (200, False)

"""Whatever a provider sends: nothing is raised, and how the bytes are cut makes no difference."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.errors import WireFormatError
from context_gatekeeper.wire.hidden_anthropic import HiddenMessages
from context_gatekeeper.wire.hidden_calls import HiddenCalls
from context_gatekeeper.wire.hidden_chat import HiddenChat
from context_gatekeeper.wire.hidden_draft import HiddenDraft, edited
from context_gatekeeper.wire.hidden_frames import FrameReader
from context_gatekeeper.wire.hidden_responses import HiddenResponses
from context_gatekeeper.wire.own_tool import OWN_TOOL, continued
from context_gatekeeper.wire.records import WireApi
from tests.wire.answer_samples import SAMPLES, streamed
from tests.wire.hidden_exchanges import in_pieces, request_text
from tests.wire.requests import UNHURRIED

DRAFTS = pytest.mark.parametrize("draft", [HiddenMessages, HiddenChat, HiddenResponses])
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(["", "tool_use", OWN_TOOL, "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "name", "id"]), inner),
    max_leaves=4,
)
OWN: dict[WireApi, Any] = {
    WireApi.MESSAGES: {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "c", "name": OWN_TOOL, "input": {}},
    },
    WireApi.CHAT: {
        "choices": [
            {"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": OWN_TOOL}}]}},
        ]
    },
    WireApi.RESPONSES: {
        "type": "response.output_item.done",
        "output_index": 1,
        "item": {"type": "function_call", "call_id": "c", "name": OWN_TOOL, "arguments": ""},
    },
}


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values inside."""
    named = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, one in named for path in ((*here, key), *places(one, (*here, key)))]


@st.composite
def broken_events(draw: st.DrawFn, api: WireApi) -> list[Any]:
    """Events of a sample and of a call of ours, some with junk in a place, some missing, in any order."""
    events = [json.loads(json.dumps(event)) for event in (*SAMPLES[api], OWN[api])]
    chosen = [json.loads(json.dumps(one)) for one in draw(st.lists(st.sampled_from(events), max_size=12))]
    for event in chosen:
        if isinstance(event, dict) and draw(st.booleans()):
            *path, last = draw(st.sampled_from(places(event)))
            holder: Any = event
            for step in path:
                holder = holder[step]
            holder[last] = draw(JUNK)
    return chosen


@UNHURRIED
@given(data=st.data(), api=st.sampled_from(list(WireApi)), cuts=st.lists(st.integers(0, 10**5), max_size=9))
def test_broken_answers_raise_nothing_and_every_cut_gives_the_same(
    data: st.DataObject, api: WireApi, cuts: list[int]
) -> None:
    answers = [streamed(*events) for events in data.draw(st.lists(broken_events(api), min_size=1, max_size=3))]
    outcomes = []
    for some_cuts in ([], cuts):
        hidden = HiddenCalls(api, is_stream=True)
        given_bytes, finished = b"", []
        for number, content in enumerate(answers):
            if number:
                hidden.next_answer()
            given_bytes += b"".join([hidden.feed(piece) for piece in in_pieces(content, some_cuts)])
            finished.append(hidden.finish())
            given_bytes += finished[-1].rest
        outcomes.append((given_bytes, finished, hidden.released()))
    assert outcomes[0] == outcomes[1]
    check_that_it_goes_on(api, outcomes[0][1][-1])


@UNHURRIED
@given(data=st.data(), api=st.sampled_from(list(WireApi)), junk=JUNK)
def test_broken_whole_answers_raise_nothing(data: st.DataObject, api: WireApi, junk: object) -> None:
    call = json.loads(json.dumps(OWN[api]))
    body: dict[str, Any] = {
        "content": [call.get("content_block")],
        "choices": [{"message": call.get("choices", [{"delta": {}}])[0]["delta"], "finish_reason": "stop"}],
        "output": [call.get("item")],
        "status": "completed",
        "stop_reason": "tool_use",
        "usage": {"output_tokens": 3, "completion_tokens": 3, "output_tokens_details": {"a": 1}},
    }
    *path, last = data.draw(st.sampled_from(places(body)))
    holder: Any = body
    for step in path:
        holder = holder[step]
    holder[last] = junk
    hidden = HiddenCalls(api, is_stream=False)
    hidden.feed(json.dumps(body).encode())
    check_that_it_goes_on(api, hidden.finish())


def check_that_it_goes_on(api: WireApi, finished: Any) -> None:
    """Raise where an answer that can go on does not."""
    if finished.is_continuable:
        text = continued(api, request_text(api), finished.blocks, {call.id: "x" for call in finished.calls})
        json.loads(text)


@DRAFTS
def test_counts_of_output_are_added_up_over_answers(draft: type[HiddenDraft]) -> None:
    hidden = draft()
    usage = {hidden.output_key: 5, hidden.details_key: {"a": 2, "b": None}, "total_tokens": 50, "input_tokens": 45}
    assert hidden.usage_changes((), usage) == {}
    for _ in range(2):
        hidden.count(usage)
        hidden.next_answer()
    hidden.count(None)
    assert hidden.usage_changes(("usage",), usage) == {
        ("usage", hidden.output_key): "15",
        ("usage", hidden.details_key, "a"): "6",
        ("usage", "total_tokens"): "60",
    }
    assert hidden.usage_changes((), {"total_tokens": "no"}) == {}


@DRAFTS
def test_an_end_is_held_back_for_calls_of_ours_alone(draft: type[HiddenDraft]) -> None:
    hidden = draft()
    assert hidden.hold(b"a") == b"a"
    hidden.has_own_calls = True
    assert hidden.hold(b"b") == b""
    hidden.has_client_calls = True
    assert hidden.hold(b"c") == b"c"
    assert hidden.held == [b"b"]


@DRAFTS
def test_the_cause_is_the_first_thing_that_is_wrong(draft: type[HiddenDraft]) -> None:
    hidden = draft()
    causes = [hidden.cause()]
    hidden.is_complete = True
    causes.append(hidden.cause())
    hidden.has_own_calls = hidden.has_client_calls = True
    causes.append(hidden.cause())
    hidden.has_client_calls = False
    hidden.stop_reason = "x" * 99
    causes.append(hidden.cause())
    hidden.stop_reason, hidden.oddity = next(iter(hidden.going_on)), "odd"
    causes.append(hidden.cause())
    assert causes == [
        "it has no end",
        "it does not call the tool",
        "it calls tools of the client's too",
        f"it ended with '{'x' * 60}'",
        "odd",
    ]


def test_an_event_is_edited_only_where_it_must_be() -> None:
    frame = FrameReader().feed(b'data: {"a":1,"a":2}\n\n')[0]
    assert edited(frame, {}, {}) is frame.raw
    with pytest.raises(WireFormatError):
        edited(frame, {}, {("b",): "1"})

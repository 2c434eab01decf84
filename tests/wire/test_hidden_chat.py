"""Own calls hidden in answers of Chat Completions, as OpenAI and others write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_gatekeeper.testing.records import FakeReply
from context_gatekeeper.wire.own_tool import OWN_TOOL
from tests.wire.answer_samples import chat_call, chat_chunk, chat_delta, streamed
from tests.wire.hidden_exchanges import CHAT, event_values, expand, fed, play, read, read_file, request_text

OWN = chat_call(0, '{"handle": "p1"}', id="call_o", name=OWN_TOOL, type="function")
OTHER = chat_call(1, "{}", id="call_c", name="Read", type="function")
ROLE = chat_delta(role="assistant", content="")


def ending(reason: str = "tool_calls", **more: Any) -> dict[str, Any]:
    return chat_chunk({"index": 0, "delta": {}, "finish_reason": reason}, **more)


def messages_of(*chunks: Any) -> dict[str, Any]:
    """The message that goes back."""
    done, _ = fed(CHAT, streamed(*chunks, ending(), "[DONE]"))
    assert done.finished[0].cause == ""
    message: dict[str, Any] = json.loads(done.finished[0].blocks[0])
    return message


def test_texts_thinking_and_calls_go_back_in_one_message() -> None:
    seal = {"extra_content": {"google": {"thought_signature": "QQ"}}}
    assert messages_of(
        ROLE,
        chat_delta(reasoning_content="Th", reasoning=None),
        chat_delta(reasoning_content="ink", refusal=None, name="MiniMax AI"),
        json.dumps(chat_delta(content="a\ud83d")),
        json.dumps(chat_delta(content="\ude00")),
        chat_delta(tool_calls=[chat_call(0, '{"han', id="call_o", name=OWN_TOOL, **seal)]),
        chat_delta(tool_calls=[chat_call(0, 'dle": "p1"}')]),
    ) == {
        "role": "assistant",
        "content": "a😀",
        "reasoning_content": "Think",
        "tool_calls": [
            {
                "type": "function",
                "id": "call_o",
                **seal,
                "function": {"name": OWN_TOOL, "arguments": '{"handle": "p1"}'},
            }
        ],
    }


def test_thinking_in_details_is_put_together() -> None:
    told = [
        {"type": "reasoning.text", "index": 0, "text": "Lo", "signature": None},
        {"type": "reasoning.text", "index": 0, "text": "ok", "signature": "c2ln", "format": None},
        {"type": "reasoning.text", "index": 0, "signature": None},
        {"type": "reasoning.encrypted", "index": 1, "data": "QQ"},
        {"type": "reasoning.text", "index": 2, "text": "All"},
        {"type": "reasoning.text", "index": 2, "text": "All of it"},
    ]
    message = messages_of(*(chat_delta(reasoning_details=[one]) for one in told), chat_delta(tool_calls=[OWN]))
    assert message["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "text": "Look", "signature": "c2ln", "format": None},
        {"type": "reasoning.encrypted", "index": 1, "data": "QQ"},
        {"type": "reasoning.text", "index": 2, "text": "All of it"},
    ]
    assert message["content"] is None


@pytest.mark.parametrize("told", [{"audio": {"id": "a"}}, {"content": [{"type": "text"}]}, {"new": 1}])
def test_a_delta_that_is_not_known_cannot_go_back(told: dict[str, Any]) -> None:
    done, hidden = fed(CHAT, streamed(chat_delta(**told), chat_delta(tool_calls=[OWN]), ending(), "[DONE]"))
    assert done.finished[0].cause == "a delta is of a kind that is not known"
    assert event_values(done.given) == [chat_delta(**told)]
    assert hidden.released() == streamed(ending("stop"), "[DONE]")


def test_a_chunk_may_hold_pieces_of_several_calls() -> None:
    done, hidden = fed(
        CHAT,
        streamed(
            ROLE,
            chat_delta(tool_calls=[OWN, OTHER]),
            chat_delta(content="x", tool_calls=[chat_call(0, " ")]),
            chat_delta(tool_calls=[chat_call(1, " "), chat_call(0, " ")]),
            ending(),
        ),
    )
    assert [chunk["choices"][0]["delta"] for chunk in event_values(done.given)] == [
        {"role": "assistant", "content": ""},
        {"tool_calls": [{**OTHER, "index": 0}]},
        {"content": "x"},
        {"tool_calls": [chat_call(0, " ")]},
        {},
    ]
    assert hidden.released() == b""


def test_whole_calls_in_the_last_chunk_are_hidden_too() -> None:
    """Gemini's route sends calls whole, without an index or all with the same, and the end with them."""
    first = chat_chunk(
        {
            "index": 0,
            "delta": {"role": "assistant", "content": "Hm.", "tool_calls": [{**OWN, "index": 0}]},
            "finish_reason": "stop",
        },
        usage={"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 9},
    )
    bare = {key: value for key, value in OWN.items() if key != "index"}
    second = chat_delta(role="assistant", tool_calls=[{**bare, "id": "call_2"}, {**bare, "id": "call_3"}])
    third = {**json.loads(json.dumps(first).replace("Hm.", "So.")), "id": "chatcmpl-2"}
    last = chat_chunk(
        {"index": 0, "delta": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"},
        usage={"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 12},
    )
    answers = [(first,), (second, ending()), (third,), (last,)]
    done, _ = fed(CHAT, *(streamed(*chunks, "[DONE]") for chunks in answers))
    assert [[call.id for call in one.calls] for one in done.finished] == [
        ["call_o"],
        ["call_2", "call_3"],
        ["call_o"],
        [],
    ]
    told = event_values(done.given)
    assert [chunk["choices"][0]["delta"] for chunk in told] == [
        {"role": "assistant", "content": "Hm."},
        {"content": "So."},
        {"content": "Done."},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in told] == [None, None, "stop"]
    assert [chunk.get("usage") for chunk in told] == [
        None,
        None,
        {"prompt_tokens": 7, "completion_tokens": 7, "total_tokens": 16},
    ]
    assert {chunk["id"] for chunk in told} == {"chatcmpl-1"}


def test_calls_that_share_an_index_are_told_apart_by_their_ids() -> None:
    pieces = [OWN, {**OTHER, "index": 0}, {**OTHER, "index": 0, "id": "call_d"}]
    done, _ = fed(CHAT, streamed(*(chat_delta(tool_calls=[piece]) for piece in pieces), ending()))
    begun = [piece for chunk in event_values(done.given)[:-1] for piece in chunk["choices"][0]["delta"]["tool_calls"]]
    assert [(piece["index"], piece["id"]) for piece in begun] == [(0, "call_c"), (1, "call_d")]


def test_arguments_may_be_an_object() -> None:
    call = {"index": 0, "id": "call_o", "function": {"name": OWN_TOOL, "arguments": {"handle": "p1"}}}
    done, _ = fed(CHAT, streamed(chat_delta(tool_calls=[call]), ending()))
    assert done.finished[0].calls[0].arguments == '{"handle":"p1"}'


def test_a_function_call_of_the_old_form_is_the_clients() -> None:
    old = chat_delta(function_call={"name": "f", "arguments": "{}"})
    done, _ = fed(CHAT, streamed(old, chat_delta(tool_calls=[OWN]), ending("function_call")))
    assert done.finished[0].has_client_calls
    assert event_values(done.given) == [old, ending("function_call")]


def test_chunks_go_on_with_the_first_answers_id_and_role() -> None:
    one, two = ({"id": f"chatcmpl-{number}", "created": number} for number in (1, 2))
    filters = {"choices": [], "prompt_filter_results": []}
    other = {"choices": [{"index": 1, "delta": {"content": "?"}}, 5]}
    done, _ = fed(
        CHAT,
        streamed({**ROLE, **one}, {**chat_delta(tool_calls=[OWN]), **one}, {**ending(), **one}),
        streamed(
            {**filters, **two},
            {**ROLE, **two},
            {**chat_delta(role="assistant", content="x"), **two},
            other,
            {**ending("stop"), **two},
            {"choices": [], "usage": {"completion_tokens": 1}, **two},
            "[DONE]",
        ),
    )
    assert event_values(done.given) == [
        {**ROLE, **one},
        {**filters, **one},
        {**chat_delta(content="x"), **one},
        other,
        {**ending("stop"), **one},
        {"choices": [], "usage": {"completion_tokens": 1}, **one},
    ]
    assert done.given.endswith(b"data: [DONE]\n\n")


def test_the_role_comes_with_the_first_chunk_that_says_something() -> None:
    hidden_role = chat_delta(role="assistant", content=None, tool_calls=[OWN])
    done, _ = fed(CHAT, streamed(hidden_role, ending()), streamed(ROLE, chat_delta(content="x"), ending("stop")))
    assert event_values(done.given) == [ROLE, chat_delta(content="x"), ending("stop")]


def test_counts_behind_the_end_are_held_with_it() -> None:
    late = chat_chunk({"index": 0, "delta": {"role": "assistant", "content": ""}}, usage={"completion_tokens": 4})
    content = streamed(ROLE, chat_delta(tool_calls=[OWN]), ending(), late, "[DONE]")
    done, hidden = fed(CHAT, content)
    assert event_values(done.given) == [ROLE]
    assert done.finished[0].held == streamed(ending("stop"), late, "[DONE]")
    assert hidden.released() == done.finished[0].held


def test_counts_beside_our_call_are_not_lost() -> None:
    piece = {**chat_delta(tool_calls=[OWN]), "usage": {"completion_tokens": 4}}
    done, _ = fed(CHAT, streamed(ROLE, piece, ending()))
    assert event_values(done.given) == [ROLE, {**chat_delta(), "usage": {"completion_tokens": 4}}]


def test_counts_inside_the_choice_are_added_up() -> None:
    counted = {"index": 0, "delta": {}, "finish_reason": "stop", "usage": {"completion_tokens": 4}}
    done, _ = fed(
        CHAT, streamed(ROLE, chat_delta(tool_calls=[OWN]), chat_chunk(counted)), streamed(chat_chunk(counted))
    )
    assert event_values(done.given)[-1]["choices"][0]["usage"] == {"completion_tokens": 8}


def test_minimax_says_nothing_twice() -> None:
    source = request_text(CHAT, model="MiniMax-M2")
    asks, answers = FakeReply("One.", "", calls=(expand(),)), FakeReply("Two.", "")
    done = play(CHAT, [asks, answers], source=source)
    events = event_values(done.given)
    assert "".join(c["delta"].get("content", "") for e in events for c in e["choices"]) == "One.Two."
    assert not any("message" in choice for event in events for choice in event["choices"])
    assert events[-1]["usage"]["completion_tokens"] > 0
    alone = play(CHAT, [answers], source=source)
    assert any("message" in choice for event in event_values(alone.given) for choice in event["choices"])


# -- whole answers -----------------------------------------------------------------------------------


def whole(message: dict[str, Any], reason: str = "tool_calls", **more: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    return json.dumps({"id": "c", "choices": [choice], **more}).encode()


def test_texts_of_whole_answers_are_joined() -> None:
    asks = whole({"content": "One.", "reasoning_content": "Hm.", "tool_calls": [OWN]}, usage={"completion_tokens": 2})
    done, _ = fed(CHAT, asks, asks, whole({"content": None}, "stop", usage={"completion_tokens": 3}), is_stream=False)
    body = json.loads(done.given)
    assert body["choices"][0]["message"] == {
        "role": "assistant",
        "content": "One.One.",
        "reasoning_content": "Hm.Hm.",
    }
    assert body["usage"] == {"completion_tokens": 7}
    assert json.loads(done.finished[0].blocks[0])["tool_calls"] == [OWN]


def test_a_text_is_put_in_front_of_parts() -> None:
    parts = [{"type": "text", "text": "Two."}]
    asks = whole({"content": "One.", "tool_calls": [OWN]})
    done, _ = fed(CHAT, asks, whole({"content": parts}, "stop"), is_stream=False)
    assert json.loads(done.given)["choices"][0]["message"]["content"] == [{"type": "text", "text": "One."}, *parts]
    stuck, _ = fed(CHAT, whole({"content": parts, "tool_calls": [OWN]}), is_stream=False)
    assert stuck.finished[0].cause == "what it says is no text"


def test_only_our_calls_leave_a_whole_answer() -> None:
    done, _ = fed(CHAT, whole({"content": None, "tool_calls": [OWN, OTHER]}), is_stream=False)
    assert json.loads(done.given)["choices"][0]["message"]["tool_calls"] == [OTHER]
    old, _ = fed(CHAT, whole({"tool_calls": [OWN], "function_call": {"name": "f"}}), is_stream=False)
    assert old.finished[0].has_client_calls
    assert json.loads(old.given)["choices"][0]["finish_reason"] == "tool_calls"


def test_a_whole_answer_cut_short_keeps_its_reason() -> None:
    _, hidden = fed(CHAT, whole({"content": "a", "tool_calls": [OWN]}, "length"), is_stream=False)
    assert read(CHAT, hidden.released()).stop_reason == "length"


def test_calls_of_the_client_stay_as_they_are() -> None:
    done = play(CHAT, [FakeReply(calls=(read_file(),))], is_stream=False)
    assert json.loads(done.given)["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "Read"

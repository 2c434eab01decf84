"""Own calls hidden in answers of OpenAI Responses: items, places, numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.testing.records import FakeReply
from context_gatekeeper.wire.hidden_calls import HiddenCalls
from context_gatekeeper.wire.own_tool import OWN_TOOL, with_own_tool
from tests.wire.answer_samples import RESPONSES_ITEMS, RESPONSES_STREAM, item_delta, item_event, response, streamed
from tests.wire.hidden_exchanges import (
    RESPONSES,
    Exchange,
    event_values,
    expand,
    fed,
    feed_all,
    play,
    read,
    read_file,
    request_text,
    stream_of,
    whole_of,
)
from tests.wire.requests import UNHURRIED

OWN = {"type": "function_call", "id": "fc_9", "call_id": "call_9", "name": OWN_TOOL, "arguments": '{"handle":"p1"}'}
TEXT = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
CREATED = {"type": "response.created", "response": response("in_progress", output=[])}


def completed(*output: Any, **more: Any) -> dict[str, Any]:
    return {"type": "response.completed", "response": response("completed", output=list(output), **more)}


def told(place: int, item: Any) -> tuple[dict[str, Any], ...]:
    return item_event("added", place, {**item, "status": "in_progress"}), item_event("done", place, item)


def numbered(*events: dict[str, Any], start: int = 0) -> list[dict[str, Any]]:
    return [{"sequence_number": number, **event} for number, event in enumerate(events, start)]


def test_events_of_our_call_are_left_out_by_place_or_id() -> None:
    by_id = {"type": "response.new", "item_id": "fc_9"}
    grown = item_delta("function_call_arguments", 0, "{", item_id="fc_9")
    content = streamed(
        *numbered(CREATED, *told(0, OWN), by_id, grown, *told(1, TEXT), {"type": "response.new"}, CREATED)
    )
    done, _ = fed(RESPONSES, content)
    added, finished = told(0, TEXT)
    assert event_values(done.given) == numbered(CREATED, added, finished, {"type": "response.new"}, CREATED)


def test_numbers_go_on_behind_an_end_that_was_held_back() -> None:
    first = numbered(CREATED, *told(0, TEXT), *told(1, OWN), completed(TEXT, OWN), start=5)
    second = numbered(CREATED, *told(0, TEXT), completed(TEXT))
    done, hidden = fed(RESPONSES, streamed(*first))
    assert json.loads(hidden.released().removeprefix(b"data: "))["sequence_number"] == 8
    done, _ = fed(RESPONSES, streamed(*first), streamed(*second))
    events = event_values(done.given)
    assert [event["sequence_number"] for event in events] == [5, 6, 7, 8, 9, 10]
    assert [event.get("output_index") for event in events] == [None, 0, 0, 1, 1, None]
    assert events[-1]["response"]["output"] == [TEXT, TEXT]


def test_events_may_lack_numbers_and_places() -> None:
    def bare(event: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in event.items() if key != "output_index"}

    nameless = {key: value for key, value in OWN.items() if key != "id"}
    content = streamed(CREATED, *map(bare, told(0, TEXT)), *map(bare, told(1, nameless)), completed())
    done, hidden = fed(RESPONSES, content, content)
    assert done.finished[0].is_continuable
    assert [json.loads(text) for text in done.finished[0].blocks] == [TEXT, nameless]
    given = streamed(CREATED, *map(bare, told(0, TEXT)))
    assert done.given == given + streamed(*map(bare, told(0, TEXT)))
    assert hidden.released() == streamed(completed())


def test_an_end_without_output_stays_without() -> None:
    """Codex' own backend tells the items in their events alone."""
    done, _ = fed(
        RESPONSES,
        streamed(CREATED, *told(0, TEXT), *told(1, OWN), completed()),
        streamed(CREATED, *told(0, TEXT), completed()),
    )
    assert event_values(done.given)[-1] == completed()
    assert len(read(RESPONSES, done.given).message.blocks) == 2


def test_an_item_that_was_not_told_whole_cannot_go_back() -> None:
    done, _ = fed(RESPONSES, streamed(CREATED, *told(0, TEXT), told(1, OWN)[0], completed()))
    assert done.finished[0].cause == "an item was not told whole"


def test_an_end_may_tell_of_calls_that_no_event_told_of() -> None:
    done, hidden = fed(RESPONSES, streamed(CREATED, completed(TEXT, OWN, usage={"output_tokens": 3})))
    assert [call.id for call in done.finished[0].calls] == ["call_9"]
    assert hidden.released() == streamed(completed(TEXT, usage={"output_tokens": 3}))


@pytest.mark.parametrize(
    ("item", "is_clients"),
    [
        ({"type": "function_call", "name": "f"}, True),
        ({"type": "custom_tool_call", "name": OWN_TOOL}, True),
        ({"type": "local_shell_call"}, True),
        ({"type": "mcp_approval_request"}, True),
        ({"type": "tool_search_call", "execution": "client"}, True),
        ({"type": "tool_search_call", "execution": "server"}, False),
        ({"type": "web_search_call"}, False),
        ({"type": "mcp_call"}, False),
        ({"type": "item_of_next_year"}, False),
        ("no item", False),
    ],
)
def test_calls_that_the_client_must_answer_end_the_rounds(item: Any, is_clients: bool) -> None:
    done, _ = fed(RESPONSES, streamed(CREATED, item_event("done", 0, item), *told(1, OWN), completed(item, OWN)))
    assert done.finished[0].has_client_calls is is_clients
    assert done.finished[0].is_continuable is not is_clients
    whole, _ = fed(RESPONSES, json.dumps(response("completed", output=[item, OWN])).encode(), is_stream=False)
    assert whole.finished[0].has_client_calls is is_clients


@pytest.mark.parametrize("kind", ["failed", "incomplete"])
def test_another_end_is_given_without_our_call(kind: str) -> None:
    end = {"type": f"response.{kind}", "response": response(kind, output=[OWN])}
    done, hidden = fed(RESPONSES, streamed(CREATED, *told(0, OWN), end))
    assert done.finished[0].cause == f"it ended with '{kind}'"
    assert event_values(done.given + hidden.released())[-1]["response"]["output"] == []


def test_the_end_bears_the_first_answers_id_and_the_providers_is_told() -> None:
    ends = [completed(OWN, usage={"output_tokens": 4}), completed(TEXT, usage={"output_tokens": 3, "total_tokens": 9})]
    streams = [streamed(CREATED, *told(0, item), end) for item, end in zip((OWN, TEXT), ends, strict=True)]
    second = streams[1].replace(b"resp_1", b"resp_2")
    done, hidden = fed(RESPONSES, streams[0], second)
    last = event_values(done.given)[-1]["response"]
    assert last["id"] == "resp_1"
    assert hidden.renamed_id == ("resp_1", "resp_2")
    assert last["usage"] == {"output_tokens": 7, "total_tokens": 13}
    _, same = fed(RESPONSES, *streams)
    assert same.renamed_id is None
    whole = [json.dumps(end["response"]).encode() for end in ends]
    done, hidden = fed(RESPONSES, whole[0], whole[1].replace(b"resp_1", b"resp_2"), is_stream=False)
    assert json.loads(done.given)["id"] == "resp_2"
    assert hidden.renamed_id is None


def test_a_whole_answer_in_work_passes() -> None:
    content = json.dumps(response("queued", output=[])).encode()
    done, _ = fed(RESPONSES, content, is_stream=False)
    assert done.given == content
    assert not done.finished[0].is_complete


def test_a_sample_with_all_kinds_of_items_joins_on() -> None:
    first = streamed(CREATED, *told(0, TEXT), *told(1, OWN), completed(TEXT, OWN))
    done, _ = fed(RESPONSES, first, streamed(*RESPONSES_STREAM))
    alone = read(RESPONSES, streamed(*RESPONSES_STREAM)).message.blocks
    assert read(RESPONSES, done.given).message.blocks[1:] == alone
    assert [json.loads(text) for text in done.finished[1].blocks] == []
    assert len(alone) > len(RESPONSES_ITEMS)


# -- tools that a response repeats -----------------------------------------------------------------

THEIRS = '{ "type":"function", "name" : "Read","description":"\\u0063gk \u5168", "strict":null }'
OURS = json.dumps({"type": "function", "name": OWN_TOOL, "parameters": {"type": "object"}, "strict": False})


def spelled(tools: str, status: str, more: str = "") -> str:
    """A response as text, with spaces and escapes of its own."""
    return f'{{"id" :"resp_1",  "status": "{status}","output":[ ] ,"tools": {tools}, "top_p":1.0{more} }}'


@pytest.mark.parametrize(
    "kind", ["created", "queued", "in_progress", "completed", "incomplete", "failed", "cancelled", "of_next_year"]
)
@pytest.mark.parametrize(
    ("tools", "without"),
    [
        (f"[{THEIRS}, {OURS}]", f"[{THEIRS}]"),
        (f"[ {THEIRS} ,\t{OURS} ]", f"[ {THEIRS} ]"),
        (f"[{OURS}, {THEIRS}]", f"[{THEIRS}]"),
        (f"[{THEIRS},{OURS},null, 1]", f"[{THEIRS},null, 1]"),
        (f"[{OURS}]", "[]"),
    ],
)
def test_our_tool_is_taken_out_of_the_tools_and_all_else_keeps_its_bytes(kind: str, tools: str, without: str) -> None:
    def event(told: str) -> bytes:
        data = f'{{ "type":"response.{kind}","sequence_number": 7 ,"response":{spelled(told, kind)}}}'
        return f"event: response.{kind}\nid: 3\ndata: {data}\n\n".encode()

    done, hidden = fed(RESPONSES, event(tools))
    assert done.given == event(without)
    assert hidden.is_touched
    assert hidden.released() == b""
    whole, hidden = fed(RESPONSES, spelled(tools, kind).encode(), is_stream=False)
    assert whole.given == spelled(without, kind).encode()
    assert hidden.is_touched


@pytest.mark.parametrize("tools", ["[]", "null", '"cgk_expand"', "{}", f"[{THEIRS}]", '["cgk_expand"]'])
def test_tools_without_ours_pass_to_the_last_byte(tools: str) -> None:
    content = f'data:{{"type":"response.completed","response":{spelled(tools, "completed")}}}\n\n'.encode()
    done, hidden = fed(RESPONSES, content)
    assert done.given == content
    whole, hidden_whole = fed(RESPONSES, spelled(tools, "completed").encode(), is_stream=False)
    assert whole.given == spelled(tools, "completed").encode()
    assert not hidden.is_touched
    assert not hidden_whole.is_touched


def test_an_end_that_repeats_no_tools_keeps_its_bytes_behind_a_beginning_that_did() -> None:
    begun = f'data: {{"type":"response.created","response":{spelled(f"[{THEIRS},{OURS}]", "in_progress")}}}\n\n'
    end = b'data:{"type":"response.completed","response":{"id":"resp_1","output":[]}}\n\n'
    done, _ = fed(RESPONSES, begun.encode() + end)
    assert done.given.endswith(b"\n\n" + end)
    assert done.given.count(b"\n\n") == 2


def test_places_and_numbers_stay_the_providers_where_nothing_else_is_taken_out() -> None:
    tools = [json.loads(THEIRS), json.loads(OURS)]
    begun = {"type": "response.created", "response": response("in_progress", output=[], tools=tools)}
    end = {"type": "response.completed", "response": response("completed", output=[TEXT], tools=tools)}
    events = numbered(begun, *told(4, TEXT), end, start=9)
    done, _ = fed(RESPONSES, streamed(*events))
    kept = json.loads(json.dumps(events).replace(f", {json.dumps(tools[1])}", ""))
    assert event_values(done.given) == kept
    assert [event["sequence_number"] for event in kept] == [9, 10, 11, 12]


@UNHURRIED
@given(
    is_stream=st.booleans(),
    line_end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    cuts=st.lists(st.integers(0, 10**6), max_size=30),
)
def test_an_answer_that_does_not_call_it_is_that_of_a_request_without_it(
    is_stream: bool, line_end: bytes, cuts: list[int]
) -> None:
    reply = FakeReply("\u4f60\u597d \n\n", "Hm.", calls=(read_file(),))
    made = stream_of if is_stream else whole_of
    asked, without = (
        made(RESPONSES, reply, source=text).replace(b"\n", line_end if is_stream else b"\n")
        for text in (with_own_tool(RESPONSES, request_text(RESPONSES)), request_text(RESPONSES))
    )
    hidden, done = HiddenCalls(RESPONSES, is_stream=is_stream), Exchange()
    feed_all(hidden, done, asked, cuts)
    assert OWN_TOOL.encode() in asked
    assert done.given == without
    assert hidden.is_touched


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize(
    "last", [FakeReply("Done."), FakeReply(calls=(read_file(), expand())), FakeReply("", calls=(expand(),))]
)
def test_the_tools_are_the_clients_own_behind_rounds_of_ours(is_stream: bool, last: FakeReply) -> None:
    done = play(RESPONSES, [FakeReply("I look.", calls=(expand(),)), last], is_stream=is_stream)
    assert OWN_TOOL not in done.given.decode()
    bodies = [event["response"] for event in event_values(done.given) if "response" in event]
    own = json.loads(request_text(RESPONSES))["tools"]
    assert [body["tools"] for body in (bodies if is_stream else [json.loads(done.given)])] == [own] * (
        3 if is_stream else 1
    )


def test_a_stream_that_breaks_off_ends_with_its_last_whole_event() -> None:
    content = stream_of(RESPONSES, FakeReply("So."), source=with_own_tool(RESPONSES, request_text(RESPONSES)))
    done, hidden = fed(RESPONSES, content[:-30])
    whole, _ = fed(RESPONSES, content)
    assert done.given == whole.given[: whole.given.rindex(b"\n\n", 0, -2) + 2]
    assert hidden.released() == b""


def test_a_response_with_a_key_twice_passes_and_the_answer_cannot_go_on() -> None:
    twice = spelled(f"[{OURS}]", "queued", ',"id":1')
    odd = f'data: {{"type":"response.created","response":{twice}}}\n\n'
    done, _ = fed(RESPONSES, odd.encode() + streamed(*told(0, OWN), completed(OWN)))
    assert done.given == odd.encode()
    assert done.finished[0].cause == "an event cannot be read"

"""What the client gets when the model calls the gateway's own tool: all three APIs, streamed and whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.testing.records import FakeCall, FakeReply
from context_gatekeeper.wire.hidden_calls import HiddenCalls, OwnCall
from context_gatekeeper.wire.own_tool import OWN_TOOL
from context_gatekeeper.wire.records import WireApi
from tests.wire.hidden_exchanges import (
    CHAT,
    MESSAGES,
    RESPONSES,
    Exchange,
    blocks_of,
    event_values,
    expand,
    fed,
    feed_all,
    made_answer,
    play,
    read,
    read_file,
    said,
    stream_of,
    whole_of,
)
from tests.wire.requests import UNHURRIED

EACH_API = pytest.mark.parametrize("api", list(WireApi))
EACH_FORM = pytest.mark.parametrize("is_stream", [True, False])
ASKS = FakeReply("Let me look it up. 查", "I need the page.", calls=(expand(),))
ANSWERS = FakeReply("It says 42.", "Now I know.")
ACTS = FakeReply("", "Read on.", calls=(read_file(), read_file("b.py")))
TEXTS = st.sampled_from(["", "Done.", "你好 🟢\n\nand more text than one piece holds", OWN_TOOL])
REPLIES = st.builds(
    FakeReply,
    text=TEXTS,
    thinking=st.sampled_from(["", "Hm."]),
    calls=st.lists(
        st.sampled_from([expand(), expand("page:x"), read_file(), FakeCall("f", "{broken")]), max_size=3
    ).map(tuple),
)
LINE_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
CUTS = st.lists(st.integers(0, 10**6), max_size=30)


def goes_on(reply: FakeReply) -> bool:
    return bool(reply.calls) and all(call.name == OWN_TOOL for call in reply.calls)


def played(replies: list[FakeReply]) -> list[FakeReply]:
    """The replies up to the first that does not go on."""
    for place, reply in enumerate(replies):
        if not goes_on(reply):
            return replies[: place + 1]
    return replies


def check_indexes(api: WireApi, content: bytes) -> None:
    """Raise AssertionError where an event stands at a place that a client does not expect."""
    events = event_values(content)
    if api is MESSAGES:
        kinds = [event["type"] for event in events]
        assert kinds.count("message_start") == kinds.count("message_stop") == kinds.count("message_delta") == 1
        begun = [event["index"] for event in events if event["type"] == "content_block_start"]
        assert begun == list(range(len(begun)))
        ended = [event["index"] for event in events if event["type"] == "content_block_stop"]
        assert ended == begun
    elif api is RESPONSES:
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        done = [event for event in events if event["type"] == "response.output_item.done"]
        assert [event["output_index"] for event in done] == list(range(len(done)))
        assert events[-1]["response"]["output"] == [event["item"] for event in done]
        assert [event["type"] for event in events].count("response.created") == 1
    else:
        assert len({event["id"] for event in events}) == 1
        choices = [choice for event in events for choice in event["choices"]]
        assert sum("role" in choice["delta"] for choice in choices) <= 1
        pieces = [call for choice in choices for call in choice["delta"].get("tool_calls", ())]
        begun = [call["index"] for call in pieces if "id" in call]
        assert begun == list(range(len(begun)))


# -- rounds ------------------------------------------------------------------------------------


@EACH_API
@EACH_FORM
def test_two_answers_are_one_message_without_our_call(api: WireApi, is_stream: bool) -> None:
    done = play(api, [ASKS, ANSWERS], is_stream=is_stream)
    answer = read(api, done.given)
    assert blocks_of(answer) == said([ASKS, ANSWERS], api)
    assert answer.is_complete
    assert answer.stop_reason == {MESSAGES: "end_turn", CHAT: "stop", RESPONSES: "completed"}[api]
    assert OWN_TOOL not in done.given.decode()


@EACH_API
@EACH_FORM
def test_output_is_added_up_and_input_is_the_last_answers(api: WireApi, is_stream: bool) -> None:
    usage = read(api, play(api, [ASKS, ASKS, ANSWERS], is_stream=is_stream).given).message.usage
    assert usage is not None
    written = 0 if api is MESSAGES else 20
    assert (usage.plain_tokens + usage.written_tokens - written) == 1200 + (20 if api is MESSAGES else 0)
    assert usage.read_tokens == 500
    single = [read(api, whole_of(api, reply)).message.usage for reply in (ASKS, ASKS, ANSWERS)]
    assert usage.output_tokens == sum((one.output_tokens or 0) for one in single if one is not None)


@EACH_API
@EACH_FORM
def test_each_call_and_its_result_stand_in_the_request_that_goes_on(api: WireApi, is_stream: bool) -> None:
    asks = FakeReply("Both.", calls=(expand("p1"), expand("p2")))
    done = play(api, [asks, ASKS, ANSWERS], is_stream=is_stream)
    assert [len(one.calls) for one in done.finished] == [2, 1, 0]
    assert [call.arguments.replace(" ", "") for call in done.finished[0].calls] == [
        '{"handle":"p1"}',
        '{"handle":"p2"}',
    ]
    assert len(done.sources) == 3
    assert done.sources[2].startswith(done.sources[1][: done.sources[1].rindex("], ") - 2])
    sent = json.loads(done.sources[2])
    told = json.dumps(sent, ensure_ascii=False)
    assert told.count("page of") == 3
    assert told.index("p1") < told.index("p2")


@EACH_API
def test_streamed_and_whole_answers_go_back_alike(api: WireApi) -> None:
    streamed, whole = (play(api, [ASKS], is_stream=is_stream).finished[0].blocks for is_stream in (True, False))
    first, second = ([json.loads(text) for text in blocks] for blocks in (streamed, whole))
    if api is CHAT:
        second = [{key: value for key, value in second[0].items() if value}]
    assert first == second


@UNHURRIED
@given(
    api=st.sampled_from(list(WireApi)),
    replies=st.lists(REPLIES, min_size=1, max_size=3),
    is_stream=st.booleans(),
    cuts=CUTS,
    line_end=LINE_ENDS,
    chars=st.integers(1, 60),
)
def test_the_client_sees_all_but_our_calls_however_the_bytes_are_cut(
    api: WireApi, replies: list[FakeReply], is_stream: bool, cuts: list[int], line_end: bytes, chars: int
) -> None:
    done = play(api, replies, is_stream=is_stream, cuts=cuts, line_end=line_end, chars=chars)
    assert done.given == play(api, replies, is_stream=is_stream, line_end=line_end, chars=chars).given
    answer = read(api, done.given)
    assert answer.is_complete
    assert answer.broken_events == 0
    seen, kept = played(replies), [block for block in blocks_of(answer) if block != ("text", "")]
    assert kept == [block for block in said(seen, api) if block != ("text", "")]
    calls = any(call.name != OWN_TOOL for call in seen[-1].calls)
    assert (
        answer.stop_reason
        == {
            MESSAGES: "tool_use" if calls else "end_turn",
            CHAT: "tool_calls" if calls else "stop",
            RESPONSES: "completed",
        }[api]
    )
    if is_stream:
        check_indexes(api, done.given)


@EACH_API
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_single_bytes_give_the_same(api: WireApi, line_end: bytes) -> None:
    one_by_one = play(api, [ASKS, ACTS], cuts=range(50_000), line_end=line_end)
    assert one_by_one == play(api, [ASKS, ACTS], line_end=line_end)


# -- answers that are not changed ------------------------------------------------------------------


@UNHURRIED
@given(api=st.sampled_from(list(WireApi)), is_stream=st.booleans(), text=TEXTS, cuts=CUTS, line_end=LINE_ENDS)
def test_an_answer_without_our_call_passes_to_the_last_byte(
    api: WireApi, is_stream: bool, text: str, cuts: list[int], line_end: bytes
) -> None:
    reply = FakeReply(text, calls=(read_file(),))
    content = stream_of(api, reply).replace(b"\n", line_end) if is_stream else whole_of(api, reply)
    hidden = HiddenCalls(api, is_stream=is_stream)
    done = Exchange()
    finished = feed_all(hidden, done, content, cuts)
    assert done.given == content
    assert not hidden.is_touched
    assert finished.has_client_calls
    assert not finished.is_continuable
    assert hidden.released() == b""


@EACH_API
def test_everything_before_our_call_passes_at_once(api: WireApi) -> None:
    content = stream_of(api, ASKS)
    start = content.index(OWN_TOOL.encode())
    before = content[: content.rindex(b"\n\n", 0, start) + 2]
    hidden = HiddenCalls(api, is_stream=True)
    got = [hidden.feed(one + b"\n\n") for one in before.split(b"\n\n")[:-1]]
    assert b"".join(got) == before
    assert all(got)
    assert hidden.feed(content[len(before) :]) == b""


@EACH_API
@EACH_FORM
def test_a_broken_answer_passes_as_far_as_it_came(api: WireApi, is_stream: bool) -> None:
    content = (stream_of(api, ANSWERS) if is_stream else whole_of(api, ANSWERS))[:-30]
    done, hidden = fed(api, content, is_stream=is_stream)
    assert done.given == content
    assert hidden.released() == b""
    assert not done.finished[0].is_complete or api is CHAT


@EACH_API
def test_an_answer_that_breaks_off_inside_our_call_gets_no_end(api: WireApi) -> None:
    content = stream_of(api, ASKS)
    end = content.index(b"\n\n", content.index(OWN_TOOL.encode())) + 40
    done, hidden = fed(api, content[:end])
    assert done.finished[0].cause == "it has no end"
    assert done.finished[0].blocks == ()
    assert [call.arguments for call in done.finished[0].calls] in ([""], ["{}"])
    assert done.given + hidden.released() == content[: done.given.rindex(b"\n\n") + 2]


# -- mixed calls -----------------------------------------------------------------------------------


@EACH_API
@EACH_FORM
def test_our_call_is_left_out_between_the_clients(api: WireApi, is_stream: bool) -> None:
    mixed = FakeReply("All.", calls=(read_file(), expand(), read_file("b.py")))
    done = play(api, [mixed], is_stream=is_stream)
    answer = read(api, done.given)
    assert blocks_of(answer) == said([mixed], api)
    assert answer.stop_reason == {MESSAGES: "tool_use", CHAT: "tool_calls", RESPONSES: "completed"}[api]
    assert done.finished[0].cause == "it calls tools of the client's too"
    assert [call.arguments.replace(" ", "") for call in done.finished[0].calls] == ['{"handle":"p12"}']
    assert done.finished[0].held == b""
    if is_stream:
        check_indexes(api, done.given)


@EACH_API
@EACH_FORM
def test_the_clients_calls_come_behind_rounds_of_ours(api: WireApi, is_stream: bool) -> None:
    done = play(api, [ASKS, ASKS, ACTS], is_stream=is_stream)
    assert blocks_of(read(api, done.given)) == said([ASKS, ASKS, ACTS], api)


# -- ends that are released --------------------------------------------------------------------------


@EACH_API
@EACH_FORM
def test_an_end_is_valid_when_the_provider_does_not_answer_any_more(api: WireApi, is_stream: bool) -> None:
    content = stream_of(api, ASKS) if is_stream else whole_of(api, ASKS)
    done, hidden = fed(api, content, is_stream=is_stream)
    hidden.next_answer()
    hidden.feed(b": ping\n\n" if is_stream else b"")
    done.given += hidden.released()
    answer = read(api, done.given)
    assert answer.is_complete
    assert blocks_of(answer) == said([ASKS], api)
    assert answer.stop_reason == {MESSAGES: "end_turn", CHAT: "stop", RESPONSES: "completed"}[api]
    usage = answer.message.usage
    alone = read(api, content).message.usage
    assert usage == alone


@EACH_API
def test_nothing_is_made_up_when_the_second_answer_breaks_off(api: WireApi) -> None:
    second = stream_of(api, ANSWERS, 2)
    done, hidden = fed(api, stream_of(api, ASKS), second[: len(second) // 2])
    assert hidden.released() == b""
    answer = read(api, done.given)
    assert not answer.is_complete
    assert done.finished[1].cause == "it has no end"


@EACH_API
def test_an_answer_cut_short_keeps_its_reason(api: WireApi) -> None:
    reason = {MESSAGES: "max_tokens", CHAT: "length", RESPONSES: "incomplete"}[api]
    content = stream_of(api, FakeReply("Now", calls=(expand(),), stop_reason=reason))
    if api is RESPONSES:
        content = content.replace(b"response.completed", b"response.incomplete")
    done, hidden = fed(api, content)
    assert done.finished[0].cause == f"it ended with '{reason}'"
    assert not done.finished[0].is_continuable
    given = done.given + hidden.released()
    assert reason in given.decode()
    assert OWN_TOOL not in given.decode()


# -- odd bytes ---------------------------------------------------------------------------------------


@EACH_API
def test_comments_pings_and_unknown_events_pass(api: WireApi) -> None:
    odd = b': a comment\n\nevent: new\ndata: {"type": "an_event_of_next_year"}\n\n\n\nid: 7\n\ndata: no JSON\n\n'
    first, second = stream_of(api, ASKS), stream_of(api, ANSWERS, 2)
    done, _ = fed(api, odd + first, odd + second)
    assert done.given.startswith(odd)
    assert done.given.count(odd) == 2
    assert done.finished[0].cause == "an event cannot be read"


@EACH_API
@EACH_FORM
def test_an_answer_that_is_too_large_passes_as_it_comes(api: WireApi, is_stream: bool) -> None:
    content = stream_of(api, ASKS, chars=500) if is_stream else whole_of(api, ASKS)
    hidden = HiddenCalls(api, is_stream=is_stream, most_bytes=100)
    given = b"".join(hidden.feed(content[start : start + 50]) for start in range(0, len(content), 50))
    finished = hidden.finish()
    assert given + finished.rest == content
    assert not finished.is_continuable


@EACH_API
def test_an_answer_too_large_behind_its_end_is_not_continued(api: WireApi) -> None:
    hidden = HiddenCalls(api, is_stream=True, most_bytes=5000)
    given = hidden.feed(stream_of(api, ASKS)) + hidden.feed(b"data: " + b"x" * 5000)
    assert hidden.finish().cause == "it is too large"
    assert given.endswith(b"x")


@EACH_API
def test_whole_answers_that_are_none_pass(api: WireApi) -> None:
    for content in (b"", b"{", b"[]", b"\xff{}", b'{"error": {"message": "no"}}', b'{"usage": {}, "usage": {}}'):
        done, hidden = fed(api, content, is_stream=False)
        assert done.given == content
        assert done.finished[0].calls == ()
        assert hidden.released() == b""


@EACH_API
def test_an_event_at_the_end_counts_without_a_blank_line(api: WireApi) -> None:
    content = stream_of(api, ASKS).rstrip(b"\n")
    done, hidden = fed(api, content)
    assert done.finished[0].is_continuable
    assert read(api, done.given + hidden.released() + b"\n\n").is_complete


@EACH_API
def test_events_with_a_key_twice_pass_and_the_answer_cannot_go_on(api: WireApi) -> None:
    twice: dict[WireApi, Any] = {
        MESSAGES: '{"type":"content_block_delta","index":9,"index":0,"delta":{"type":"text_delta","text":"a"}}',
        CHAT: '{"id":"y","id":"x","choices":[]}',
        RESPONSES: '{"type":"response.new","sequence_number":1,"sequence_number":2}',
    }
    odd = f"data: {twice[api]}\n\n".encode()
    first, second = stream_of(api, ASKS), stream_of(api, ASKS, 2)
    done, _ = fed(api, first, second.replace(b"\n\n", b"\n\n" + odd, 4))
    assert odd in done.given
    assert done.finished[1].cause == "an event cannot be read"


def test_calls_are_told_with_their_ids() -> None:
    done, _ = fed(MESSAGES, stream_of(MESSAGES, FakeReply(calls=(FakeCall(OWN_TOOL, '{"handle":"p1"}', "toolu_9"),))))
    assert done.finished[0].calls == (OwnCall("toolu_9", '{"handle":"p1"}'),)
    assert made_answer(MESSAGES, ASKS).request.model == "claude-opus-5"

"""Frames of an event stream, and how one gets other data."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.wire.hidden_frames import Frame, FrameReader
from context_gatekeeper.wire.sse import EventReader

BYTES = st.lists(
    st.sampled_from(
        [b"data: a\n", b"data:b\r\n", b"event: e\n", b": c\n", b"\n", b"\r", b"\r\n", b"x", b"\xef\xbb\xbf"]
    )
).map(b"".join)


def all_frames(content: bytes, cuts: list[int] | None = None) -> list[Frame]:
    reader = FrameReader()
    places = sorted({cut % (len(content) + 1) for cut in cuts or ()})
    frames = [
        frame
        for start, end in zip((0, *places), (*places, len(content)), strict=True)
        for frame in reader.feed(content[start:end])
    ]
    last = reader.close()
    return [*frames, last] if last is not None else frames


@given(BYTES, st.lists(st.integers(0, 999), max_size=20))
def test_frames_hold_every_byte_and_the_events_of_the_stream(content: bytes, cuts: list[int]) -> None:
    frames = all_frames(content, cuts)
    assert b"".join(frame.raw for frame in frames) == content
    assert frames == all_frames(content)
    told = [(frame.name, frame.data) for frame in frames if frame.data is not None]
    assert told == [(event.name, event.data) for event in EventReader().feed(content + b"\n\n")]


def test_a_frame_is_given_out_with_its_blank_line() -> None:
    reader = FrameReader()
    assert reader.feed(b"event: a\ndata: 1\n") == []
    assert reader.feed(b"\n: on") == [Frame(b"event: a\ndata: 1\n\n", "a", "1")]
    assert reader.feed(b"e\n") == [Frame(b": one\n")]
    assert reader.feed(b"\r\n\n") == [Frame(b"\r\n"), Frame(b"\n")]
    assert reader.close() is None


def test_a_cr_may_have_its_lf_to_come() -> None:
    reader = FrameReader()
    assert reader.feed(b"data: 1\r\n\r") == []
    assert [frame.raw for frame in reader.feed(b"\n")] == [b"data: 1\r\n\r\n"]
    assert reader.feed(b"data: 2\r\r") == []
    assert [frame.raw for frame in reader.feed(b"d")] == [b"data: 2\r\r"]


def test_what_is_held_is_counted_and_can_be_taken() -> None:
    reader = FrameReader(most_bytes=5)
    assert reader.feed(b"data:") == []
    assert not reader.is_too_large
    assert reader.feed(b"x") == []
    assert reader.is_too_large
    assert reader.take_rest() == b"data:x"
    assert reader.feed(b"\n") == [Frame(b"\n")]


def test_other_data_keep_the_lines_beside_them() -> None:
    raw = b"\xef\xbb\xbfdata: {\r\nid: 3\r\nevent: e\r\ndatabase: x\r\ndata: }\r\n: c\r\n\r\n"
    frame = all_frames(raw)[0]
    assert frame.data == "{\n}"
    assert frame.with_data('{"a":\n1}') == b'data: {"a":\r\ndata: 1}\r\nid: 3\r\nevent: e\r\ndatabase: x\r\n: c\r\n\r\n'


def test_data_at_the_end_of_a_stream_need_no_line_end() -> None:
    frame = all_frames(b"data: 1")[0]
    assert frame.with_data("2") == b"data: 2"
    assert frame.with_data("2\n3") == b"data: 2\ndata: 3"


@given(st.recursive(st.none() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=5))
def test_written_data_are_read_again(value: object) -> None:
    frame = all_frames(b"event: e\ndata: 1\n\n")[0]
    data = json.dumps(value, ensure_ascii=False)
    data = data.encode("utf-8", "replace").decode()
    assert EventReader().feed(frame.with_data(data))[0].data == data

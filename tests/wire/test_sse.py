"""Server-sent events."""

from __future__ import annotations

import itertools
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.wire.sse import EventReader, ServerSentEvent, read_events

STREAM = (
    b"\xef\xbb\xbf: a comment\r\n"
    b'event: delta\r\ndata: {"a": 1}\r\n\r\n'
    b"data: two\ndata:lines\n\n"
    b"\n\nretry: 10\nid: 7\n\n"
    b'event: ping\ndata: {"type": "ping"}\n\n'
    b"data\rdata: \xe4\xbd\xa0\xe2\x80\xa8\xe5\xa5\xbd\xf0\x9f\x9f\xa2\r\r"
    b"event: empty\n\n"
    b"data: [DONE]\n\n"
    b"data: cut off"
)
EVENTS = [
    ServerSentEvent("delta", '{"a": 1}'),
    ServerSentEvent("message", "two\nlines"),
    ServerSentEvent("ping", '{"type": "ping"}'),
    ServerSentEvent("message", "\n你\u2028好🟢"),
    ServerSentEvent("message", "[DONE]"),
]


def events_of(*chunks: bytes, most_bytes: int = 1000) -> tuple[list[ServerSentEvent], int]:
    reader = EventReader(most_bytes)
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    reader.close()
    return events, reader.dropped_events


def test_events_are_read_whatever_ends_their_lines() -> None:
    assert list(read_events([STREAM])) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=40))
def test_any_cut_of_the_stream_gives_the_same_events(cuts: list[int]) -> None:
    borders = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[start:end] for start, end in itertools.pairwise(borders)]
    assert list(read_events(chunks)) == EVENTS


@given(st.lists(st.sampled_from([b"data", b":", b" ", b"\r", b"\n", b"event", "你".encode(), b"x"]), max_size=60))
def test_any_stream_gives_the_same_events_whole_and_byte_by_byte(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    assert events_of(whole, most_bytes=12) == events_of(*(bytes([byte]) for byte in whole), most_bytes=12)


@given(st.binary(max_size=300))
def test_no_bytes_make_it_raise(junk: bytes) -> None:
    events_of(junk, most_bytes=20)


def test_byte_by_byte_gives_the_same_events() -> None:
    assert list(read_events(STREAM[place : place + 1] for place in range(len(STREAM)))) == EVENTS


@pytest.mark.parametrize("end", [b"\r", b"\n", b"\r\n"])
def test_an_event_counts_only_with_the_blank_line_behind_it(end: bytes) -> None:
    assert list(read_events([b"data: x" + end])) == []
    assert list(read_events([b"data: x" + end + end])) == [ServerSentEvent("message", "x")]


def test_an_event_is_given_out_with_the_chunk_that_ends_it() -> None:
    reader = EventReader()
    assert reader.feed(b"data: x\r\n\r") == [ServerSentEvent("message", "x")]
    assert reader.feed(b"\n") == []
    assert reader.feed(b"data: y\n\n") == [ServerSentEvent("message", "y")]


@pytest.mark.parametrize("rest", [b"data", b"data: x\n", b"data: x\r\n", b"event: a\ndata: x\ndata: y"])
def test_a_reader_tells_that_the_stream_broke_off_inside_an_event(rest: bytes) -> None:
    reader = EventReader()
    assert reader.feed(b"data: whole\n\n" + rest) == [ServerSentEvent("message", "whole")]
    assert reader.close()
    assert not reader.close()


@pytest.mark.parametrize("rest", [b"", b"\n", b": a comment\n", b"event: a\n"])
def test_a_stream_that_ends_between_events_is_not_broken_off(rest: bytes) -> None:
    reader = EventReader()
    reader.feed(b"data: whole\n\n" + rest)
    assert not reader.close()


def test_a_line_of_many_pieces_costs_its_length() -> None:
    pieces, piece = 20_000, b"x" * 1000  # put together anew for each piece, they would be 200 GB of copying
    (event,) = read_events([b"data: ", *[piece] * pieces, b"\n\n"])
    assert len(event.data) == pieces * len(piece)


@pytest.mark.parametrize(
    "giant",
    [
        pytest.param(b"data: " + b"x" * 2000, id="one line"),
        pytest.param(b"data: x\n" * 300, id="many lines"),
        pytest.param(b"data: x\n: " + b"x" * 2000 + b"\ndata: y", id="a comment inside"),
    ],
)
@pytest.mark.parametrize("size", [1, 700, 10_000])
def test_an_event_that_is_too_large_is_dropped_and_counted(giant: bytes, size: int) -> None:
    stream = b"data: before\n\nevent: huge\n" + giant.rstrip(b"\n") + b"\n\ndata: behind\n\n"
    chunks = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert events_of(*chunks) == ([ServerSentEvent("message", "before"), ServerSentEvent("message", "behind")], 1)


def test_an_event_that_is_too_large_is_counted_when_the_stream_ends_in_it() -> None:
    assert events_of(b"data: " + b"x" * 2000) == ([], 1)


def test_an_event_may_be_as_large_as_the_limit() -> None:
    assert events_of(b"data:" + b"x" * 995 + b"\n\n") == ([ServerSentEvent("message", "x" * 995)], 0)


def test_a_giant_event_takes_no_memory() -> None:
    reader = EventReader(10_000)
    piece = b"x" * 4096
    tracemalloc.start()
    reader.feed(b"data: ")
    for _ in range(5_000):
        reader.feed(piece)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 100_000

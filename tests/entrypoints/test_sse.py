"""Server-sent events."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.entrypoints.sse import ServerSentEvent, read_events

STREAM = (
    b"\xef\xbb\xbf: a comment\r\n"
    b'event: delta\r\ndata: {"a": 1}\r\n\r\n'
    b"data: two\ndata:lines\n\n"
    b"\n\nretry: 10\nid: 7\n\n"
    b"data\rdata: \xe4\xbd\xa0\xe2\x80\xa8\xe5\xa5\xbd\r\r"
    b"event: empty\n\n"
    b"data: [DONE]\n\n"
    b"data: cut off"
)
EVENTS = [
    ServerSentEvent("delta", '{"a": 1}'),
    ServerSentEvent("message", "two\nlines"),
    ServerSentEvent("message", "\n你\u2028好"),
    ServerSentEvent("message", "[DONE]"),
]


def test_events_are_read_whatever_ends_their_lines() -> None:
    assert list(read_events([STREAM])) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=40))
def test_any_cut_of_the_stream_gives_the_same_events(cuts: list[int]) -> None:
    borders = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[start:end] for start, end in itertools.pairwise(borders)]
    assert list(read_events(chunks)) == EVENTS


def test_byte_by_byte_gives_the_same_events() -> None:
    assert list(read_events(STREAM[place : place + 1] for place in range(len(STREAM)))) == EVENTS


@pytest.mark.parametrize("end", [b"\r", b"\n", b"\r\n"])
def test_an_event_counts_only_with_the_blank_line_behind_it(end: bytes) -> None:
    assert list(read_events([b"data: x" + end])) == []
    assert list(read_events([b"data: x" + end + end])) == [ServerSentEvent("message", "x")]


def test_a_line_of_many_pieces_costs_its_length() -> None:
    pieces, piece = 20_000, b"x" * 1000  # put together anew for each piece, they would be 200 GB of copying
    (event,) = read_events([b"data: ", *[piece] * pieces, b"\n\n"])
    assert len(event.data) == pieces * len(piece)

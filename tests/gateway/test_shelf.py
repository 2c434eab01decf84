"""What waits to be stored, in bounded room."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.gateway.shelf import Archived, Shelf, WaitingExchange
from context_gatekeeper.gateway.worker import read_frame
from context_gatekeeper.wire.records import WireApi

ROOM = 1_000_000


def waiting(number: int, session: str = "s", request: bytes = b"r", **fields: object) -> WaitingExchange:
    return WaitingExchange.of(replace(Archived(session, WireApi.CHAT, request), **fields), number)  # type: ignore[arg-type]


def numbers(shelf: Shelf) -> list[int]:
    return [one.number for one in shelf]


def test_a_newer_request_takes_the_place_of_the_one_in_it() -> None:
    shelf = Shelf(ROOM)
    for number, session in enumerate(("a", "b", "a", "c", "b"), 1):
        assert shelf.put(waiting(number, session, b"r" * number)) == []
    assert numbers(shelf) == [3, 5, 4]
    assert shelf.get(1) is None


@pytest.mark.parametrize(
    "older",
    [{"request": b"longer, before a rewind"}, {"answer": b"broken off", "is_complete": False}],
)
def test_what_a_newer_request_does_not_hold_is_kept(older: dict[str, object]) -> None:
    shelf = Shelf(ROOM)
    shelf.put(waiting(1, **older))  # type: ignore[arg-type]
    shelf.put(waiting(2, request=b"new"))
    shelf.put(waiting(3, request=b"newer"))
    assert numbers(shelf) == [1, 3]


def test_the_largest_gives_way() -> None:
    shelf = Shelf(5000)
    shelf.put(waiting(1, "a", b"r" * 2000))
    shelf.put(waiting(2, "b", b"r" * 10))
    assert [one.number for one in shelf.put(waiting(3, "c", b"r" * 1900))] == [1]
    assert [one.number for one in shelf.put(waiting(4, "d", b"r" * 9000))] == [4]
    assert numbers(shelf) == [2, 3]


def test_one_may_be_put_behind_all_others() -> None:
    shelf = Shelf(ROOM)
    for number in (1, 2):
        shelf.put(waiting(number, str(number)))
    shelf.to_back(1)
    shelf.to_back(7)
    first = shelf.first()
    assert first is not None
    assert first.number == 2
    shelf.remove(2)
    shelf.remove(2)
    assert numbers(shelf) == [1]


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(0, 300), st.sampled_from(["put", "pack", "remove", "back"])),
        max_size=60,
    )
)
def test_the_room_is_never_exceeded_and_nothing_leaves_untold(steps: list[tuple[str, int, str]]) -> None:
    shelf = Shelf(3000)
    there: dict[int, WaitingExchange] = {}
    last: dict[str, int] = {}
    for number, (session, size, step) in enumerate(steps, 1):
        if step == "put":
            added = waiting(number, session, b"r" * size)
            newest = max((key for key, one in there.items() if one.session == session), default=0)
            if newest and newest == last.get(session) and there[newest].is_in(added):
                del there[newest]
            there[number] = added
            last[session] = number
            for gone in shelf.put(added):
                del there[gone.number]
        elif step == "pack":
            shelf.pack(number // 2, b"packed")
        elif step == "back":
            shelf.to_back(number // 2)
        else:
            shelf.remove(number // 2)
            there.pop(number // 2, None)
        assert sum(one.size for one in shelf) <= 3000
        assert set(numbers(shelf)) == set(there)
        assert len(shelf) == len(there)
    for number in numbers(shelf):
        shelf.remove(number)
    assert shelf.put(waiting(1000, "z", b"r" * 2400)) == []


@given(st.binary(max_size=200), st.binary(max_size=200), st.booleans())
def test_what_is_handed_over_is_what_was_put(request: bytes, answer: bytes, is_complete: bool) -> None:
    told = Archived("name", WireApi.MESSAGES, request, "text/event-stream", answer, is_complete)
    frame = read_frame(io.BytesIO(b"".join(WaitingExchange.of(told, 7).frame())))
    assert frame is not None
    there = WaitingExchange.of_frame(*frame)
    assert (there.number, there.exchange()) == (7, told)
    assert WaitingExchange.of(told, 7).exchange() == told
    assert there.frame() == WaitingExchange.of(told, 7).frame()

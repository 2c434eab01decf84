"""Pages that came back leave again unless the agent uses them."""

from __future__ import annotations

import pytest

from context_gatekeeper.engine.page_faults import PageFault
from context_gatekeeper.types import ContentBlock
from tests.engine.desks import Desk, agent_message, call_block

PAGE = (
    "def parse_header(stream, limit):\n"
    "    first_line = stream.readline(limit_of_header)\n"
    "    return first_line.partition(separator_bytes)\n"
)
QUOTE = "first_line = stream.readline(limit_of_header)"


def desk_with_guest(text: str = "what does parse_header return?") -> tuple[Desk, tuple[int, ...]]:
    """A file's page that the text brought back at turn 1."""
    desk = Desk()
    block = desk.call("Read", {"file_path": "net/header_reader.py"}, PAGE)
    desk.fill()
    desk.put_out(block)
    found: tuple[PageFault, ...] = desk.find(text)
    assert [fault.pieces for fault in found] == [desk.pieces(block)]
    desk.bring_back(found)
    return desk, found[0].pieces


def test_a_page_that_came_back_may_leave_after_its_turn() -> None:
    desk, pieces = desk_with_guest()
    assert (desk.faults.leaving(1), desk.faults.leaving(2)) == ((), pieces)


def test_what_left_is_no_guest_any_more() -> None:
    desk, pieces = desk_with_guest()
    desk.faults.swapped_out(pieces, 2)
    assert desk.faults.leaving(3) == ()


def test_a_page_named_by_its_handle_stays_when_the_agent_works_on() -> None:
    desk, _ = desk_with_guest("expand p1 and p1 again, page p1")
    assert desk.faults.used(agent_message("I see."), turn=1) == (1,)
    assert desk.faults.leaving(2) == ()


def test_a_handle_of_a_guest_in_the_window_heats_it() -> None:
    desk, pieces = desk_with_guest()
    assert desk.find("page p1, is it the newest?", by_user=False) == ()
    assert desk.faults.used(agent_message("It is."), turn=2) == pieces


@pytest.mark.parametrize(
    "message",
    [
        agent_message(f"It reads one line:\n{QUOTE}"),
        agent_message("", call_block("Edit", {"file_path": "net/header_reader.py", "new_string": "x"})),
        agent_message("", call_block("Write", {"file_path": "net/header_reader.py", "content": "x"})),
    ],
)
def test_a_quoted_line_or_a_change_of_the_file_is_a_use(message: object) -> None:
    desk, pieces = desk_with_guest()
    assert desk.faults.used(message, turn=1) == pieces  # type: ignore[arg-type]
    assert desk.faults.leaving(2) == ()


def test_a_name_alone_is_half_a_use() -> None:
    desk, pieces = desk_with_guest()
    assert desk.faults.used(agent_message("It has a limit_of_header."), turn=1) == ()
    assert desk.faults.used(agent_message("And separator_bytes."), turn=1) == pieces


@pytest.mark.parametrize(
    "calls",
    [
        (),
        (call_block("Read", {"file_path": "net/header_reader.py"}),),
        (call_block("Edit", {"file_path": "other.py"}),),
        (call_block("Edit", {"note": "no file"}),),
    ],
)
def test_reading_and_other_files_and_what_the_caller_said_itself_are_no_uses(calls: tuple[ContentBlock, ...]) -> None:
    desk, pieces = desk_with_guest()
    for turn in range(1, 4):
        assert desk.faults.used(agent_message("parse_header, I think", *calls), turn=turn) == ()
    assert desk.faults.leaving(4) == pieces


def test_without_guests_nothing_is_used() -> None:
    assert Desk().faults.used(agent_message("hello"), turn=1) == ()

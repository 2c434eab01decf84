"""From handles and call ids in a text to the slices of a session."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from context_gatekeeper.engine.named_blocks import NamedBlocks
from context_gatekeeper.types import AgentMessage, BlockKind, ContentBlock, MessageRole
from tests.engine.desks import Desk

HANDLE = "page:" + "a2" * 8
LINES = "\n".join(f"row {number} of a long table that says the same thing again" for number in range(1, 301))


def named(
    desk: Desk, text: str, pages: dict[str, Sequence[int]] | None = None
) -> list[tuple[str, tuple[int, ...], str]]:
    blocks = NamedBlocks(desk.log, None if pages is None else lambda handle: pages.get(handle, ()))
    blocks.follow()
    return [(one.written, one.pieces, one.problem) for one in blocks.find(text)]


def table_desk() -> tuple[Desk, tuple[int, ...]]:
    desk = Desk()
    block = desk.call("Bash", {"command": "table"}, LINES, call_id="call_table_1")
    return desk, desk.pieces(block)


def test_a_block_is_all_of_its_slices() -> None:
    desk, pieces = table_desk()
    assert len(pieces) > 3
    assert named(desk, "page p1") == [("p1", pieces, "")]


def test_a_range_of_blocks_is_each_of_those_that_there_are() -> None:
    desk, pieces = table_desk()
    assert named(desk, "p0-p1") == [("p0", (0,), ""), ("p1", pieces, "")]
    assert [written for written, _, _ in named(desk, "p1-p999999999")] == ["p1"]


@pytest.mark.parametrize("text", ["page p7", "p7-p9", "p7#L1-2"])
def test_beyond_the_session_there_is_nothing(text: str) -> None:
    ((_, pieces, problem),) = named(table_desk()[0], text)
    assert (pieces, problem) == ((), "the session has 2 blocks")


@pytest.mark.parametrize(("text", "first", "last"), [("p1#L1", 0, 0), ("p1#L300", -1, -1), ("p1#L1-300", 0, -1)])
def test_lines_are_those_of_the_block(text: str, first: int, last: int) -> None:
    desk, pieces = table_desk()
    ((_, found, _),) = named(desk, text)
    assert (found[0], found[-1]) == (pieces[first], pieces[last])


def test_every_line_stands_in_the_slices_that_its_handle_names() -> None:
    desk, _ = table_desk()
    for number in (1, 50, 137, 299):
        ((_, found, _),) = named(desk, f"p1#L{number}")
        texts = [LINES[desk.log.slices[piece].start : desk.log.slices[piece].end] for piece in found]
        assert any(f"row {number} of" in text for text in texts)


def test_characters_are_those_of_the_block() -> None:
    desk, pieces = table_desk()
    assert named(desk, "p1#C0-1") == [("p1#C0-1", pieces[:1], "")]
    assert named(desk, f"p1#C{len(LINES) - 1}-{len(LINES) + 50}")[0][1] == pieces[-1:]


@pytest.mark.parametrize("text", ["p1#L301", "p1#C99999-100000"])
def test_a_piece_beyond_the_block_is_none(text: str) -> None:
    assert named(table_desk()[0], text) == [(text, (), "the page does not reach so far")]


def test_a_block_without_text_is_named_and_empty() -> None:
    desk = Desk()
    desk.take(AgentMessage(MessageRole.USER, (ContentBlock(BlockKind.IMAGE),)))
    assert named(desk, "show p0") == [("p0", (), "it holds no text")]


def test_a_pages_own_handle_leads_to_its_blocks() -> None:
    desk, pieces = table_desk()
    assert named(desk, HANDLE, {HANDLE: (0, 1)}) == [(HANDLE, (0, *pieces), "")]
    assert named(desk, HANDLE, {HANDLE: (1,)}) == [(HANDLE, pieces, "")]
    assert named(desk, f"{HANDLE}#L300", {HANDLE: (1,)}) == [(f"{HANDLE}#L300", pieces[-1:], "")]


@pytest.mark.parametrize("pages", [{}, None])
def test_a_handle_of_another_session_or_pool_is_no_page_here(pages: dict[str, Sequence[int]] | None) -> None:
    assert named(table_desk()[0], HANDLE, pages) == [(HANDLE, (), "no page of this session has this handle")]


def test_a_call_id_names_the_call_and_its_results() -> None:
    desk, pieces = table_desk()
    assert named(desk, "see call_table_1, please") == [("call_table_1", (0, *pieces), "")]


def test_an_id_that_the_session_does_not_know_is_told_only_when_it_looks_like_one() -> None:
    desk, _ = table_desk()
    wrong = "toolu_01A09q90qw90lq917835lq9x"
    assert named(desk, f"result of {wrong}?") == [(wrong, (), "no tool call of this session has this id")]
    assert named(desk, "call_handler_with_a_long_name_of_its_own and toolu_test1") == []


def test_blocks_that_come_later_are_followed() -> None:
    desk = Desk()
    blocks = NamedBlocks(desk.log)
    blocks.follow()
    desk.call("Bash", {"command": "x"}, "y", call_id="call_later_1")
    assert list(blocks.find("call_later_1")) == []
    blocks.follow()
    assert [one.pieces for one in blocks.find("call_later_1")] == [(0, 1)]

"""A turn whose pages are just used up: what else its text asks for is not looked for."""

from __future__ import annotations

from context_gatekeeper.engine.page_faults import FAULT_PARAMS, FaultTrigger
from tests.engine.desks import Desk

RETRY = "The retry policy of the billing worker waits thirty seconds and doubles up to ten minutes."


def test_when_handles_take_the_last_page_neither_the_past_nor_a_goal_nor_keywords_bring_one() -> None:
    desk = Desk()
    blocks = [desk.answer(text) for text in (RETRY, "one", "two", "three", "four", "five")]
    desk.fill()
    desk.put_out(*blocks)
    asked = "earlier the billing worker retry policy"
    assert desk.blocks_found(asked, goals=(asked,)) == blocks[:1]
    found = desk.find(f"p{blocks[1]}-p{blocks[5]} and {asked}", goals=(asked,))
    assert [fault.trigger for fault in found] == [FaultTrigger.HANDLE] * FAULT_PARAMS.most_pages
    assert [fault.pieces for fault in found] == [desk.pieces(block) for block in blocks[1:]]

"""Short handles of the blocks of a session."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.block_handles import BlockMention, parse_block_handle
from context_gatekeeper.core.handles import RangeUnit

LINES, CHARACTERS = RangeUnit.LINES, RangeUnit.CHARACTERS


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("p12", BlockMention(12, 12)),
        (" p0\n", BlockMention(0, 0)),
        ("p12-p20", BlockMention(12, 20)),
        ("p12-p12", BlockMention(12, 12)),
        ("p12#L40-88", BlockMention(12, 12, LINES, 40, 88)),
        ("p12#L40-L88", BlockMention(12, 12, LINES, 40, 88)),
        ("p12#L40", BlockMention(12, 12, LINES, 40, 40)),
        ("p12#C0-200", BlockMention(12, 12, CHARACTERS, 0, 200)),
        ("p12#C7", BlockMention(12, 12, CHARACTERS, 7, 8)),
    ],
)
def test_a_short_handle_names_blocks_or_a_piece_of_one(written: str, meant: BlockMention) -> None:
    assert parse_block_handle(written) == meant


@pytest.mark.parametrize(
    "written",
    ["", "p", "12", "P12", "p-1", "p12-20", "p20-p12", "p12#L9-8", "p12-p20#L1-2", "p12#X1", "p1234567890", "p12 p13"],
)
def test_what_is_none_or_upside_down_is_none(written: str) -> None:
    assert parse_block_handle(written) is None


@given(st.text(max_size=30))
def test_any_text_is_read(written: str) -> None:
    mention = parse_block_handle(written)
    assert mention is None or mention.first_block <= mention.last_block

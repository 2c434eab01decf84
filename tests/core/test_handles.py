"""Handles: made from ids, found in texts, with ranges."""

from __future__ import annotations

import re
from base64 import b32decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.handles import (
    HANDLE_BYTES,
    HANDLE_CHARS,
    HandleMention,
    RangeUnit,
    digest_in_handle,
    find_handles,
    handle_digest,
    handle_of,
    parse_handle,
)
from context_gatekeeper.types import PageId
from tests.core.texts import ANY_TEXT, STORMS

KEY = bytes(range(32))
HANDLE = handle_of(PageId(1 << 32), KEY)
PAGE_IDS = st.integers(1, 2**63 - 1).map(PageId)


@given(PAGE_IDS)
def test_a_handle_is_80_bits_in_small_letters_and_digits(page_id: PageId) -> None:
    handle = handle_of(page_id, KEY)
    assert re.fullmatch(rf"page:[a-z2-7]{{{HANDLE_CHARS}}}", handle)
    assert digest_in_handle(handle) == handle_digest(page_id, KEY) == b32decode(handle[5:].upper())
    assert len(handle_digest(page_id, KEY)) == HANDLE_BYTES
    assert handle_of(page_id, KEY) == handle
    assert handle_of(page_id, bytes(32)) != handle


def test_pages_have_different_handles() -> None:
    assert len({handle_of(PageId(number), KEY) for number in range(1, 5000)}) == 4999


@pytest.mark.parametrize(
    ("suffix", "unit", "first", "last"),
    [
        ("", None, 0, 0),
        ("#L10-20", RangeUnit.LINES, 10, 20),
        ("#L10-L20", RangeUnit.LINES, 10, 20),
        ("#L7", RangeUnit.LINES, 7, 7),
        ("#C100-200", RangeUnit.CHARACTERS, 100, 200),
        ("#C5", RangeUnit.CHARACTERS, 5, 6),
        ("#L3-3", RangeUnit.LINES, 3, 3),
    ],
)
def test_a_handle_and_its_range_are_read(suffix: str, unit: RangeUnit | None, first: int, last: int) -> None:
    text = HANDLE + suffix
    mention = HandleMention(HANDLE, 0, len(text), unit, first, last)
    assert parse_handle(text) == mention
    assert parse_handle(f" {text}\n") == mention
    assert find_handles(f"see {text}, please") == (HandleMention(HANDLE, 4, 4 + len(text), unit, first, last),)
    assert find_handles(f"请看{text}，谢谢")[0].unit == unit


@pytest.mark.parametrize(
    "text",
    [
        "",
        "page:",
        "page:abc",
        HANDLE[:-1],
        HANDLE + "a",
        HANDLE.upper(),
        HANDLE.removeprefix("page:"),
        HANDLE[:-1] + "1",
        HANDLE + "#",
        HANDLE + "#L",
        HANDLE + "#L20-10",
        HANDLE + "#X1-2",
        HANDLE + "#L1-2-3",
        HANDLE + "#L1234567890",
        HANDLE + " and more",
        f"home{HANDLE}",
    ],
)
def test_what_is_no_handle_is_none(text: str) -> None:
    assert parse_handle(text) is None


def test_a_broken_range_leaves_the_handle() -> None:
    assert find_handles(f"{HANDLE}#L20-10") == (HandleMention(HANDLE, 0, len(HANDLE)),)
    assert find_handles(f"{HANDLE}#L1x {HANDLE}#") == (
        HandleMention(HANDLE, 0, len(HANDLE)),
        HandleMention(HANDLE, len(HANDLE) + 5, 2 * len(HANDLE) + 5),
    )


def test_all_handles_of_a_text_are_found_in_order() -> None:
    handles = [handle_of(PageId(number), KEY) for number in range(1, 200)]
    text = "; ".join(f"{handle}#L{number}" for number, handle in enumerate(handles, 1))
    assert [mention.handle for mention in find_handles(text)] == handles
    assert [text[mention.start : mention.end] for mention in find_handles(text)] == text.split("; ")


@pytest.mark.parametrize("storm", [*STORMS.values(), "page:" * 20_000, (HANDLE + "#L") * 4000, "page:" + "a" * 99_999])
def test_long_texts_are_read_in_one_pass(storm: str) -> None:
    assert len(find_handles(storm)) <= 4000


@given(ANY_TEXT, PAGE_IDS, ANY_TEXT)
def test_a_handle_between_blanks_is_always_found(before: str, page_id: PageId, after: str) -> None:
    handle = handle_of(page_id, KEY)
    assert handle in [mention.handle for mention in find_handles(f"{before} {handle} {after}")]

"""From a handle back to its page."""

from __future__ import annotations

from itertools import pairwise

from context_gatekeeper.core.handles import HANDLE_BYTES, handle_digest
from context_gatekeeper.stores.drafts import first_page_id
from context_gatekeeper.stores.handle_index import HandleIndex
from context_gatekeeper.types import PageId

KEY = bytes(range(32))


def test_pages_are_found_as_far_as_they_were_taken_in() -> None:
    index = HandleIndex(KEY)
    ids = [PageId(first_page_id(7) + ordinal) for ordinal in range(300)]
    assert index.find(handle_digest(ids[0], KEY)) is None
    for known in (1, 2, 150, 150, 100, 300):
        index.take_in(7, known)
    index.take_in(3, 2)
    assert [index.find(handle_digest(page_id, KEY)) for page_id in ids] == ids
    assert index.find(handle_digest(first_page_id(3), KEY)) == first_page_id(3)
    assert index.find(handle_digest(PageId(ids[-1] + 1), KEY)) is None
    assert index.find(handle_digest(ids[0], bytes(32))) is None


def test_bytes_that_lie_across_two_handles_are_none() -> None:
    index = HandleIndex(KEY)
    index.take_in(1, 50)
    digests = [handle_digest(PageId(first_page_id(1) + ordinal), KEY) for ordinal in range(50)]
    for first, second in pairwise(digests):
        for cut in range(1, HANDLE_BYTES):
            assert index.find(first[cut:] + second[:cut]) is None

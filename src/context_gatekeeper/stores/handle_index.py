"""HandleIndex: from a handle back to its page, in memory.

Derived from the ids alone and kept in no file: a handle is a hash of the id, so that a tree of
handles would cost every append a page to write. A page costs 18 bytes here and about a
microsecond once; a look-up passes over the bytes of all handles at the speed of ``bytes.find``.
"""

from __future__ import annotations

from array import array

from context_gatekeeper.core.handles import HANDLE_BYTES, handle_digest
from context_gatekeeper.stores.drafts import first_page_id
from context_gatekeeper.types import PageId

__all__ = ["HandleIndex"]


class HandleIndex:
    """Handles of one pool. For one thread at a time.

    Args:
        key: the pool's.
    """

    def __init__(self, key: bytes) -> None:
        self.key = key
        self._digests = bytearray()
        self._page_ids = array("Q")
        self._known_pages: dict[int, int] = {}

    def take_in(self, session_id: int, page_count: int) -> None:
        """Learn the pages of a session that came in since it was last taken in. O(those pages)."""
        first_id = first_page_id(session_id)
        known = self._known_pages.get(session_id, 0)
        for ordinal in range(known, page_count):
            page_id = PageId(first_id + ordinal)
            self._digests += handle_digest(page_id, self.key)
            self._page_ids.append(page_id)
        self._known_pages[session_id] = max(known, page_count)

    def find(self, digest: bytes) -> PageId | None:
        """The page whose handle spells ``digest``; None when none that was taken in does."""
        place = self._digests.find(digest)
        while place >= 0:
            number, rest = divmod(place, HANDLE_BYTES)
            if rest == 0:
                return PageId(self._page_ids[number])
            place = self._digests.find(digest, place + 1)
        return None

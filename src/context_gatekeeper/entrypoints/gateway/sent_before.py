"""What was sent of each conversation, so that a request whose plan is late can go on behind it.

See `gateway.cuts`. Bytes are compared and joined; nothing is parsed here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from context_gatekeeper.gateway.cuts import Cut

__all__ = ["SentBefore"]

_MARK = b'"cache_control":'
_MOST_MARKS = 4
"""Breakpoints that Anthropic takes in one request."""


@dataclass(frozen=True, slots=True, eq=False)
class _Sent:
    """One edited request, up to its last cut."""

    own: bytes
    sent: bytes
    cuts: tuple[Cut, ...]
    """The latest first."""

    @property
    def size(self) -> int:
        return len(self.own) + len(self.sent)


class SentBefore:
    """The newest edited request of each conversation.

    Args:
        most_bytes: of all together; the oldest leave.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._size = 0
        self._kept: OrderedDict[_Sent, Hashable] = OrderedDict()
        """With its owner, the oldest first."""

    def note(self, owner: Hashable, own: bytes, sent: bytes, cuts: Sequence[Cut]) -> None:
        """Keep what was sent; what it goes on is kept no longer.

        Args:
            owner: who asks, and in which session: nobody gets what was sent for another.
            own: the client's bytes.
            sent: the edited ones.
            cuts: the latest first.
        """
        self.forget(owner, own)
        if not cuts:
            return
        kept = _Sent(own[: cuts[0].own], sent[: cuts[0].sent], tuple(cuts))
        self._kept[kept] = owner
        self._size += kept.size
        while self._size > self._most_bytes:
            oldest, _ = self._kept.popitem(last=False)
            self._size -= oldest.size

    def forget(self, owner: Hashable, own: bytes) -> None:
        """Keep nothing of the conversation that this request goes on: something else was sent for it."""
        while (found := self._find(owner, own)) is not None:
            del self._kept[found[0]]
            self._size -= found[0].size

    def continued(self, owner: Hashable, own: bytes) -> bytes | None:
        """What was sent for the beginning of a request, with the rest behind it; None where nothing fits."""
        found = self._find(owner, own)
        if found is None:
            return None
        kept, cut = found
        body = kept.sent[: cut.sent] + own[cut.own :]
        most = max(_MOST_MARKS, own.count(_MARK))
        return body if body.count(_MARK) <= most else None

    def _find(self, owner: Hashable, own: bytes) -> tuple[_Sent, Cut] | None:
        """The newest of this owner's that the request goes on, and the latest cut up to which it does."""
        for kept, owner_of_it in reversed(self._kept.items()):
            if owner_of_it == owner:
                for cut in kept.cuts:
                    if own.startswith(kept.own[: cut.own]):
                        return kept, cut
        return None

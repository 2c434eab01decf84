"""The conversations under way: which one a request goes on, and which are forgotten."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from context_gatekeeper.gateway.identity import SessionKey, history_digest, opening_digest
from context_gatekeeper.gateway.live_session import LiveSession
from context_gatekeeper.gateway.standing import Standing
from context_gatekeeper.wire.records import WireRequest

__all__ = ["Conversation", "Conversations"]

_NEWEST_SHARE = 0.1
_RESTING_SHARE = (0.03, 0.15)
"""Share of late plans below which a conversation that rests is planned again, and above which it begins to rest. One
late plan costs what some ten edited requests save."""


@dataclass(slots=True, eq=False)
class Conversation:
    """One conversation, and what was sent for it."""

    session: LiveSession
    request: WireRequest
    """The newest."""
    digest: bytes = b""
    """Of its bytes."""
    reply: bytes | None = None
    """What the plan made of it; None for the client's own bytes."""
    standing: Standing | None = None
    """What its session was told last."""
    is_edited: bool = False
    """Whether a request of it was ever sent as planned, and not as the client's own bytes."""
    is_refused: bool = False
    """Whether the provider refused what was planned and took the client's own bytes: those are sent from then on."""
    refuses_native: bool = False
    """Whether the provider refused what was asked of it: nothing is asked any more."""
    saved_told: float = 0.0
    """Net savings that its replies have reported so far."""
    late_share: float = 0.0
    """Of the newest answered requests, those whose plan came too late."""
    rests: bool = False
    """Whether the client's bytes are sent until plans are in time again: each late one sends, and writes to the cache,
    everything that the others leave out."""

    def note_time(self, *, was_late: bool) -> None:
        """Count a plan that was in time, or not."""
        self.late_share += _NEWEST_SHARE * (was_late - self.late_share)
        self.rests = self.late_share > (_RESTING_SHARE[0] if self.rests else _RESTING_SHARE[1])

    def newly_saved(self) -> float:
        """What it has saved since this was asked last; nothing where only the client's bytes were sent."""
        if not self.is_edited:
            return 0.0
        saved = self.session.schedule.pager.ledger.saved
        newly, self.saved_told = saved - self.saved_told, saved
        return round(newly)


class Conversations:
    """Conversations by their key and their messages.

    Args:
        most_sessions: keys that are kept, the newest used.
        most_chars: of all newest requests together.
        most_branches: conversations with one key that are kept apart.
    """

    def __init__(self, *, most_sessions: int, most_chars: int, most_branches: int) -> None:
        self._most_sessions = most_sessions
        self._most_chars = most_chars
        self._most_branches = most_branches
        self._branches: OrderedDict[SessionKey, list[Conversation]] = OrderedDict()

    def __iter__(self) -> Iterator[Conversation]:
        """All of them, the one used last at the end."""
        for branches in self._branches.values():
            yield from branches

    def find(self, key: SessionKey, request: WireRequest) -> Conversation | None:
        """The one of which the request holds most, all that is known of it; ties go to the newest."""
        best: Conversation | None = None
        most = -1
        for branch in self._branches.get(key, ()):
            known = branch.session.known_messages(request)
            if branch.session.goes_on(request) and known >= most:
                best, most = branch, known
        return best

    def take(self, key: SessionKey, request: WireRequest, make: Callable[[str], LiveSession]) -> Conversation:
        """The one that the request goes on, or a new one, which is the newest now; the oldest may be forgotten.

        Args:
            key: of the request.
            request: decoded.
            make: makes a session of its name.
        """
        branch = self.find(key, request)
        branches = self._branches.setdefault(key, [])
        if branch is None:
            branch = Conversation(make(self._free_name(key, request)), request)
            del branches[: -self._most_branches + 1 or None]
        else:
            branches.remove(branch)
        branches.append(branch)
        self._branches.move_to_end(key)
        self._forget_oldest()
        return branch

    def remove(self, key: SessionKey, conversation: Conversation) -> None:
        """Forget one, if that is not done yet."""
        branches = self._branches.get(key, [])
        if conversation in branches:
            branches.remove(conversation)

    def _forget_oldest(self) -> None:
        chars = sum(len(one.request.source) for one in self)
        while len(self._branches) > 1 and (len(self._branches) > self._most_sessions or chars > self._most_chars):
            _, branches = self._branches.popitem(last=False)
            chars -= sum(len(one.request.source) for one in branches)

    def _free_name(self, key: SessionKey, request: WireRequest) -> str:
        """The conversation's name in the pool: another one for each branch, so that handles mean one thing in it."""
        name = f"{key.pool_name}/{opening_digest(request)}"
        taken = {branch.session.name for branch in self._branches.get(key, ())}
        return name if name not in taken else f"{name}-{history_digest(request)}"

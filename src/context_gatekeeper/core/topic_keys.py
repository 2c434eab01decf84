"""Self-found topic names: which terms of the user's messages name a subject.

A topic's name comes back in messages that agree on their strongest key; question wording
crosses topics. The *head* of a message is its strongest accepted key, or the head it
inherits along the run of continued turns. A term whose messages fall under several heads
is no key. A term whose messages mostly share one head belongs to that *root*; else it is a
root itself. Source: rules R3 and R4 of the selection notes, section 5.2 - here kept term
by term as messages come in: a message costs its own terms, never the history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["TOPIC_KEY_PARAMS", "TopicKeyParams", "TopicKeys"]


@dataclass(frozen=True, slots=True)
class TopicKeyParams:
    """Numbers of rules R3 and R4."""

    min_background: float = 0.4
    """Commoner terms name nothing."""
    min_share: float = 0.3
    """Parts of compounds and n-grams across words with a smaller weight share name nothing."""
    min_messages: int = 2
    min_messages_unanswered: int = 2
    """The same for a term that no answer ever held: question wording is seldom answered with."""
    crossing_share: float = 0.7
    """A term is no key when its commonest head has a smaller share of its headed messages ..."""
    headed_share: float = 0.3
    """... and at least this share of its messages is headed."""
    root_share: float = 0.5
    """A head over this share of a term's messages is the term's root."""
    wording_share: float = 0.5
    """A term that is repeated wording in this share of its messages is no key."""
    max_holders: int = 32
    """Newest messages looked at for one term."""
    judged_each: int = 8
    """A term is judged anew at each of its first so many messages ..."""
    judged_every: int = 4
    """... and then at every so many-th."""
    max_terms: int = 24
    """Terms of one message that may become keys, the rarest in everyday language first."""
    max_inheritance: int = 8
    """Turns a head is inherited over."""


TOPIC_KEY_PARAMS = TopicKeyParams()


@dataclass(slots=True)
class TopicKeys:
    """Keys and roots of one session."""

    params: TopicKeyParams = TOPIC_KEY_PARAMS
    _messages: dict[int, tuple[str, ...]] = field(default_factory=dict)
    _holders: dict[str, list[int]] = field(default_factory=dict)
    _wording_count: dict[str, int] = field(default_factory=dict)
    _roots: dict[str, str] = field(default_factory=dict)
    _continues: dict[int, bool] = field(default_factory=dict)

    def root(self, term: str) -> str | None:
        """The root that ``term`` names, itself included; None when the term is no key."""
        return self._roots.get(term)

    def message_count(self, term: str) -> int:
        """User messages in which the term could be a key."""
        return len(self._holders.get(term, ()))

    def holders(self, term: str) -> Sequence[int]:
        """Turn ids of those messages, ascending."""
        return self._holders.get(term, ())

    def add_message(
        self,
        turn_id: int,
        candidates: Sequence[str],
        wording: frozenset[str],
        is_answered: Callable[[str], bool],
        *,
        continues: bool,
    ) -> dict[str, str | None]:
        """Take in one user message and judge its terms anew where that is due, the most used first.

        Args:
            turn_id: ascending.
            candidates: terms with a background of at least ``min_background`` that are no bare numbers.
            wording: those of them that are repeated wording in this message.
            is_answered: whether any answer, this turn's included, holds a term.
            continues: whether the gate let the turn continue the one before.

        Returns:
            The changed roots; None for a term that lost its root.
        """
        kept = tuple(candidates[: self.params.max_terms])
        self._record(turn_id, kept, wording, continues)
        changed: dict[str, str | None] = {}
        for term in sorted(filter(self._is_due, kept), key=self._rank, reverse=True):
            root = self._judge(term, is_answered(term))
            if root != self._roots.get(term):
                changed[term] = root
                if root is None:
                    del self._roots[term]
                else:
                    self._roots[term] = root
        return changed

    def restore_message(
        self,
        turn_id: int,
        candidates: Sequence[str],
        wording: frozenset[str],
        changed: Mapping[str, str | None],
        *,
        continues: bool,
    ) -> None:
        """`add_message` with the result known from an earlier process."""
        self._record(turn_id, tuple(candidates[: self.params.max_terms]), wording, continues)
        for term, root in changed.items():
            if root is None:
                self._roots.pop(term, None)
            else:
                self._roots[term] = root

    def head(self, turn_id: int) -> str | None:
        """Root that the message of ``turn_id`` stands under, own or inherited."""
        return self._head(turn_id, None)[0]

    def own_roots(self, turn_id: int) -> frozenset[str]:
        """Roots that the message itself names."""
        return frozenset(root for term in self._messages.get(turn_id, ()) if (root := self._roots.get(term)))

    def _record(self, turn_id: int, terms: tuple[str, ...], wording: frozenset[str], continues: bool) -> None:
        self._messages[turn_id] = terms
        self._continues[turn_id] = continues
        for term in terms:
            self._holders.setdefault(term, []).append(turn_id)
            if term in wording:
                self._wording_count[term] = self._wording_count.get(term, 0) + 1

    def _rank(self, term: str) -> tuple[int, int, str]:
        """Strength of a term: used by more messages, then seen earlier, then later in the alphabet."""
        holders = self._holders[term]
        return len(holders), -holders[0], term

    def _is_due(self, term: str) -> bool:
        """Whether a term is judged anew: often used ones hardly change."""
        count = len(self._holders[term])
        return count <= self.params.judged_each or count % self.params.judged_every == 0

    def _judge(self, term: str, answered: bool) -> str | None:
        holders = self._holders[term]
        params = self.params
        if len(holders) < (params.min_messages if answered else params.min_messages_unanswered):
            return None
        if self._wording_count.get(term, 0) >= params.wording_share * len(holders):
            return None
        newest = holders[-params.max_holders :]
        heads: Counter[str] = Counter()
        own: set[str] = set()
        for turn_id in newest:
            head, distance = self._head(turn_id, term)
            if head is not None:
                heads[head] += 1
                if not distance:
                    own.add(head)
        headed = sum(heads.values())
        if not headed:
            return term
        commonest, count = min(heads.items(), key=lambda item: (-item[1], item[0]))
        if len(heads) >= 2 and count < params.crossing_share * headed and headed >= params.headed_share * len(newest):
            return None
        if not answered:
            return term
        if count < params.root_share * len(newest):
            return term
        return commonest if commonest in own or len(holders) <= params.min_messages else term

    def _head(self, turn_id: int, below: str | None) -> tuple[str | None, int]:
        """Head of a message by keys stronger than ``below``, and the turns it is inherited over.

        Inherited up to a message that holds ``below``.
        """
        limit = (0, 0, "") if below is None else self._rank(below)
        holders, roots = self._holders, self._roots
        for distance in range(self.params.max_inheritance):
            strongest: str | None = None
            strongest_rank = limit
            for term in self._messages.get(turn_id, ()):
                if term == below:
                    if distance:
                        return None, distance
                elif term in roots:
                    held = holders[term]
                    rank = len(held), -held[0], term
                    if rank > strongest_rank:
                        strongest, strongest_rank = term, rank
            if strongest is not None:
                return roots[strongest], distance
            if not self._continues.get(turn_id, False):
                return None, distance
            turn_id -= 1
        return None, self.params.max_inheritance

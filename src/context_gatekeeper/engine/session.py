"""Session: one conversation of a pool, with its topics kept up to date."""

from __future__ import annotations

from itertools import islice, pairwise

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.text import normalise_text
from context_gatekeeper.engine.context_terms import context_terms
from context_gatekeeper.engine.pool import PagePool, TurnDraft
from context_gatekeeper.engine.query import read_query
from context_gatekeeper.engine.topic_finder import find_topic
from context_gatekeeper.engine.topic_tracker import TopicTracker
from context_gatekeeper.errors import ConfigError, StoreBusyError
from context_gatekeeper.types import TopicMove

__all__ = ["Session"]

_APPEND_ATTEMPTS = 200
"""How often a turn is tried behind turns of other writers: each failure means that one of them went ahead."""


class Session:
    """Adds turns and follows the topics of one conversation, whoever writes to it. For one thread at a time."""

    def __init__(self, pool: PagePool) -> None:
        self._pool = pool
        self.tracker = TopicTracker()
        self._is_ahead = False
        """Whether the tracker took in a text that was not stored: it must be built again."""

    def catch_up(self) -> None:
        """Take in turns that another process, or an earlier one, stored."""
        if self._is_ahead:
            self.tracker, self._is_ahead = TopicTracker(), False
        unknown = self._pool.refresh() - self.tracker.turn_count
        if unknown > 0:
            for turn in islice(self._pool.turns(self.tracker.turn_count), unknown):
                self.tracker.restore(turn, normalise_text(turn.user.text))

    def add_turn(
        self,
        user_text: str,
        assistant_text: str,
        time: float | None,
        speakers: tuple[str | None, str | None],
        *,
        known_move: TopicMove | None = None,
        turn_id: int | None = None,
    ) -> int:
        """Run the gate on the user's text, store the turn, move the topics; returns its id.

        A turn that another writer stored meanwhile goes before this one, which is then judged anew,
        unless it must get ``turn_id``. ``known_move`` overrules the gate where the topic's border is
        known (for fitting it).

        Raises:
            ConfigError: ``turn_id`` is not the next one.
            StoreError: the turn could not be stored; nothing was added.
        """
        for _ in range(_APPEND_ATTEMPTS):
            self.catch_up()
            known_turns = self.tracker.turn_count
            if turn_id is not None and turn_id != known_turns:
                raise ConfigError(
                    f"turn {turn_id!a} of session {self._pool.session!a}",
                    f"the next turn is {known_turns}",
                    "compare what is stored with what you add, or pass no turn_id",
                )
            try:
                return self._add_next(user_text, assistant_text, time, speakers, known_move)
            except ConfigError:
                if turn_id is not None or self._pool.turn_count == known_turns:
                    raise  # nobody was first: the turn itself is refused
        raise StoreBusyError(
            f"session {self._pool.session!a}",
            f"other writers stored a turn first {_APPEND_ATTEMPTS} times in a row",
            "try again; nothing was stored, nothing is lost",
        )

    def _add_next(
        self,
        user_text: str,
        assistant_text: str,
        time: float | None,
        speakers: tuple[str | None, str | None],
        known_move: TopicMove | None,
    ) -> int:
        """Add a turn behind those that the tracker knows. Raises ConfigError when another writer was first."""
        tracker = self.tracker
        reading = read_query(user_text, self._pool.postings, tracker)
        finding = find_topic(reading, self._pool, tracker, time)
        is_switch = (finding.verdict.move if known_move is None else known_move) is TopicMove.SWITCH
        answer = scan_anchors(assistant_text)
        postings = self._pool.postings

        def is_answered(term: str) -> bool:
            if term in answer.counts:
                return True
            places = postings.ordinals(term)
            return any(first & 1 and second == first - 1 for second, first in pairwise(places))

        self._is_ahead = True
        notes = tracker.note_turn(reading.scan, reading.wording, is_answered, is_switch=is_switch)
        turn = self._pool.append_turn(
            tracker.turn_count,
            TurnDraft(
                user_text,
                assistant_text,
                {**reading.whole.counts, **context_terms(time, speakers[0], user_text)},
                {**answer.counts, **context_terms(time, speakers[1], assistant_text)} if assistant_text else {},
                notes.to_dict(),
                time,
                speakers,
            ),
        )
        tracker.absorb(turn, notes, reading.scan.text)
        self._is_ahead = False
        return turn.turn_id

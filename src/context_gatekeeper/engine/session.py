"""Session: one conversation of a pool, with its topics kept up to date."""

from __future__ import annotations

from itertools import pairwise

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.text import normalise_text
from context_gatekeeper.engine.pool import PagePool, TurnDraft
from context_gatekeeper.engine.query import read_query
from context_gatekeeper.engine.recall import context_terms
from context_gatekeeper.engine.topic_finder import find_topic
from context_gatekeeper.engine.topic_tracker import TopicTracker
from context_gatekeeper.types import TopicMove

__all__ = ["Session"]


class Session:
    """Adds turns and follows the topics of one conversation, whoever writes to it."""

    def __init__(self, pool: PagePool) -> None:
        self._pool = pool
        self.tracker = TopicTracker()

    def catch_up(self) -> None:
        """Take in turns that another process, or an earlier one, stored."""
        if self.tracker.turn_count == self._pool.turn_count:
            return
        for turn in self._pool.turns(self.tracker.turn_count):
            self.tracker.restore(turn, normalise_text(turn.user.text))

    def add_turn(
        self,
        user_text: str,
        assistant_text: str,
        time: float | None,
        speakers: tuple[str | None, str | None],
        *,
        known_move: TopicMove | None = None,
    ) -> int:
        """Run the gate on the user's text, store the turn, move the topics; returns its id.

        ``known_move`` overrules the gate where the topic's border is known (for fitting it).
        """
        self.catch_up()
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
        return turn.turn_id

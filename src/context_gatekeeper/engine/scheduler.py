"""ContextScheduler: spends a token budget on the blocks that a query needs.

For a prompt built afresh each turn: gate -> topic -> recall -> content words -> top 20 ->
admission -> pruning and coverage -> budget. Every stage records what it dropped, so that
no block leaves unseen (`Decision.stages`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.assembler import lay_out_block
from context_gatekeeper.core.content_words import content_words, holds_content_word
from context_gatekeeper.core.profiles import SelectionProfile
from context_gatekeeper.core.pruner import prune_block, shrink_to_tokens
from context_gatekeeper.core.selector import Candidate, Chosen, select_blocks
from context_gatekeeper.core.tokens import documented_tokens, estimate_tokens
from context_gatekeeper.engine.leaned_on import (
    RECALLED_SHARE,
    is_rival,
    leaned_on,
    only_points,
    subject_of,
    tells_enough,
)
from context_gatekeeper.engine.pool import PagePool, StoredTurn
from context_gatekeeper.engine.query import QueryReading, read_query
from context_gatekeeper.engine.recall import folded_text, rank_blocks, rank_fallback, rank_pages
from context_gatekeeper.engine.topic_finder import TopicFinding, find_topic
from context_gatekeeper.engine.topic_tracker import TopicTracker
from context_gatekeeper.ports import Postings, TokenCounter
from context_gatekeeper.types import Decision, Stage, TopicMove

__all__ = ["ContextScheduler"]

RANKED_LIMIT = 256
"""Blocks ranked before topic and content-word filter choose the top 20."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A block as it would be sent."""

    turn_id: int
    user: str
    assistant: str
    cost_tokens: int
    """Tokens of the block as it stands in the prompt."""
    relevance: float
    anchors: frozenset[str]
    reason: str = ""
    new_anchors: tuple[str, ...] = ()
    """Anchors that no block before it covers."""
    copies: int = 1
    """Turns with the same texts that it stands for, itself included."""


class _StageLog:
    """Collects what each stage kept and dropped."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []

    def record(self, stage: str, before: Iterable[int], after: Iterable[int]) -> None:
        kept = set(after)
        self.stages.append(Stage(stage, tuple(sorted(kept)), tuple(sorted(set(before) - kept))))


class ContextScheduler:
    """Plans the context of one call. Holds no state but the session it was given."""

    def __init__(
        self, pool: PagePool, tracker: TopicTracker, profile: SelectionProfile, count_tokens: TokenCounter
    ) -> None:
        self._pool = pool
        self._tracker = tracker
        self._profile = profile
        self._count = count_tokens

    def judge(self, query: str, time: float | None) -> tuple[QueryReading, TopicFinding]:
        """Read a query and find its topic."""
        reading = read_query(query, self._pool.postings, self._tracker)
        return reading, find_topic(reading, self._pool, self._tracker, time)

    def plan(self, query: str, budget_tokens: int, time: float | None = None) -> Decision:
        """Choose blocks for ``query`` within ``budget_tokens`` (for blocks alone). Pure."""
        reading, finding = self.judge(query, time)
        log = _StageLog()
        if not query.strip():
            return self._decision(query, reading, finding, [], {}, budget_tokens, log)
        weights = self._cover_weights(reading, finding)
        needed = leaned_on(reading, finding, self._pool, self._tracker, weights) if self._profile.keeps_topic else {}
        everything = self._rank_everything(reading)
        ranked: list[tuple[int, float]] = []
        if not (needed and only_points(reading)):
            ranked = self._admitted(reading, finding, self._inside(reading, finding, everything, log), log)
        ranked, needed, copies = self._without_copies(ranked, needed, log)
        repeats = _repeats(reading, weights, finding.place.names, self._pool.postings)
        pieces = self._chosen(ranked, needed, dict(everything), weights, repeats, budget_tokens, log)
        pieces = [replace(piece, copies=copies.get(piece.turn_id, 1)) for piece in pieces]
        return self._decision(query, reading, finding, pieces, weights, budget_tokens, log)

    # -- which turns may come ------------------------------------------------------------

    def _without_copies(
        self, ranked: list[tuple[int, float]], needed: Mapping[int, str], log: _StageLog
    ) -> tuple[list[tuple[int, float]], dict[int, str], dict[int, int]]:
        """Of turns with equal texts the newest needed one, else the newest, with the number that stand for it."""
        newest: dict[tuple[str, str], int] = {}
        counts: dict[int, int] = {}
        turns = dict.fromkeys([*needed, *(turn_id for turn_id, _ in ranked)])
        for turn_id in sorted(turns, key=lambda turn: (turn in needed, turn), reverse=True):
            turn = self._pool.turn(turn_id)
            first = newest.setdefault((turn.user.text, turn.assistant.text), turn_id)
            counts[first] = counts.get(first, 0) + 1
        if len(counts) < len(turns):
            log.record("copies", turns, counts)
        kept = {turn_id: reason for turn_id, reason in needed.items() if turn_id in counts}
        return [one for one in ranked if one[0] in counts], kept, counts

    def _inside(
        self, reading: QueryReading, finding: TopicFinding, everything: list[tuple[int, float]], log: _StageLog
    ) -> list[tuple[int, float]]:
        """Top 20 blocks inside the topic that pass the content-word filter."""
        profile = self._profile
        found = [turn_id for turn_id, _ in everything]
        log.record("recall", found, found)
        inside = everything
        if profile.keeps_topic:
            strong = self._recalled(reading, finding)
            inside = [one for one in everything if one[0] in finding.place.allowed or strong(one[0])]
            log.record("topic", found, (turn_id for turn_id, _ in inside))
        if finding.verdict.move is TopicMove.SWITCH and profile.keeps_topic:
            words = content_words(reading.scan)
            passed = [one for one in inside if self._passes(one[0], words, finding)]
            log.record("content_word", (one[0] for one in inside), (one[0] for one in passed))
            inside = passed
        top = inside[: profile.scoring.candidate_limit]
        log.record("top_20", (one[0] for one in inside), (one[0] for one in top))
        return top

    def _recalled(self, reading: QueryReading, finding: TopicFinding) -> Callable[[int], bool]:
        """Whether a turn outside of the topic holds the very subject that a query about the past names.

        The topic's label is inherited along runs and may be lost in one; the subject's own words are not.
        """
        if not (reading.form.recalls and finding.place.names):
            return lambda _: False
        subject = subject_of(reading, self._cover_weights(reading, finding), finding.place.names, self._pool.postings)
        if not tells_enough(subject):
            return lambda _: False
        needed = RECALLED_SHARE * sum(subject.values())

        def holds(turn_id: int) -> bool:
            own = self._tracker.keys.own_roots(turn_id)
            if not own & finding.place.roots and any(is_rival(root, finding, self._tracker) for root in own):
                return False
            turn = self._pool.turn(turn_id)
            return (
                sum(w for term, w in subject.items() if term in turn.user.terms or term in turn.assistant.terms)
                >= needed
                > 0
            )

        return holds

    def _passes(self, turn_id: int, words: frozenset[str], finding: TopicFinding) -> bool:
        """Whether a block holds a content word of the query, or stands in the topic that the query names."""
        return bool(finding.place.names) or holds_content_word(words, self._text(turn_id))

    def _rank_everything(self, reading: QueryReading) -> list[tuple[int, float]]:
        postings = self._pool.postings
        if reading.fallback:
            return rank_fallback(reading.fallback, self._pool)
        if not self._profile.ranks_pages:
            return rank_blocks(reading, postings, self._profile, limit=RANKED_LIMIT)
        blocks: dict[int, float] = {}
        for ordinal, strength in rank_pages(reading, postings, self._tracker, self._profile)[: 2 * RANKED_LIMIT]:
            blocks.setdefault(ordinal >> 1, strength)
        return list(blocks.items())

    def _text(self, turn_id: int) -> str:
        turn = self._pool.turn(turn_id)
        return f"{turn.user.text}\n{turn.assistant.text}"

    def _admitted(
        self, reading: QueryReading, finding: TopicFinding, ranked: list[tuple[int, float]], log: _StageLog
    ) -> list[tuple[int, float]]:
        """Blocks that hold enough of the query themselves."""
        profile = self._profile
        least, of_best = profile.admission_least, profile.admission_of_best
        if finding.place.topic == "known":
            is_sure = finding.place.names or reading.form.recalls
            least, of_best = 0.0, (profile.admission_of_best_named if is_sure else of_best)
        if not (least or of_best) or reading.fallback:
            return ranked
        total = sum(reading.topic_weights.values())
        shares = {
            turn_id: sum(reading.topic_weights[term] for term in self._held(turn_id, reading)) / total
            for turn_id, _ in ranked
        }
        needed = max(least, of_best * max(shares.values(), default=0.0))
        admitted = [one for one in ranked if shares[one[0]] >= needed]
        log.record("admission", shares, (one[0] for one in admitted))
        return admitted

    def _held(self, turn_id: int, reading: QueryReading) -> list[str]:
        turn = self._pool.turn(turn_id)
        return [term for term in reading.topic_weights if term in turn.user.terms or term in turn.assistant.terms]

    def _cover_weights(self, reading: QueryReading, finding: TopicFinding) -> dict[str, float]:
        """What coverage pays for each anchor: the topic's name counts less once the topic is found (R7)."""
        if reading.fallback:
            return {reading.fallback: 1.0}
        factor = self._profile.name_factor
        return {
            term: weight * (factor if term in finding.place.names else 1.0)
            for term, weight in reading.weights.items()
            if weight > 0.0
        }

    # -- spending the budget --------------------------------------------------------------

    def _chosen(
        self,
        ranked: list[tuple[int, float]],
        needed: Mapping[int, str],
        scores: Mapping[int, float],
        weights: Mapping[str, float],
        repeats: Mapping[str, int],
        budget_tokens: int,
        log: _StageLog,
    ) -> list[_Piece]:
        pieces: dict[int, _Piece] = {}
        left = budget_tokens
        covered: dict[str, int] = {}
        for turn_id, reason in needed.items():
            piece = self._kept_piece(turn_id, weights, left)
            if piece is None:
                continue
            new = tuple(sorted(piece.anchors - covered.keys()))
            pieces[turn_id] = replace(piece, relevance=scores.get(turn_id, 0.0), reason=reason, new_anchors=new)
            left -= piece.cost_tokens
            for term in piece.anchors:
                covered[term] = covered.get(term, 0) + 1
        pruned = [self._pruned(turn_id, relevance, weights) for turn_id, relevance in ranked if turn_id not in pieces]
        able = [piece for piece in pruned if piece is not None]
        log.record("pruning", (t for t, _ in ranked), [*(piece.turn_id for piece in able), *pieces])
        selection = select_blocks(
            [Candidate(piece.turn_id, piece.anchors, max(1, piece.cost_tokens), piece.relevance) for piece in able],
            weights,
            max(0, left),
            covered=covered,
            repeats=repeats,
            params=self._profile.selection,
        )
        chosen = {one.turn_id: one for one in selection.chosen}
        pieces.update(
            (piece.turn_id, _as_chosen(piece, chosen[piece.turn_id])) for piece in able if piece.turn_id in chosen
        )
        log.record("coverage", (piece.turn_id for piece in able), [*chosen, *selection.over_budget, *needed])
        log.record("budget", [*chosen, *selection.over_budget, *needed], pieces)
        return [pieces[turn_id] for turn_id in sorted(pieces)]

    def _kept_piece(self, turn_id: int, weights: Mapping[str, float], left: int) -> _Piece | None:
        """A block that is in anyway: whole if it fits, else pruned, else cut head and tail."""
        turn = self._pool.turn(turn_id)
        anchors = self._anchors(turn, weights)
        whole = self._piece(turn_id, turn.user.text, turn.assistant.text, 0.0, anchors)
        if whole.cost_tokens <= left:
            return whole
        pruned = self._pruned(turn_id, 0.0, weights)
        if pruned is not None and pruned.cost_tokens <= left:
            return pruned
        limit = left - self._count(lay_out_block(turn_id, "", ""))
        while limit > 0:
            shrunk = shrink_to_tokens(turn.user.text, turn.assistant.text, limit, self._count)
            if shrunk is None:
                return None
            piece = self._piece(turn_id, *shrunk, 0.0, anchors)
            if piece.cost_tokens <= left:
                return piece
            limit -= max(1, piece.cost_tokens - left)
        return None

    def _pruned(self, turn_id: int, relevance: float, weights: Mapping[str, float]) -> _Piece | None:
        turn = self._pool.turn(turn_id)
        pruned = prune_block(turn.user.text, turn.assistant.text, weights, _find_anchors(weights))
        if pruned is None:
            return None
        return self._piece(turn_id, pruned.user, pruned.assistant, relevance, self._anchors(turn, weights))

    def _piece(self, turn_id: int, user: str, assistant: str, relevance: float, anchors: frozenset[str]) -> _Piece:
        cost = self._count(lay_out_block(turn_id, user, assistant))
        return _Piece(turn_id, user, assistant, cost, relevance, anchors)

    def _anchors(self, turn: StoredTurn, weights: Mapping[str, float]) -> frozenset[str]:
        held = frozenset(term for term in weights if term in turn.user.terms or term in turn.assistant.terms)
        if held or len(weights) != 1:
            return held
        folded = folded_text(self._text(turn.turn_id))
        return frozenset(term for term in weights if term in folded)

    # -- the record -----------------------------------------------------------------------

    def _decision(
        self,
        query: str,
        reading: QueryReading,
        finding: TopicFinding,
        pieces: list[_Piece],
        weights: Mapping[str, float],
        budget_tokens: int,
        log: _StageLog,
    ) -> Decision:
        blocks = tuple(self._block(piece, reading) for piece in pieces)
        texts = [text for piece in pieces for text in (piece.user, piece.assistant)]
        surfaces = reading.scan.surfaces
        held = {term for piece in pieces for term in piece.anchors}
        total = sum(weights.values())
        return Decision(
            query=query,
            profile=self._profile.name,
            verdict=finding.verdict,
            topic=finding.place.topic,
            topic_reason=finding.place.reason,
            stages=tuple(log.stages),
            blocks=blocks,
            coverage=sum(w for t, w in weights.items() if t in held) / total if total else 0.0,
            anchor_weights={surfaces.get(term, term): weight for term, weight in weights.items()},
            tokens_fitted=sum(estimate_tokens(text) for text in texts),
            tokens_documented=sum(documented_tokens(text) for text in texts),
            budget_tokens=budget_tokens,
        )

    def _block(self, piece: _Piece, reading: QueryReading) -> dict[str, Any]:
        postings = self._pool.postings
        surfaces = reading.scan.surfaces
        new = piece.new_anchors
        return {
            "turn_id": piece.turn_id,
            "user": piece.user,
            "assistant": piece.assistant,
            "score": piece.relevance,
            "covered_ids": sorted({postings.ordinals(term)[0] >> 1 for term in new if postings.ordinals(term)}),
            "covered_anchors": sorted({surfaces.get(term, term) for term in new}),
            "tokens": self._count(piece.user) + self._count(piece.assistant),
            "reason": piece.reason,
            "copies": piece.copies,
            "profile": self._profile.name,
        }


def _as_chosen(piece: _Piece, chosen: Chosen) -> _Piece:
    reason = "covers anchors" if chosen.new_anchors else "fills the budget"
    return replace(piece, reason=reason, new_anchors=tuple(chosen.new_anchors))


MOST_REPEATS = 3
"""A question about something said brings every turn that holds its subject, up to so many."""


def _repeats(
    reading: QueryReading, weights: Mapping[str, float], names: frozenset[str], postings: Postings
) -> dict[str, int]:
    subject = subject_of(reading, weights, names, postings)
    return dict.fromkeys(subject, MOST_REPEATS) if reading.form.recalls else {}


def _find_anchors(weights: Mapping[str, float]) -> Callable[[str], set[str]]:
    """Query anchors in a sentence."""

    def find(sentence: str) -> set[str]:
        counts = scan_anchors(sentence).counts
        return {term for term in weights if term in counts}

    return find

"""ContextScheduler: spends a token budget on the blocks that a query needs.

For a prompt built afresh each turn: gate -> topic -> recall -> content words -> top 20 ->
admission -> pruning and coverage -> budget. Every stage records what it dropped, so that
no block leaves unseen (`Decision.stages`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.assembler import lay_out_block
from context_gatekeeper.core.content_words import content_words, holds_content_word
from context_gatekeeper.core.profiles import SelectionProfile
from context_gatekeeper.core.pruner import prune_block, shrink_to_tokens
from context_gatekeeper.core.query_form import read_form
from context_gatekeeper.core.selector import Candidate, Chosen, Selection, select_blocks
from context_gatekeeper.core.tokens import documented_tokens, estimate_tokens
from context_gatekeeper.core.topic_gate import NamedRoot
from context_gatekeeper.core.weights import term_background
from context_gatekeeper.engine.pool import PagePool, StoredTurn
from context_gatekeeper.engine.query import QueryReading, read_query
from context_gatekeeper.engine.recall import rank_blocks, rank_pages
from context_gatekeeper.engine.topic_finder import MOST_PLACES, TopicFinding, find_topic, is_minor
from context_gatekeeper.engine.topic_tracker import TopicTracker
from context_gatekeeper.ports import Postings, TokenCounter
from context_gatekeeper.types import Decision, Stage, TopicMove

__all__ = ["ContextScheduler"]

RECALLED_SHARE = 0.75
"""Least share of the subject's weight that a turn outside of the topic must hold to be recalled."""
ASKED_SHARE = 0.5
"""Least share of the subject's weight that a turn's own question must hold to be the one that was meant."""
WHOLE_SHARE = 0.9
"""The same for a turn that names another topic: frames of questions may be taken for a name."""
RANKED_LIMIT = 256
"""Blocks ranked before topic and content-word filter choose the top 20."""
_SHORT_QUERY_CHARS = 60
_SHORT_QUERY_WORDS = 5
_LEAST_REPEATED_ANCHORS = 3
_TELLING_BACKGROUND = 0.6
_TELLING_SHARE = 0.5
"""A query with an anchor of at least these says itself what it is about and leans on the last block only."""
_FALLBACK_TURNS = 2000
"""A query without anchors is looked for in this many newest turns."""


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
            return self._decision(query, reading, finding, [], None, {}, budget_tokens, log)
        kept_whole = self._kept_turns(reading, finding)
        ranked: list[tuple[int, float]] = []
        if not (kept_whole and _only_points(reading) and self._profile.keeps_topic):
            ranked = self._admitted(reading, finding, self._ranked(reading, finding, log), log)
        weights = self._cover_weights(reading, finding)
        for turn in (*self._asked_before(reading, finding), *self._recalled_last(reading, finding)):
            if turn not in kept_whole:
                kept_whole.append(turn)
        repeats = _repeats(reading, weights, finding.names, self._pool.postings)
        pieces, selection = self._chosen(ranked, kept_whole, weights, repeats, budget_tokens, log)
        return self._decision(query, reading, finding, pieces, selection, weights, budget_tokens, log)

    # -- which turns may come ------------------------------------------------------------

    def _kept_turns(self, reading: QueryReading, finding: TopicFinding) -> list[int]:
        """Last blocks of the run that a continued query leans on, newest first (reading 8).

        None where the query names an older topic and it is open whether it turns to it.
        """
        if finding.verdict.move is TopicMove.SWITCH or not self._tracker.turn_count:
            return []
        if finding.roots and finding.evidence.named_root is NamedRoot.OLDER:
            return []
        kept: list[int] = []
        roots = finding.roots
        is_short = len(reading.scan.text.strip()) <= _SHORT_QUERY_CHARS
        leans_on_two = _only_points(reading) or (is_short and (reading.form.points_back or reading.form.chooses))
        most = 2 if leans_on_two else 1
        for turn_id in range(self._tracker.turn_count - 1, self._tracker.run_start - 1, -1):
            own = self._tracker.keys.own_roots(turn_id)
            if own and roots and not own & roots:
                break
            turn = self._pool.turn(turn_id)
            if turn.user.text.strip() or turn.assistant.text.strip():
                roots = roots or own
                kept.append(turn_id)
            if len(kept) == most:
                break
        return kept

    def _ranked(self, reading: QueryReading, finding: TopicFinding, log: _StageLog) -> list[tuple[int, float]]:
        """Top 20 blocks inside the topic that pass the content-word filter."""
        profile = self._profile
        everything = self._rank_everything(reading)
        found = [turn_id for turn_id, _ in everything]
        log.record("recall", found, found)
        inside = everything
        if profile.keeps_topic:
            strong = self._recalled(reading, finding)
            inside = [one for one in everything if one[0] in finding.allowed or strong(one[0])]
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
        if not (reading.form.recalls and finding.names):
            return lambda _: False
        subject = _subject(reading, self._cover_weights(reading, finding), finding.names, self._pool.postings)
        if not any(term_background(term) >= _TELLING_BACKGROUND for term in subject):
            return lambda _: False
        needed = RECALLED_SHARE * sum(subject.values())

        def holds(turn_id: int) -> bool:
            own = self._tracker.keys.own_roots(turn_id)
            if not own & finding.roots and any(self._rivals(root, finding) for root in own):
                return False
            turn = self._pool.turn(turn_id)
            return (
                sum(w for term, w in subject.items() if term in turn.user.terms or term in turn.assistant.terms)
                >= needed
                > 0
            )

        return holds

    def _rivals(self, root: str, finding: TopicFinding) -> bool:
        """Whether ``root`` is a topic's name beside the query's, not the name of one of its sub-questions."""
        return not any(is_minor(root, named, self._tracker) for named in finding.roots)

    def _passes(self, turn_id: int, words: frozenset[str], finding: TopicFinding) -> bool:
        """Whether a block holds a content word of the query, or stands in the topic that the query names."""
        return bool(finding.names) or holds_content_word(words, self._folded(turn_id))

    def _rank_everything(self, reading: QueryReading) -> list[tuple[int, float]]:
        postings = self._pool.postings
        if reading.fallback:
            return self._fallback_ranked(reading.fallback)
        if not self._profile.ranks_pages:
            return rank_blocks(reading, postings, self._profile, limit=RANKED_LIMIT)
        blocks: dict[int, float] = {}
        for ordinal, strength in rank_pages(reading, postings, self._tracker, self._profile)[: 2 * RANKED_LIMIT]:
            blocks.setdefault(ordinal >> 1, strength)
        return list(blocks.items())

    def _fallback_ranked(self, fallback: str) -> list[tuple[int, float]]:
        """Blocks that hold the query's first characters, newest first (DESIGN.md section 7)."""
        newest = self._tracker.turn_count - 1
        first = max(0, newest - _FALLBACK_TURNS)
        return [(turn, 1.0) for turn in range(newest, first - 1, -1) if fallback in self._folded(turn)]

    def _folded(self, turn_id: int) -> str:
        turn = self._pool.turn(turn_id)
        return f"{turn.user.text}\n{turn.assistant.text}".casefold()

    def _admitted(
        self, reading: QueryReading, finding: TopicFinding, ranked: list[tuple[int, float]], log: _StageLog
    ) -> list[tuple[int, float]]:
        """Blocks that hold enough of the query themselves."""
        profile = self._profile
        least, of_best = profile.admission_least, profile.admission_of_best
        if finding.topic == "known":
            is_sure = finding.names or reading.form.recalls
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

    def _asked_before(self, reading: QueryReading, finding: TopicFinding) -> list[int]:
        """The newest turn whose user text holds every anchor of the query: the same question, asked again.

        It stands in the query's topic, or names a topic that the query names too.
        """
        if len(reading.weights) < _LEAST_REPEATED_ANCHORS or not self._profile.keeps_topic:
            return []
        keys = self._tracker.keys
        named = {root for term in reading.base if (root := keys.root(term))}
        rarest = min(reading.weights, key=lambda term: (self._pool.postings.document_frequency(term), term))
        for ordinal in reversed(self._pool.postings.ordinals(rarest)[-MOST_PLACES:]):
            turn_id = ordinal >> 1
            if ordinal & 1 or not (turn_id in finding.allowed or named & keys.own_roots(turn_id)):
                continue
            if all(term in self._pool.turn(turn_id).user.terms for term in reading.weights):
                return [turn_id]
        return []

    def _recalled_last(self, reading: QueryReading, finding: TopicFinding) -> list[int]:
        """The newest turn that asked about the very subject that a query about the past names.

        Wherever it stands: a label is inherited along runs and may be lost in one, the subject's own words are not.
        A turn that recalled the subject only repeats what that turn said.
        """
        if not (reading.form.recalls and self._profile.keeps_topic):
            return []
        subject = _subject(reading, self._cover_weights(reading, finding), finding.names, self._pool.postings)
        held: dict[int, float] = {}
        for term, weight in subject.items():
            for ordinal in self._pool.postings.ordinals(term)[-MOST_PLACES:]:
                if not ordinal & 1:
                    held[ordinal >> 1] = held.get(ordinal >> 1, 0.0) + weight
        total = sum(subject.values())
        asked = {
            turn: weight for turn, weight in held.items() if not read_form(self._pool.turn(turn).user.text).recalls
        }
        own = {turn: weight for turn, weight in asked.items() if not self._is_elsewhere(turn, reading, finding)}
        best = max(own.values(), default=0.0)
        if best and best >= ASKED_SHARE * total:
            return [max(turn for turn, weight in own.items() if weight >= RECALLED_SHARE * best)]
        whole = [turn for turn, weight in asked.items() if weight >= WHOLE_SHARE * total]
        return [max(whole)] if whole else []

    def _is_elsewhere(self, turn_id: int, reading: QueryReading, finding: TopicFinding) -> bool:
        """Whether a turn names a topic, and neither the query's nor anything the query speaks of."""
        own = self._tracker.keys.own_roots(turn_id)
        if own & finding.roots:
            return False
        return any(root not in reading.base and self._rivals(root, finding) for root in own)

    def _cover_weights(self, reading: QueryReading, finding: TopicFinding) -> dict[str, float]:
        """What coverage pays for each anchor: the topic's name counts less once the topic is found (R7)."""
        if reading.fallback:
            return {reading.fallback: 1.0}
        factor = self._profile.name_factor
        return {
            term: weight * (factor if term in finding.names else 1.0)
            for term, weight in reading.weights.items()
            if weight > 0.0
        }

    # -- spending the budget --------------------------------------------------------------

    def _chosen(
        self,
        ranked: list[tuple[int, float]],
        kept_whole: list[int],
        weights: Mapping[str, float],
        repeats: Mapping[str, int],
        budget_tokens: int,
        log: _StageLog,
    ) -> tuple[list[_Piece], Selection]:
        pieces: dict[int, _Piece] = {}
        left = budget_tokens
        for turn_id in kept_whole:
            piece = self._kept_piece(turn_id, weights, left)
            if piece is not None:
                pieces[turn_id] = piece
                left -= piece.cost_tokens
        covered: dict[str, int] = {}
        for piece in pieces.values():
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
        chosen = {one.turn_id for one in selection.chosen}
        pieces.update((piece.turn_id, piece) for piece in able if piece.turn_id in chosen)
        log.record("coverage", (piece.turn_id for piece in able), [*chosen, *selection.over_budget, *kept_whole])
        log.record("budget", [*chosen, *selection.over_budget, *kept_whole], pieces)
        return [pieces[turn_id] for turn_id in sorted(pieces)], selection

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
        return held or frozenset(term for term in weights if term in self._folded(turn.turn_id) and len(weights) == 1)

    # -- the record -----------------------------------------------------------------------

    def _decision(
        self,
        query: str,
        reading: QueryReading,
        finding: TopicFinding,
        pieces: list[_Piece],
        selection: Selection | None,
        weights: Mapping[str, float],
        budget_tokens: int,
        log: _StageLog,
    ) -> Decision:
        by_turn = {one.turn_id: one for one in selection.chosen} if selection is not None else {}
        blocks = tuple(self._block(piece, by_turn.get(piece.turn_id), reading) for piece in pieces)
        texts = [text for piece in pieces for text in (piece.user, piece.assistant)]
        surfaces = reading.scan.surfaces
        held = {term for piece in pieces for term in piece.anchors}
        total = sum(weights.values())
        return Decision(
            query=query,
            profile=self._profile.name,
            verdict=finding.verdict,
            topic=finding.topic,
            topic_reason=finding.reason,
            stages=tuple(log.stages),
            blocks=blocks,
            coverage=sum(w for t, w in weights.items() if t in held) / total if total else 0.0,
            anchor_weights={surfaces.get(term, term): weight for term, weight in weights.items()},
            tokens_fitted=sum(estimate_tokens(text) for text in texts),
            tokens_documented=sum(documented_tokens(text) for text in texts),
            budget_tokens=budget_tokens,
        )

    def _block(self, piece: _Piece, chosen: Chosen | None, reading: QueryReading) -> dict[str, Any]:
        new = chosen.new_anchors if chosen is not None else tuple(sorted(piece.anchors))
        postings = self._pool.postings
        surfaces = reading.scan.surfaces
        return {
            "turn_id": piece.turn_id,
            "user": piece.user,
            "assistant": piece.assistant,
            "score": piece.relevance,
            "covered_ids": sorted({postings.ordinals(term)[0] >> 1 for term in new if postings.ordinals(term)}),
            "covered_anchors": sorted({surfaces.get(term, term) for term in new}),
            "tokens": self._count(piece.user) + self._count(piece.assistant),
            "reason": "covers anchors"
            if chosen is not None and new
            else "fills the budget"
            if chosen
            else "the run goes on",
        }


def _is_telling(term: str, reading: QueryReading) -> bool:
    """Whether a query's anchor says itself what the query is about."""
    is_whole = reading.scan.shares[term] >= _TELLING_SHARE and term not in reading.wording
    return is_whole and term_background(term) >= _TELLING_BACKGROUND


def _only_points(reading: QueryReading) -> bool:
    """Whether a query is short, points back and names nothing itself: it leans on the last blocks alone."""
    if reading.fallback and not reading.form.word_count:
        return False
    if reading.form.recalls or any(_is_telling(term, reading) for term in reading.base):
        return False
    form = reading.form
    if len(reading.scan.text.strip()) <= _SHORT_QUERY_CHARS and (form.points_back or form.is_deictic):
        return True
    return form.word_count <= _SHORT_QUERY_WORDS


REPEATED_SHARE = 0.4
"""A question about something said before brings every turn that holds its heaviest known anchors: those of
at least this part of the heaviest weight ..."""
MOST_REPEATS = 3
"""... up to so many turns."""


def _repeats(
    reading: QueryReading, weights: Mapping[str, float], names: frozenset[str], postings: Postings
) -> dict[str, int]:
    subject = _subject(reading, weights, names, postings)
    return dict.fromkeys(subject, MOST_REPEATS) if reading.form.recalls else {}


def _subject(
    reading: QueryReading, weights: Mapping[str, float], names: frozenset[str], postings: Postings
) -> dict[str, float]:
    """The heaviest anchors of the query that were seen before, the topic's name and wording left out."""
    known = {
        term: weight
        for term, weight in weights.items()
        if term not in names and term not in reading.wording and postings.document_frequency(term)
    }
    least = REPEATED_SHARE * max(known.values(), default=0.0)
    return {term: weight for term, weight in known.items() if weight >= least}


def _find_anchors(weights: Mapping[str, float]) -> Callable[[str], set[str]]:
    """Query anchors in a sentence."""

    def find(sentence: str) -> set[str]:
        counts = scan_anchors(sentence).counts
        return {term for term in weights if term in counts}

    return find

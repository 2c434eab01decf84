"""Where a query belongs: the evidence for the gate, the topic it names, the stretch it returns to."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator
from dataclasses import dataclass
from itertools import pairwise

from context_gatekeeper.core.segments import SEGMENT_PARAMS, SegmentMatch, match_segments
from context_gatekeeper.core.topic_gate import GateEvidence, NamedRoot, gate_topic
from context_gatekeeper.core.weights import is_content
from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.query import QueryReading
from context_gatekeeper.engine.topic_tracker import ACTIVE_TURNS, TopicTracker
from context_gatekeeper.types import GateVerdict, TopicMove

__all__ = ["TopicFinding", "find_topic", "is_minor"]

RECALLED_SEGMENT_SHARE = 0.85
"""A question about something said looks into every stretch that holds this part of what the best one holds."""
MOST_PLACES = 200
"""Newest pages of one term that are looked at: a term on more pages tells no stretch of talk from another."""
NAMED_LEAST_SHARE = 0.08
"""Least share of the query's topic weight that a topic's name must have to count."""
NAMED_LEAST_SHARE_LONG = 0.20
"""The same for long messages, which mention much in passing."""


@dataclass(frozen=True, slots=True)
class TopicFinding:
    """The gate's verdict and the turns that belong to the query's topic."""

    evidence: GateEvidence
    verdict: GateVerdict
    topic: str
    """``none``, ``running``, ``known`` or ``new``."""
    reason: str
    allowed: Container[int]
    """Turn ids that the selection may look at."""
    names: frozenset[str]
    """Query terms that name the topic."""
    roots: frozenset[str] = frozenset()
    """The topic name that they stand for; empty when none is named."""


@dataclass(frozen=True, slots=True)
class _Named:
    root: str
    terms: frozenset[str]
    turns: frozenset[int]
    is_running: bool


class _LabelledTurns(Collection[int]):
    """Turns that name a root or stand behind one that does, worked out when asked."""

    def __init__(self, tracker: TopicTracker, named: _Named) -> None:
        self._tracker = tracker
        self._named = named
        self._known: dict[int, bool] = {}

    def __contains__(self, turn_id: object) -> bool:
        if not isinstance(turn_id, int):
            return False
        held = self._known.get(turn_id)
        if held is None:
            held = self._tracker.inherits(turn_id, self._named.turns, frozenset((self._named.root,)))
            self._known[turn_id] = held
        return held

    def __iter__(self) -> Iterator[int]:
        return (turn_id for turn_id in range(self._tracker.turn_count) if turn_id in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def find_topic(reading: QueryReading, pool: PagePool, tracker: TopicTracker, time: float | None) -> TopicFinding:
    """Judge a query. Pure with respect to the session."""
    named = _named_root(reading, tracker)
    matches = _segment_matches(reading, pool, tracker)
    evidence = _evidence(reading, pool, tracker, named, matches, time)
    verdict = gate_topic(evidence)
    names = named.terms if named is not None else frozenset()
    roots = frozenset((named.root,)) if named is not None else frozenset()
    if not tracker.turn_count:
        return TopicFinding(evidence, verdict, "none", "no history", (), names, roots)
    if verdict.move is TopicMove.CONTINUE:
        run = range(tracker.run_start, tracker.turn_count)
        if named is not None and named.is_running and reading.form.recalls:
            labelled = _LabelledTurns(tracker, named)
            return TopicFinding(
                evidence, verdict, "running", f"names {named.root!r}", _Either(run, labelled), names, roots
            )
        if named is not None:
            run_turns = _OwnTurns(tracker, run, named.root)
            return TopicFinding(evidence, verdict, "running", f"names {named.root!r}", run_turns, names, roots)
        return TopicFinding(evidence, verdict, "running", "the run", run, names, roots)
    if named is not None:
        return TopicFinding(
            evidence, verdict, "known", f"names {named.root!r}", _LabelledTurns(tracker, named), names, roots
        )
    for match in matches:
        if match.segment == len(tracker.segment_starts) - 1:
            continue
        if match.share >= SEGMENT_PARAMS.resume_share or _stands_out(match, matches, reading):
            turns = tracker.segment_turns(match.segment)
            return TopicFinding(
                evidence, verdict, "known", f"returns to turns {turns.start}-{turns.stop - 1}", turns, names, roots
            )
        break
    if reading.form.recalls and matches:
        best = max(match.share for match in matches)
        like_it = [match.segment for match in matches if match.share >= RECALLED_SEGMENT_SHARE * best]
        said = frozenset(turn for segment in like_it for turn in tracker.segment_turns(segment))
        return TopicFinding(evidence, verdict, "known", "asks about something said", said, names, roots)
    return TopicFinding(evidence, verdict, "new", "nothing older is like it", (), names, roots)


STANDS_OUT_LEAST = 0.3
"""Base weight that a segment must hold to be resumed though it holds less than half of the query."""
STANDS_OUT_SHARE = 0.04
STANDS_OUT_RATIO = 1.3
"""How much more it must hold than every other segment."""


def _stands_out(match: SegmentMatch, matches: list[SegmentMatch], reading: QueryReading) -> bool:
    """Whether one segment alone holds something rare of the query: a topic asked about a second time."""
    total = sum(own for term, own in reading.base.items() if is_content(term))
    second = max((other.share for other in matches if other.segment != match.segment), default=0.0)
    return (
        match.share * total >= STANDS_OUT_LEAST
        and match.share >= STANDS_OUT_SHARE
        and match.share >= STANDS_OUT_RATIO * second
    )


class _OwnTurns(Collection[int]):
    """Turns of a run without those that name another topic only."""

    def __init__(self, tracker: TopicTracker, run: range, root: str) -> None:
        self._tracker = tracker
        self._run = run
        self._root = root

    def __contains__(self, turn_id: object) -> bool:
        if turn_id not in self._run or not isinstance(turn_id, int):
            return False
        roots = self._tracker.keys.own_roots(turn_id)
        return not roots or self._root in roots

    def __iter__(self) -> Iterator[int]:
        return (turn_id for turn_id in self._run if turn_id in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Either(Container[int]):
    """Union of two collections of turn ids without building it."""

    def __init__(self, first: Container[int], second: Container[int]) -> None:
        self._first = first
        self._second = second

    def __contains__(self, turn_id: object) -> bool:
        return turn_id in self._first or turn_id in self._second


def _named_root(reading: QueryReading, tracker: TopicTracker) -> _Named | None:
    """The topic name that the query speaks out: the root used by most messages among those heavy enough."""
    total = sum(reading.topic_weights.values())
    terms: dict[str, set[str]] = {}
    for term in reading.scan.counts:
        if term in reading.wording:
            continue
        root = tracker.keys.root(term)
        if root is not None:
            terms.setdefault(root, set()).add(term)
    least = NAMED_LEAST_SHARE_LONG if reading.form.is_long else NAMED_LEAST_SHARE
    heavy = {
        root: naming
        for root, naming in terms.items()
        if sum(reading.topic_weights[term] for term in naming) >= least * total
    }
    if not heavy or not tracker.turn_count:
        return None
    root = max(heavy, key=lambda one: (one in reading.scan.counts, tracker.keys.message_count(one), one))
    turns = frozenset(tracker.keys.holders(root)).union(*(tracker.keys.holders(term) for term in heavy[root]))
    is_running = tracker.inherits(tracker.turn_count - 1, turns, frozenset((root,)))
    head = tracker.keys.head(tracker.turn_count - 1)
    if not is_running and head is not None and is_minor(root, head, tracker):
        return None
    count = tracker.keys.message_count(root)
    beside = {term for term in reading.scan.counts if NAME_MESSAGES_RATIO * tracker.keys.message_count(term) >= count}
    return _Named(root, frozenset(heavy[root] | beside), turns, is_running)


NAME_MESSAGES_RATIO = 2
"""Words in at least half as many messages as the root belong to the topic's name ("dinghy" beside "sailing")."""
MINOR_RATIO = 3
"""A word used in a third of the messages of the running topic's name, or in fewer, is no topic of its own beside it."""


def is_minor(root: str, head: str, tracker: TopicTracker) -> bool:
    """Whether ``root`` is used in a third of the messages of ``head`` or in fewer."""
    return MINOR_RATIO * tracker.keys.message_count(root) <= tracker.keys.message_count(head)


def _segment_matches(reading: QueryReading, pool: PagePool, tracker: TopicTracker) -> list[SegmentMatch]:
    postings = pool.postings
    base = {term: own for term, own in reading.base.items() if is_content(term)}
    starts = [*tracker.segment_starts, tracker.turn_count]
    sizes = [stop - start for start, stop in pairwise(starts)]
    places = {term: postings.ordinals(term)[-MOST_PLACES:] for term in base}
    return match_segments(base, places, tracker.segment_of, sizes)


def _evidence(
    reading: QueryReading,
    pool: PagePool,
    tracker: TopicTracker,
    named: _Named | None,
    matches: list[SegmentMatch],
    time: float | None,
) -> GateEvidence:
    active: set[str] = set()
    for turn_id in range(max(tracker.run_start, tracker.turn_count - ACTIVE_TURNS), tracker.turn_count):
        turn = pool.turn(turn_id)
        active.update(turn.user.terms, turn.assistant.terms)
    total = sum(reading.topic_weights.values())
    overlap = sum(weight for term, weight in reading.topic_weights.items() if term in active) / total if total else 0.0
    content = [term for term in reading.base if is_content(term)]
    running = len(tracker.segment_starts) - 1
    return GateEvidence(
        turn_count=tracker.turn_count,
        anchor_count=len(reading.topic_weights),
        form=reading.form,
        anchor_overlap_ratio=overlap,
        new_token_ratio=1.0 - overlap if total else 0.0,
        shares_content=any(term in active for term in content),
        new_content=sum(reading.base[term] for term in content if term not in active),
        content_count=len(content),
        named_root=NamedRoot.NONE if named is None else NamedRoot.RUNNING if named.is_running else NamedRoot.OLDER,
        previous_closes=tracker.last_form is not None and tracker.last_form.closes,
        recent_switches=tracker.recent_switches(),
        older_match=max((match.share for match in matches if match.segment != running), default=0.0),
        run_overlap_ratio=_run_overlap(reading, pool, tracker),
        changes_script=tracker.last_form is not None and tracker.last_form.is_han != reading.form.is_han,
        is_answered=bool(pool.turn(tracker.turn_count - 1).assistant.text) if tracker.turn_count else True,
        is_new_day=tracker.is_new_day(time),
    )


def _run_overlap(reading: QueryReading, pool: PagePool, tracker: TopicTracker) -> float:
    total = sum(reading.topic_weights.values())
    if not total:
        return 0.0
    held = 0.0
    postings = pool.postings
    for term, weight in reading.topic_weights.items():
        ordinals = postings.ordinals(term)
        if ordinals and ordinals[-1] >> 1 >= tracker.run_start:
            held += weight
    return held / total

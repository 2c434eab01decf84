"""Where a query belongs: the evidence for the gate, the topic it names, the stretch it returns to."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from context_gatekeeper.core.segments import SEGMENT_PARAMS, SegmentMatch, match_segments
from context_gatekeeper.core.topic_gate import GateEvidence, NamedRoot, gate_topic
from context_gatekeeper.core.weights import is_content, term_background
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
        if not isinstance(turn_id, int) or not 0 <= turn_id < self._tracker.turn_count:
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


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the query's topic is talked about."""

    topic: str
    reason: str
    allowed: Container[int]
    names: frozenset[str] = frozenset()
    roots: frozenset[str] = frozenset()


def find_topic(reading: QueryReading, pool: PagePool, tracker: TopicTracker, time: float | None) -> TopicFinding:
    """Judge a query. Pure with respect to the session."""
    named = _named_root(reading, tracker)
    matches = _segment_matches(reading.base, pool, tracker)
    active = _active_terms(pool, tracker)
    evidence = _evidence(reading, pool, tracker, named, matches, active, time)
    verdict = gate_topic(evidence)
    is_clear = not verdict.points or abs(verdict.points) >= CLEAR_POINTS
    if not tracker.turn_count:
        place = _Place("none", "no history", ())
    elif verdict.move is TopicMove.CONTINUE:
        is_said_in_passing = named is not None and not named.is_running and is_clear
        place = _running_place(reading, tracker, None if is_said_in_passing else named)
    else:
        returned = _returned_place(tracker, named, matches)
        if returned is None and is_clear:
            returned = _touched_place(reading, active, pool, tracker)
        place = _recalled_place(reading, tracker, matches) if returned is None else returned
    return TopicFinding(evidence, verdict, place.topic, place.reason, place.allowed, place.names, place.roots)


def _running_place(reading: QueryReading, tracker: TopicTracker, named: _Named | None) -> _Place:
    """The run; where a topic is named, without turns of other topics, and for a recap with all turns of the topic."""
    run = range(tracker.run_start, tracker.turn_count)
    if named is None:
        return _Place("running", "the run", run)
    allowed: Container[int] = _OwnTurns(tracker, run, named.root)
    if named.is_running and reading.form.recalls:
        allowed = _Either(run, _LabelledTurns(tracker, named))
    return _Place("running", f"names {named.root!r}", allowed, named.terms, frozenset((named.root,)))


def _returned_place(tracker: TopicTracker, named: _Named | None, matches: list[SegmentMatch]) -> _Place | None:
    """The named topic, else the stretch that holds most of the query."""
    if named is not None:
        labelled = _LabelledTurns(tracker, named)
        return _Place("known", f"names {named.root!r}", labelled, named.terms, frozenset((named.root,)))
    running = len(tracker.segment_starts) - 1
    older = next((match for match in matches if match.segment != running), None)
    if older is None or not _holds_most(older, matches):
        return None
    turns = tracker.segment_turns(older.segment)
    return _Place("known", f"returns to turns {turns.start}-{turns.stop - 1}", turns)


def _recalled_place(reading: QueryReading, tracker: TopicTracker, matches: list[SegmentMatch]) -> _Place:
    """For a question about something said every stretch that is nearly the best, else nothing."""
    if not (reading.form.recalls and matches):
        return _Place("new", "nothing older is like it", ())
    best = max(match.share for match in matches)
    like_it = [match.segment for match in matches if match.share >= RECALLED_SEGMENT_SHARE * best]
    said = frozenset(turn for segment in like_it for turn in tracker.segment_turns(segment))
    return _Place("known", "asks about something said", said)


def _holds_most(older: SegmentMatch, matches: list[SegmentMatch]) -> bool:
    """Whether a segment holds half of the query, or alone a good part of it."""
    second = max((match.share for match in matches if match.segment != older.segment), default=0.0)
    least = ALONE_SHARE if older.share >= STANDS_OUT_RATIO * second else SEGMENT_PARAMS.resume_share
    return older.share >= least


ALONE_SHARE = 0.4
"""Least share of the query that a segment must hold to be resumed when no other holds nearly as much."""
STANDS_OUT_LEAST = 0.3
"""Base weight that a segment's user messages must hold to be resumed though it holds less than half of the query."""
STANDS_OUT_SHARE = 0.04
STANDS_OUT_RATIO = 1.3
"""How much more they must hold than those of every segment that is not like it."""
CLEAR_POINTS = 1.0
"""Fewer points on either side leave it open whether a query turns away. Where it clearly goes on, an older topic's
name was said in passing; where it does not clearly turn away, a word that was asked about before is no return."""
TOUCHED_TURNS = 6
"""A subject talked about for longer has a name (a topic key), or none that tells it from others."""


def _touched_place(
    reading: QueryReading, active: Collection[str], pool: PagePool, tracker: TopicTracker
) -> _Place | None:
    """Short stretches in which the user spoke of what the query names and the active topic does not.

    A topic's name is spoken before it is answered, so only user messages are looked at (decision note 0007).
    """
    total = sum(own for term, own in reading.base.items() if is_content(term))
    new = {term: own for term, own in reading.base.items() if is_content(term) and term not in active}
    running = len(tracker.segment_starts) - 1
    found = _segment_matches(new, pool, tracker, users_only=True)
    matches = sorted((one for one in found if one.segment != running), key=lambda one: (-one.share, -one.segment))
    if not matches:
        return None
    best = matches[0]
    held = best.share * sum(new.values())
    alike = [one.segment for one in matches if one.share >= RECALLED_SEGMENT_SHARE * best.share]
    second = max((one.share for one in found if one.segment not in alike), default=0.0)
    turns = frozenset(turn for segment in alike for turn in tracker.segment_turns(segment))
    is_telling = held >= max(STANDS_OUT_LEAST, STANDS_OUT_SHARE * total)
    if not is_telling or len(turns) > TOUCHED_TURNS or best.share < STANDS_OUT_RATIO * second:
        return None
    user_pages = {2 * turn for turn in turns}
    terms = frozenset(term for term in new if not user_pages.isdisjoint(pool.postings.ordinals(term)[-MOST_PLACES:]))
    return _Place("known", f"asked about {', '.join(sorted(terms)[:3])}", turns, terms)


def _active_terms(pool: PagePool, tracker: TopicTracker) -> frozenset[str]:
    """Terms of the last three turns of the run."""
    active: set[str] = set()
    for turn_id in range(max(tracker.run_start, tracker.turn_count - ACTIVE_TURNS), tracker.turn_count):
        turn = pool.turn(turn_id)
        active.update(turn.user.terms, turn.assistant.terms)
    return frozenset(active)


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


def _segment_matches(
    weights: Mapping[str, float], pool: PagePool, tracker: TopicTracker, *, users_only: bool = False
) -> list[SegmentMatch]:
    """Segments that hold content terms of ``weights``, in user messages alone if asked so, strongest first."""
    postings = pool.postings
    base = {term: own for term, own in weights.items() if is_content(term)}
    places: dict[str, Sequence[int]] = {term: postings.ordinals(term)[-MOST_PLACES:] for term in base}
    if users_only:
        places = {term: [ordinal for ordinal in held if not ordinal & 1] for term, held in places.items()}
    return match_segments(base, places, tracker.segment_of, tracker.segment_starts)


def _evidence(
    reading: QueryReading,
    pool: PagePool,
    tracker: TopicTracker,
    named: _Named | None,
    matches: list[SegmentMatch],
    active: Collection[str],
    time: float | None,
) -> GateEvidence:
    total = sum(reading.topic_weights.values())
    overlap = sum(weight for term, weight in reading.topic_weights.items() if term in active) / total if total else 0.0
    content = [term for term in reading.base if is_content(term)]
    new = [term for term in content if term not in active]
    last = pool.turn(tracker.turn_count - 1) if tracker.turn_count else None
    last_text = (last.assistant.text.strip() or last.user.text.strip()) if last is not None else ""
    running = len(tracker.segment_starts) - 1
    return GateEvidence(
        turn_count=tracker.turn_count,
        anchor_count=len(reading.topic_weights),
        form=reading.form,
        anchor_overlap_ratio=overlap,
        new_token_ratio=1.0 - overlap if total else 0.0,
        shares_content=any(term in active for term in content),
        new_content=sum(reading.base[term] for term in new),
        shared_background=max((term_background(term) for term in content if term in active), default=0.0),
        new_background=max((term_background(term) for term in new), default=0.0),
        length_ratio=(1 + len(reading.scan.text)) / (1 + len(last.user.text)) if last is not None else 1.0,
        answer_asks=last_text.endswith(("?", "？")),
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

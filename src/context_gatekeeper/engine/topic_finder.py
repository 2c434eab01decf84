"""Where a query belongs: the evidence for the gate, the topic it names, the stretch it returns to."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass

from context_gatekeeper.core.segments import SEGMENT_PARAMS, SegmentMatch, match_segments
from context_gatekeeper.core.topic_gate import GateEvidence, NamedRoot, gate_topic
from context_gatekeeper.core.weights import is_content, term_background
from context_gatekeeper.engine.named_topic import LabelledTurns, NamedTopic, OwnTurns, find_named_topic
from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.query import QueryReading
from context_gatekeeper.engine.topic_tracker import ACTIVE_TURNS, TopicTracker
from context_gatekeeper.types import GateVerdict, TopicMove

__all__ = ["Place", "TopicFinding", "find_topic"]

SEAMLESS_TURNS = 6
"""In so short a conversation a seam cuts off nothing: there is little that could be of another topic."""
RECALLED_SEGMENT_SHARE = 0.85
"""A question about something said looks into every stretch that holds this part of what the best one holds."""
MOST_PLACES = 64
"""Newest pages of one term that are looked at: a term on more pages tells no stretch of talk from another."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the query's topic is talked about."""

    topic: str
    """``none``, ``running``, ``known`` or ``new``."""
    reason: str
    allowed: Container[int]
    """Turn ids that the selection may look at."""
    names: frozenset[str] = frozenset()
    """Query terms that name the topic."""
    roots: frozenset[str] = frozenset()
    """The topic name that they stand for; empty when none is named."""


@dataclass(frozen=True, slots=True)
class TopicFinding:
    """The gate's verdict, what led to it, and the place that follows."""

    evidence: GateEvidence
    verdict: GateVerdict
    place: Place


def find_topic(reading: QueryReading, pool: PagePool, tracker: TopicTracker, time: float | None) -> TopicFinding:
    """Judge a query. Pure with respect to the session."""
    named = find_named_topic(reading, tracker)
    matches = _segment_matches(reading.base, pool, tracker)
    active = _active_terms(pool, tracker)
    evidence = _evidence(reading, pool, tracker, named, matches, active, time)
    verdict = gate_topic(evidence)
    is_clear = not verdict.points or abs(verdict.points) >= CLEAR_POINTS
    told = None if named is None or (named.is_crossed and not reading.form.recalls) else named
    stays = verdict.is_soft and not reading.form.recalls and (told is None or told.is_running)
    if not tracker.turn_count:
        place = Place("none", "no history", ())
    elif verdict.move is TopicMove.CONTINUE:
        is_said_in_passing = named is not None and not named.is_running and is_clear
        place = _running_place(reading, tracker, None if is_said_in_passing else named)
    elif stays and told is not None:
        place = _running_place(reading, tracker, told)
    elif stays:
        place = Place("running", "a new subject of the running talk", ())
    else:
        returned = _returned_place(tracker, told, matches)
        if returned is None and is_clear:
            returned = _touched_place(reading, active, pool, tracker)
        place = _recalled_place(reading, tracker, matches) if returned is None else returned
    return TopicFinding(evidence, verdict, place)


def _running_place(reading: QueryReading, tracker: TopicTracker, named: NamedTopic | None) -> Place:
    """The run; where a topic is named, without turns of other topics, and for a recap with all turns of the topic.

    Where none is named, a long run counts from its last seam only: what lies before may be another topic.
    """
    run = range(tracker.run_start, tracker.turn_count)
    if named is None:
        is_short = tracker.turn_count <= SEAMLESS_TURNS or reading.form.recalls
        return Place("running", "the run", run if is_short else range(tracker.seam, tracker.turn_count))
    allowed: Container[int] = OwnTurns(tracker, run, named.root)
    if named.is_running and reading.form.recalls:
        allowed = _Either(run, LabelledTurns(tracker, named))
    return Place("running", f"names {named.root!r}", allowed, named.terms, frozenset((named.root,)))


def _returned_place(tracker: TopicTracker, named: NamedTopic | None, matches: list[SegmentMatch]) -> Place | None:
    """The named topic, else the stretch that holds most of the query."""
    if named is not None:
        labelled = LabelledTurns(tracker, named)
        return Place("known", f"names {named.root!r}", labelled, named.terms, frozenset((named.root,)))
    running = len(tracker.segment_starts) - 1
    older = next((match for match in matches if match.segment != running), None)
    if older is None or not _holds_most(older, matches):
        return None
    turns = tracker.segment_turns(older.segment)
    return Place("known", f"returns to turns {turns.start}-{turns.stop - 1}", turns)


def _recalled_place(reading: QueryReading, tracker: TopicTracker, matches: list[SegmentMatch]) -> Place:
    """For a question about something said every stretch that is nearly the best, else nothing."""
    if not (reading.form.recalls and matches):
        return Place("new", "nothing older is like it", ())
    best = max(match.share for match in matches)
    like_it = [match.segment for match in matches if match.share >= RECALLED_SEGMENT_SHARE * best]
    said = frozenset(turn for segment in like_it for turn in tracker.segment_turns(segment))
    return Place("known", "asks about something said", said)


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
) -> Place | None:
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
    return Place("known", f"asked about {', '.join(sorted(terms)[:3])}", turns, terms)


def _active_terms(pool: PagePool, tracker: TopicTracker) -> frozenset[str]:
    """Terms of the last three turns of the run."""
    active: set[str] = set()
    for turn_id in range(max(tracker.run_start, tracker.turn_count - ACTIVE_TURNS), tracker.turn_count):
        turn = pool.turn(turn_id)
        active.update(turn.user.terms, turn.assistant.terms)
    return frozenset(active)


class _Either(Container[int]):
    """Union of two collections of turn ids without building it."""

    def __init__(self, first: Container[int], second: Container[int]) -> None:
        self._first = first
        self._second = second

    def __contains__(self, turn_id: object) -> bool:
        return turn_id in self._first or turn_id in self._second


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
    named: NamedTopic | None,
    matches: list[SegmentMatch],
    active: Collection[str],
    time: float | None,
) -> GateEvidence:
    overlap = _held_share(reading.topic_weights, active)
    content = [term for term in reading.base if is_content(term)]
    new = [term for term in content if term not in active]
    last = pool.turn(tracker.turn_count - 1) if tracker.turn_count else None
    last_terms = {*last.user.terms, *last.assistant.terms} if last is not None else ()
    running = len(tracker.segment_starts) - 1
    return GateEvidence(
        turn_count=tracker.turn_count,
        anchor_count=len(reading.topic_weights),
        form=reading.form,
        anchor_overlap_ratio=overlap,
        new_token_ratio=1.0 - overlap if reading.topic_weights else 0.0,
        shares_content=any(term in active for term in content),
        new_content=sum(reading.base[term] for term in new),
        last_overlap_ratio=_held_share(reading.topic_weights, last_terms),
        new_background=max((term_background(term) for term in new), default=0.0),
        length_ratio=(1 + len(reading.scan.text)) / (1 + len(last.user.text)) if last is not None else 1.0,
        content_count=len(content),
        named_root=NamedRoot.NONE if named is None else NamedRoot.RUNNING if named.is_running else NamedRoot.OLDER,
        previous_closes=tracker.last_form is not None and tracker.last_form.closes,
        recent_switches=tracker.recent_switches(),
        older_match=max((match.share for match in matches if match.segment != running), default=0.0),
        run_overlap_ratio=_run_overlap(reading, pool, tracker),
        changes_script=tracker.last_form is not None and tracker.last_form.is_han != reading.form.is_han,
        is_answered=last is None or bool(last.assistant.text),
        is_new_day=tracker.is_new_day(time),
    )


def _held_share(weights: Mapping[str, float], held: Container[str]) -> float:
    """Share of the weight that ``held`` holds; 0.0 without weights."""
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in held) / total if total else 0.0


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

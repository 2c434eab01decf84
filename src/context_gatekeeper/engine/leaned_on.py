"""Turns that a query leans on and that come whatever the ranking says.

A follow-up leans on the last blocks of the run (reading 8), a question asked again on the
turn that asked it first, and a question about something said on the very turn that said it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from context_gatekeeper.core.query_form import read_form
from context_gatekeeper.core.topic_gate import NamedRoot
from context_gatekeeper.core.weights import term_background
from context_gatekeeper.engine.named_topic import NAME_MESSAGES_RATIO, is_minor
from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.query import QueryReading
from context_gatekeeper.engine.topic_finder import TopicFinding
from context_gatekeeper.engine.topic_tracker import TopicTracker
from context_gatekeeper.ports import Postings

__all__ = ["RECALLED_SHARE", "is_rival", "leaned_on", "only_points", "subject_of", "tells_enough"]

RECALLED_SHARE = 0.75
"""Least share of the subject's weight that a turn outside of the topic must hold to be recalled."""
ASKED_SHARE = 0.5
"""Least share of the subject's weight that a turn's own question must hold to be the one that was meant."""
WHOLE_SHARE = 0.9
"""The same for a turn that names another topic: frames of questions may be taken for a name."""
REPEATED_SHARE = 0.4
"""The subject of a query is its heaviest known anchors: those of at least this part of the heaviest weight."""
_SUBJECT_BACKGROUND = 0.3
"""Commoner words are no subject."""
_MOST_PLACES = 200
"""Newest pages of one term that are looked at for the turn that was meant."""
_WEAK_WEIGHT = 0.4
"""Where the heaviest anchor left weighs less, only fragments between words are left."""
_MOST_RECALLS = 16
"""Newest pages of one term that are looked at for whether it stands in questions about something said alone."""
_SHORT_QUERY_CHARS = 60
_SHORT_QUERY_WORDS = 5
_LEAST_REPEATED_ANCHORS = 3
_TELLING_BACKGROUND = 0.6
_TELLING_SHARE = 0.5
"""A query with an anchor of at least these says itself what it is about and leans on the last block only."""


def leaned_on(
    reading: QueryReading,
    finding: TopicFinding,
    pool: PagePool,
    tracker: TopicTracker,
    cover_weights: Mapping[str, float],
) -> dict[int, str]:
    """Turn ids with the reason why each comes, the most needed first.

    Args:
        reading: the query.
        finding: its topic.
        pool: the turns.
        tracker: the topics of the session.
        cover_weights: what coverage pays for each anchor of the query.
    """
    turns = dict.fromkeys(_last_of_run(reading, finding, pool, tracker), "the run goes on")
    for turn_id in _asked_before(reading, finding, pool, tracker):
        turns.setdefault(turn_id, "asked before")
    for turn_id in _meant_turn(reading, finding, pool, tracker, cover_weights):
        turns.setdefault(turn_id, "asked about")
    return turns


def only_points(reading: QueryReading) -> bool:
    """Whether a query is short, points back and names nothing itself: it leans on the last blocks alone."""
    if reading.fallback and not reading.form.word_count:
        return False
    if reading.form.recalls or any(_is_telling(term, reading) for term in reading.base):
        return False
    form = reading.form
    if len(reading.scan.text.strip()) <= _SHORT_QUERY_CHARS and (form.points_back or form.is_deictic):
        return True
    return form.word_count <= _SHORT_QUERY_WORDS


def subject_of(
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


def tells_enough(subject: Mapping[str, float]) -> bool:
    """Whether a subject is telling enough to be looked for outside of the topic."""
    return any(term_background(term) >= _TELLING_BACKGROUND for term in subject)


def is_rival(root: str, finding: TopicFinding, tracker: TopicTracker) -> bool:
    """Whether ``root`` is a topic's name beside the query's, not the name of one of its sub-questions."""
    return not any(is_minor(root, named, tracker) for named in finding.place.roots)


def _is_telling(term: str, reading: QueryReading) -> bool:
    """Whether a query's anchor says itself what the query is about."""
    is_whole = reading.scan.shares[term] >= _TELLING_SHARE and term not in reading.wording
    return is_whole and term_background(term) >= _TELLING_BACKGROUND


def _last_of_run(reading: QueryReading, finding: TopicFinding, pool: PagePool, tracker: TopicTracker) -> Iterator[int]:
    """Last one or two blocks of the run that a query of the running talk leans on, newest first.

    None where the query names an older topic and it is open whether it turns to it. The second only where the
    place that was found goes so far back.
    """
    is_open = bool(finding.place.roots) and finding.evidence.named_root is NamedRoot.OLDER
    if finding.place.topic != "running" or is_open:
        return
    roots = finding.place.roots
    is_short = len(reading.scan.text.strip()) <= _SHORT_QUERY_CHARS
    leans_on_two = only_points(reading) or (is_short and (reading.form.points_back or reading.form.chooses))
    left = 2 if leans_on_two else 1
    last = tracker.turn_count - 1
    for turn_id in range(last, tracker.run_start - 1, -1):
        own = tracker.keys.own_roots(turn_id)
        is_cut_off = turn_id < last and turn_id not in finding.place.allowed
        if not left or is_cut_off or (own and roots and not own & roots):
            return
        turn = pool.turn(turn_id)
        if turn.user.text.strip() or turn.assistant.text.strip():
            roots = roots or own
            left -= 1
            yield turn_id


def _asked_before(reading: QueryReading, finding: TopicFinding, pool: PagePool, tracker: TopicTracker) -> Iterator[int]:
    """The newest turn whose user text holds every anchor of the query: the same question, asked again.

    It stands in the query's topic, or names a topic that the query names too.
    """
    if len(reading.weights) < _LEAST_REPEATED_ANCHORS:
        return
    named = {root for term in reading.base if (root := tracker.keys.root(term))}
    rarest = min(reading.weights, key=lambda term: (pool.postings.document_frequency(term), term))
    for ordinal in reversed(pool.postings.ordinals(rarest)[-_MOST_PLACES:]):
        turn_id = ordinal >> 1
        if ordinal & 1 or not (turn_id in finding.place.allowed or named & tracker.keys.own_roots(turn_id)):
            continue
        if all(term in pool.turn(turn_id).user.terms for term in reading.weights):
            yield turn_id
            return


def _meant_turn(
    reading: QueryReading,
    finding: TopicFinding,
    pool: PagePool,
    tracker: TopicTracker,
    cover_weights: Mapping[str, float],
) -> Iterator[int]:
    """The newest turn that asked about the very subject that a query about the past names.

    Wherever it stands: a label is inherited along runs and may be lost in one, the subject's own words are not.
    A turn that recalled the subject only repeats what an older one said, so that one comes too.
    """
    if not reading.form.recalls:
        return
    keys = tracker.keys
    used = max((keys.message_count(root) for root in finding.place.roots), default=0)
    # A sub-question's words stand under the topic's name too, but in few of its messages.
    names = frozenset(term for term in finding.place.names if NAME_MESSAGES_RATIO * keys.message_count(term) >= used)
    subject = subject_of(reading, cover_weights, names, pool.postings)
    if max(map(term_background, subject), default=0.0) < _SUBJECT_BACKGROUND:
        # In short talk every word of the topic counts as its name; then the name is the subject.
        subject = subject_of(reading, cover_weights, frozenset(), pool.postings)
    elif max(subject.values(), default=0.0) < _WEAK_WEIGHT:
        # Asked again and again, the subject itself counts as repeated wording.
        subject = _repeated_subject(reading, names, pool) or subject
    held: dict[int, float] = {}
    for term, weight in subject.items():
        for ordinal in pool.postings.ordinals(term)[-_MOST_PLACES:]:
            if not ordinal & 1:
                held[ordinal >> 1] = held.get(ordinal >> 1, 0.0) + weight
    total = sum(subject.values())
    own = {turn: weight for turn, weight in held.items() if not _is_elsewhere(turn, reading, finding, tracker)}
    best = max(own.values(), default=0.0)
    if best and best >= ASKED_SHARE * total:
        able = sorted(turn for turn, weight in own.items() if weight >= RECALLED_SHARE * best)
    else:
        able = sorted(turn for turn, weight in held.items() if weight >= WHOLE_SHARE * total)
    yield from [turn for turn in able if not read_form(pool.turn(turn).user.text).recalls][-1:]
    # Words of recalling also open questions that recall nothing ("you once helped a friend of mine with ...").
    yield from [turn for turn in able if turn in finding.place.allowed][-1:]


def _repeated_subject(reading: QueryReading, names: frozenset[str], pool: PagePool) -> dict[str, float]:
    """The heaviest anchors that are repeated wording, but not of questions about something said alone."""
    recalling: dict[int, bool] = {}

    def recalls(turn_id: int) -> bool:
        if turn_id not in recalling:
            recalling[turn_id] = read_form(pool.turn(turn_id).user.text).recalls
        return recalling[turn_id]

    weights: dict[str, float] = {}
    for term in reading.wording - names:
        asked = [ordinal >> 1 for ordinal in pool.postings.ordinals(term)[-_MOST_RECALLS:] if not ordinal & 1]
        if not all(map(recalls, asked)):
            weights[term] = reading.weights.get(term, 0.0)
    least = REPEATED_SHARE * max(weights.values(), default=0.0)
    return {term: weight for term, weight in weights.items() if weight >= least}


def _is_elsewhere(turn_id: int, reading: QueryReading, finding: TopicFinding, tracker: TopicTracker) -> bool:
    """Whether a turn names a topic, and neither the query's nor anything the query speaks of."""
    own = tracker.keys.own_roots(turn_id)
    if own & finding.place.roots:
        return False
    return any(root not in reading.base and is_rival(root, finding, tracker) for root in own)

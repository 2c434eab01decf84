"""The topic that a query names: self-found names (topic keys), and the turns that stand under one."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from context_gatekeeper.core.topic_keys import TOPIC_KEY_PARAMS
from context_gatekeeper.engine.query import QueryReading
from context_gatekeeper.engine.topic_tracker import TopicTracker

__all__ = ["NAME_MESSAGES_RATIO", "LabelledTurns", "NamedTopic", "OwnTurns", "find_named_topic", "is_minor"]

NAMED_LEAST_SHARE = 0.08
"""Least share of the query's topic weight that a topic's name must have to count."""
NAMED_LEAST_SHARE_LONG = 0.20
"""The same for long messages, which mention much in passing."""
NAME_MESSAGES_RATIO = 2
"""Words in at least half as many messages as the root belong to the topic's name ("dinghy" beside "sailing")."""
MINOR_RATIO = 3
"""A word used in a third of the messages of the running topic's name, or in fewer, is no topic of its own beside it."""
CROSSED_SHARE = 0.3
"""A name of which this share of messages also names topics that are talked about elsewhere tells no topic ..."""
CROSSING_LEAST = 2
"""... when so many topics at least are named there: of two words that cross, the one is the other's topic."""
ELSEWHERE_LEAST = 2
ELSEWHERE_SHARE = 0.3
"""A topic is talked about elsewhere in so many messages at least, and in this share of its own."""


@dataclass(frozen=True, slots=True)
class NamedTopic:
    """A root that the query speaks out, and where it was spoken out before."""

    root: str
    terms: frozenset[str]
    """Terms of the query that stand for it."""
    turns: frozenset[int]
    """Turns whose user text holds the root or one of the terms."""
    is_running: bool
    """Whether the last turn stands under it."""
    is_crossed: bool
    """Whether it is a word of several topics ("hotel" in talk about one town after the other)."""


class LabelledTurns(Collection[int]):
    """Turns that name a root or stand behind one that does, worked out when asked."""

    def __init__(self, tracker: TopicTracker, named: NamedTopic) -> None:
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


class OwnTurns(Collection[int]):
    """Turns of a run without those that name other topics only."""

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


def find_named_topic(reading: QueryReading, tracker: TopicTracker) -> NamedTopic | None:
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
    return NamedTopic(root, frozenset(heavy[root] | beside), turns, is_running, _is_crossed(root, tracker))


def _is_crossed(root: str, tracker: TopicTracker) -> bool:
    """Whether other topics' names stand in the messages of ``root``, and also where it is not talked about.

    A sub-question's words stand where the topic does; "rating" stands beside the hotel and beside the museum.
    Looks at the newest messages of each name only.
    """
    keys = tracker.keys
    most = TOPIC_KEY_PARAMS.max_holders
    own = keys.holders(root)[-most:]
    stretches = {tracker.segment_of[turn_id] for turn_id in own}
    elsewhere: dict[str, bool] = {root: False}

    def is_elsewhere(other: str) -> bool:
        if other not in elsewhere:
            held = keys.holders(other)[-most:]
            count = sum(tracker.segment_of[turn_id] not in stretches for turn_id in held)
            elsewhere[other] = count >= max(ELSEWHERE_LEAST, ELSEWHERE_SHARE * len(held))
        return elsewhere[other]

    crossing = [{other for other in keys.own_roots(turn_id) if is_elsewhere(other)} for turn_id in own]
    is_crossed_often = sum(map(bool, crossing)) >= CROSSED_SHARE * len(own)
    return is_crossed_often and len(set().union(*crossing)) >= CROSSING_LEAST


def is_minor(root: str, head: str, tracker: TopicTracker) -> bool:
    """Whether ``root`` is used in a third of the messages of ``head`` or in fewer."""
    return MINOR_RATIO * tracker.keys.message_count(root) <= tracker.keys.message_count(head)

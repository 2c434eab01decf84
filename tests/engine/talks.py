"""A session whose topics are asked for, and stretches of talk to fill it with."""

from __future__ import annotations

from collections.abc import Collection

from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.query import read_query
from context_gatekeeper.engine.session import Session
from context_gatekeeper.engine.topic_finder import TopicFinding, find_topic
from context_gatekeeper.ports import PageStore
from context_gatekeeper.types import TopicMove

Stretch = tuple[tuple[str, str], ...]

APPLES = (
    ("How do I prune an apple tree?", "Prune an apple tree in late winter. Remove dead branches first."),
    ("Which saw suits thick apple branches?", "A folding pruning saw suits branches above three centimetres."),
    ("When does the apple tree flower?", "Apple trees flower in late April. Frost harms the blossom."),
)
NGINX = (
    ("How do I configure nginx as a reverse proxy?", "Use proxy_pass inside a location block of nginx."),
    ("Which nginx header forwards the client address?", "Set X-Forwarded-For in nginx with proxy_set_header."),
)
TRIP: Stretch = (
    ("请推荐一个评分高的景点。", "推荐故宫，评分4.7分，门票60元。"),
    ("故宫的电话是多少？周边有哪些餐馆？", "电话是010-85007421，周边有四季民福烤鸭店。"),
)
DAY = 86_400.0


def sights(town: str, count: int = 3) -> Stretch:
    """Talk that names a town and nothing else."""
    asked = ("how old is it", "is it loud", "who goes there", "when to leave it", "why is it so")
    return tuple((f"{town}, {question}?", "As in any town.") for question in asked[:count])


def rides(*towns: str) -> Stretch:
    """Talk about rickshaws: a turn for each town, no town where it is empty."""
    return tuple(
        (f"What is rickshaw {number}{town and f' of {town}'}?", "As any.") for number, town in enumerate(towns)
    )


def crossed_talk() -> tuple[Stretch, ...]:
    """Talk about one town after the other; rickshaws come up in each."""
    towns = ("Granada", "Lisbon", "Utrecht")
    return tuple(stretch for town in towns for stretch in (sights(town), rides(town, town)))


class Talk:
    """A session whose topics are asked for; the borders between them are given."""

    def __init__(self, store: PageStore) -> None:
        self.pool = PagePool(store, "share", "talk")
        self.session = Session(self.pool)

    def fill(self) -> Talk:
        """Three turns about apples and two about nginx."""
        return self.hear(APPLES, NGINX)

    def hear(self, *stretches: Stretch) -> Talk:
        """Add stretches of talk, each a topic of its own."""
        for stretch in stretches:
            for place, (user, assistant) in enumerate(stretch):
                move = TopicMove.CONTINUE if place else TopicMove.SWITCH
                self.session.add_turn(user, assistant, DAY, (None, None), known_move=move)
        return self

    def find(self, query: str, time: float | None = None) -> TopicFinding:
        reading = read_query(query, self.pool.postings, self.session.tracker)
        return find_topic(reading, self.pool, self.session.tracker, time)


def listed(finding: TopicFinding) -> list[int]:
    """Turns of a finding that can be counted, as it counts them."""
    assert isinstance(finding.place.allowed, Collection)
    turns = list(finding.place.allowed)
    assert len(finding.place.allowed) == len(turns)
    assert all(turn_id in finding.place.allowed for turn_id in turns)
    return turns


def allowed_turns(talk: Talk, finding: TopicFinding) -> list[int]:
    """Turns of the session that a finding allows."""
    return [turn_id for turn_id in range(talk.session.tracker.turn_count) if turn_id in finding.place.allowed]

"""``evals contamination``: four topics in made conversations; does one leak into another?

A round asks one question of the scheduled topic. Kinds of questions: explicit (topic and sub are
named), elliptic (the sub alone), deictic (neither), recap (asks again about an earlier sub of the
topic: every fifth round of a topic after its fifth). In the orders ``burst`` and ``random`` 40 % are
explicit, 40 % elliptic, 20 % deictic; else explicit. A topic's first question is explicit and left out of all shares.
In the order ``random`` a question that does not name its topic can only be understood behind a turn of that
topic; behind another topic's turn it is asked explicitly. ``random-literal`` draws the kinds without that rule:
there no listener could know the topic, so it has no goal.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from context_gatekeeper.core.text import split_sentences
from context_gatekeeper.evals.datasets import read_frames, read_topics
from context_gatekeeper.evals.fixtures import DEICTIC_FRAMES, ELLIPTIC_FRAMES, EXPLICIT_FRAMES, RECAP_FRAMES, TOPICS
from context_gatekeeper.evals.metrics import bootstrap_interval, mean
from context_gatekeeper.gatekeeper import ContextGatekeeper

__all__ = ["ORDERS", "Frames", "measure_contamination"]

ORDERS = ("burst", "robin", "block", "random")
_ALL_ORDERS = (*ORDERS, "random-literal")
_TOPICS_DRAWN = 4
_BURST = 5
_RECAP_EVERY = 5
_EXPLICIT_SHARE, _ELLIPTIC_SHARE = 0.4, 0.4
_EXAMPLES = 40


@dataclass(frozen=True, slots=True)
class Frames:
    """Wordings by kind and language."""

    explicit: Mapping[str, Sequence[str]]
    elliptic: Mapping[str, Sequence[str]]
    recap: Mapping[str, Sequence[str]]
    deictic: Mapping[str, Sequence[str]]


@dataclass(slots=True)
class _Shares:
    foreign: list[float] = field(default_factory=list)
    right: list[float] = field(default_factory=list)
    empty: list[float] = field(default_factory=list)
    recap: list[float] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class _Topic:
    name: str
    lang: str
    subs: list[tuple[str, str]]
    rounds: int = 0
    turn_of_sub: dict[int, int] = field(default_factory=dict)
    last_sub: int = 0


def measure_contamination(
    orders: Sequence[str] = ORDERS,
    *,
    topics: Path | None = None,
    frames: Path | None = None,
    elliptic: Path | None = None,
    recap: Path | None = None,
    deictic: Path | None = None,
    rounds: int = 100,
    seeds: int = 3,
    profile: str = "strict",
    show_errors: bool = False,
) -> dict[str, Any]:
    """Shares for each order, pooled over the seeds; files replace parts of the seed fixture."""
    wordings = Frames(
        read_frames(frames) if frames else EXPLICIT_FRAMES,
        read_frames(elliptic) if elliptic else ELLIPTIC_FRAMES,
        read_frames(recap) if recap else RECAP_FRAMES,
        read_frames(deictic) if deictic else DEICTIC_FRAMES,
    )
    known_topics = read_topics(topics) if topics else TOPICS
    figures: dict[str, Any] = {}
    errors: list[dict[str, Any]] = []
    for order in orders:
        if order not in _ALL_ORDERS:
            raise ValueError(f"order {order!r}: there is no such order; use {', '.join(_ALL_ORDERS)}")
        shares = _Shares()
        for seed in range(seeds):
            _run(order, known_topics, wordings, rounds, random.Random(f"{order} {seed}"), profile, shares)  # noqa: S311
        figures[order] = {
            "contamination": mean(shares.foreign),
            "same_topic_hit": mean(shares.right),
            "empty": mean(shares.empty),
            "recap_hit": mean(shares.recap),
            "queries": len(shares.foreign),
            "contamination_interval": bootstrap_interval(shares.foreign),
        }
        errors.extend({"order": order, **error} for error in shares.errors)
    result: dict[str, Any] = {"orders": figures, "rounds": rounds, "seeds": seeds, "profile": profile}
    if show_errors:
        result["errors"] = errors[:_EXAMPLES]
    return result


def _schedule(order: str, per_topic: int, rng: random.Random) -> list[int]:
    """Topic numbers, round by round."""
    if order == "robin":
        return [topic for _ in range(per_topic) for topic in range(_TOPICS_DRAWN)]
    if order == "burst":
        rounds: list[int] = []
        for start in range(0, per_topic, _BURST):
            for topic in range(_TOPICS_DRAWN):
                rounds.extend([topic] * min(_BURST, per_topic - start))
        return rounds
    in_blocks = [topic for topic in range(_TOPICS_DRAWN) for _ in range(per_topic)]
    if order != "block":
        rng.shuffle(in_blocks)
    return in_blocks


def _run(
    order: str, topics: Sequence[Mapping[str, Any]], wordings: Frames, rounds: int, rng: random.Random, profile: str, shares: _Shares
) -> None:
    drawn = []
    for topic in rng.sample(list(topics), _TOPICS_DRAWN):
        subs = [(str(sub), str(answer)) for sub, answer in topic["subs"]]
        rng.shuffle(subs)
        drawn.append(_Topic(topic["name"], topic["lang"], subs))
    labels: list[int] = []
    with ContextGatekeeper(profile=profile) as gatekeeper:
        for number in _schedule(order, rounds // _TOPICS_DRAWN, rng):
            topic = drawn[number]
            kind = _kind(order, topic, follows=bool(labels) and labels[-1] == number, rng=rng)
            sub = _sub(kind, topic, rng)
            query = _query(kind, topic, sub, wordings, rng)
            if topic.rounds:
                decision = gatekeeper.explain(query)
                _judge(kind, topic, number, sub, decision, labels, [one.name for one in drawn], shares)
            turn_id = gatekeeper.add_turn(query, _answer(kind, topic, sub))
            labels.append(number)
            if kind in ("explicit", "elliptic"):
                topic.turn_of_sub[sub] = turn_id
            topic.last_sub = sub
            topic.rounds += 1


def _kind(order: str, topic: _Topic, *, follows: bool, rng: random.Random) -> str:
    if topic.rounds >= _RECAP_EVERY and topic.rounds % _RECAP_EVERY == 0:
        return "recap"
    if order not in ("burst", "random", "random-literal") or not topic.rounds:
        return "explicit"
    drawn = rng.random()
    kind = "explicit" if drawn < _EXPLICIT_SHARE else "elliptic" if drawn < _EXPLICIT_SHARE + _ELLIPTIC_SHARE else "deictic"
    return kind if follows or order != "random" else "explicit"


def _sub(kind: str, topic: _Topic, rng: random.Random) -> int:
    if kind == "recap":
        return rng.choice(sorted(topic.turn_of_sub))
    return topic.last_sub if kind == "deictic" else topic.rounds % len(topic.subs)


def _query(kind: str, topic: _Topic, sub: int, wordings: Frames, rng: random.Random) -> str:
    frames: Mapping[str, Sequence[str]] = getattr(wordings, kind)
    return rng.choice(frames[topic.lang]).replace("{n}", topic.name).replace("{s}", topic.subs[sub][0])


def _answer(kind: str, topic: _Topic, sub: int) -> str:
    """The sub's answer; after a deictic question its last sentence."""
    answer = topic.subs[sub][1]
    return (split_sentences(answer) or [answer])[-1] if kind == "deictic" else answer


def _judge(
    kind: str, topic: _Topic, number: int, sub: int, decision: Any, labels: list[int], names: list[str], shares: _Shares
) -> None:
    turns = [block["turn_id"] for block in decision.blocks]
    got = [labels[turn] for turn in turns]
    shares.foreign.append(float(any(one != number for one in got)))
    shares.right.append(float(number in got))
    shares.empty.append(float(not got))
    if kind == "recap":
        shares.recap.append(float(topic.turn_of_sub[sub] in turns))
    if shares.foreign[-1] or not shares.right[-1] or (kind == "recap" and not shares.recap[-1]):
        shares.errors.append(
            {
                "kind": kind,
                "query": decision.query,
                "right_topic": topic.name,
                "got": [names[one] for one in got],
                "turns": turns,
                "gold": topic.turn_of_sub.get(sub),
                "topic": decision.topic,
                "reason": decision.topic_reason,
                "gate": decision.verdict.reason,
                "points": decision.verdict.points,
            }
        )

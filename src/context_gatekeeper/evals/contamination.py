"""``evals contamination``: four topics in made conversations; does one leak into another?

Each round asks one question of the topic whose turn it is, judges the blocks, and adds the
question with its answer. Kinds of questions, by the topic's own round, counted from 0:

- round 0: explicit (topic and sub are named), and left out of all shares;
- rounds 5, 10, 15 ...: recap, asks again about an earlier sub; the answer is that sub's;
- else, in the orders ``burst`` and ``random``: 40 % explicit, 40 % elliptic (the sub alone),
  20 % deictic (neither); in ``robin`` and ``block`` explicit.

Orders. ``burst``: five rounds of each topic in turn, so that a burst opens with round 0 or a
recap and says whose it is. ``robin``: one round each in turn. ``block``: all rounds of a topic,
then the next. ``random``: a question that names its topic picks it at random, by the rounds left;
an elliptic or deictic one belongs to the topic that is on, for no listener could know another.
Two further orders shuffle the rounds of all topics whole: ``random-named`` turns a question that
does not name its topic into an explicit one behind another topic's turn; ``random-literal``
leaves it, so that no answer is right but by luck.

Subs come in an order shuffled for each seed and start again when all were asked, in another
frame where there is one. A recap asks about any earlier sub and is right when the very turn comes that
asked it, the newest such turn. With ``recap_once`` subs that were not recapped yet come first, and any
turn that asked the sub counts, recaps apart: easier, and the reading of the chats in the tests.
The answer to a deictic question says a later part of the last answer once more.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from context_gatekeeper.core.text import split_sentences
from context_gatekeeper.errors import ConfigError, TranscriptError
from context_gatekeeper.evals.fixtures import TopicScript, Wordings, read_topics, read_wordings, seed_topics
from context_gatekeeper.evals.topic_shares import TopicShares, judge_query
from context_gatekeeper.gatekeeper import ContextGatekeeper

__all__ = [
    "ERROR_LIMIT",
    "EXTRA_ORDERS",
    "ORDERS",
    "TOPICS_DRAWN",
    "PlannedRound",
    "measure_contamination",
    "plan_rounds",
]

ORDERS = ("burst", "robin", "block", "random")
EXTRA_ORDERS = ("random-named", "random-literal")
TOPICS_DRAWN = 4
ERROR_LIMIT = 20
"""Examples shown of what went wrong."""
_BURST = 5
_RECAP_EVERY = 5
_MIXED_ORDERS = frozenset({"burst", "random", *EXTRA_ORDERS})
_MIX = {"explicit": 0.4, "elliptic": 0.4, "deictic": 0.2}
_NAMES_TOPIC = frozenset({"explicit", "recap"})
_CONTINUATION = {"zh": "接着说：{}", "en": "To go on: {}"}


@dataclass(frozen=True, slots=True)
class PlannedRound:
    """Whose turn it is and what kind of question is asked."""

    topic: int
    """Place among the drawn topics, from 0."""
    kind: str


@dataclass(slots=True)
class _TopicTalk:
    """What was said about one topic so far."""

    script: TopicScript
    subs: list[tuple[str, str]]
    rounds: int = 0
    next_sub: int = 0
    last_sub: int = 0
    deictics_on_last: int = 0
    turns_of_sub: dict[int, list[int]] = field(default_factory=dict)
    """Sub -> turns in which it was asked, recaps apart."""
    recapped: set[int] = field(default_factory=set)
    used_frames: set[tuple[str, int, str]] = field(default_factory=set)


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
    token_budget: int = 4000,
    recap_once: bool = False,
    error_limit: int = 0,
) -> dict[str, Any]:
    """Shares for each order, pooled over the seeds ``0 .. seeds - 1``.

    Args:
        orders: of `ORDERS` and `EXTRA_ORDERS`.
        topics: file with topics; the seed fixture's without it.
        frames: file with questions that name topic and sub; ``elliptic`` name the sub alone, ``deictic`` neither.
        elliptic: see ``frames``.
        deictic: see ``frames``.
        recap: file with questions for an earlier sub.
        rounds: of all four topics together, a multiple of 4, at least 8.
        seeds: draws of topics, subs, kinds and frames, >= 1.
        profile: selection profile.
        token_budget: of each conversation.
        recap_once: easier recaps.
        error_limit: examples of each order under ``by_topic_errors``; 0 leaves the key out.

    Raises:
        ConfigError: an unknown order, or rounds that do not share out.
        TranscriptError: a file cannot be used.
    """
    _check_orders(orders, rounds)
    known_topics = read_topics(topics) if topics is not None else seed_topics()
    if len(known_topics) < TOPICS_DRAWN:
        raise TranscriptError(str(topics), f"it holds {len(known_topics)} topics", f"give at least {TOPICS_DRAWN}")
    wordings = read_wordings({"explicit": frames, "elliptic": elliptic, "recap": recap, "deictic": deictic})
    _check_languages(known_topics, wordings)
    figures: dict[str, Any] = {}
    examples: list[dict[str, Any]] = []
    for order in orders:
        shares = TopicShares()
        for seed in range(seeds):
            drawn = random.Random(seed).sample(known_topics, TOPICS_DRAWN)
            rng = random.Random(f"{seed} {order}")
            plan = plan_rounds(order, rounds // TOPICS_DRAWN, rng)
            gatekeeper = ContextGatekeeper(token_budget, profile=profile)
            _run(plan, drawn, wordings, rng, gatekeeper, shares, recap_once=recap_once)
        figures[order] = shares.figures(seeds)
        examples.extend({"order": order, **example} for example in shares.examples()[:error_limit])
    result = {"orders": figures, "rounds": rounds, "seeds": seeds, "profile": profile}
    return {**result, "by_topic_errors": examples} if error_limit else result


def _check_orders(orders: Sequence[str], rounds: int) -> None:
    known = (*ORDERS, *EXTRA_ORDERS)
    for order in orders:
        if order not in known:
            raise ConfigError(f"order {order!r}", "there is no such order", f"use {', '.join(known)}")
    if not orders:
        raise ConfigError("orders", "none is named", f"use {', '.join(known)}")
    if rounds < 2 * TOPICS_DRAWN or rounds % TOPICS_DRAWN:
        raise ConfigError(
            f"rounds {rounds}",
            f"{TOPICS_DRAWN} topics share them evenly, and the first question of each is left out",
            f"pass a multiple of {TOPICS_DRAWN}, {2 * TOPICS_DRAWN} or more",
        )


def _check_languages(topics: Sequence[TopicScript], wordings: Wordings) -> None:
    for kind, by_lang in wordings.items():
        missing = sorted({topic.lang for topic in topics} - by_lang.keys())
        if missing:
            raise TranscriptError(
                f"{kind} frames", f"there are none for the language {missing[0]!r}", "add frames in that language"
            )


def plan_rounds(order: str, per_topic: int, rng: random.Random) -> list[PlannedRound]:
    """The rounds of four topics, ``per_topic`` each, in one of the orders of the module docstring."""
    if order == "random":
        return _walk(per_topic, rng)
    asked = [0] * TOPICS_DRAWN
    plan: list[PlannedRound] = []
    for topic in _sequence(order, per_topic, rng):
        kind = _kind(order, asked[topic], rng)
        if order == "random-named" and kind not in _NAMES_TOPIC and plan[-1].topic != topic:
            kind = "explicit"
        plan.append(PlannedRound(topic, kind))
        asked[topic] += 1
    return plan


def _sequence(order: str, per_topic: int, rng: random.Random) -> list[int]:
    topics = range(TOPICS_DRAWN)
    if order == "robin":
        return [topic for _ in range(per_topic) for topic in topics]
    if order == "burst":
        starts = range(0, per_topic, _BURST)
        return [topic for start in starts for topic in topics for _ in range(min(_BURST, per_topic - start))]
    sequence = [topic for topic in topics for _ in range(per_topic)]
    if order != "block":
        rng.shuffle(sequence)
    return sequence


def _walk(per_topic: int, rng: random.Random) -> list[PlannedRound]:
    asked = [0] * TOPICS_DRAWN
    plan: list[PlannedRound] = []
    topic = 0
    for _ in range(TOPICS_DRAWN * per_topic):
        kind = rng.choices(list(_MIX), list(_MIX.values()))[0]
        if kind in _NAMES_TOPIC or not plan or asked[topic] == per_topic:
            topic = rng.choices(range(TOPICS_DRAWN), [per_topic - count for count in asked])[0]
            kind = "explicit"
        if _is_recap(asked[topic]):
            kind = "recap"
        plan.append(PlannedRound(topic, kind))
        asked[topic] += 1
    return plan


def _is_recap(topic_round: int) -> bool:
    return topic_round > 0 and topic_round % _RECAP_EVERY == 0


def _kind(order: str, topic_round: int, rng: random.Random) -> str:
    if _is_recap(topic_round):
        return "recap"
    if order not in _MIXED_ORDERS or topic_round == 0:
        return "explicit"
    return rng.choices(list(_MIX), list(_MIX.values()))[0]


def _run(
    plan: Sequence[PlannedRound],
    drawn: Sequence[TopicScript],
    wordings: Wordings,
    rng: random.Random,
    gatekeeper: ContextGatekeeper,
    shares: TopicShares,
    *,
    recap_once: bool,
) -> None:
    talks = [_TopicTalk(script, rng.sample(script.subs, len(script.subs))) for script in drawn]
    topic_of_turn: list[str] = []
    with gatekeeper:
        for planned in plan:
            talk = talks[planned.topic]
            sub = _choose_sub(planned.kind, talk, rng, recap_once=recap_once)
            query = _word(planned.kind, talk, sub, wordings, rng)
            if talk.rounds:
                gold = _gold_turns(talk, sub, recap_once=recap_once) if planned.kind == "recap" else None
                decision = gatekeeper.explain(query)
                shares.queries.append(judge_query(planned.kind, talk.script.name, decision, topic_of_turn, gold))
            turn_id = gatekeeper.add_turn(query, _answer(planned.kind, talk, sub))
            topic_of_turn.append(talk.script.name)
            if planned.kind in ("explicit", "elliptic"):
                talk.turns_of_sub.setdefault(sub, []).append(turn_id)
            talk.deictics_on_last = talk.deictics_on_last + 1 if planned.kind == "deictic" else 0
            talk.last_sub = sub
            talk.rounds += 1


def _gold_turns(talk: _TopicTalk, sub: int, *, recap_once: bool) -> list[int]:
    return talk.turns_of_sub[sub] if recap_once else talk.turns_of_sub[sub][-1:]


def _choose_sub(kind: str, talk: _TopicTalk, rng: random.Random, *, recap_once: bool) -> int:
    """Place of the sub in the talk's own order."""
    if kind == "deictic":
        return talk.last_sub
    if kind == "recap":
        asked = sorted(talk.turns_of_sub)
        fresh = [one for one in asked if one not in talk.recapped]
        sub = rng.choice((recap_once and fresh) or asked)
        talk.recapped.add(sub)
        return sub
    sub = talk.next_sub
    talk.next_sub = (sub + 1) % len(talk.subs)
    return sub


def _word(kind: str, talk: _TopicTalk, sub: int, wordings: Wordings, rng: random.Random) -> str:
    frames = wordings[kind][talk.script.lang]
    frame = rng.choice([one for one in frames if (kind, sub, one) not in talk.used_frames] or frames)
    talk.used_frames.add((kind, sub, frame))
    return frame.replace("{n}", talk.script.name).replace("{s}", talk.subs[sub][0])


def _answer(kind: str, talk: _TopicTalk, sub: int) -> str:
    answer = talk.subs[sub][1]
    if kind != "deictic":
        return answer
    parts = split_sentences(answer)[1:] or [answer]
    return _CONTINUATION.get(talk.script.lang, "{}").format(parts[talk.deictics_on_last % len(parts)])

"""``evals interleaved``: does a query of one real topic get blocks of another?

Logs whose lines carry a topic are taken as logged; a filler session is its own topic. Dialogues of
a shift file (topic = dialogue) are chained: four dialogues that follow each other in the file take
turns in chunks of two to four exchanges until all are told; a rest of one to three dialogues joins
the last chain. An exchange is a line with its answer. Chunk sizes come from a fixed seed. A topic's
first question is left out of all shares. Kinds: ``running`` goes on with the topic of the turn
before, ``resumed`` comes back to an older one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.evals.datasets import Conversation, EvalTurn, is_user_assistant, pair_lines, read_conversations
from context_gatekeeper.evals.topic_shares import TopicShares, judge_query
from context_gatekeeper.gatekeeper import ContextGatekeeper

__all__ = ["CHAINED_DIALOGUES", "chain_dialogues", "measure_interleaved"]

CHAINED_DIALOGUES = 4
_CHUNK = (2, 4)
"""Least and most exchanges of a dialogue told at a stretch."""
_SEED = 5
TopicTurn = tuple[EvalTurn, str]


def measure_interleaved(path: Path, profile: str = "strict", *, error_limit: int = 0) -> dict[str, Any]:
    """Shares over the queries whose topic was talked about before; ``recap_hit`` is null.

    Raises TranscriptError: a file that cannot be read, or in which no topic is talked about twice.
    """
    shares = TopicShares()
    chains = 0
    for turns in _topic_turns(path):
        chains += 1
        _run(turns, ContextGatekeeper(profile=profile), shares)
    if not shares.queries:
        raise TranscriptError(
            str(path), "no topic is talked about twice", "pass logs with topics, or two dialogues or more"
        )
    result: dict[str, Any] = {
        "orders": {"as_logged": shares.figures(chains)},
        "conversations": chains,
        "profile": profile,
    }
    return {**result, "by_topic_errors": shares.examples()[:error_limit]} if error_limit else result


def _run(turns: Sequence[TopicTurn], gatekeeper: ContextGatekeeper, shares: TopicShares) -> None:
    topic_of_turn: list[str] = []
    known: set[str] = set()
    with gatekeeper:
        for turn, topic in turns:
            if topic in known and turn.user is not None:
                kind = "running" if topic_of_turn[-1] == topic else "resumed"
                decision = gatekeeper.explain(turn.user_text, time=turn.time)
                shares.queries.append(judge_query(kind, topic, decision, topic_of_turn))
            gatekeeper.add_turn(turn.user_text, turn.assistant_text, time=turn.time, speakers=turn.speakers)
            topic_of_turn.append(topic)
            known.add(topic)


def _topic_turns(path: Path) -> Iterator[list[TopicTurn]]:
    """Turns with their topics, one list a conversation or chain."""
    dialogues: list[Conversation] = []
    for conversation in read_conversations(path):
        if any(line.topic is not None for line in conversation.lines):
            yield [(turn, turn.lines[0].topic_key or "") for turn in pair_lines(conversation.lines)]
        else:
            dialogues.append(conversation)
    rng = random.Random(_SEED)
    starts = list(range(0, len(dialogues) - CHAINED_DIALOGUES + 1, CHAINED_DIALOGUES)) or [0] * bool(dialogues)
    for start in starts:
        end = len(dialogues) if start == starts[-1] else start + CHAINED_DIALOGUES
        yield chain_dialogues(dialogues[start:end], rng)


def chain_dialogues(dialogues: Sequence[Conversation], rng: random.Random) -> list[TopicTurn]:
    """Tell the dialogues in turn, a chunk of 2 to 4 exchanges each, until all are told.

    A dialogue's topic is its id; dialogues of one id are told apart by their place.
    """
    ids = [dialogue.conversation_id for dialogue in dialogues]
    topics = [name if ids.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(ids)]
    left = list(zip(topics, map(_exchanges, dialogues), strict=True))
    chain: list[TopicTurn] = []
    while any(exchanges for _, exchanges in left):
        for topic, exchanges in left:
            size = rng.randint(*_CHUNK)
            chain.extend((turn, topic) for turn in exchanges[:size])
            del exchanges[:size]
    return chain


def _exchanges(dialogue: Conversation) -> list[EvalTurn]:
    lines = dialogue.lines
    if is_user_assistant(lines):
        return pair_lines(lines)
    return [EvalTurn(lines[at], lines[at + 1] if at + 1 < len(lines) else None) for at in range(0, len(lines), 2)]

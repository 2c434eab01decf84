"""``evals interleaved``: does a query of one real topic get blocks of another?

Logs whose lines carry a topic are taken as logged; a filler session is its own topic. Dialogues of
shift files (topic = dialogue) are chained, four or more to a chain, told in chunks of two to four
exchanges until all are told. An exchange is a line with its answer. Two ways (decision note 0009):

* ``as_logged``: a chain takes its dialogues from all over the files, and whose chunk comes next is
  drawn, so that one dialogue may go on.
* ``in_turn``, harder: a chain takes dialogues that stand side by side in the files, mostly of one
  domain, and they take turns, so that every chunk is a change of topic.

A topic's first question is left out of all shares. Kinds: ``running`` goes on with the topic of the
turn before, ``resumed`` comes back to an older one. All draws come from a fixed seed.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any

from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.evals.datasets import Conversation, EvalTurn, is_user_assistant, pair_lines, read_conversations
from context_gatekeeper.evals.topic_shares import TopicShares, judge_query
from context_gatekeeper.gatekeeper import ContextGatekeeper

__all__ = ["ChainOrder", "chain_dialogues", "measure_interleaved"]

_CHAINED_DIALOGUES = 4
"""Dialogues of a chain; those left over make some chains longer."""
_CHUNK = (2, 4)
"""Least and most exchanges of a dialogue told at a stretch."""
_SEED = 5
TopicTurn = tuple[EvalTurn, str]


class ChainOrder(Enum):
    """Which dialogues make a chain, and in which order they are told."""

    DRAWN = "as_logged"
    IN_TURN = "in_turn"


def measure_interleaved(paths: Sequence[Path], profile: str = "strict", *, error_limit: int = 0) -> dict[str, Any]:
    """Shares over the queries whose topic was talked about before; ``recap_hit`` is null.

    Dialogues of all files are chained together. ``in_turn`` is left out where no file holds dialogues.

    Raises TranscriptError: a file that cannot be read, or files in which no topic is talked about twice.
    """
    logs: list[list[TopicTurn]] = []
    dialogues: list[Conversation] = []
    for conversation in (one for path in paths for one in read_conversations(path)):
        if any(line.topic is not None for line in conversation.lines):
            logs.append([(turn, turn.lines[0].topic_key or "") for turn in pair_lines(conversation.lines)])
        else:
            dialogues.append(conversation)
    figures: dict[str, Any] = {}
    examples: list[dict[str, Any]] = []
    for order in ChainOrder if dialogues else (ChainOrder.DRAWN,):
        talks = [*logs, *chain_dialogues(dialogues, order)]
        shares = TopicShares()
        for talk in talks:
            _run(talk, ContextGatekeeper(profile=profile), shares)
        if not shares.queries:
            names = ", ".join(map(str, paths))
            raise TranscriptError(
                names, "no topic is talked about twice", "pass logs with topics, or two dialogues or more"
            )
        figures[order.value] = shares.figures(len(talks))
        examples.extend({"order": order.value, **example} for example in shares.examples()[:error_limit])
    result: dict[str, Any] = {"orders": figures, "conversations": len(talks), "profile": profile}
    return {**result, "by_topic_errors": examples} if error_limit else result


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


def chain_dialogues(dialogues: Sequence[Conversation], order: ChainOrder) -> list[list[TopicTurn]]:
    """Chains of four dialogues or more, each dialogue in one of them; all of them in one where they are fewer.

    A dialogue's topic is its id; dialogues of one id in a chain are told apart by their place.
    """
    rng = random.Random(_SEED)
    count = max(1, len(dialogues) // _CHAINED_DIALOGUES) if dialogues else 0
    if order is ChainOrder.DRAWN:
        return [_tell(dialogues[first::count], order, rng) for first in range(count)]
    ends = [*range(_CHAINED_DIALOGUES, _CHAINED_DIALOGUES * count, _CHAINED_DIALOGUES), len(dialogues)][:count]
    return [_tell(dialogues[start:end], order, rng) for start, end in pairwise([0, *ends])]


def _tell(dialogues: Sequence[Conversation], order: ChainOrder, rng: random.Random) -> list[TopicTurn]:
    """One chain: a chunk of a dialogue at a time, until all are told."""
    ids = [dialogue.conversation_id for dialogue in dialogues]
    topics = [name if ids.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(ids)]
    left = deque((topic, _exchanges(one)) for topic, one in zip(topics, dialogues, strict=True) if one.lines)
    chain: list[TopicTurn] = []
    while left:
        if order is ChainOrder.DRAWN:
            left.rotate(-rng.randrange(len(left)))
        topic, exchanges = left.popleft()
        size = rng.randint(*_CHUNK)
        chain.extend((turn, topic) for turn in exchanges[:size])
        if exchanges[size:]:
            left.append((topic, exchanges[size:]))
    return chain


def _exchanges(dialogue: Conversation) -> list[EvalTurn]:
    lines = dialogue.lines
    if is_user_assistant(lines):
        return pair_lines(lines)
    return [EvalTurn(lines[at], lines[at + 1] if at + 1 < len(lines) else None) for at in range(0, len(lines), 2)]

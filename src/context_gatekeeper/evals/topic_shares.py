"""Shares of queries that got blocks of the right topic, of another one, or none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from context_gatekeeper.evals.metrics import mean, mean_intervals, mean_or_none, rests_on_few
from context_gatekeeper.types import Decision

__all__ = ["JudgedQuery", "TopicShares", "judge_query"]


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """One query and where its blocks came from."""

    kind: str
    right_topic: str
    got: tuple[str, ...]
    """Topics of the returned blocks, in turn order."""
    gold_found: bool | None
    """Whether the very turn that a recap asks about is returned; None for other questions."""
    decision: Decision

    @property
    def has_foreign(self) -> bool:
        """Whether a block of another topic came."""
        return any(topic != self.right_topic for topic in self.got)

    @property
    def is_faulty(self) -> bool:
        """Whether anything about it is wrong."""
        return self.has_foreign or self.right_topic not in self.got or self.gold_found is False

    def to_example(self) -> dict[str, Any]:
        """What a reader needs to see why it went wrong."""
        verdict = self.decision.verdict
        return {
            "query": self.decision.query,
            "kind": self.kind,
            "right_topic": self.right_topic,
            "got": list(self.got),
            "turns": [block["turn_id"] for block in self.decision.blocks],
            "gold_found": self.gold_found,
            "move": verdict.move.value,
            "gate": verdict.reason,
            "points": verdict.points,
            "topic": self.decision.topic,
            "topic_reason": self.decision.topic_reason,
        }


def judge_query(
    kind: str,
    right_topic: str,
    decision: Decision,
    topic_of_turn: Sequence[str],
    gold_turns: Collection[int] | None = None,
) -> JudgedQuery:
    """Look up the topics of a decision's blocks; ``gold_turns`` are the turns that a recap may mean."""
    turns = [block["turn_id"] for block in decision.blocks]
    found = None if gold_turns is None else any(turn in gold_turns for turn in turns)
    return JudgedQuery(kind, right_topic, tuple(topic_of_turn[turn] for turn in turns), found, decision)


@dataclass(slots=True)
class TopicShares:
    """Judged queries of one order."""

    queries: list[JudgedQuery] = field(default_factory=list)

    def figures(self, conversations: int) -> dict[str, Any]:
        """The keys of the contract, the same by kind of question, and intervals where few queries were asked."""
        lists = _lists(self.queries)
        kinds = dict.fromkeys(query.kind for query in self.queries)
        figures = {
            **_figures(lists),
            "recap_queries": len(lists["recap_hit"]),
            "by_kind": {kind: _figures(_lists(one for one in self.queries if one.kind == kind)) for kind in kinds},
        }
        if rests_on_few(len(self.queries), conversations):
            figures["intervals"] = mean_intervals({name: values for name, values in lists.items() if values})
        elif lists["recap_hit"] and rests_on_few(len(lists["recap_hit"])):
            figures["intervals"] = mean_intervals({"recap_hit": lists["recap_hit"]})
        return figures

    def examples(self) -> list[dict[str, Any]]:
        """The faulty queries, in the order asked."""
        return [query.to_example() for query in self.queries if query.is_faulty]


def _lists(queries: Iterable[JudgedQuery]) -> dict[str, list[float]]:
    asked = list(queries)
    return {
        "contamination": [float(query.has_foreign) for query in asked],
        "same_topic_hit": [float(query.right_topic in query.got) for query in asked],
        "empty": [float(not query.got) for query in asked],
        "recap_hit": [float(query.gold_found) for query in asked if query.gold_found is not None],
    }


def _figures(lists: dict[str, list[float]]) -> dict[str, Any]:
    return {
        "contamination": mean(lists["contamination"]),
        "same_topic_hit": mean(lists["same_topic_hit"]),
        "empty": mean(lists["empty"]),
        "recap_hit": mean_or_none(lists["recap_hit"]),
        "queries": len(lists["empty"]),
    }

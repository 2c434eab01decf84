"""``evals qa``: does recall find the turns that answer a question, and does select() keep them?

The ranking is ``recall()``'s order before gate and coverage. A question that was asked inside the
log sees only the turns before it. Every gold turn that ``select()`` lost is charged to the first
stage that dropped it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from context_gatekeeper.core.text import split_sentences
from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.evals.datasets import EvalTurn, QaConversation, Question, read_qa
from context_gatekeeper.evals.metrics import bootstrap_interval, mean, ndcg_at, recall_at, share
from context_gatekeeper.gatekeeper import ContextGatekeeper
from context_gatekeeper.types import Decision, Role

__all__ = ["BUDGETS", "TOKEN_LIMITS", "measure_qa"]

TOKEN_LIMITS = (250, 500, 1000, 2000)
BUDGETS = (1000, 4000)
_RANKS = (1, 5, 10, 20)
_RANKED_PAGES = 400
_EXAMPLES = 40
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")


@dataclass(slots=True)
class _Ranking:
    """Ranking figures, a value a question."""

    recall: dict[int, list[float]] = field(default_factory=lambda: {limit: [] for limit in _RANKS})
    hit: list[float] = field(default_factory=list)
    ndcg: list[float] = field(default_factory=list)
    in_tokens: dict[int, list[float]] = field(default_factory=lambda: {limit: [] for limit in TOKEN_LIMITS})

    def add(self, ranked: Sequence[str], gold: frozenset[str], tokens: dict[str, int]) -> None:
        for limit, values in self.recall.items():
            values.append(recall_at(ranked, gold, limit))
        self.hit.append(float(bool(gold.intersection(ranked[:10]))))
        self.ndcg.append(ndcg_at(ranked, gold, 10))
        for limit, values in self.in_tokens.items():
            spent, kept = 0, 0
            for one in ranked:
                spent += tokens[one]
                if spent > limit:
                    break
                kept += 1
            values.append(recall_at(ranked, gold, kept))

    def figures(self) -> dict[str, Any]:
        return {
            **{f"recall@{limit}": mean(values) for limit, values in self.recall.items()},
            "hit@10": mean(self.hit),
            "ndcg@10": mean(self.ndcg),
            "recall_in_tokens": {str(limit): mean(values) for limit, values in self.in_tokens.items()},
        }


@dataclass(slots=True)
class _Kept:
    """Gold turns that select() kept or lost."""

    part: dict[int, list[float]] = field(default_factory=lambda: {budget: [] for budget in BUDGETS})
    whole: dict[int, list[float]] = field(default_factory=lambda: {budget: [] for budget in BUDGETS})
    lost: Counter[str] = field(default_factory=Counter)
    gold_turns: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class _Log:
    """A conversation as it was added, with the way back to the file's lines."""

    turns: list[EvalTurn] = field(default_factory=list)
    block_of: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    text_of: dict[str, str] = field(default_factory=dict)

    def add(self, turn: EvalTurn) -> None:
        block = len(self.turns)
        self.turns.append(turn)
        for line in (turn.user, turn.assistant):
            if line is not None and line.text:
                self.block_of[line.line_id] = block
                known = self.text_of.get(line.line_id)
                self.text_of[line.line_id] = line.text if known is None else f"{known}\n{line.text}"
                self.tokens[line.line_id] = self.tokens.get(line.line_id, 0) + estimate_tokens(line.text)

    def line_id(self, block: int, role: Role) -> str:
        turn = self.turns[block]
        line = turn.user if role is Role.USER or turn.assistant is None else turn.assistant
        return line.line_id

    def lines_of(self, block: int) -> list[str]:
        turn = self.turns[block]
        return list(dict.fromkeys(line.line_id for line in (turn.user, turn.assistant) if line is not None and line.text))


def measure_qa(
    path: Path, profile: str = "strict", unit: str = "turn", peers: Sequence[str] = (), *, show_errors: bool = False
) -> dict[str, Any]:
    """Figures of one file; see the contract in the goals."""
    unknown = set(peers) - _PEERS.keys()
    if unknown:
        raise ConfigError(f"peers {', '.join(sorted(unknown))}", "there are no such peers", f"use {', '.join(_PEERS)}")
    ours = _Ranking()
    by_category: dict[str, _Ranking] = {}
    by_peer = {name: _Ranking() for name in peers}
    kept = _Kept()
    for conversation in read_qa(path):
        with ContextGatekeeper(BUDGETS[-1], profile=profile) as gatekeeper:
            log = _Log()
            for question in _in_order(conversation, gatekeeper, log):
                gold = frozenset(one for one in question.evidence if one in log.block_of)
                if not gold:
                    continue
                time = log.turns[-1].user.time
                ranked = _ranked(gatekeeper, log, question.text, unit, time)
                _rank_into((ours, by_category.setdefault(question.category, _Ranking())), ranked, gold, log, unit)
                for name, ranking in by_peer.items():
                    _rank_into((ranking,), _PEERS[name](log, question.text), gold, log, "turn" if unit == "turn" else unit)
                _keep(gatekeeper, log, question, gold, time, kept)
    return _report(profile, unit, ours, by_category, by_peer, kept, show_errors=show_errors)


def _in_order(conversation: QaConversation, gatekeeper: ContextGatekeeper, log: _Log) -> Sequence[Question]:
    """Yield the questions in the order in which they are asked, adding the turns before each."""
    at_end = [question for question in conversation.questions if question.asked_at is None]
    inside: dict[str, list[Question]] = {}
    for question in conversation.questions:
        if question.asked_at is not None:
            inside.setdefault(question.asked_at, []).append(question)

    def stream():  # type: ignore[no-untyped-def]
        for turn in conversation.turns:
            if log.turns:
                yield from inside.get(turn.user.line_id, ())
            gatekeeper.add_turn(turn.user.text, turn.assistant_text, time=turn.user.time, speakers=turn.speakers)
            log.add(turn)
        yield from at_end

    return stream()  # type: ignore[no-any-return]


def _ranked(gatekeeper: ContextGatekeeper, log: _Log, query: str, unit: str, time: float | None) -> list[str]:
    hits = gatekeeper.recall(query, limit=_RANKED_PAGES, time=time)
    if unit == "block":
        return list(dict.fromkeys(str(hit.turn_id) for hit in hits))
    return list(dict.fromkeys(log.line_id(hit.turn_id, hit.role) for hit in hits))


def _rank_into(rankings: Sequence[_Ranking], ranked: Sequence[str], gold: frozenset[str], log: _Log, unit: str) -> None:
    tokens = log.tokens
    if unit == "block":
        gold = frozenset(str(log.block_of[one]) for one in gold)
        ranked = list(dict.fromkeys(str(log.block_of[one]) if one in log.block_of else one for one in ranked))
        tokens = {one: sum(log.tokens[line] for line in log.lines_of(int(one))) for one in ranked}
    for ranking in rankings:
        ranking.add(ranked, gold, tokens)


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _keep(
    gatekeeper: ContextGatekeeper, log: _Log, question: Question, gold: frozenset[str], time: float | None, kept: _Kept
) -> None:
    for budget in BUDGETS:
        gatekeeper.token_budget = budget
        decision = gatekeeper.explain(question.text, time=time)
        texts = {block["turn_id"]: _squeeze(f"{block['user']}\n{block['assistant']}") for block in decision.blocks}
        parts = wholes = 0
        for line_id in sorted(gold):
            text = texts.get(log.block_of[line_id], "")
            has_part = any(_squeeze(sentence) in text for sentence in split_sentences(log.text_of[line_id])) if text else False
            parts += has_part
            wholes += bool(text) and all(_squeeze(part) in text for part in log.text_of[line_id].split("\n"))
            if budget == BUDGETS[-1] and not has_part:
                kept.lost[_losing_stage(decision, log.block_of[line_id])] += 1
                if len(kept.examples) < _EXAMPLES:
                    kept.examples.append({"query": question.text, "gold": log.text_of[line_id], "verdict": decision.verdict.reason})
        kept.part[budget].append(share(parts, len(gold)))
        kept.whole[budget].append(share(wholes, len(gold)))
        if budget == BUDGETS[-1]:
            kept.gold_turns += len(gold)


def _losing_stage(decision: Decision, block: int) -> str:
    for stage in decision.stages:
        if block in stage.dropped:
            return stage.stage
    if any(block in stage.kept for stage in decision.stages):
        return "pruning"
    return "ranking"


def _report(
    profile: str, unit: str, ours: _Ranking, by_category: dict[str, _Ranking], by_peer: dict[str, _Ranking], kept: _Kept, *, show_errors: bool
) -> dict[str, Any]:
    lost = sum(kept.lost.values())
    figures: dict[str, Any] = {
        "questions": len(ours.hit),
        **ours.figures(),
        "kept_at_budget": {str(budget): mean(values) for budget, values in kept.part.items()},
        "kept_whole_at_budget": {str(budget): mean(values) for budget, values in kept.whole.items()},
        "lost_by_stage": {stage: share(count, kept.gold_turns) for stage, count in kept.lost.most_common()},
        "lost_total": share(lost, kept.gold_turns),
        "gold_turns": kept.gold_turns,
        "by_category": {name: {"questions": len(one.hit), **one.figures()} for name, one in sorted(by_category.items())},
        "peers": {name: one.figures() for name, one in by_peer.items()},
        "hit@10_interval": bootstrap_interval(ours.hit),
        "profile": profile,
        "unit": unit,
    }
    if show_errors:
        figures["errors"] = kept.examples
    return figures


def _bm25_ranked(log: _Log, query: str) -> list[str]:
    try:
        from rank_bm25 import BM25Okapi  # type: ignore[import-not-found]
    except ImportError as missing:
        raise ConfigError("peer bm25", "rank_bm25 is not installed", 'run: pip install "context-gatekeeper[peers]"') from missing
    ids = list(log.text_of)
    scores = BM25Okapi([_peer_tokens(log.text_of[one]) or [""] for one in ids]).get_scores(_peer_tokens(query))
    return [one for _, _, one in sorted(((-points, place, ids[place]) for place, points in enumerate(scores)))][:_RANKED_PAGES]


def _peer_tokens(text: str) -> list[str]:
    tokens = _WORD.findall(text.lower())
    return tokens + [first + second for first, second in zip(tokens, tokens[1:], strict=False) if len(first) == len(second) == 1]


def _recency_ranked(log: _Log, query: str) -> list[str]:
    del query
    return list(reversed(log.text_of))[:_RANKED_PAGES]


_PEERS = {"bm25": _bm25_ranked, "recency": _recency_ranked}

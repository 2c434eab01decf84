"""``evals qa``: does recall find the turns that answer a question, and does select() keep them?

The ranking is ``recall()``'s order before gate and coverage. A question asked inside the log
sees only the turns before it; the others are asked after the whole log. All shares are means
over questions. Every gold turn that ``select()`` lost at the larger budget is charged, with its part
of its question, to one entry of ``lost_by_stage``, so that these and ``kept_at_budget`` add up to 1:

- a stage of ``explain()``: the first one that dropped the gold's block;
- ``pruning``: the block came, or went through every stage, without a sentence of the gold;
- ``ranking``: no stage met the block, it shares no anchor with the question;
- ``not_there_yet``: the gold stands at or behind the question; ``not_in_log``: the file does not have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.evals.datasets import Conversation, Question, pair_lines, read_conversations
from context_gatekeeper.evals.metrics import (
    hit_at,
    mean,
    mean_intervals,
    ndcg_at,
    recall_at,
    recall_in_tokens,
    rests_on_few,
)
from context_gatekeeper.evals.qa_log import LoggedTurns, squeeze_spaces
from context_gatekeeper.evals.qa_peers import open_peers
from context_gatekeeper.gatekeeper import ContextGatekeeper
from context_gatekeeper.types import Decision, Role

__all__ = ["BUDGETS", "TOKEN_LIMITS", "losing_stage", "measure_qa"]

TOKEN_LIMITS = (250, 500, 1000, 2000)
BUDGETS = (1000, 4000)
"""Token budgets of ``kept_at_budget``, ascending; losses are explained for the last."""
_RANKS = (1, 5, 10, 20)
_RANKED_PAGES = 400
"""Enough lines of a usual length to fill the last of `TOKEN_LIMITS`."""


@dataclass(frozen=True, slots=True)
class _Answered:
    """Figures of one question."""

    category: str
    ours: Mapping[str, float]
    peers: Mapping[str, Mapping[str, float]]
    kept: Mapping[int, float]
    whole: Mapping[int, float]
    lost: Mapping[str, float]
    """Stage -> share of the question's gold turns."""
    lost_turns: tuple[dict[str, Any], ...]
    gold_turns: int


def measure_qa(
    path: Path, profile: str = "strict", unit: str = "turn", peers: Sequence[str] = (), *, error_limit: int = 0
) -> dict[str, Any]:
    """Figures of one file.

    Args:
        path: conversations with questions.
        profile: selection profile.
        unit: what is ranked: ``turn`` (a line of the file) or ``block`` (a pair).
        peers: names of `qa_peers.PEERS`.
        error_limit: lost gold turns listed under ``errors``; 0 leaves the key out.

    Raises:
        TranscriptError: a file that cannot be read or holds no question with evidence.
        ConfigError: an unknown peer or profile.
    """
    answered: list[_Answered] = []
    conversations = 0
    open_peers(peers)
    for conversation in read_conversations(path):
        conversations += 1
        with ContextGatekeeper(BUDGETS[-1], profile=profile) as gatekeeper:
            answered.extend(_ask_all(conversation, gatekeeper, unit, peers))
    if not answered:
        raise TranscriptError(
            str(path), "it holds no question with evidence", 'give "questions" with "q" and "evidence_turn_ids"'
        )
    result = _figures(answered)
    categories = sorted({one.category for one in answered})
    result["by_category"] = {name: _figures([one for one in answered if one.category == name]) for name in categories}
    result["peers"] = {name: _ranking_figures([one.peers[name] for one in answered]) for name in peers}
    result.update(conversations=conversations, profile=profile, unit=unit)
    if rests_on_few(len(answered), conversations):
        result["intervals"] = mean_intervals(
            {
                **{key: [one.ours[key] for one in answered] for key in ("recall@10", "hit@10", "ndcg@10")},
                **{f"kept_at_budget.{budget}": [one.kept[budget] for one in answered] for budget in BUDGETS},
            }
        )
    return {**result, "errors": _lost_turns(answered)[:error_limit]} if error_limit else result


def _ask_all(
    conversation: Conversation, gatekeeper: ContextGatekeeper, unit: str, peers: Sequence[str]
) -> Iterator[_Answered]:
    """Add the turns one by one and ask each question at its place."""
    waiting: dict[str | None, list[Question]] = {}
    for question in conversation.questions:
        waiting.setdefault(question.asked_at, []).append(question)
    log = LoggedTurns(unit)
    known = {line.line_id for line in conversation.lines}
    rankers = open_peers(peers)

    def ask(line_id: str | None, now: float | None) -> Iterator[_Answered]:
        for question in waiting.pop(line_id, ()):
            moment = question.time if question.time is not None else now
            rankings = {"": log.ranked_items(gatekeeper.recall(question.text, limit=_RANKED_PAGES, time=moment))}
            rankings.update((name, peer.rank(log, question.text)) for name, peer in rankers.items())
            yield _answer(question, gatekeeper, log, rankings, known, moment)

    for turn in pair_lines(conversation.lines, {name for name in waiting if name is not None}):
        first = turn.lines[0]
        yield from ask(first.line_id, first.time if first.time is not None else log.last_time)
        turn_id = gatekeeper.add_turn(turn.user_text, turn.assistant_text, time=turn.time, speakers=turn.speakers)
        log.add(turn, turn_id)
    yield from ask(None, log.last_time)


def _answer(
    question: Question,
    gatekeeper: ContextGatekeeper,
    log: LoggedTurns,
    rankings: Mapping[str, list[str]],
    known: set[str],
    moment: float | None,
) -> _Answered:
    gold = log.gold_items(question.evidence)
    figures = {name: _rank_figures(ranked, gold, log) for name, ranked in rankings.items()}
    kept: dict[int, float] = {}
    whole: dict[int, float] = {}
    lost: list[dict[str, Any]] = []
    for budget in BUDGETS:
        gatekeeper.token_budget = budget
        decision = gatekeeper.explain(question.text, time=moment)
        sent = _sent_sides(decision)
        marks = {one: log.is_kept(one, sent) if one in log.line_ids else (False, False) for one in question.evidence}
        kept[budget] = mean([float(part) for part, _ in marks.values()])
        whole[budget] = mean([float(all_of_it) for _, all_of_it in marks.values()])
        if budget == BUDGETS[-1]:
            lost = [_lost_turn(question, one, decision, log, known) for one, (part, _) in marks.items() if not part]
    weight = 1 / len(question.evidence)
    shares: dict[str, float] = {}
    for one in lost:
        shares[one["stage"]] = shares.get(one["stage"], 0.0) + weight
    ours = figures.pop("")
    return _Answered(question.category, ours, figures, kept, whole, shares, tuple(lost), len(question.evidence))


def _rank_figures(ranked: Sequence[str], gold: Sequence[str], log: LoggedTurns) -> dict[str, float]:
    in_tokens = recall_in_tokens(ranked, gold, TOKEN_LIMITS, log.count_tokens)
    return {
        **{f"recall@{limit}": recall_at(ranked, gold, limit) for limit in _RANKS},
        "hit@10": hit_at(ranked, gold, 10),
        "ndcg@10": ndcg_at(ranked, gold, 10),
        **{f"tokens {limit}": found for limit, found in in_tokens.items()},
    }


def _sent_sides(decision: Decision) -> dict[tuple[int, Role], str]:
    sent: dict[tuple[int, Role], str] = {}
    for block in decision.blocks:
        sent[block["turn_id"], Role.USER] = squeeze_spaces(block["user"])
        sent[block["turn_id"], Role.ASSISTANT] = squeeze_spaces(block["assistant"])
    return sent


def _lost_turn(
    question: Question, line_id: str, decision: Decision, log: LoggedTurns, known: set[str]
) -> dict[str, Any]:
    if line_id in log.line_ids:
        stage = losing_stage(decision, log.line_ids[line_id])
    else:
        stage = "not_there_yet" if line_id in known else "not_in_log"
    verdict = decision.verdict
    example = {
        "query": question.text,
        "category": question.category,
        "gold_turn": line_id,
        "stage": stage,
        "gate": verdict.reason,
    }
    return {**example, "turn_id": log.line_ids.get(line_id), "got": [block["turn_id"] for block in decision.blocks]}


def losing_stage(decision: Decision, turn_id: int) -> str:
    """Where a block that holds a lost gold turn went; see the module docstring."""
    if any(block["turn_id"] == turn_id for block in decision.blocks):
        return "pruning"
    for stage in decision.stages:
        if turn_id in stage.dropped:
            return stage.stage
    return "pruning" if any(turn_id in stage.kept for stage in decision.stages) else "ranking"


def _lost_turns(answered: Sequence[_Answered]) -> list[dict[str, Any]]:
    return [turn for one in answered for turn in one.lost_turns]


def _ranking_figures(rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    means = {key: mean([row[key] for row in rows]) for key in rows[0]}
    plain = {key: figure for key, figure in means.items() if not key.startswith("tokens ")}
    return {**plain, "recall_in_tokens": {str(limit): means[f"tokens {limit}"] for limit in TOKEN_LIMITS}}


def _figures(answered: Sequence[_Answered]) -> dict[str, Any]:
    stages = sorted({stage for one in answered for stage in one.lost})
    lost = {stage: mean([one.lost.get(stage, 0.0) for one in answered]) for stage in stages}
    return {
        "questions": len(answered),
        **_ranking_figures([one.ours for one in answered]),
        "kept_at_budget": {str(budget): mean([one.kept[budget] for one in answered]) for budget in BUDGETS},
        "kept_whole_at_budget": {str(budget): mean([one.whole[budget] for one in answered]) for budget in BUDGETS},
        "lost_by_stage": dict(sorted(lost.items(), key=lambda item: -item[1])),
        "gold_turns": sum(one.gold_turns for one in answered),
        "lost_gold_turns": sum(len(one.lost_turns) for one in answered),
    }

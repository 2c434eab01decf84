"""ContextGatekeeper: the object that library users hold (DESIGN.md section 5, SPEC.md section 4)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, Self

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.assembler import lay_out_messages, lay_out_prompt
from context_gatekeeper.core.profiles import profile_named
from context_gatekeeper.core.tokens import MESSAGE_TOKENS, Calibration, documented_tokens, estimate_tokens
from context_gatekeeper.engine.exact_tokens import load_exact_counter
from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.query import turns_with_all
from context_gatekeeper.engine.recall import recall
from context_gatekeeper.engine.scheduler import ContextScheduler
from context_gatekeeper.engine.session import Session
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores import open_store
from context_gatekeeper.types import Block, Decision, RecallHit

__all__ = ["ContextGatekeeper"]

_LOGGER = logging.getLogger("context_gatekeeper")
_MAX_RECALL = 100_000
Time = float | datetime | None
CounterName = Literal["fitted", "documented", "exact"]


class ContextGatekeeper:
    """Selects the smallest relevant context of a conversation for each query.

    Args:
        token_budget: most tokens of one prompt without the system prompt, >= 1. Query and
            constraints count.
        profile: ``"strict"`` (the documents' numbers, purity first) or ``"recall"`` (questions
            to a long memory).
        store: None keeps the conversation in memory; a path names a SQLite file, made when it
            does not exist; or any `PageStore`.
        session: name of the conversation inside the store; the same name goes on where it ended.
        token_counter: ``"fitted"``, ``"documented"`` (``len * 1.5``), ``"exact"`` (extra
            ``tokens``) or a callable text -> tokens.
        pool: name of the share of the store that the session belongs to.

    Raises:
        ConfigError: an argument cannot be used.
        StoreError: the store cannot be opened.

    ``select``, ``explain``, ``recall`` and the ``build_`` methods change nothing; ``add_turn``
    moves the topic gate. Warnings go to the logger ``context_gatekeeper`` and to ``warnings``.
    """

    def __init__(
        self,
        token_budget: int = 4000,
        *,
        profile: str = "strict",
        store: PageStore | str | os.PathLike[str] | None = None,
        session: str | None = None,
        token_counter: CounterName | Callable[[str], int] = "fitted",
        pool: str = "default",
    ) -> None:
        self.token_budget = token_budget
        self._profile = profile_named(profile)
        self._count = _counter(token_counter)
        self.warnings: list[str] = []
        self.calibration = Calibration()
        self._owns_store = store is None or isinstance(store, str | os.PathLike)
        self._store: PageStore = open_store(store) if self._owns_store else store  # type: ignore[assignment,arg-type]
        self._pool = PagePool(self._store, pool, "default" if session is None else session)
        self._session = Session(self._pool)
        self._scheduler = ContextScheduler(self._pool, self._session.tracker, self._profile, self._count)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close a store that this object opened itself; a second call does nothing."""
        if self._owns_store:
            self._store.close()

    @property
    def token_budget(self) -> int:
        """Most tokens of one prompt without the system prompt."""
        return self._token_budget

    @token_budget.setter
    def token_budget(self, tokens: int) -> None:
        if isinstance(tokens, bool) or not isinstance(tokens, int):
            raise ConfigError(
                f"token_budget {tokens!r}", "it is not a whole number", "pass the tokens of one prompt, 1 or more"
            )
        if tokens < 1:
            raise ConfigError(
                f"token_budget {tokens}", "a prompt has at least one token", "pass 1 or more; 4000 is the default"
            )
        self._token_budget = tokens

    @property
    def profile(self) -> str:
        """Name of the selection profile."""
        return self._profile.name

    @property
    def session(self) -> str:
        """Name of the conversation inside its store."""
        return self._pool.session

    @property
    def turn_count(self) -> int:
        """Turns of the conversation so far."""
        return self._pool.turn_count

    def add_turn(
        self,
        user_text: str,
        assistant_text: str,
        *,
        time: Time = None,
        speakers: tuple[str | None, str | None] = (None, None),
    ) -> int:
        """Add one turn; it is stored when the call returns.

        Args:
            user_text: what the user said, any text.
            assistant_text: the answer; "" when there is none.
            time: when it was said: seconds since the epoch or a datetime (naive = UTC).
            speakers: names of the two sides, for talk between persons.

        Returns:
            The turn's id, counted from 0.

        Raises:
            ConfigError: a text is no str, a time no time.
            StoreError: the turn could not be stored; nothing was added.
        """
        _check_text("user_text", user_text)
        _check_text("assistant_text", assistant_text)
        tokens = self._count(user_text) + self._count(assistant_text)
        turn_id = self._session.add_turn(user_text, assistant_text, _seconds(time), speakers)
        if tokens > self.token_budget:
            self._warn(
                f"turn {turn_id}: about {tokens} tokens are more than the budget of {self.token_budget}; "
                "it is stored whole and will be sent shortened"
            )
        return turn_id

    def select(self, query: str, *, time: Time = None) -> list[dict[str, Any]]:
        """Blocks that the query needs, in turn order; empty when nothing fits.

        Each is a dict with ``turn_id`` (int), ``user`` and ``assistant`` (pruned texts), ``score``
        (documented formula), ``covered_ids`` (turn ids in which the anchors it newly covers were
        first seen), ``covered_anchors`` (those anchors), ``tokens`` and ``reason``.
        """
        return [dict(block) for block in self.explain(query, time=time).blocks]

    def explain(self, query: str, *, time: Time = None) -> Decision:
        """The whole decision behind `select`: gate, topic, stages, coverage, tokens."""
        _check_text("query", query)
        self._session.catch_up()
        whole_tokens = int(self.token_budget / self.calibration.factor)
        frame_tokens = self._count(lay_out_prompt(self.get_constraints(), [], query))
        messages = lay_out_messages(self.get_constraints(), [], query)
        # As chat messages the same words have framing of their own; a block's labels cost as much as its framing.
        framing_tokens = max(0, sum(self._count(one["content"]) + MESSAGE_TOKENS for one in messages) - frame_tokens)
        whole_tokens -= framing_tokens
        budget_tokens = max(0, whole_tokens - frame_tokens)
        left = budget_tokens
        decision = self._scheduler.plan(query, left, _seconds(time))
        while decision.blocks and left > 0:
            # Counters need not be additive: what counts is the prompt as a whole.
            prompt_tokens = self._count(lay_out_prompt(self.get_constraints(), decision.blocks, query))
            excess = max(
                prompt_tokens - whole_tokens, sum(block["tokens"] for block in decision.blocks) - budget_tokens
            )
            if excess <= 0:
                break
            left = max(0, left - excess)
            decision = self._scheduler.plan(query, left, _seconds(time))
        if budget_tokens <= 0 and self.turn_count:
            warning = (
                f"turn {self.turn_count}: query and constraints leave nothing of the budget of "
                f"{self.token_budget} tokens for the history"
            )
            self._warn(warning)
            decision = replace(decision, warnings=(warning,))
        return decision

    def recall(self, query: str, *, limit: int = 20, time: Time = None, all_terms: bool = False) -> list[RecallHit]:
        """Pages for a query, best first, before gate and coverage; at most ``limit`` (1 to 100,000).

        With ``all_terms`` only pages of turns that hold every anchor of the query.
        """
        _check_text("query", query)
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _MAX_RECALL:
            raise ConfigError(f"limit {limit!r}", "it is not a number of pages", f"pass 1 to {_MAX_RECALL}")
        self._session.catch_up()
        now = _seconds(time)
        reading, _ = self._scheduler.judge(query, now)
        turns = turns_with_all(reading, self._pool.postings) if all_terms else None
        if turns is not None and not turns:
            return []
        most = limit if turns is None else _MAX_RECALL
        hits = recall(reading, self._pool, self._session.tracker, self._profile, limit=most, now=now)
        return [hit for hit in hits if turns is None or hit.turn_id in turns][:limit]

    def build_prompt(self, query: str, *, time: Time = None) -> str:
        """Constraints, blocks in turn order and query as one text, without a system prompt."""
        return lay_out_prompt(self.get_constraints(), self.select(query, time=time), query)

    def build_messages(self, query: str, *, time: Time = None) -> list[dict[str, str]]:
        """The same as chat messages (``role``, ``content``)."""
        return lay_out_messages(self.get_constraints(), self.select(query, time=time), query)

    def set_constraint(self, key: str, value: str) -> None:
        """Keep a standing wish (language, style, things to avoid) in every prompt of the session."""
        _check_text("constraint key", key)
        _check_text("constraint value", value)
        if not key.strip():
            raise ConfigError("constraint key", "it is blank", "name the constraint, such as 'language'")
        self._pool.set_setting(key, value)

    def get_constraints(self) -> dict[str, str]:
        """The constraints in the order in which they were first set."""
        return dict(self._pool.settings())

    def remove_constraint(self, key: str) -> None:
        """Remove a constraint; one that is not there is no error."""
        _check_text("constraint key", key)
        self._pool.set_setting(key, None)

    def count_tokens(self, text: str) -> int:
        """Tokens of ``text`` by the chosen counter, before calibration."""
        return self._count(text)

    def blocks(self) -> Iterator[Block]:
        """Every turn as stored, oldest first."""
        for turn in self._pool.turns():
            sides = (scan_anchors(turn.user.text), scan_anchors(turn.assistant.text))
            anchors = dict.fromkeys(anchor for side in sides for anchor in side.surfaces.values())
            yield Block(
                turn.turn_id,
                turn.user.text,
                turn.assistant.text,
                self._count(turn.user.text),
                self._count(turn.assistant.text),
                tuple(anchors),
            )

    def _warn(self, message: str) -> None:
        self.warnings.append(message)
        _LOGGER.warning("%s", message)


def _check_text(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise ConfigError(name, f"it is a {type(text).__name__}, not a text", "pass a str")


def _seconds(time: Time) -> float | None:
    if time is None:
        return None
    if isinstance(time, datetime):
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    if isinstance(time, bool) or not isinstance(time, int | float) or not abs(time) < 1e11:
        raise ConfigError(f"time {time!r}", "it is no point in time", "pass seconds since the epoch or a datetime")
    return float(time)


def _counter(token_counter: CounterName | Callable[[str], int]) -> Callable[[str], int]:
    if callable(token_counter):
        return token_counter
    if token_counter == "fitted":
        return estimate_tokens
    if token_counter == "documented":
        return documented_tokens
    if token_counter == "exact":
        return load_exact_counter()
    raise ConfigError(
        f"token_counter {token_counter!r}",
        "there is no such counter",
        "use 'fitted', 'documented', 'exact' or a callable",
    )

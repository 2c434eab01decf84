"""ContextGatekeeper: the object that library users hold (DESIGN.md section 5, SPEC.md section 4)."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from context_gatekeeper.arguments import (
    MOST_RECALLED,
    CounterName,
    Time,
    check_limit,
    check_text,
    check_turn_id,
    checked_budget,
    checked_speakers,
    checked_store,
    counter_of,
    seconds_of,
)
from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.assembler import lay_out_messages, lay_out_prompt
from context_gatekeeper.core.profiles import profile_named
from context_gatekeeper.core.tokens import MESSAGE_TOKENS, Calibration
from context_gatekeeper.engine.pool import PagePool
from context_gatekeeper.engine.query import turns_with_all
from context_gatekeeper.engine.recall import recall
from context_gatekeeper.engine.scheduler import ContextScheduler
from context_gatekeeper.engine.session import Session
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores import open_store
from context_gatekeeper.stores.names import check_place
from context_gatekeeper.types import Block, Decision, RecallHit

__all__ = ["ContextGatekeeper"]

_LOGGER = logging.getLogger("context_gatekeeper")


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
    Several threads may share one object: calls wait for each other. Several processes open the
    file each for itself.
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
        self._count = counter_of(token_counter)
        self.warnings: list[str] = []
        self.calibration = Calibration()
        session_name = "default" if session is None else session
        check_place(pool, session_name)
        self._lock = threading.RLock()
        self._lock_owner = os.getpid()
        self._owns_store = store is None or isinstance(store, str | os.PathLike)
        self._store: PageStore = open_store(store) if self._owns_store else checked_store(store)  # type: ignore[arg-type]
        self._pool = PagePool(self._store, pool, session_name)
        self._session = Session(self._pool)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close a store that this object opened itself; a second call does nothing."""
        with self._alone():
            if self._owns_store:
                self._store.close()

    @property
    def token_budget(self) -> int:
        """Most tokens of one prompt without the system prompt."""
        return self._token_budget

    @token_budget.setter
    def token_budget(self, tokens: int) -> None:
        self._token_budget = checked_budget(tokens)

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
        turn_id: int | None = None,
    ) -> int:
        """Add one turn; it is stored when the call returns.

        Args:
            user_text: what the user said, any text.
            assistant_text: the answer; "" when there is none.
            time: when it was said: seconds since the epoch or a datetime (naive = UTC), year 5 to 5138.
            speakers: names of the two sides, for talk between persons; None for a side without a name.
            turn_id: the id that it must get, for copying a conversation beside other writers; None takes
                the next one.

        Returns:
            The turn's id, counted from 0. When other processes add to the session too, the ids of one are
            not consecutive.

        Raises:
            ConfigError: a text is no str, a time no time, a name no str, or ``turn_id`` is not the next one.
            StoreError: the turn could not be stored; nothing was added.
        """
        check_text("user_text", user_text)
        check_text("assistant_text", assistant_text)
        check_turn_id(turn_id)
        said_at, names = seconds_of(time), checked_speakers(speakers)
        tokens = self._count(user_text) + self._count(assistant_text)
        with self._alone():
            turn_id = self._session.add_turn(user_text, assistant_text, said_at, names, turn_id=turn_id)
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
        check_text("query", query)
        asked_at = seconds_of(time)
        with self._alone():
            self._session.catch_up()
            scheduler = self._scheduler()
            whole_tokens = int(self.token_budget / self.calibration.factor)
            constraints = self.get_constraints()
            frame_tokens = self._count(lay_out_prompt(constraints, [], query))
            messages = lay_out_messages(constraints, [], query)
            # As chat messages the same words have framing of their own; a block's labels cost as much as its framing.
            framing_tokens = sum(self._count(one["content"]) + MESSAGE_TOKENS for one in messages) - frame_tokens
            whole_tokens -= max(0, framing_tokens)
            budget_tokens = max(0, whole_tokens - frame_tokens)
            left = budget_tokens
            decision = scheduler.plan(query, left, asked_at)
            while decision.blocks and left > 0:
                # Counters need not be additive: what counts is the prompt as a whole.
                prompt_tokens = self._count(lay_out_prompt(constraints, decision.blocks, query))
                excess = max(
                    prompt_tokens - whole_tokens, sum(block["tokens"] for block in decision.blocks) - budget_tokens
                )
                if excess <= 0:
                    break
                left = max(0, left - excess)
                decision = scheduler.plan(query, left, asked_at)
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
        check_text("query", query)
        check_limit(limit)
        now = seconds_of(time)
        with self._alone():
            self._session.catch_up()
            reading, _ = self._scheduler().judge(query, now)
            turns = turns_with_all(reading, self._pool.postings) if all_terms else None
            if turns is not None and not turns:
                return []
            most = limit if turns is None else MOST_RECALLED
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
        check_text("constraint key", key)
        check_text("constraint value", value)
        if not key.strip():
            raise ConfigError("constraint key", "it is blank", "name the constraint, such as 'language'")
        self._pool.set_setting(key, value)

    def get_constraints(self) -> dict[str, str]:
        """The constraints in the order in which they were first set."""
        return dict(self._pool.settings())

    def remove_constraint(self, key: str) -> None:
        """Remove a constraint; one that is not there is no error."""
        check_text("constraint key", key)
        self._pool.set_setting(key, None)

    def count_tokens(self, text: str) -> int:
        """Tokens of ``text`` by the chosen counter, before calibration."""
        check_text("text", text)
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

    def _scheduler(self) -> ContextScheduler:
        """A scheduler over the topics as they are now: the session may have built them again."""
        return ContextScheduler(self._pool, self._session.tracker, self._profile, self._count)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one thread at a time in. A forked child has its own lock: the parent's may be held by a lost thread."""
        if self._lock_owner != os.getpid():
            self._lock, self._lock_owner = threading.RLock(), os.getpid()
        with self._lock:
            yield

    def _warn(self, message: str) -> None:
        self.warnings.append(message)
        _LOGGER.warning("%s", message)

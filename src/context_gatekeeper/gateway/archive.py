"""The archive's process: conversations that went through the gateway become sessions of the pool.

A process of its own writes, so that neither a slow disk nor a long conversation holds up the planner. It takes what
comes as frames at once, and stores one exchange after another; of a conversation that comes faster only the newest
state, which holds all that was before it. What it did is a line of JSON each on standard output.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, TextIO

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.errors import GatekeeperError, StoreError
from context_gatekeeper.gateway.handing_over import Archive
from context_gatekeeper.gateway.identity import working_folder
from context_gatekeeper.gateway.shelf import Archived, ArchiveLimits, Shelf, WaitingExchange
from context_gatekeeper.gateway.worker import Frame, read_frame
from context_gatekeeper.transcripts.own_output import blanked
from context_gatekeeper.types import AgentMessage, AgentSession, BlockKind, ContentBlock
from context_gatekeeper.wire import decode_request
from context_gatekeeper.wire.answers import read_answer

__all__ = [
    "STORE_SETTINGS",
    "Archive",
    "ArchiveWriter",
    "Archived",
    "archived_session",
    "main",
    "open_pool",
]

STORE_SETTINGS = ("store", "pool", "owner", "redaction", "sealed_folder")
"""What `open_pool` reads."""
SOURCE = "gateway"
"""Format of sessions that came this way."""
_NICENESS = 10
"""Storing gives way to planning and to whatever the agent runs."""
Tell = Callable[[Mapping[str, Any]], None]


class ArchiveWriter:
    """Stores exchanges in a pool.

    A client may send another answer back than it got (without its thinking, say), and handles count the blocks that
    it sends. So the first answer of a conversation waits until the next request shows what came of it; if that was
    the answer itself, later ones are stored at once, if not they come in with the requests alone.

    Args:
        pool: where they go.
        most_talks: conversations whose newest answer may wait.
    """

    def __init__(self, pool: AgentPool, most_talks: int = 256) -> None:
        self._pool = pool
        self._most_talks = most_talks
        self._talks: OrderedDict[str, _Talk] = OrderedDict()

    def store(self, exchange: Archived) -> str:
        """Store an exchange; name of its session in the pool.

        An answer that broke off is a session of its own: the client asks again, and goes on without it.

        Raises:
            GatekeeperError: it could not be stored, or the request cannot be read.
        """
        session, answer = archived_session(exchange)
        talk = self._talks.setdefault(exchange.session, _Talk())
        self._talks.move_to_end(exchange.session)
        talk.compare(session.messages)
        whole = session
        if answer is not None and not exchange.is_complete:
            name = f"{exchange.session}/broken-off-{len(session.messages)}"
            self._pool.import_session(replace(session, session_id=name, messages=(answer,)))
        elif answer is not None:
            talk.count, talk.answer = len(session.messages), answer
            whole = replace(session, messages=(*session.messages, answer))
        stored = self._pool.import_session(whole if talk.returns_answers else session).session
        talk.waiting = whole if whole is not session and not talk.returns_answers else None
        while len(self._talks) > self._most_talks:
            name, oldest = next(iter(self._talks.items()))
            self._store_waiting(oldest)
            del self._talks[name]
        return stored

    def go_on_in(self, pool: AgentPool) -> None:
        """Store in a pool that was opened anew; the one before is closed."""
        before, self._pool = self._pool, pool
        with suppress(GatekeeperError):
            before.close()

    def close(self) -> GatekeeperError | None:
        """Store the answers that nobody went on from, and close the pool; why one could not be stored."""
        fault = None
        for talk in self._talks.values():
            try:
                self._store_waiting(talk)
            except GatekeeperError as error:
                fault = error
        with suppress(GatekeeperError):
            self._pool.close()
        return fault

    def _store_waiting(self, talk: _Talk) -> None:
        if talk.waiting is not None and talk.returns_answers is None:
            self._pool.import_session(talk.waiting)


@dataclass(slots=True)
class _Talk:
    """What is known of one conversation's client."""

    returns_answers: bool | None = None
    """Whether it sends back what it was answered; None while that is not known."""
    count: int = 0
    """Messages of the request that `answer` is the answer to."""
    answer: AgentMessage | None = None
    waiting: AgentSession | None = None

    def compare(self, messages: tuple[AgentMessage, ...]) -> None:
        """Compare a longer request with the newest answer."""
        if self.answer is not None and len(messages) > self.count:
            self.returns_answers = messages[self.count].blocks == self.answer.blocks
            self.answer = None


def open_pool(settings: Mapping[str, Any]) -> AgentPool:
    """The pool of the gateway's settings: ``store``, and at will ``pool``, ``owner``, ``redaction``, ``sealed_folder``.

    Raises:
        GatekeeperError: it cannot be opened.
    """
    options = {name: settings[name] for name in STORE_SETTINGS if settings.get(name) is not None}
    return AgentPool(options.pop("store"), **options)


def archived_session(exchange: Archived) -> tuple[AgentSession, AgentMessage | None]:
    """The conversation of a request, and the answer to it; None where none came.

    Raises:
        WireFormatError: the request cannot be read.
    """
    request = decode_request(exchange.api, exchange.request)
    messages = tuple(blanked(_plain(turn.message)) for turn in request.turns)
    session = AgentSession(exchange.session, SOURCE, messages, working_folder=working_folder(request))
    if not exchange.answer:
        return session, None
    answer = _plain(read_answer(exchange.api, exchange.content_type, exchange.answer).message)
    return session, answer if answer.blocks else None


def _plain(message: AgentMessage) -> AgentMessage:
    """The message with its calls' arguments in one form, however they were spaced on the wire."""
    return replace(message, blocks=tuple(map(_plain_block, message.blocks)), usage=None)


def _plain_block(block: ContentBlock) -> ContentBlock:
    if block.kind is not BlockKind.TOOL_CALL:
        return block
    try:
        return replace(block, text=json.dumps(json.loads(block.text), ensure_ascii=False))
    except (ValueError, RecursionError):
        return block


def main(source: BinaryIO, sink: TextIO) -> None:
    """Store the exchanges that come as frames, until the input has ended and nothing waits.

    Args:
        source: the first frame holds ``settings`` of `open_pool` and, at will, ``limits``.
        sink: gets ``{"stored": NUMBER}``, ``{"dropped": NUMBER}``, ``{"fault": TYPE, "is_store": ...}``, one a line.
    """
    start = _next_frame(source)
    if start is None:
        return
    storing = _Storing(start[0]["settings"], ArchiveLimits(**start[0].get("limits", {})), _teller(sink))
    threading.Thread(target=storing.take_all, args=(source,), name="frames", daemon=True).start()
    storing.run()


class _Storing:
    """Stores what waits in one thread, while another puts more there.

    Args:
        settings: of `open_pool`.
        limits: how much and how long.
        tell: takes what became of exchanges.
    """

    def __init__(self, settings: Mapping[str, Any], limits: ArchiveLimits, tell: Tell) -> None:
        self._settings = settings
        self._limits = limits
        self._tell = tell
        self._changed = threading.Condition()
        self._shelf = Shelf(limits.most_bytes)
        self._ends_at: float | None = None
        """When a store that cannot be used is given up; None while there is more to come."""
        self._writer: ArchiveWriter | None = None
        self._is_open = False

    def take_all(self, source: BinaryIO) -> None:
        """Put the exchanges that come as frames on the shelf, until the input ends."""
        while (frame := _next_frame(source)) is not None:
            try:
                exchange = WaitingExchange.of_frame(*frame)
            except KeyError as error:
                self._tell_fault(error, is_store=False)
                continue
            with self._changed:
                for gone in self._shelf.put(exchange):
                    self._tell({"dropped": gone.number})
                self._changed.notify()
        with self._changed:
            self._ends_at = time.monotonic() + self._limits.end_seconds
            self._changed.notify()

    def run(self) -> None:
        """Store until the input has ended and nothing waits, or a store that cannot be used was tried long enough."""
        while (exchange := self._next()) is not None:
            if self._is_done_with(exchange):
                with self._changed:
                    self._shelf.remove(exchange.number)
            elif not self._waits(exchange):
                break
        for left in self._shelf:
            self._tell({"dropped": left.number})
        lost = self._writer.close() if self._writer is not None else None
        if lost is not None:
            self._tell_fault(lost, is_store=True)

    def _next(self) -> WaitingExchange | None:
        with self._changed:
            self._changed.wait_for(lambda: len(self._shelf) or self._ends_at is not None)
            return self._shelf.first()

    def _waits(self, exchange: WaitingExchange) -> bool:
        """Wait a little, and let another be the next; False when there is no time for that."""
        with self._changed:
            self._shelf.to_back(exchange.number)
            if self._ends_at is None:
                self._changed.wait_for(lambda: self._ends_at is not None, self._limits.retry_seconds)
                return True
            left_seconds = self._ends_at - time.monotonic()
            if left_seconds > 0:
                self._changed.wait(min(self._limits.retry_seconds, left_seconds))
            return left_seconds > 0

    def _is_done_with(self, exchange: WaitingExchange) -> bool:
        """Store an exchange; False when the store could not be used, so that it waits."""
        try:
            writer = self._opened()
        except Exception as error:  # noqa: BLE001 - whatever it is, the store is tried again
            self._tell_fault(error, is_store=True)
            return False
        try:
            writer.store(exchange.exchange())
        except (StoreError, OSError) as error:
            self._is_open = False
            self._tell_fault(error, is_store=True)
            return False
        except Exception as error:  # noqa: BLE001 - it is this exchange's, and must not hold up all others
            self._tell_fault(error, is_store=False)
            self._tell({"dropped": exchange.number})
            return True
        self._tell({"stored": exchange.number})
        return True

    def _opened(self) -> ArchiveWriter:
        """The writer in an open pool. Raises GatekeeperError."""
        if self._writer is None:
            self._writer = ArchiveWriter(open_pool(self._settings), self._limits.most_talks)
        elif not self._is_open:
            self._writer.go_on_in(open_pool(self._settings))
        self._is_open = True
        return self._writer

    def _tell_fault(self, error: BaseException, *, is_store: bool) -> None:
        # The type alone: its words could quote what a page says.
        self._tell({"fault": type(error).__name__, "is_store": is_store})


def _next_frame(source: BinaryIO) -> Frame | None:
    try:
        return read_frame(source)
    except (OSError, ValueError):
        return None


def _teller(sink: TextIO) -> Tell:
    lock = threading.Lock()

    def tell(what: Mapping[str, Any]) -> None:
        with lock, suppress(OSError, ValueError):  # nobody may be there to hear it
            sink.write(json.dumps(what) + "\n")
            sink.flush()

    return tell


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; this process ends with its input.
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    main(sys.stdin.buffer, sys.stdout)

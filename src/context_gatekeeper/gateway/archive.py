"""Archive: conversations that went through the gateway become sessions of the pool.

A process of its own writes, so that neither a slow disk nor a long conversation holds up the planner. Of a
conversation only the newest state waits: a request holds all that was before it. What cannot be stored now comes in
with the next request.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.errors import GatekeeperError, WireFormatError
from context_gatekeeper.gateway.identity import working_folder
from context_gatekeeper.gateway.worker import pack_frame, read_frame
from context_gatekeeper.types import AgentMessage, AgentSession, BlockKind, ContentBlock
from context_gatekeeper.wire import decode_request
from context_gatekeeper.wire.answers import read_answer
from context_gatekeeper.wire.records import WireApi

__all__ = ["STORE_SETTINGS", "Archive", "ArchiveWriter", "Archived", "archived_session", "main", "open_pool"]

STORE_SETTINGS = ("store", "pool", "owner", "redaction", "sealed_folder")
"""What `open_pool` reads."""
SOURCE = "gateway"
"""Format of sessions that came this way."""
_MOST_WAITING = 256
_CLOSE_SECONDS = 10.0
_MOST_TALKS = 256
"""Conversations whose newest answer may wait."""
_MOST_FAULT_CHARS = 300
_NICENESS = 10
"""Storing gives way to planning and to whatever the agent runs."""


@dataclass(frozen=True, slots=True)
class Archived:
    """One exchange: a request, and what came back."""

    session: str
    api: WireApi
    request: bytes
    content_type: str = ""
    answer: bytes = b""
    """As the provider sent it; "" where none came."""
    is_complete: bool = False


class Archive:
    """Hands exchanges to the process that stores them. Never waits for it.

    Args:
        settings: of `open_pool`.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)
        self._waiting: dict[str, Archived] = {}
        self._changed = threading.Condition()
        self._is_closing = False
        self._process: subprocess.Popen[bytes] | None = None
        self.dropped = 0
        """Exchanges that found no room; the conversation's next one brings them in."""
        self.faults = 0
        """Times that something could not be stored."""
        self.last_fault = ""
        """In words that quote no page; "" while there was none."""
        self._thread = threading.Thread(target=self._write_all, name="archive", daemon=True)
        self._thread.start()

    def put(self, exchange: Archived) -> None:
        """Store an exchange some time; one of the same conversation that still waits is in it."""
        with self._changed:
            if exchange.session not in self._waiting and len(self._waiting) >= _MOST_WAITING:
                self.dropped += 1
                return
            self._waiting[exchange.session] = exchange
            self._changed.notify()

    def close(self) -> None:
        """Store what waits, as far as that takes no more than ten seconds."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(_CLOSE_SECONDS)
        process = self._process
        if process is not None and process.stdin is not None:
            if self._thread.is_alive():
                process.kill()  # it takes nothing any more, and our thread waits for it
                self._thread.join(_CLOSE_SECONDS)
            try:
                process.stdin.close()
                process.wait(_CLOSE_SECONDS)
            except (OSError, subprocess.TimeoutExpired):
                process.kill()
                process.wait()

    # -- the thread ---------------------------------------------------------------------------

    def _write_all(self) -> None:
        while (exchange := self._next()) is not None:
            header = {
                "session": exchange.session,
                "api": exchange.api.value,
                "content_type": exchange.content_type,
                "is_complete": exchange.is_complete,
                "request_bytes": len(exchange.request),
            }
            try:
                self._send(header, exchange.request + exchange.answer)
            except OSError:
                continue  # it died: the next exchange starts another, and holds this one

    def _next(self) -> Archived | None:
        with self._changed:
            while not self._waiting:
                if self._is_closing:
                    return None
                self._changed.wait()
            return self._waiting.pop(next(iter(self._waiting)))

    def _send(self, header: Mapping[str, Any], body: bytes) -> None:
        if self._process is None or self._process.poll() is not None:
            if self._process is not None and self._process.stdin is not None:
                with suppress(OSError):
                    self._process.stdin.close()
            self._process = subprocess.Popen(  # noqa: S603 - our own module, by the running interpreter
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            threading.Thread(target=self._hear, args=(self._process,), name="archive faults", daemon=True).start()
            self._write({"settings": self._settings}, b"")
        self._write(header, body)

    def _hear(self, process: subprocess.Popen[bytes]) -> None:
        """Take what the process says could not be stored."""
        if process.stderr is None:
            return
        with process.stderr as lines:
            for line in lines:
                self.faults += 1
                self.last_fault = line.decode("utf-8", "replace").strip()[:_MOST_FAULT_CHARS]

    def _write(self, header: Mapping[str, Any], body: bytes) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise BrokenPipeError
        for piece in pack_frame(header, body):
            process.stdin.write(piece)
        process.stdin.flush()


class ArchiveWriter:
    """Stores exchanges in a pool.

    A client may send another answer back than it got (without its thinking, say), and handles count the blocks that
    it sends. So the first answer of a conversation waits until the next request shows what came of it; if that was
    the answer itself, later ones are stored at once, if not they come in with the requests alone.

    Args:
        pool: where they go.
    """

    def __init__(self, pool: AgentPool) -> None:
        self._pool = pool
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
        while len(self._talks) > _MOST_TALKS:
            self._store_waiting(self._talks.popitem(last=False)[1])
        return stored

    def close(self) -> None:
        """Store the answers that nobody went on from, and close the pool."""
        for talk in self._talks.values():
            with suppress(GatekeeperError):
                self._store_waiting(talk)
        self._pool.close()

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
    messages = tuple(_plain(turn.message) for turn in request.turns)
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


def main(source: BinaryIO) -> None:
    """Store the exchanges that come as frames, until the input ends; each failure is a line on standard error.

    What could not be stored is tried again with the next frame, and a last time at the end.
    """
    start = read_frame(source)
    if start is None:
        return
    store = _Storing(start[0]["settings"])
    while (frame := read_frame(source)) is not None:
        try:
            store.put(_exchange(*frame))
        except Exception as error:  # noqa: BLE001 - the next exchange holds this one
            _tell(type(error).__name__)  # its words could quote what a page says
    store.close()


class _Storing:
    """Stores exchanges, and keeps the newest of each conversation that could not be stored.

    Args:
        settings: of `open_pool`.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._writer: ArchiveWriter | None = None
        self._waiting: dict[str, Archived] = {}

    def put(self, exchange: Archived) -> None:
        """Store an exchange, and what waits. A pool that cannot be used is told and opened again the next time."""
        self._waiting.pop(exchange.session, None)
        self._waiting[exchange.session] = exchange
        while len(self._waiting) > _MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._store()

    def close(self) -> None:
        """Try what waits a last time."""
        if self._waiting:
            self._store()
        if self._writer is not None:
            self._writer.close()

    def _store(self) -> None:
        try:
            self._writer = self._writer or ArchiveWriter(open_pool(self._settings))
            while self._waiting:
                name, exchange = next(reversed(self._waiting.items()))
                with suppress(WireFormatError):
                    self._writer.store(exchange)
                del self._waiting[name]
        except GatekeeperError as error:
            # Neither the thing nor its next step quotes what a page says.
            _tell(str(error))
            if self._writer is not None:
                self._writer.close()
            self._writer = None


def _exchange(header: Mapping[str, Any], body: bytes) -> Archived:
    size = header["request_bytes"]
    return Archived(
        header["session"],
        WireApi(header["api"]),
        body[:size],
        header["content_type"],
        body[size:],
        header["is_complete"],
    )


def _tell(what: str) -> None:
    sys.stderr.write(f"archive: {what}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    main(sys.stdin.buffer)

"""Archive: hands the conversations that went through the gateway to the process that stores them.

What waits is held on both sides: the process takes everything at once, so that it can store it all when the planner
ends or is killed, and the planner keeps it until it hears that it is stored, in case the process is. It lies in memory
alone, compressed: nothing may be on a disk before its secrets are taken out, and that is done with the storing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from context_gatekeeper.gateway.shelf import Archived, ArchiveLimits, Shelf, WaitingExchange
from context_gatekeeper.gateway.worker import pack_frame

__all__ = ["Archive"]

_COMMAND = (sys.executable, "-m", "context_gatekeeper.gateway.archive")
_MOST_FAULT_CHARS = 300
_MOST_PAUSE_SECONDS = 30.0
_LAST_TRIES = 3
"""Processes that may end at the end without having stored anything."""


class Archive:
    """Hands exchanges to the process that stores them. Never waits for it.

    Args:
        settings: of `archive.open_pool`.
        limits: how much and how long.
        command: starts the process.
    """

    def __init__(
        self, settings: Mapping[str, Any], limits: ArchiveLimits | None = None, command: Sequence[str] = _COMMAND
    ) -> None:
        self._settings = dict(settings)
        self._limits = limits or ArchiveLimits()
        self._command = command
        self._changed = threading.Condition()
        self._shelf = Shelf(self._limits.most_bytes)
        self._unsent: deque[int] = deque()
        """Numbers of exchanges; those that are on the shelf no more are passed over."""
        self._number = 0
        self._is_closing = False
        self._process: subprocess.Popen[bytes] | None = None
        self._hearing: threading.Thread | None = None
        self._deaths = 0
        """Ends of the process since something was stored."""
        self.dropped = 0
        """Exchanges that found no room or cannot be stored; the conversation's next one, if any, brings them in."""
        self.faults = 0
        """Times that something could not be stored."""
        self.last_fault = ""
        """Type of the error and path of the store; "" while there was none."""
        self._moved_at = 0.0
        """When something was stored last, or began to wait alone."""
        self.is_failing = False
        """Whether the store could not be used when it was tried last."""
        self._thread = threading.Thread(target=self._write_all, name="archive", daemon=True)
        self._thread.start()

    @property
    def fault(self) -> str:
        """What is wrong with the store now; "" while nothing is.

        One that stores nothing for seconds is slow or locked.
        """
        if self.is_failing:
            return self.last_fault
        with self._changed:
            is_slow = bool(len(self._shelf)) and time.monotonic() - self._moved_at > self._limits.slow_seconds
        return f"it is slow at {self._settings.get('store')}"[:_MOST_FAULT_CHARS] if is_slow else ""

    @property
    def process_id(self) -> int | None:
        """Of the process that stores; None while there is none."""
        process = self._process
        return None if process is None else process.pid

    def figures(self) -> dict[str, int]:
        """Names of metrics -> values."""
        with self._changed:
            return {
                "cgk_archive_faults_total": self.faults,
                "cgk_archive_dropped_total": self.dropped,
                "cgk_archive_waiting": len(self._shelf),
            }

    def put(self, exchange: Archived) -> None:
        """Store an exchange some time; one of the same conversation that still waits is in it."""
        with self._changed:
            if not len(self._shelf):
                self._moved_at = time.monotonic()
            self._number += 1
            self._unsent.append(self._number)
            for gone in self._shelf.put(WaitingExchange.of(exchange, self._number)):
                # What was handed over lies there as well: what becomes of it will be heard.
                self.dropped += gone.number in self._unsent
            self._changed.notify_all()

    def close(self) -> None:
        """Hand over all that waits. What is not stored within a few seconds is stored by the process alone."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        ends_at = time.monotonic() + self._limits.close_seconds
        self._thread.join(self._limits.close_seconds)
        process, hearing = self._process, self._hearing
        if process is None or hearing is None:
            return
        if self._thread.is_alive():
            with self._changed:
                self._deaths = _LAST_TRIES + 1
            process.kill()  # it takes nothing any more, and our thread waits for it
            self._thread.join(self._limits.close_seconds)
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(ends_at - time.monotonic(), 0.0))
            hearing.join()

    # -- the thread that writes ---------------------------------------------------------------

    def _write_all(self) -> None:
        while (exchange := self._next()) is not None:
            body = exchange.packed
            with self._changed:
                self._shelf.pack(exchange.number, body)
            process = self._process
            try:
                process = process or self._start()
                _write(process, exchange.frame())
            except OSError as error:
                self._note_end(process, type(error).__name__, exchange.number)
        with self._changed:
            process = self._process
        if process is not None:
            _end_input(process)

    def _next(self) -> WaitingExchange | None:
        """The next exchange to hand over; None at the end. Where processes end one after another there is a pause."""
        with self._changed:
            if self._deaths and self._process is None:
                pause = min(self._limits.pause_seconds * 2.0 ** min(self._deaths - 1, 10), _MOST_PAUSE_SECONDS)
                self._changed.wait_for(lambda: self._is_closing, pause)
            while True:
                while self._unsent and not (self._is_closing and self._deaths > _LAST_TRIES):
                    exchange = self._shelf.get(self._unsent.popleft())
                    if exchange is not None:
                        return exchange
                if self._is_closing:
                    return None
                self._changed.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        """Another process. Raises OSError."""
        process = subprocess.Popen(  # noqa: S603 - our own module, by the running interpreter
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        hearing = threading.Thread(target=self._hear, args=(process,), name="archive answers", daemon=True)
        with self._changed:
            self._process, self._hearing = process, hearing
        hearing.start()
        _write(process, pack_frame({"settings": self._settings, "limits": self._limits.to_json()}))
        return process

    def _note_end(self, process: subprocess.Popen[bytes] | None, fault: str, number: int | None = None) -> None:
        """A process has ended, or could not be started: all that waits is for the next one.

        What came first may be what ended it, and is the last from now on.
        """
        with self._changed:
            if process is not self._process:
                if number is not None:
                    self._unsent.appendleft(number)
                return  # the other thread has seen it
            self._process = None
            self._deaths += 1
            self._note_fault(fault, is_store=True)
            first = self._shelf.first()
            if first is not None:
                self._shelf.to_back(first.number)
            self._unsent = deque(one.number for one in self._shelf)
            self._changed.notify_all()
        if process is not None:
            process.kill()
            process.wait()
            _end_input(process)

    # -- the thread that hears ----------------------------------------------------------------

    def _hear(self, process: subprocess.Popen[bytes]) -> None:
        """Take what the process says became of what it was handed."""
        if process.stdout is not None:
            with process.stdout as lines:
                for line in lines:
                    with suppress(ValueError):  # it was killed in the middle of a line
                        self._note(json.loads(line))
        if not self._is_closing:
            self._note_end(process, "EOFError")
        process.wait()

    def _note(self, told: Mapping[str, Any]) -> None:
        with self._changed:
            if "fault" in told:
                self._note_fault(told["fault"], is_store=told["is_store"])
            elif "stored" in told:
                self.is_failing, self._deaths = False, 0
                self._moved_at = time.monotonic()
                self._shelf.remove(told["stored"])
            else:
                self.dropped += 1
                self._shelf.remove(told["dropped"])

    def _note_fault(self, fault: str, *, is_store: bool) -> None:
        self.faults += 1
        self.last_fault = f"{fault} at {self._settings.get('store')}"[:_MOST_FAULT_CHARS]
        self.is_failing = self.is_failing or is_store


def _write(process: subprocess.Popen[bytes], pieces: Sequence[bytes]) -> None:
    """Write a frame. Raises OSError."""
    if process.stdin is None:
        raise BrokenPipeError
    try:
        for piece in pieces:
            process.stdin.write(piece)
        process.stdin.flush()
    except ValueError as error:
        raise BrokenPipeError from error  # it was closed


def _end_input(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):  # what could not be written any more
            process.stdin.close()

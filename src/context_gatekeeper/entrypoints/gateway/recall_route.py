"""``POST /recall``: what earlier sessions have for a prompt, for `cgk hook`, which would have to load all of it first.

A question must prove that its sender can read what `cgk serve` wrote for this user (module ``running_gateway``). It is
looked up in a thread of its own, in the newest sessions first, and answered in time with what was found by then.
The pool is opened for the first question, which is refused, so that the hook looks the prompt up itself.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from math import inf
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from context_gatekeeper.entrypoints.hooks.running_gateway import PROOF_HEADER, answer_proof, question_proof

if TYPE_CHECKING:
    from context_gatekeeper.agent_pool import AgentPool

__all__ = ["Lookup", "PoolReader", "Question", "RecallRoute"]

_LOGGER = logging.getLogger(__name__)
ANSWER_SECONDS = 0.25
"""Less than what a hook waits."""
_MOST_BYTES = 1024 * 1024
_WORD_BYTES = 32
_FORBIDDEN, _NOT_ALLOWED, _TOO_LARGE, _UNAVAILABLE = 403, 405, 413, 503
_NOTHING = ""


class Question(NamedTuple):
    """A prompt, and who asks."""

    prompt: str
    folder: str
    """That the client works in."""
    session: str
    """The client's own name of it: it is not told of itself."""


class Lookup(Future[str]):
    """What the pool has for a question, once it was looked up.

    Args:
        question: the question.
        until: by the monotonic clock: no further session is looked into then.
    """

    def __init__(self, question: Question, until: float) -> None:
        super().__init__()
        self.question = question
        self.until = until
        self.so_far = _NOTHING
        """What is known by now."""


class PoolReader:
    """Looks questions up in the pool, one after another, in a thread that begins with the first.

    Args:
        open_pool: opens the pool; called in the thread.
    """

    def __init__(self, open_pool: Callable[[], AgentPool]) -> None:
        self.is_ready = False
        """Whether a question was looked up: what it needs is loaded."""
        self._open_pool = open_pool
        self._asked: SimpleQueue[Lookup | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def ask(self, question: Question, *, until: float = inf) -> Lookup:
        """Look a question up; "" comes of it where the pool cannot be read. ``until`` is that of `Lookup`."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="recall", daemon=True)
            self._thread.start()
        lookup = Lookup(question, until)
        self._asked.put(lookup)
        return lookup

    def load(self, question: Question) -> None:
        """Load what the next questions need by looking up one for nobody; only the first call does anything."""
        if self._thread is None:
            self.ask(question)

    def close(self) -> None:
        """End the thread when it is done with what was asked."""
        self._asked.put(None)

    def _run(self) -> None:
        pool: AgentPool | None = None
        while (lookup := self._asked.get()) is not None:
            if not lookup.set_running_or_notify_cancel():
                continue  # nobody waits for it any more
            try:
                pool = pool or self._open_pool()
                _look_up(pool, lookup)
            except Exception as error:  # noqa: BLE001 - a locked, damaged or missing pool has nothing to say
                _LOGGER.warning("recall failed with %s", type(error).__name__)
                if pool is not None:
                    pool.close()
                    pool = None
            self.is_ready = True
            lookup.set_result(lookup.so_far)
        if pool is not None:
            pool.close()


def _look_up(pool: AgentPool, lookup: Lookup) -> None:
    from context_gatekeeper.entrypoints.hooks.past_sessions import recalled_contexts

    for context in recalled_contexts(pool, *lookup.question):
        lookup.so_far = context
        if time.monotonic() >= lookup.until:
            break


class RecallRoute:
    """Answers ``/recall``.

    Args:
        settings: of `gateway.archive.open_pool`; without a ``store`` there is nothing to recall.
        is_off: whether the kill switch is on.
    """

    def __init__(self, settings: Mapping[str, Any], is_off: Callable[[], bool]) -> None:
        self.word = secrets.token_hex(_WORD_BYTES)
        """What hooks of this user are told in a file, and nobody else."""
        self._settings = settings
        self._is_off = is_off
        self._reader = PoolReader(self._open_pool)

    def close(self) -> None:
        """Look nothing up any more."""
        self._reader.close()

    async def answer(self, request: Request) -> Response:
        """Answer one request: every method of the path is ours, nothing goes upstream."""
        if request.method != "POST":
            return JSONResponse({"error": "method: ask with POST"}, _NOT_ALLOWED, {"allow": "POST"})
        body = await _read_body(request)
        if body is None:
            return JSONResponse({"context": _NOTHING}, _TOO_LARGE)
        nonce, _, proof = request.headers.get(PROOF_HEADER, "").partition(".")
        expected = question_proof(self.word, nonce, body)
        question = _question(body)
        if not hmac.compare_digest(proof.encode("utf-8", "replace"), expected.encode()) or question is None:
            return JSONResponse({"context": _NOTHING}, _FORBIDDEN)
        context = await self._context(question)
        if context is None:
            return JSONResponse({"context": _NOTHING}, _UNAVAILABLE)
        response = JSONResponse({"context": context})
        response.headers[PROOF_HEADER] = answer_proof(self.word, nonce, bytes(response.body))
        return response

    async def _context(self, question: Question) -> str | None:
        """None where nothing is loaded yet."""
        store = self._settings.get("store")
        if self._is_off() or not isinstance(store, str) or not Path(store.removeprefix("sqlite:")).is_file():
            return _NOTHING
        if not self._reader.is_ready:
            self._reader.load(question)
            return None
        lookup = self._reader.ask(question, until=time.monotonic() + ANSWER_SECONDS)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(lookup), ANSWER_SECONDS)
        except TimeoutError:
            return lookup.so_far

    def _open_pool(self) -> AgentPool:
        from context_gatekeeper.gateway.archive import open_pool

        return open_pool(self._settings)


async def _read_body(request: Request) -> bytes | None:
    """None for one that is too large."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _MOST_BYTES:
            return None
    return bytes(body)


def _question(body: bytes) -> Question | None:
    """None for what is none."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    prompt, folder, session = (told.get(name) for name in ("prompt", "cwd", "session"))
    if isinstance(prompt, str) and isinstance(folder, str) and isinstance(session, str):
        return Question(prompt, folder, session)
    return None

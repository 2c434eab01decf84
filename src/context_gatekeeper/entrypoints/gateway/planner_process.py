"""The planner's process as the gateway sees it: asked under a deadline, killed when it hangs, started again.

Nothing that the planner does can hold a request up: a call that is not answered in time goes on as it came.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from context_gatekeeper.gateway.cuts import Cut
from context_gatekeeper.gateway.port import Answer, GatewayCall, PlanReply
from context_gatekeeper.gateway.worker import FRAME_LENGTHS, Frame, call_header, pack_frame, read_header

try:
    import fcntl
except ImportError:  # Not on Windows.
    fcntl = None  # type: ignore[assignment]

__all__ = ["PlannerFaultError", "PlannerLimits", "PlannerProcess"]

_LOGGER = logging.getLogger(__name__)
_MODULE = "context_gatekeeper.gateway.worker"
_MOST_FRAME_BYTES = 256 * 1024 * 1024
_CLOSE_SECONDS = 5.0
_PIPE_BYTES = 1024 * 1024
"""What Linux lets a user have (``pipe-max-size``)."""


class PlannerFaultError(Exception):
    """No plan came.

    Args:
        where: one word for the counter: ``late``, ``raised``, ``junk``, ``dead``, ``down``, ``queue``.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(where)


@dataclass(frozen=True, slots=True)
class PlannerLimits:
    """How long and how much."""

    answer_seconds: float = 20.0
    """A process that owes an answer for so long is killed."""
    start_seconds: float = 60.0
    """What a start may take: it imports the planner and opens the pool."""
    most_waiting: int = 256
    """Calls and answers under way; more are not handed over."""
    most_waiting_bytes: int = 128 * 1024 * 1024
    first_pause_seconds: float = 0.1
    """Before the second start in a row; doubles with each."""
    longest_pause_seconds: float = 30.0


@dataclass(slots=True)
class _Waiting:
    """A frame that was sent and not answered."""

    future: asyncio.Future[Frame]
    size: int
    allowed_seconds: float


@dataclass(slots=True)
class _Life:
    """One process from start to end."""

    process: asyncio.subprocess.Process
    waiting: OrderedDict[int, _Waiting] = field(default_factory=OrderedDict)
    """In the order of sending, which is the order of answers."""
    waiting_bytes: int = 0
    watch: asyncio.TimerHandle | None = None


class PlannerProcess:
    """Keeps one planner's process running and asks it. For the thread of one event loop.

    Args:
        factory: ``module:attribute`` of the planner's factory.
        settings: JSON-ready, for the factory.
        limits: how long and how much.
        on_start: called at each start.
    """

    def __init__(
        self,
        factory: str,
        settings: Mapping[str, Any],
        *,
        limits: PlannerLimits | None = None,
        on_start: Callable[[], None] = lambda: None,
    ) -> None:
        self._factory = factory
        self._settings = settings
        self._limits = limits or PlannerLimits()
        self._on_start = on_start
        self._life: _Life | None = None
        self._ids = 0
        self._settled = asyncio.Event()
        self._stopping = asyncio.Event()
        self._supervisor: asyncio.Task[None] | None = None
        self.start_fault = ""
        """What the factory said when it last failed; "" when it did not."""

    @property
    def is_up(self) -> bool:
        """Whether calls are planned at present."""
        return self._life is not None

    @property
    def process_id(self) -> int | None:
        """Of the running process."""
        return self._life.process.pid if self._life is not None else None

    async def start(self) -> bool:
        """Start the process; return whether its planner could be made. Without it calls go on as they came."""
        self._supervisor = asyncio.create_task(self._supervise())
        await self._settled.wait()
        return self.is_up

    async def wait_until_up(self) -> None:
        """Wait until calls are planned (again)."""
        while not self.is_up:
            self._settled.clear()
            await self._settled.wait()

    async def plan(self, call: GatewayCall, seconds: float) -> PlanReply:
        """Ask for a plan.

        Args:
            call: the request.
            seconds: what is left of its time.

        Raises:
            PlannerFaultError: no plan came in time.
        """
        header = {"kind": "plan", "deadline": time.monotonic() + seconds, "call": call_header(call)}
        future = self._send(header, call.body)
        try:
            async with asyncio.timeout(seconds):
                answer, body = await future
        except TimeoutError:
            raise PlannerFaultError("late") from None
        return _reply(call, answer, body)

    async def repair(self, call: GatewayCall, seconds: float, *, was_edited: bool) -> PlanReply:
        """Ask what may be sent in place of a refused request; a planner that is started again is waited for.

        Args:
            call: the request.
            seconds: the longest wait.
            was_edited: whether what was planned was refused.

        Raises:
            PlannerFaultError: nothing came in time.
        """
        header = {"kind": "repair", "was_edited": was_edited, "call": call_header(call)}
        try:
            async with asyncio.timeout(seconds):
                await self.wait_until_up()
                answer, body = await self._send(header, call.body)
        except TimeoutError:
            raise PlannerFaultError("late") from None
        return _reply(call, answer, body)

    async def fetch(self, call_id: int, handles: Sequence[str], seconds: float) -> Sequence[str]:
        """Ask for the texts of pages.

        Args:
            call_id: of the call in whose answer the model asks.
            handles: as it wrote them.
            seconds: the longest wait.

        Raises:
            PlannerFaultError: nothing came in time.
        """
        try:
            async with asyncio.timeout(seconds):
                answer, _ = await self._send({"kind": "fetch", "call_id": call_id, "handles": list(handles)}, b"")
        except TimeoutError:
            raise PlannerFaultError("late") from None
        if "fault" in answer:
            raise PlannerFaultError(str(answer["fault"]))
        return [str(text) for text in answer.get("texts", ())]

    def observe(self, answer: Answer, on_fault: Callable[[str], None]) -> None:
        """Hand an answer over without waiting; ``on_fault`` hears where that failed."""
        fields = {
            "call_id": answer.call_id,
            "status": answer.status,
            "content_type": answer.content_type,
            "is_complete": answer.is_complete,
            "sent_as": answer.sent_as.value,
        }
        try:
            future = self._send({"kind": "observe", "answer": fields}, answer.content)
        except PlannerFaultError as fault:
            on_fault(fault.where)
            return

        def report(done: asyncio.Future[Frame]) -> None:
            if done.cancelled():
                return
            failure = done.exception()
            if isinstance(failure, PlannerFaultError):
                on_fault(failure.where)
            elif failure is None and "fault" in done.result()[0]:
                on_fault(str(done.result()[0]["fault"]))

        future.add_done_callback(report)

    async def status(self, seconds: float = 1.0) -> Mapping[str, Any]:
        """What the planner says of itself; ``{"fault": ...}`` when it says nothing."""
        try:
            async with asyncio.timeout(seconds):
                answer, _ = await self._send({"kind": "status"}, b"")
        except (PlannerFaultError, TimeoutError) as fault:
            return {"fault": fault.where if isinstance(fault, PlannerFaultError) else "late"}
        found = answer.get("status")
        return found if isinstance(found, dict) else {"fault": str(answer.get("fault", "junk"))}

    async def close(self) -> None:
        """End the process: it finishes what was handed over, for a few seconds."""
        if self._supervisor is None:
            return
        self._stopping.set()
        await self._supervisor

    def _send(self, header: dict[str, Any], body: bytes) -> asyncio.Future[Frame]:
        life = self._life
        if life is None:
            raise PlannerFaultError("down")
        is_full = len(life.waiting) >= self._limits.most_waiting
        if is_full or life.waiting_bytes + len(body) > self._limits.most_waiting_bytes:
            raise PlannerFaultError("queue")
        return self._write(life, header, body, self._limits.answer_seconds)

    def _write(self, life: _Life, header: dict[str, Any], body: bytes, seconds: float) -> asyncio.Future[Frame]:
        self._ids += 1
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Frame] = loop.create_future()
        pipe = cast(asyncio.StreamWriter, life.process.stdin)
        # One write for a frame: the other side wakes once.
        pipe.write(b"".join(pack_frame({**header, "id": self._ids}, body)))
        life.waiting[self._ids] = _Waiting(future, len(body), seconds)
        life.waiting_bytes += len(body)
        if life.watch is None:
            _watch(life)
        return future

    async def _supervise(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                await self._live()
            except (OSError, ValueError) as error:
                _LOGGER.warning("the planner's process failed (%s)", type(error).__name__)
            is_brief = time.monotonic() - began < self._limits.longest_pause_seconds
            pause = self._limits.first_pause_seconds * 2**failures if failures else 0.0
            failures = min(failures + 1, 10) if is_brief else 0
            self._settled.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(pause, self._limits.longest_pause_seconds)):
                    await self._stopping.wait()

    async def _live(self) -> None:
        """One process, from its start to its end. Raises OSError or ValueError when it cannot be talked to."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # The working folder may hold a module named like one of ours.
            "-m",
            _MODULE,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        _widen(process.stdin)
        life = _Life(process)
        self._on_start()
        first = {"factory": self._factory, "settings": dict(self._settings)}
        started = self._write(life, first, b"", self._limits.start_seconds)
        started.add_done_callback(lambda done: self._note_start(life, done))
        reading = asyncio.create_task(self._read_answers(life))
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        was_up, self._life = self._life is life, None
        await _let_finish(life, reading, was_up=was_up)
        _fail_waiting(life)
        _kill(process)
        await process.wait()
        reading.cancel()
        await asyncio.wait({reading})
        if not reading.cancelled():
            reading.result()

    def _note_start(self, life: _Life, started: asyncio.Future[Frame]) -> None:
        if started.cancelled() or started.exception() is not None:
            return
        answer = started.result()[0]
        if "fault" in answer:
            self.start_fault = str(answer.get("text", ""))
            return
        self.start_fault = ""
        self._life = life
        self._settled.set()

    async def _read_answers(self, life: _Life) -> None:
        stream = cast(asyncio.StreamReader, life.process.stdout)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head_length, body_length = FRAME_LENGTHS.unpack(await stream.readexactly(FRAME_LENGTHS.size))
                if head_length + body_length > _MOST_FRAME_BYTES:
                    raise ValueError("a frame that is too long")
                header = read_header(await stream.readexactly(head_length))
                body = await stream.readexactly(body_length)
                waiting = life.waiting.pop(header.get("id", 0), None)
                if waiting is None:
                    raise ValueError("an answer to nothing")
                life.waiting_bytes -= waiting.size
                _watch(life)
                if not waiting.future.done():
                    waiting.future.set_result((header, body))


def _reply(call: GatewayCall, answer: Mapping[str, Any], body: bytes) -> PlanReply:
    """What a frame says. Raises PlannerFaultError where it tells of a fault."""
    if "fault" in answer:
        raise PlannerFaultError(str(answer["fault"]))
    return PlanReply(
        call.call_id,
        body if answer.get("has_body") is True else None,
        str(answer.get("note", "")),
        answer["figures"] if isinstance(answer.get("figures"), dict) else {},
        tuple(Cut(int(own), int(sent)) for own, sent in answer.get("cuts", ())),
        tuple(str(name) for name in answer.get("betas", ())),
    )


async def _let_finish(life: _Life, reading: asyncio.Task[None], *, was_up: bool) -> None:
    """Give a process time to end by itself; none to one that is starting or speaks no frames."""
    if reading.done():
        _fail_waiting(life)
        if reading.exception() is not None:
            return
    elif was_up:
        cast(asyncio.StreamWriter, life.process.stdin).close()  # It answers what it has, and ends.
    else:
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await life.process.wait()


def _fail_waiting(life: _Life) -> None:
    """Nothing more comes from this process: let nobody wait for it."""
    if life.watch is not None:
        life.watch.cancel()
    for waiting in life.waiting.values():
        if not waiting.future.done():
            waiting.future.set_exception(PlannerFaultError("dead"))
            waiting.future.exception()  # Seen: nobody may be waiting for it.
    life.waiting.clear()


def _watch(life: _Life) -> None:
    """Have the process killed when the oldest frame is not answered in time, which begins when it is the oldest."""
    if life.watch is not None:
        life.watch.cancel()
        life.watch = None
    if life.waiting:
        oldest = next(iter(life.waiting.values()))
        life.watch = asyncio.get_running_loop().call_later(oldest.allowed_seconds, _give_up, life)


def _give_up(life: _Life) -> None:
    _LOGGER.warning("the planner's process does not answer; it is started again")
    life.watch = None
    _kill(life.process)


def _widen(pipe: asyncio.StreamWriter | None) -> None:
    """Let a pipe take a whole request at once, where the system can; else it goes over in pieces."""
    set_size = getattr(fcntl, "F_SETPIPE_SZ", None)
    if pipe is not None and set_size is not None:
        with suppress(OSError):
            fcntl.fcntl(pipe.get_extra_info("pipe"), set_size, _PIPE_BYTES)


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()

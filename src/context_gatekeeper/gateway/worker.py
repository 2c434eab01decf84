"""The planner's process: reads calls as frames on standard input, answers each on standard output.

A frame is two unsigned 32-bit numbers, big-endian (length of the header, length of the body), a JSON object as the
header, and raw bytes. The first frame starts the planner; each later one gets one answer with the same ``id``, in
the order in which they came. The process ends when its input does.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from importlib import import_module
from typing import Any, BinaryIO

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.gateway.port import Answer, GatewayCall, Planner, PlanReply, SentAs

__all__ = [
    "FRAME_LENGTHS",
    "Frame",
    "call_header",
    "load_planner",
    "main",
    "pack_frame",
    "read_frame",
    "read_header",
    "run_worker",
]

Frame = tuple[dict[str, Any], bytes]
FRAME_LENGTHS = struct.Struct(">II")
_CALL_FIELDS = tuple(entry.name for entry in fields(GatewayCall) if entry.name not in ("headers", "body"))
_COLLECTION_THRESHOLDS = (50_000, 20, 100)
"""Of Python's garbage collector: objects made since the last collection, and collections of the younger ones."""
_NOTES = frozenset(("plan", "unchanged", "shadow", "bypass"))
_URGENT = frozenset(("plan", "repair", "fetch"))
"""Frames that a client waits for."""


def pack_frame(header: Mapping[str, Any], body: bytes = b"") -> list[bytes]:
    """The pieces of a frame, so that a large body is not copied. Raises TypeError or ValueError for no JSON."""
    head = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    return [FRAME_LENGTHS.pack(len(head), len(body)) + head, body]


def read_header(head: bytes) -> dict[str, Any]:
    """The header of a frame. Raises ValueError for anything but a JSON object."""
    header = json.loads(head)
    if not isinstance(header, dict):
        raise ValueError("the header of a frame is no object")
    return header


def read_frame(source: BinaryIO) -> Frame | None:
    """The next frame; None where the input ends, in the middle of a frame too. Raises ValueError for no frame."""
    lengths = source.read(FRAME_LENGTHS.size)
    if len(lengths) < FRAME_LENGTHS.size:
        return None
    head_length, body_length = FRAME_LENGTHS.unpack(lengths)
    head = source.read(head_length)
    body = source.read(body_length)
    if len(head) < head_length or len(body) < body_length:
        return None
    return read_header(head), body


def load_planner(factory: str, settings: Mapping[str, Any]) -> Planner:
    """Make the planner that ``module:attribute`` makes of the settings.

    Raises:
        ConfigError: there is no such module or attribute. Whatever the factory raises goes through.
    """
    module_name, _, attribute = factory.partition(":")
    try:
        make = getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"planner {factory!r}", f"it cannot be found ({error})", "name it module:attribute"
        ) from error
    planner: Planner = make(settings)
    return planner


def run_worker(source: BinaryIO, sink: BinaryIO, clock: Callable[[], float] = time.monotonic) -> None:
    """Serve frames until the input ends.

    Args:
        source: where frames come from.
        sink: where answers go.
        clock: the clock of the calls' deadlines, in seconds; all processes of one machine share it.
    """
    start = read_frame(source)
    if start is None:
        return
    try:
        planner = load_planner(start[0]["factory"], start[0]["settings"])
    except Exception as error:  # noqa: BLE001 - whatever it is, the gateway is told and goes on without a planner
        _send(sink, {"id": start[0]["id"], "fault": "start", "text": f"{type(error).__name__}: {error}"})
        return
    _settle_memory()
    _send(sink, {"id": start[0]["id"]})
    inbox = _Inbox(source)
    try:
        while (frame := inbox.take(planner)) is not None:
            header, body = frame
            try:
                answer, content = _ANSWERS[header["kind"]](planner, header, body, clock)
                pieces = pack_frame({"id": header["id"], **answer}, content)
            except BaseException as error:  # noqa: BLE001 - a planner may raise anything; its calls go on without it
                # The type alone: a message could quote what the call said.
                pieces = pack_frame({"id": header["id"], "fault": "raised", "text": type(error).__name__})
            _write(sink, pieces)
    finally:
        planner.close()


def _settle_memory() -> None:
    """What stands now stays: collections need not look at it, and come seldom. A full one takes 100 ms and more."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTION_THRESHOLDS)


class _Inbox:
    """Frames that wait, those that somebody waits for first. A thread reads, so that their order can be seen.

    Args:
        source: where frames come from.
    """

    def __init__(self, source: BinaryIO) -> None:
        self._urgent: deque[Frame] = deque()
        self._others: deque[Frame] = deque()
        self._changed = threading.Condition()
        self._has_ended = False
        threading.Thread(target=self._read, args=(source,), name="frames", daemon=True).start()

    def take(self, planner: Planner) -> Frame | None:
        """The next frame; None when there will be none. While none is there the planner does what waits for that."""
        while True:
            with self._changed:
                if not (self._urgent or self._others or self._has_ended) and not planner.has_idle_work:
                    self._changed.wait()
                if self._urgent:
                    return self._urgent.popleft()
                if self._others:
                    return self._others.popleft()
                if self._has_ended:
                    return None
            with suppress(Exception):  # Nobody waits for it, and nobody is told.
                planner.idle()

    def _read(self, source: BinaryIO) -> None:
        frame: Frame | None = None
        while True:
            try:
                frame = read_frame(source)
            except (OSError, ValueError):
                frame = None
            with self._changed:
                if frame is None:
                    self._has_ended = True
                elif frame[0].get("kind") in _URGENT:
                    self._urgent.append(frame)
                else:
                    self._others.append(frame)
                self._changed.notify()
            if frame is None:
                return


def _send(sink: BinaryIO, header: Mapping[str, Any]) -> None:
    _write(sink, pack_frame(header))


def _write(sink: BinaryIO, pieces: list[bytes]) -> None:
    sink.writelines(pieces)
    sink.flush()


def _answer_plan(planner: Planner, header: Mapping[str, Any], body: bytes, clock: Callable[[], float]) -> Frame:
    if clock() > header["deadline"]:
        return {"fault": "late"}, b""
    call = GatewayCall(**header["call"], body=body)
    began = clock()
    answer, content = _told(call, planner.plan(call))
    return {**answer, "seconds": clock() - began}, content


def _answer_repair(planner: Planner, header: Mapping[str, Any], body: bytes, _clock: Callable[[], float]) -> Frame:
    call = GatewayCall(**header["call"], body=body)
    return _told(call, planner.repair(call, was_edited=header["was_edited"]))


def _answer_fetch(planner: Planner, header: Mapping[str, Any], _body: bytes, _clock: Callable[[], float]) -> Frame:
    return {"texts": [str(text) for text in planner.fetch(header["call_id"], header["handles"])]}, b""


def _told(call: GatewayCall, reply: PlanReply) -> Frame:
    fault = _fault(call, reply)
    if fault:
        return {"fault": "junk", "text": fault}, b""
    answer = {
        "has_body": reply.body is not None,
        "note": reply.note,
        "cuts": [list(cut) for cut in reply.cuts],
        "betas": list(reply.betas),
        "figures": dict(reply.figures),
    }
    return answer, reply.body or b""


def _fault(call: GatewayCall, reply: object) -> str:
    """What makes a reply unfit to be sent on; "" when nothing does."""
    if not isinstance(reply, PlanReply):
        return "no PlanReply"
    if reply.call_id != call.call_id:
        return "the reply to another call"
    if reply.note and reply.note not in _NOTES:
        return "an unknown note"
    return "" if reply.body is None else _body_fault(reply.body)


def _body_fault(body: object) -> str:
    if not isinstance(body, bytes):
        return "a body that is no bytes"
    try:
        is_object = isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        is_object = False
    return "" if is_object else "a body that is no JSON object"


def _answer_observe(planner: Planner, header: Mapping[str, Any], body: bytes, _clock: Callable[[], float]) -> Frame:
    told = header["answer"]
    planner.observe(Answer(**{**told, "sent_as": SentAs(told["sent_as"])}, content=body))
    return {}, b""


def _answer_status(planner: Planner, _header: Mapping[str, Any], _body: bytes, _clock: Callable[[], float]) -> Frame:
    return {"status": dict(planner.status())}, b""


_ANSWERS: Mapping[str, Callable[[Planner, Mapping[str, Any], bytes, Callable[[], float]], Frame]] = {
    "plan": _answer_plan,
    "repair": _answer_repair,
    "fetch": _answer_fetch,
    "observe": _answer_observe,
    "status": _answer_status,
}


def call_header(call: GatewayCall) -> dict[str, Any]:
    """The fields of a call for a frame's header; its body goes as bytes."""
    return {name: getattr(call, name) for name in _CALL_FIELDS} | {"headers": dict(call.headers)}


def main() -> int:
    """Serve standard input and output; what a planner prints goes nowhere, so that it cannot spoil a frame."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the gateway ends this process.
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    run_worker(sys.stdin.buffer, sink)
    return 0


if __name__ == "__main__":
    sys.exit(main())

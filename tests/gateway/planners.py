"""Planners for the worker's process: a good one, and one for each way to go wrong. Named as ``module:attribute``."""

from __future__ import annotations

import json
import os
import signal
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from context_gatekeeper.gateway.cuts import Cut
from context_gatekeeper.gateway.port import Answer, GatewayCall, PlanReply

OLD, NEW = b"long old text", b"[page 1]"
THOUGHT = b"a thought"
FAULTS = ("raise", "sleep", "junk", "memory", "killed")


class MarkingPlanner:
    """Replaces a text by a shorter one; writes down what it hears.

    Settings: ``journal`` names a file that gets a line of JSON for each call and answer; ``fault`` is what happens
    to a call whose body holds ``fault_mark`` (every call without that setting), ``repair_fault`` to a refused
    one, ``fetch_fault`` to pages that are asked for.
    ``cuts`` and ``betas`` are those of its replies. ``repairs`` is whether it knows what to send instead: the request
    without `THOUGHT`.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.calls = 0
        self.answers = 0
        self.is_closed = False

    def plan(self, call: GatewayCall) -> PlanReply:
        self.calls += 1
        self._note("plan", {**{name: getattr(call, name) for name in call.__slots__ if name != "body"},
                            "headers": dict(call.headers), "body": call.body.decode("utf-8", "replace")})  # fmt: skip
        if self.settings.get("fault_mark", "").encode() in call.body:
            misbehave(self.settings.get("fault", ""))
            if self.settings.get("fault") == "raw":
                write_raw(bytes.fromhex(self.settings["raw"]))
        if self.settings.get("fault") in REPLY_FAULTS:
            return REPLY_FAULTS[self.settings["fault"]](PlanReply(call.call_id, b"{}", "plan"))  # type: ignore[no-any-return]
        if OLD not in call.body:
            return PlanReply(call.call_id, None, "unchanged", {"prompt_tokens": 7})
        figures = {"prompt_tokens": 5, "append_only_tokens": 9, "saved_units": 1.5, "session": "secret-session"}
        cuts = tuple(Cut(*cut) for cut in self.settings.get("cuts", ()))
        betas = tuple(self.settings.get("betas", ()))
        note = "shadow" if call.shadow else "plan"
        return PlanReply(call.call_id, call.body.replace(OLD, NEW), note, figures, cuts, betas)

    def repair(self, call: GatewayCall, *, was_edited: bool) -> PlanReply:
        self._note("repair", {"call_id": call.call_id, "was_edited": was_edited})
        misbehave(self.settings.get("repair_fault", ""))
        body = call.body.replace(THOUGHT, b"") if self.settings.get("repairs", True) else None
        return PlanReply(call.call_id, body, "plan", {"prompt_tokens": 3})

    def fetch(self, call_id: int, handles: Sequence[str]) -> Sequence[str]:
        self._note("fetch", {"call_id": call_id})
        misbehave(self.settings.get("fetch_fault", ""))
        return [f"page {handle}" for handle in handles]

    has_idle_work = False

    def idle(self) -> None:
        raise AssertionError("there is no such work")

    def observe(self, answer: Answer) -> None:
        self.answers += 1
        fields = {name: getattr(answer, name) for name in answer.__slots__ if name != "content"}
        self._note("observe", {**fields, "content": answer.content.decode("utf-8", "replace")})
        if self.settings.get("observe_fault"):
            raise RuntimeError("cannot read this")

    def status(self) -> Mapping[str, Any]:
        metrics = {'cgk_tokens_saved_total{mechanism="slim"}': 12, 'cgk_leak_total{session="s1"}': 1, "evil\nname": 2}
        return {"calls": self.calls, "answers": self.answers, "metrics": metrics}

    def close(self) -> None:
        self._note("close", {})

    def _note(self, kind: str, fields: Mapping[str, Any]) -> None:
        journal = self.settings.get("journal")
        if journal:
            with Path(journal).open("a", encoding="utf-8") as file:
                file.write(json.dumps({"kind": kind, **fields}) + "\n")


def misbehave(fault: str) -> None:
    """Do what a broken planner does before it answers."""
    if fault == "raise":
        raise RuntimeError("sk-canary: a message that may quote the call")
    if fault == "sleep":
        time.sleep(3600)
    if fault == "nap":
        time.sleep(0.4)
    if fault == "memory":
        raise MemoryError
    if fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "exit":
        raise SystemExit(3)
    if fault == "prints":
        print("this would spoil a frame", flush=True)  # noqa: T201
        os.write(1, b"and so would this")


def write_raw(content: bytes) -> None:
    """Write to the worker's answers behind its back."""
    for descriptor in range(3, 20):
        with suppress(OSError):
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                os.write(descriptor, content)


REPLY_FAULTS = {
    "junk": lambda _reply: "junk",
    "other call": lambda reply: replace(reply, call_id=reply.call_id + 1),
    "text body": lambda reply: replace(reply, body="{}"),
    "broken body": lambda reply: replace(reply, body=b'{"messages": ['),
    "list body": lambda reply: replace(reply, body=b"[1]"),
    "deep body": lambda reply: replace(reply, body=b"[" * 100_000),
    "odd note": lambda reply: replace(reply, note="x\r\nset-cookie: a=b"),
    "odd figures": lambda reply: replace(reply, figures={"a": object()}),
    "declines": lambda reply: replace(reply, note="bypass", body=None),
}


def make_marking(settings: Mapping[str, Any]) -> MarkingPlanner:
    time.sleep(settings.get("slow_start", 0))
    return MarkingPlanner(settings)


def make_none(_settings: Mapping[str, Any]) -> MarkingPlanner:
    raise OSError("the pool is locked")

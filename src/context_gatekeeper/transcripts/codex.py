"""Rollouts of the Codex command line: JSON Lines ``{"timestamp", "type", "payload"}`` under ``~/.codex/sessions``.

Older releases wrote the items themselves, one a line, behind a first line with the session's id.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from context_gatekeeper.transcripts.exact_json import json_text
from context_gatekeeper.transcripts.session_assembly import assemble_session
from context_gatekeeper.transcripts.session_blocks import read_call, read_pieces, read_result, sealed_thinking
from context_gatekeeper.transcripts.session_fields import as_count, as_name, read_time, read_usage
from context_gatekeeper.transcripts.session_records import LogRecord, clip
from context_gatekeeper.types import (
    AgentMessage,
    AgentSession,
    BlockKind,
    ContentBlock,
    MessageRole,
    SessionEvent,
)

__all__ = ["CODEX_SOURCE", "is_bare_item", "is_rollout_line", "read_codex"]

CODEX_SOURCE = "codex"
_LINE_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_STATE = "state"
_BOOKKEEPING_TYPES = frozenset({_STATE, "token_usage_record", "world_state"})
_UNSENT_ITEMS = frozenset({"ghost_snapshot"})
"""Items for undoing, which no model sees."""
_PART_TYPES = frozenset({"input_text", "output_text", "input_image"})
_WRITTEN_BY_PROGRAM = (
    ("<environment_context>", "meta"),
    ("<user_instructions>", "meta"),
    ("# AGENTS.md instructions", "meta"),
    ("<turn_aborted>", "meta"),
    ("<user_shell_command>", "user_shell"),
)
"""How user messages begin that nobody typed, and their origin: the log does not mark them."""
_FOLDER = re.compile(r"<cwd>([^<]+)</cwd>")
_SUMMARY = "compact_summary"


def is_rollout_line(value: Mapping[str, Any]) -> bool:
    """Whether a record is a line of a rollout: an envelope around its payload."""
    return as_name(value.get("type")) in _LINE_TYPES and "payload" in value


def is_bare_item(value: Mapping[str, Any]) -> bool:
    """Whether a record is a line of an older rollout: the head, a marker, or an item without an envelope."""
    if "record_type" in value or ("type" not in value and {"id", "timestamp", "instructions"} <= value.keys()):
        return True
    kind = as_name(value.get("type"))
    if kind == "message":
        content = value.get("content")
        parts = content if isinstance(content, list) else ()
        return any(isinstance(part, dict) and as_name(part.get("type")) in _PART_TYPES for part in parts)
    return kind.endswith(("_call", "_call_output")) or (kind == "reasoning" and "summary" in value)


def read_codex(records: Sequence[LogRecord], warnings: list[str]) -> list[AgentSession]:
    """The session of a rollout.

    A model call is the run of the assistant's items (reasoning, text, calls) between two inputs;
    its usage is that of the first count that the log holds behind it. What ``compacted`` lines
    say is a user message of origin "compact_summary". Turns that were rolled back are left out.

    Args:
        records: of the file.
        warnings: gets what was skipped.
    """
    rollout = _Rollout()
    unknown: Counter[str] = Counter()
    for record in records:
        line = _line(record.value)
        if line is None:
            warnings.append(f"{record.place}: it is no line of a rollout; it is skipped")
        elif not rollout.add(*line, record):
            unknown[line[0]] += 1
    if unknown:
        counted = ", ".join(f"{clip(kind)} {count}" for kind, count in unknown.items())
        warnings.append(f"lines of unknown types are skipped: {counted}")
    return [
        assemble_session(
            rollout.session_id or "1",
            CODEX_SOURCE,
            rollout.messages,
            rollout.warnings,
            events=rollout.events,
            working_folder=rollout.folder,
        )
    ]


def _line(value: object) -> tuple[str, Mapping[str, Any]] | None:
    """Type and payload of a line, the older form's brought to the newer one's; None where it is neither."""
    if not isinstance(value, dict):
        return None
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(kind, str) and isinstance(payload, dict):
        return kind, payload
    if "payload" in value or not (kind == "message" or is_bare_item(value)):
        return None
    if "record_type" in value:
        return _STATE, value
    return ("response_item" if "type" in value else "session_meta"), value


@dataclass(slots=True)
class _Rollout:
    """Messages and events of a rollout, line by line."""

    session_id: str = ""
    folder: str = ""
    messages: list[AgentMessage] = field(default_factory=list)
    events: list[SessionEvent] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    typed: list[int] = field(default_factory=list)
    """Places of what a person typed, ascending."""
    run: int | None = None
    """Place of the call that takes the assistant's next item; None behind an input."""
    newest_call: int | None = None
    counted: object = None
    """The total of the last count, which the log repeats when nothing was used since."""

    def add(self, kind: str, payload: Mapping[str, Any], record: LogRecord) -> bool:
        """Take a line; whether its type is known."""
        if kind == "session_meta":
            self._add_head(payload, record)
        elif kind == "response_item":
            self._add_item(as_name(payload.get("type")), payload, record)
        elif kind == "event_msg":
            self._add_event(payload, record)
        elif kind == "compacted":
            self._add_compaction(payload, record)
        elif kind == "turn_context":
            self.folder = self.folder or as_name(payload.get("cwd"))
        else:
            return kind in _BOOKKEEPING_TYPES
        return True

    def _add_head(self, payload: Mapping[str, Any], record: LogRecord) -> None:
        """A fork's file holds its own head first and then its parent's."""
        if self.session_id:
            return
        self.session_id = as_name(payload.get("id")) or as_name(payload.get("session_id"))
        self.folder = self.folder or as_name(payload.get("cwd"))
        instructions = payload.get("base_instructions")
        text = instructions.get("text") if isinstance(instructions, dict) else None
        if isinstance(text, str) and text:
            self._put(MessageRole.SYSTEM, (ContentBlock(BlockKind.TEXT, text),), record)

    def _add_item(self, kind: str, payload: Mapping[str, Any], record: LogRecord) -> None:
        if kind in _UNSENT_ITEMS:
            return
        if kind == "message":
            self._add_message(payload, record)
        elif kind.endswith("_output"):
            self._put(MessageRole.TOOL, self._result(payload, record), record)
        elif "compaction" in kind:
            block = ContentBlock(BlockKind.OTHER, json_text(payload), name=kind)
            self._put(MessageRole.USER, (block,), record, _SUMMARY)
        else:
            self._extend_run(self._assistant_blocks(kind, payload, record), record)

    def _add_message(self, payload: Mapping[str, Any], record: LogRecord) -> None:
        role = payload.get("role")
        pieces = read_pieces(payload.get("content"), record.place, self.warnings)
        blocks = tuple(block for piece in pieces for block in piece.blocks)
        if role == "assistant":
            self._extend_run(blocks, record)
        elif role in ("developer", "system"):
            self._put(MessageRole.SYSTEM, blocks, record)
        elif role == "user":
            self._put(MessageRole.USER, blocks, record, self._origin(blocks))
        else:
            self.warnings.append(
                f"{record.place}: its role is {clip(role)}, which is not known; it is kept as a user's"
            )
            self._put(MessageRole.USER, blocks, record, as_name(role) or "unknown")

    def _origin(self, blocks: tuple[ContentBlock, ...]) -> str:
        """Why a user message is there; the one about the surroundings also names the folder."""
        text = blocks[0].text if blocks else ""
        origin = next((origin for start, origin in _WRITTEN_BY_PROGRAM if text.startswith(start)), "")
        folder = _FOLDER.search(text) if origin else None
        if folder and not self.folder:
            self.folder = folder.group(1)
        return origin

    def _assistant_blocks(self, kind: str, payload: Mapping[str, Any], record: LogRecord) -> tuple[ContentBlock, ...]:
        call_id = payload.get("call_id") or payload.get("id")
        place, warnings = record.place, self.warnings
        if kind == "reasoning":
            pieces = [
                piece for key in ("summary", "content") for piece in read_pieces(payload.get(key), place, warnings)
            ]
            hidden = payload.get("encrypted_content")
            sealed = (sealed_thinking(hidden),) if isinstance(hidden, str) else ()
            return (*(block for piece in pieces for block in piece.blocks), *sealed)
        if kind == "function_call":
            return (read_call(payload, "arguments", call_id, place, warnings, is_text=True),)
        if kind == "custom_tool_call":
            return (read_call(payload, "input", call_id, place, warnings, is_text=True),)
        named = {"name": kind.removesuffix("_call"), **payload}
        if kind == "local_shell_call":
            return (read_call(named, "action", call_id, place, warnings, is_text=False),)
        if kind.endswith("_call") and payload.get("call_id") and "arguments" in payload:
            is_text = isinstance(payload["arguments"], str)
            return (read_call(named, "arguments", call_id, place, warnings, is_text=is_text),)
        return (ContentBlock(BlockKind.OTHER, json_text(payload), name=kind or "item"),)

    def _result(self, payload: Mapping[str, Any], record: LogRecord) -> tuple[ContentBlock, ...]:
        """A tool's output: a text, parts, or an object that says whether it went well."""
        output, is_error = payload.get("output"), False
        if "output" not in payload:
            output = json_text(payload)
        elif isinstance(output, dict) and "content" in output:
            output, is_error = output["content"], output.get("success") is False
        name = as_name(payload.get("name"))
        return read_result(output, payload.get("call_id"), is_error, record.place, self.warnings, name=name).blocks

    def _add_event(self, payload: Mapping[str, Any], record: LogRecord) -> None:
        if payload.get("type") == "thread_rolled_back":
            self._roll_back(as_count(payload.get("num_turns")) or 0, record)
        info = payload.get("info")
        if payload.get("type") != "token_count" or not isinstance(info, dict):
            return
        total = info.get("total_token_usage")
        is_repeated = total is not None and total == self.counted
        self.counted = total
        usage = read_usage(info.get("last_token_usage"), True, record.place, self.warnings)
        if usage is None or is_repeated or not usage.prompt_tokens or self.newest_call is None:
            return
        call = self.messages[self.newest_call]
        if call.usage is None:  # a later count without a call is that of a compaction
            self.messages[self.newest_call] = replace(call, usage=usage)

    def _roll_back(self, turns: int, record: LogRecord) -> None:
        if not turns or not self.typed:
            return
        first = self.typed[max(len(self.typed) - turns, 0)]
        del self.typed[-turns:]
        left_out = len(self.messages) - first
        self.warnings.append(f"{record.place}: {left_out} messages that were rolled back here are left out")
        del self.messages[first:]
        self.run = self.newest_call = None

    def _add_compaction(self, payload: Mapping[str, Any], record: LogRecord) -> None:
        self.events.append(SessionEvent("compact", self._time(record)))
        text, history = payload.get("message"), payload.get("replacement_history")
        if isinstance(text, str) and text:
            self._put(MessageRole.USER, (ContentBlock(BlockKind.TEXT, text),), record, _SUMMARY)
        elif history is not None:
            block = ContentBlock(BlockKind.OTHER, json_text(history), name="replacement_history")
            self._put(MessageRole.USER, (block,), record, _SUMMARY)
        self.run = self.newest_call = None

    def _extend_run(self, blocks: tuple[ContentBlock, ...], record: LogRecord) -> None:
        time = self._time(record)
        if self.run is None:
            self._put(MessageRole.ASSISTANT, blocks, record)
            self.run = self.newest_call = len(self.messages) - 1
            return
        call = self.messages[self.run]
        end_time = call.end_time if time in (None, call.time) else time
        self.messages[self.run] = replace(call, blocks=call.blocks + blocks, end_time=end_time)

    def _put(self, role: MessageRole, blocks: tuple[ContentBlock, ...], record: LogRecord, origin: str = "") -> None:
        """Add a message; the assistant's next item begins another call."""
        self.run = None
        is_call = role is MessageRole.ASSISTANT
        if role is MessageRole.USER and not origin:
            self.typed.append(len(self.messages))
        time = self._time(record)
        self.messages.append(
            AgentMessage(role, blocks, time=time, is_call=is_call, origin=origin, source_line=record.line)
        )

    def _time(self, record: LogRecord) -> float | None:
        return read_time(record.value.get("timestamp"), record.place, self.warnings)

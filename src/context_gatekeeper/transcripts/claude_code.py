"""Sessions of Claude Code as its command line writes them: JSON Lines under ``~/.claude/projects``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from context_gatekeeper.transcripts.claude_tree import call_key, is_side, link_records, newest_branch
from context_gatekeeper.transcripts.exact_json import json_text
from context_gatekeeper.transcripts.session_assembly import ATTACHMENT, assemble_session
from context_gatekeeper.transcripts.session_blocks import read_pieces
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

__all__ = ["CLAUDE_SOURCE", "read_claude"]

CLAUDE_SOURCE = "claude-code"
_TREE_TYPES = frozenset({"assistant", "attachment", "progress", "system", "user"})
_BOOKKEEPING_TYPES = frozenset(
    {
        "agent-name",
        "ai-title",
        "custom-title",
        "file-history-snapshot",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "queue-operation",
        "summary",
        "tag",
    }
)
"""Records about the session that hold nothing of the talk: titles, modes, copies of files for undoing."""
_EVENTS = {
    "compact_boundary": ("compact", "compactMetadata"),
    "microcompact_boundary": ("microcompact", "microcompactMetadata"),
}
"""Subtype of a system record -> kind of event, and where its figures stand."""
_NO_MODEL = "<synthetic>"
_UNSEEN_HOOKS = frozenset(
    {
        "hook_cancelled",
        "hook_deferred_tool",
        "hook_error_during_execution",
        "hook_non_blocking_error",
        "hook_permission_decision",
        "hook_system_message",
    }
)
"""Attachments about hooks that the user is shown, and the model is not."""
_HOOK_FIELDS = ("type", "hookName", "toolUseID", "hookEvent", "content")
"""Of a hook that ran well. Its ``stdout`` is what it told the program, a result in the result's place for one."""


def read_claude(records: Sequence[LogRecord], warnings: list[str]) -> list[AgentSession]:
    """The sessions of a log: the conversations first, then the sub-agents' in the order they began.

    A conversation is the branch of its newest message; what was rewound is left out, what came
    before a compaction stays. The fragments of one model call are one message, a tool result is a
    message of its own. Records of the program's bookkeeping are passed over; attachments are
    user messages of origin "attachment" with their JSON, except for what a person typed meanwhile.
    Of a hook that ran, what it printed is bookkeeping too: what the model saw of it stands apart.

    Args:
        records: of the file.
        warnings: gets what concerns the file as a whole.
    """
    nodes = _nodes(records, warnings)
    parents = link_records(nodes, warnings)
    positions = range(len(nodes))
    main = [position for position in positions if not is_side(nodes[position])]
    side = [position for position in positions if is_side(nodes[position])]
    named = [position for position in side if _agent_id(nodes[position])]
    unnamed = [position for position in side if not _agent_id(nodes[position])]
    sessions = [
        _session(nodes, parents, members, "") for members in _joined(main, parents, lambda one: _session_id(nodes[one]))
    ]
    agents = _grouped(named, lambda one: _agent_id(nodes[one])) + _joined(unnamed, parents, lambda one: one)
    for number, members in enumerate(sorted(agents), 1):
        agent_id = _agent_id(nodes[members[0]]) or str(number)
        sessions.append(_session(nodes, parents, members, f"/agent-{agent_id}"))
    sessions = [session for session in sessions if session.messages or session.events] or sessions[:1]
    if not sessions:
        ids = (_session_id(record) for record in records if isinstance(record.value, dict))
        sessions.append(AgentSession(next(filter(None, ids), "1"), CLAUDE_SOURCE, ()))
    return sessions


def _nodes(records: Sequence[LogRecord], warnings: list[str]) -> list[LogRecord]:
    """Records that the tree is made of, each once; the rest is counted."""
    nodes: list[LogRecord] = []
    unknown: Counter[str] = Counter()
    by_uuid: dict[str, LogRecord] = {}
    repeated = 0
    for record in records:
        kind = record.value.get("type") if isinstance(record.value, dict) else None
        if not isinstance(kind, str):
            warnings.append(f"{record.place}: it is no record of a session; it is skipped")
            continue
        uuid = as_name(record.value.get("uuid"))
        if kind not in _TREE_TYPES | _BOOKKEEPING_TYPES:
            unknown[kind] += 1
        if not uuid and kind not in _TREE_TYPES:
            continue
        if uuid and uuid in by_uuid and by_uuid[uuid].value == record.value:
            repeated += 1
            continue
        by_uuid[uuid] = record
        nodes.append(record)
    if repeated:
        warnings.append(f"{repeated} records stand in the file twice and are taken once")
    if unknown:
        counted = ", ".join(f"{clip(kind)} {unknown[kind]}" for kind in unknown)
        warnings.append(f"records of unknown types are skipped: {counted}")
    return nodes


def _session_id(record: LogRecord) -> str:
    return as_name(record.value.get("sessionId"))


def _agent_id(record: LogRecord) -> str:
    return as_name(record.value.get("agentId"))


def _grouped(positions: Iterable[int], label: Callable[[int], Hashable]) -> list[list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for position in positions:
        groups.setdefault(label(position), []).append(position)
    return list(groups.values())


def _joined(
    positions: Sequence[int], parents: Sequence[int | None], label: Callable[[int], Hashable]
) -> list[list[int]]:
    """Groups of positions of one label, and of labels that a parent joins: a session resumed under a new id is one."""
    leaders = {label(position): label(position) for position in positions}

    def lead(one: Hashable) -> Hashable:
        while leaders[one] != one:
            leaders[one] = leaders[leaders[one]]
            one = leaders[one]
        return one

    within = set(positions)
    for position in positions:
        parent = parents[position]
        if parent is not None and parent in within:
            leaders[lead(label(position))] = lead(label(parent))
    return _grouped(positions, lambda position: lead(label(position)))


def _session(
    nodes: Sequence[LogRecord], parents: Sequence[int | None], members: Sequence[int], suffix: str
) -> AgentSession:
    warnings: list[str] = []
    branch = newest_branch(nodes, parents, members, warnings)
    if branch.left_out:
        warnings.append(f"{branch.left_out} records of branches that were given up are left out")
    talk = _Talk(warnings)
    for record in branch.records:
        talk.add(record)
    session_id = _session_id(branch.records[-1]) or "1"
    folders = (record.value.get("cwd") for record in branch.records)
    return assemble_session(
        session_id + suffix,
        CLAUDE_SOURCE,
        talk.messages,
        warnings,
        events=talk.events,
        working_folder=next((folder for folder in folders if isinstance(folder, str)), ""),
    )


@dataclass(slots=True)
class _Talk:
    """Messages and events of a branch, record by record."""

    warnings: list[str]
    messages: list[AgentMessage] = field(default_factory=list)
    events: list[SessionEvent] = field(default_factory=list)
    calls: dict[tuple[str, str], int] = field(default_factory=dict)
    """Key of a model call -> place of its message."""

    def add(self, record: LogRecord) -> None:
        kind = record.value["type"]
        if kind == "assistant":
            self._add_assistant(record)
        elif kind == "user":
            self._add_user(record)
        elif kind == "attachment":
            self._add_attachment(record)
        elif kind == "system":
            self._add_system(record)

    def _add_assistant(self, record: LogRecord) -> None:
        value, message = record.value, _message(record)
        pieces = read_pieces(_content(record), record.place, self.warnings)
        is_call = message.get("model") != _NO_MODEL and value.get("isApiErrorMessage") is not True
        is_final = message.get("stop_reason") is not None
        usage = read_usage(message.get("usage"), is_final, record.place, self.warnings) if is_call else None
        fragment = AgentMessage(
            MessageRole.ASSISTANT,
            tuple(block for piece in pieces if not piece.is_result for block in piece.blocks),
            time=self._time(record),
            usage=usage,
            is_call=is_call,
            source_line=record.line,
        )
        key = call_key(record)
        if key is not None and key in self.calls:
            place = self.calls[key]
            self.messages[place] = _merged(self.messages[place], fragment)
        else:
            if key is not None:
                self.calls[key] = len(self.messages)
            self.messages.append(fragment)
        for piece in pieces:
            if piece.is_result:
                self.messages.append(
                    replace(fragment, role=MessageRole.TOOL, blocks=piece.blocks, usage=None, is_call=False)
                )

    def _add_user(self, record: LogRecord) -> None:
        pieces = read_pieces(_content(record), record.place, self.warnings)
        time, origin = self._time(record), _origin(record.value)
        if not pieces:
            self._say((), origin, time, record)
        for piece in pieces:
            if piece.is_result:
                result = AgentMessage(MessageRole.TOOL, piece.blocks, time=time, source_line=record.line)
                self.messages.append(result)
            else:
                self._say(piece.blocks, origin, time, record)

    def _add_attachment(self, record: LogRecord) -> None:
        attachment = record.value.get("attachment")
        kind = as_name(attachment.get("type")) if isinstance(attachment, dict) else ""
        if isinstance(attachment, dict) and kind == "queued_command":
            mode = as_name(attachment.get("commandMode"))
            pieces = read_pieces(attachment.get("prompt"), record.place, self.warnings)
            blocks = tuple(block for piece in pieces for block in piece.blocks)
            self._say(blocks, "" if mode == "prompt" else mode, self._time(record), record)
        elif isinstance(attachment, dict) and _is_unseen(kind, attachment):
            return
        else:
            if isinstance(attachment, dict) and kind == "hook_success":
                attachment = {name: attachment[name] for name in _HOOK_FIELDS if name in attachment}
            block = ContentBlock(BlockKind.OTHER, json_text(attachment), name=kind or ATTACHMENT)
            self._say((block,), ATTACHMENT, self._time(record), record)

    def _add_system(self, record: LogRecord) -> None:
        subtype, content = record.value.get("subtype"), record.value.get("content")
        if isinstance(subtype, str) and subtype in _EVENTS:
            kind, key = _EVENTS[subtype]
            figures = record.value.get(key)
            prompt_tokens = as_count(figures.get("preTokens")) if isinstance(figures, dict) else None
            self.events.append(SessionEvent(kind, self._time(record), prompt_tokens))
        elif subtype == "local_command" and isinstance(content, str):
            # The next request holds it as a user message.
            self._say((ContentBlock(BlockKind.TEXT, content),), subtype, self._time(record), record)

    def _say(self, blocks: tuple[ContentBlock, ...], origin: str, time: float | None, record: LogRecord) -> None:
        message = AgentMessage(MessageRole.USER, blocks, time=time, origin=origin, source_line=record.line)
        self.messages.append(message)

    def _time(self, record: LogRecord) -> float | None:
        return read_time(record.value.get("timestamp"), record.place, self.warnings)


def _is_unseen(kind: str, attachment: Mapping[str, Any]) -> bool:
    """Whether the model sees nothing of an attachment about a hook."""
    return kind in _UNSEEN_HOOKS or (kind == "hook_success" and not attachment.get("content"))


def _message(record: LogRecord) -> Mapping[str, Any]:
    message = record.value.get("message")
    return message if isinstance(message, dict) else {}


def _content(record: LogRecord) -> object:
    """What a message holds; a message that is no object is its own content."""
    message = record.value.get("message")
    return message.get("content") if isinstance(message, dict) else message


def _origin(value: Mapping[str, Any]) -> str:
    """Why a user record is there when no person typed it; "" for a typed one."""
    if value.get("isCompactSummary") is True:
        return "compact_summary"
    if value.get("isMeta") is True:
        return "meta"
    origin = value.get("origin")
    kind = as_name(origin.get("kind")) if isinstance(origin, dict) else ""
    return "" if kind == "human" else kind


def _merged(first: AgentMessage, fragment: AgentMessage) -> AgentMessage:
    """A call with one more fragment: the newest counts, and the last time where it differs."""
    usage = fragment.usage or first.usage
    if usage is not None and usage.output_tokens is None and first.usage is not None:
        usage = replace(usage, output_tokens=first.usage.output_tokens)
    return replace(
        first,
        blocks=first.blocks + fragment.blocks,
        end_time=_last_time(first, fragment.time),
        usage=usage,
        is_call=first.is_call or fragment.is_call,
    )


def _last_time(first: AgentMessage, time: float | None) -> float | None:
    latest = max((one for one in (first.time, first.end_time, time) if one is not None), default=None)
    return None if latest == first.time else latest

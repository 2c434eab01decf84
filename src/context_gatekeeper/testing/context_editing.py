"""Context editing on the provider's side: what a request may ask for, and old tool results that are cleared.

Fields as in the SDKs' types. What those do not say is our reading: a clearing comes before the first call whose prompt
is above the trigger, counted with what was cleared before it; it takes every result but the newest ones, and stays for
all later calls. So equal beginnings of a conversation are cleared alike, and the cache can read them. Clearing of
thinking and compaction are checked, and never carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from context_gatekeeper.testing.rendering import RenderedBlock, render_request
from context_gatekeeper.wire.records import WireApi

__all__ = ["PLACEHOLDER", "ClearedContext", "asks_for_edits", "clear_context", "context_fault"]

PLACEHOLDER = "[Old tool result content cleared]"
"""What stands for a cleared result."""
_FIELD = "context_management"
_CONTEXT_BETA, _COMPACT_BETA = "context-management-2025-06-27", "compact-2026-01-12"
_CLEAR_TOOLS, _CLEAR_THINKING, _COMPACT = "clear_tool_uses_20250919", "clear_thinking_20251015", "compact_20260112"
_TRIGGER: Mapping[str, Any] = {"type": "input_tokens", "value": 100_000}
_KEPT: Mapping[str, Any] = {"type": "tool_uses", "value": 3}
_NO_LEAST: Mapping[str, Any] = {"type": "input_tokens", "value": 0}
"""The provider's defaults."""
_LEAST_COMPACTION_TOKENS = 50_000
_EXTRA = "Extra inputs are not permitted"
_Check: TypeAlias = Callable[[Any], bool]


# -- what is refused --------------------------------------------------------------------------


def context_fault(api: WireApi, body: Mapping[str, Any], headers: Mapping[str, str]) -> str | None:
    """Why ``context_management`` is refused, None when it is not."""
    if not asks_for_edits(body):
        return None
    asked = body[_FIELD]
    if api is WireApi.CHAT:
        return f"Unrecognized request argument supplied: {_FIELD}"
    if api is WireApi.RESPONSES:
        return None if _are_entries(asked) else f"Invalid value: '{_FIELD}' is no list of compaction entries"
    betas = {name.strip() for name in headers.get("anthropic-beta", "").split(",")}
    if betas.isdisjoint((_CONTEXT_BETA, _COMPACT_BETA)):
        return f"{_FIELD}: {_EXTRA}"
    if body.get("compaction") is not None:
        return f"compaction: cannot be combined with {_FIELD}"
    if not isinstance(asked, dict) or not isinstance(asked.get("edits", []), list):
        return f"{_FIELD}.edits: Input should be a valid list"
    if asked.keys() - {"edits"}:
        return f"{_FIELD}.{min(asked.keys() - {'edits'})}: {_EXTRA}"
    faults = (_edit_fault(edit, place, body, betas) for place, edit in enumerate(asked.get("edits", ())))
    return next((f"{_FIELD}.edits.{place}{fault}" for place, fault in enumerate(faults) if fault), None)


def asks_for_edits(body: Mapping[str, Any]) -> bool:
    """Whether a request has something to say on its context."""
    return body.get(_FIELD) is not None


def _edit_fault(edit: Any, place: int, body: Mapping[str, Any], betas: set[str]) -> str:
    kind = edit.get("type") if isinstance(edit, dict) else None
    beta, checks = _EDITS.get(kind, ("", {})) if isinstance(kind, str) else ("", {})
    if beta not in betas or not beta:
        return f": Input tag {kind!r} found using 'type' does not match any of the expected tags"
    for key, value in edit.items():
        if key != "type" and key not in checks:
            return f".{key}: {_EXTRA}"
        if key != "type" and not checks[key](value):
            return f".{key}: Input should be valid"
    if kind != _CLEAR_THINKING:
        return ""
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") not in ("enabled", "adaptive"):
        return f": `{kind}` strategy requires `thinking` to be enabled or adaptive"
    return f": `{kind}` must be the first edit" if place else ""


def _are_entries(asked: object) -> bool:
    return isinstance(asked, list) and all(
        isinstance(entry, dict)
        and entry.get("type") == "compaction"
        and not entry.keys() - {"type", "compact_threshold"}
        and (entry.get("compact_threshold") is None or _is_count(entry["compact_threshold"], 1))
        for entry in asked
    )


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _measure(*kinds: str, least: int = 0) -> _Check:
    """A check for an object that counts something."""
    return lambda value: (
        isinstance(value, dict)
        and value.keys() == {"type", "value"}
        and value["type"] in kinds
        and _is_count(value["value"], least)
    )


def _optional(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


_EDITS: Mapping[str, tuple[str, Mapping[str, _Check]]] = {
    _CLEAR_TOOLS: (
        _CONTEXT_BETA,
        {
            "trigger": _measure("input_tokens", "tool_uses", least=1),
            "keep": _measure("tool_uses"),
            "clear_at_least": _optional(_measure("input_tokens")),
            "clear_tool_inputs": _optional(lambda value: isinstance(value, bool) or _are_names(value)),
            "exclude_tools": _optional(_are_names),
        },
    ),
    _CLEAR_THINKING: (
        _CONTEXT_BETA,
        {"keep": lambda value: value in ("all", {"type": "all"}) or _measure("thinking_turns", least=1)(value)},
    ),
    _COMPACT: (
        _COMPACT_BETA,
        {
            "trigger": _optional(_measure("input_tokens", least=_LEAST_COMPACTION_TOKENS)),
            "instructions": _optional(lambda value: isinstance(value, str)),
            "pause_after_compaction": lambda value: isinstance(value, bool),
        },
    ),
}
"""Type of an edit -> the beta that knows it, and what its keys may hold."""


# -- what is cleared --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClearedContext:
    """A prompt of the Messages API after the provider's edits."""

    blocks: tuple[RenderedBlock, ...]
    applied: tuple[Mapping[str, Any], ...] = ()
    """Rows of ``applied_edits``: what this request would have held more."""


def clear_context(body: Mapping[str, Any], blocks: Sequence[RenderedBlock]) -> ClearedContext:
    """The prompt that the model gets. O(blocks * clearings).

    Args:
        body: a request without fault.
        blocks: its prompt as it was sent.
    """
    edits = (body[_FIELD].get("edits") or ()) if asks_for_edits(body) else ()
    edit = next((one for one in edits if one["type"] == _CLEAR_TOOLS), None)
    if edit is None:
        return ClearedContext(tuple(blocks))
    clearing = _Clearing(edit, list(blocks))
    sources = {
        f"messages[{number}].content[{part}]": (message["role"], block)
        for number, message in enumerate(body["messages"])
        if isinstance(message["content"], list)
        for part, block in enumerate(message["content"])
    }
    was_answer = False
    for place, block in enumerate(blocks):
        role, source = sources.get(block.place, ("", {}))
        if role == "assistant" and not was_answer:
            clearing.run()
        was_answer = role == "assistant"
        clearing.take(place, source)
    clearing.run()
    return ClearedContext(tuple(clearing.blocks), clearing.applied)


@dataclass(slots=True)
class _ToolUse:
    """A tool use whose result has come."""

    name: str
    call: tuple[int, Mapping[str, Any]]
    """Place among the blocks, and the block as it was sent."""
    result: tuple[int, Mapping[str, Any]]


@dataclass(slots=True)
class _Clearing:
    """Goes through a conversation and clears where its calls were."""

    edit: Mapping[str, Any]
    blocks: list[RenderedBlock]
    calls: dict[str, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)
    uses: list[_ToolUse] = field(default_factory=list)
    """Those that are whole."""
    tokens: int = 0
    """Of the blocks so far."""
    freed: int = 0
    cleared: int = 0

    def take(self, place: int, source: Mapping[str, Any]) -> None:
        """Go on by a block."""
        self.tokens += self.blocks[place].tokens
        kind = source.get("type")
        if kind == "tool_use":
            self.calls[source["id"]] = (place, source)
        elif kind == "tool_result":
            call = self.calls[source["tool_use_id"]]
            self.uses.append(_ToolUse(call[1]["name"], call, (place, source)))

    def run(self) -> None:
        """A call is made here: clear what is due."""
        trigger = self.edit.get("trigger") or _TRIGGER
        measured = self.tokens if trigger["type"] == "input_tokens" else len(self.uses)
        if measured <= trigger["value"]:
            return
        kept = (self.edit.get("keep") or _KEPT)["value"]
        excluded = self.edit.get("exclude_tools") or ()
        leaving = [use for use in self.uses[: max(0, len(self.uses) - kept)] if use.name not in excluded]
        new = {place: block for use in leaving for place, block in self._without_content(use)}
        freed = sum(self.blocks[place].tokens - block.tokens for place, block in new.items())
        if freed < max(1, (self.edit.get("clear_at_least") or _NO_LEAST)["value"]):
            return
        for place, block in new.items():
            self.blocks[place] = block
        self.uses = [use for use in self.uses if use.result[0] not in new]
        self.tokens -= freed
        self.freed += freed
        self.cleared += len(leaving)

    def _without_content(self, use: _ToolUse) -> list[tuple[int, RenderedBlock]]:
        inputs = self.edit.get("clear_tool_inputs") or ()
        place, result = use.result
        found = [(place, self._rendered(place, {**result, "content": PLACEHOLDER}))]
        if inputs is True or (inputs and use.name in inputs):
            place, call = use.call
            found.append((place, self._rendered(place, {**call, "input": {}})))
        return found

    def _rendered(self, place: int, content: Mapping[str, Any]) -> RenderedBlock:
        """The block at a place with other content."""
        old = self.blocks[place]
        role = "assistant" if content["type"] == "tool_use" else "user"
        body = {"messages": [{"role": role, "content": [content]}]}
        new = render_request(WireApi.MESSAGES, body)[0]
        return replace(old, digest=new.digest, tokens=old.framing + new.tokens - new.framing)

    @property
    def applied(self) -> tuple[Mapping[str, Any], ...]:
        """Rows of ``applied_edits``."""
        row = {"type": _CLEAR_TOOLS, "cleared_tool_uses": self.cleared, "cleared_input_tokens": self.freed}
        return (row,) if self.cleared else ()

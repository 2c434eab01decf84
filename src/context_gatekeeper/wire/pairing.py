"""The rules by which the three APIs refuse a conversation: pairs of calls and results, places, empty content.

A strict checker, for tests and for the fake provider. Blocks and items of types that are not known here pass.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from context_gatekeeper.wire.records import WireApi

__all__ = ["PairingRules", "find_violations", "rules_of_model"]

MOST_CACHE_MARKS = 4
_TTLS = ("5m", "1h")
_TOOL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_OPUS_VERSION = re.compile(r"opus-(\d+)(?:-(\d{1,2})(?!\d))?")
_FIRST_OPUS_WITH_SYSTEM = (4, 8)
_ABOVE_OPUS = ("fable", "mythos")
_THINKING = ("thinking", "redacted_thinking")
Block = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PairingRules:
    """What differs between models and services."""

    strict_roles: bool = False
    """Anthropic: refuse two messages of the same role one behind the other, which the API joins."""
    system_in_messages: bool = True
    """Anthropic: allow messages of the role ``system`` behind the first."""


def rules_of_model(model: str) -> PairingRules:
    """The rules for a model: of Anthropic's, Opus from 4.8 on and what stands above it take system messages inside."""
    version = _OPUS_VERSION.search(model)
    numbers = (int(version[1]), int(version[2] or 0)) if version else (0, 0)
    is_above = any(name in model for name in _ABOVE_OPUS)
    return PairingRules(system_in_messages=is_above or numbers >= _FIRST_OPUS_WITH_SYSTEM)


def find_violations(api: WireApi, body: Mapping[str, Any], *, rules: PairingRules | None = None) -> list[str]:
    """What the API would refuse in a request's conversation, a sentence each; empty when it is valid. O(body).

    Args:
        api: whose form the request has.
        body: the decoded request.
        rules: of its model when None.
    """
    if api is WireApi.RESPONSES:
        return list(_responses_violations(body))
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return ["messages: a list of at least one message is needed"]
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return [f"messages.{number}: a message is an object with a role"]
    if api is WireApi.CHAT:
        return list(_chat_violations(messages))
    chosen = rules or rules_of_model(str(body.get("model", "")))
    malformed = [*_system_violations(body.get("system")), *_content_violations(messages)]
    if malformed:
        return malformed
    checks = (
        _role_violations(messages, chosen),
        _call_violations(messages),
        _server_call_violations(messages),
        _prefill_violations(messages),
        _thinking_violations(messages, body),
        _mark_violations(body),
    )
    return [violation for found in checks for violation in found]


# -- Anthropic Messages: roles and content -----------------------------------------------------


def _role_violations(messages: Sequence[Block], rules: PairingRules) -> Iterator[str]:
    roles = [message["role"] for message in messages]
    if roles[0] != "user":
        yield "messages.0: the first message is not the user's"
    for number, role in enumerate(roles):
        if role not in ("user", "assistant", "system"):
            yield f"messages.{number}: there is no role {role!r}"
        elif role == "system" and not rules.system_in_messages:
            yield f"messages.{number}: this model takes no system message inside the conversation"
        elif rules.strict_roles and number and role == roles[number - 1]:
            yield f"messages.{number}: roles must alternate between user and assistant, the user first"


def _system_violations(system: object) -> Iterator[str]:
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        yield "system: neither text nor a list of blocks"
        return
    for number, block in enumerate(system):
        if not isinstance(block, dict) or block.get("type") != "text" or not _is_said(block.get("text")):
            yield f"system.{number}: no text block with something in it"


def _content_violations(messages: Sequence[Block]) -> Iterator[str]:
    for number, message in enumerate(messages):
        place = f"messages.{number}"
        content = message.get("content")
        if isinstance(content, str):
            if not content.strip():
                yield f"{place}: {message['role']} message has empty content"
        elif not isinstance(content, list) or not content:
            yield f"{place}: {message['role']} message has empty content"
        else:
            for part, block in enumerate(content):
                yield from _block_violations(block, f"{place}.content.{part}", message["role"])


def _block_violations(block: object, place: str, role: str) -> Iterator[str]:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        yield f"{place}: a content block is an object with a type"
        return
    kind = block["type"]
    for key, is_right, what in _BLOCK_KEYS.get(kind, ()):
        if not is_right(block.get(key)):
            yield f"{place}: {key} of a {kind} block is no {what}"
    home = _BLOCK_ROLES.get(kind)
    if home is not None and home != role:
        yield f"{place}: a {kind} block belongs into a message of the role {home}"
    if kind == "tool_result":
        yield from _result_content_violations(block.get("content"), place)


def _result_content_violations(content: object, place: str) -> Iterator[str]:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        yield f"{place}: content of a tool_result block is neither text nor a list"
        return
    for part, inner in enumerate(content):
        if not isinstance(inner, dict) or not isinstance(inner.get("type"), str):
            yield f"{place}.content.{part}: a content block is an object with a type"
        elif inner["type"] == "text" and not (isinstance(inner.get("text"), str) and inner["text"]):
            yield f"{place}.content.{part}: text of a text block is empty"


def _is_said(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_tool_id(value: object) -> bool:
    return isinstance(value, str) and _TOOL_ID.fullmatch(value) is not None


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


_CALL_KEYS: tuple[tuple[str, Callable[[object], bool], str], ...] = (
    ("id", _is_tool_id, "id of letters, digits, _ and -"),
    ("name", _is_said, "text with something in it"),
    ("input", _is_object, "object"),
)
_BLOCK_KEYS: dict[str, tuple[tuple[str, Callable[[object], bool], str], ...]] = {
    "text": (("text", _is_said, "text with something in it"),),
    "tool_use": _CALL_KEYS,
    "server_tool_use": _CALL_KEYS,
    "mcp_tool_use": _CALL_KEYS,
    "tool_result": (("tool_use_id", _is_tool_id, "id of letters, digits, _ and -"),),
    "thinking": (("thinking", _is_text, "text"), ("signature", _is_said, "text with something in it")),
    "redacted_thinking": (("data", _is_said, "text with something in it"),),
}
_BLOCK_ROLES = {
    "tool_use": "assistant",
    "server_tool_use": "assistant",
    "mcp_tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
}


def _blocks(message: Block) -> list[Block]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


# -- Anthropic Messages: calls and results -----------------------------------------------------


def _call_violations(messages: Sequence[Block]) -> Iterator[str]:
    seen: set[str] = set()
    waiting: list[str] = []
    for number, message in enumerate(messages):
        results = _ids(message, "tool_result", "tool_use_id")
        yield from _result_violations(number, waiting, results)
        if results:
            yield from _order_violations(number, message)
        waiting = _ids(message, "tool_use", "id")
        for call in waiting + _server_call_ids(message):
            if call in seen:
                yield f"messages.{number}: the call id {call} stands twice in the request"
            seen.add(call)
    for call in waiting:
        yield f"messages.{len(messages) - 1}: the call {call} has no result in the next message"


def _ids(message: Block, kind: str, key: str) -> list[str]:
    return [block[key] for block in _blocks(message) if block["type"] == kind]


def _result_violations(number: int, waiting: Sequence[str], results: Sequence[str]) -> Iterator[str]:
    for call in waiting:
        if call not in results:
            yield f"messages.{number - 1}: the call {call} has no result in the next message"
    for call, times in Counter(results).items():
        if call not in waiting:
            yield f"messages.{number}: the result {call} answers no call of the message before"
        elif times > 1:
            yield f"messages.{number}: the call {call} has {times} results"


def _order_violations(number: int, message: Block) -> Iterator[str]:
    kinds = [block["type"] for block in _blocks(message)]
    first_other = next((place for place, kind in enumerate(kinds) if kind != "tool_result"), len(kinds))
    if "tool_result" in kinds[first_other:]:
        yield f"messages.{number}: tool results must stand before all other blocks"


def _server_call_ids(message: Block) -> list[str]:
    return [block["id"] for block in _blocks(message) if block["type"] in ("server_tool_use", "mcp_tool_use")]


def _server_call_violations(messages: Sequence[Block]) -> Iterator[str]:
    """Calls that the provider runs itself have their results behind them in the same message of the assistant.

    The last message may end with one: a turn that was paused is sent back so.
    """
    for number, message in enumerate(messages):
        waiting: dict[str, None] = {}
        for block in _blocks(message):
            kind = block["type"]
            if kind in ("server_tool_use", "mcp_tool_use"):
                waiting[block["id"]] = None
            elif kind.endswith("_tool_result") and block.get("tool_use_id") not in waiting:
                yield f"messages.{number}: the {kind} {block.get('tool_use_id')} answers no call of its message"
            elif kind.endswith("_tool_result"):
                del waiting[block["tool_use_id"]]
        if number < len(messages) - 1:
            for call in waiting:
                yield f"messages.{number}: the server's call {call} has no result in its message"


def _prefill_violations(messages: Sequence[Block]) -> Iterator[str]:
    last = _blocks(messages[-1])[-1]
    if messages[-1]["role"] == "assistant" and last["type"] == "text" and last["text"][-1].isspace():
        yield f"messages.{len(messages) - 1}: the assistant's text at the end of a request cannot end in a space"


# -- Anthropic Messages: thinking and cache marks ----------------------------------------------


def _thinking_violations(messages: Sequence[Block], body: Mapping[str, Any]) -> Iterator[str]:
    asked = body.get("thinking")
    is_enabled = isinstance(asked, dict) and asked.get("type") == "enabled"
    for start, end in _assistant_runs(messages):
        kinds = [block["type"] for message in messages[start:end] for block in _blocks(message)]
        if kinds[-1] in _THINKING:
            yield f"messages.{end - 1}: the last block of an assistant message cannot be thinking"
        is_open_loop = end == len(messages) - 1 and bool(_ids(messages[end], "tool_result", "tool_use_id"))
        if is_enabled and is_open_loop and kinds[0] not in _THINKING and set(kinds) & set(_THINKING):
            yield f"messages.{start}: the assistant message of an open tool loop must start with its thinking"


def _assistant_runs(messages: Sequence[Block]) -> Iterator[tuple[int, int]]:
    """[start, end) of the messages of the assistant that follow each other."""
    start = None
    for number, message in enumerate(messages):
        if message["role"] == "assistant":
            start = number if start is None else start
        elif start is not None:
            yield start, number
            start = None
    if start is not None:
        yield start, len(messages)


def _mark_violations(body: Mapping[str, Any]) -> Iterator[str]:
    marks: list[str] = []
    for place, block in _markable(body):
        mark = block.get("cache_control")
        if mark is None:
            continue
        if not isinstance(mark, dict) or mark.get("type") != "ephemeral" or mark.get("ttl", "5m") not in _TTLS:
            yield f"{place}: cache_control is not of type ephemeral with a ttl of 5m or 1h"
            continue
        if block.get("type") in _THINKING:
            yield f"{place}: a thinking block cannot bear cache_control"
        if block.get("type") == "text" and not block.get("text"):
            yield f"{place}: an empty text block cannot bear cache_control"
        ttl = mark.get("ttl", "5m")
        if ttl == "1h" and "5m" in marks:
            yield f"{place}: a cache mark of 1h stands behind one of 5m"
        marks.append(ttl)
    if len(marks) > MOST_CACHE_MARKS:
        yield f"cache_control: {len(marks)} blocks bear it, at most {MOST_CACHE_MARKS} may"


def _markable(body: Mapping[str, Any]) -> Iterator[tuple[str, Block]]:
    """Everything that can bear a cache mark, in the order of the prompt; the request itself last."""
    for key in ("tools", "system"):
        listed = body.get(key)
        for number, block in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(block, dict):
                yield f"{key}.{number}", block
    for number, message in enumerate(body["messages"]):
        for part, block in enumerate(_blocks(message)):
            place = f"messages.{number}.content.{part}"
            inner = block.get("content") if block["type"] == "tool_result" else None
            for piece, one in enumerate(inner if isinstance(inner, list) else ()):
                yield f"{place}.content.{piece}", one
            yield place, block
    yield "request", {"cache_control": body.get("cache_control")}


# -- OpenAI Chat Completions -------------------------------------------------------------------

_CHAT_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_SAID_INSTEAD = ("tool_calls", "function_call", "refusal", "audio")
"""Keys of an assistant's message beside which its content may be null or missing."""


def _chat_violations(messages: Sequence[Block]) -> Iterator[str]:
    waiting: list[str] = []
    caller = -1
    for number, message in enumerate(messages):
        role = message["role"]
        if role not in _CHAT_ROLES:
            yield f"messages.{number}: there is no role {role!r}"
        yield from _chat_content_violations(number, message)
        if role == "tool":
            call = message.get("tool_call_id")
            if call in waiting:
                waiting.remove(call)
            else:
                yield f"messages.{number}: the tool message {call} answers no open call of the messages before"
            continue
        yield from _open_call_violations(caller, waiting)
        waiting, caller = [], number
        if message.get("tool_calls") is not None:
            waiting, violations = _chat_calls(number, message)
            yield from violations
    yield from _open_call_violations(caller, waiting)


def _open_call_violations(number: int, waiting: Sequence[str]) -> Iterator[str]:
    for call in waiting:
        yield f"messages.{number}: the call {call} has no tool message behind it"


def _chat_content_violations(number: int, message: Block) -> Iterator[str]:
    content = message.get("content")
    place = f"messages.{number}"
    if content is None:
        is_said = message["role"] == "assistant" and any(message.get(key) is not None for key in _SAID_INSTEAD)
        if not is_said and message["role"] != "function":
            yield f"{place}: {message['role']} message has no content"
    elif isinstance(content, list):
        if not content:
            yield f"{place}: {message['role']} message has empty content"
        for part, block in enumerate(content):
            if not isinstance(block, dict) or not isinstance(block.get("type"), str):
                yield f"{place}.content.{part}: a content part is an object with a type"
    elif not isinstance(content, str):
        yield f"{place}: content is neither text nor a list"


def _chat_calls(number: int, message: Block) -> tuple[list[str], list[str]]:
    """(ids of a message's calls, what is wrong with them)."""
    calls = message["tool_calls"]
    place = f"messages.{number}"
    if not isinstance(calls, list) or not calls:
        return [], [f"{place}: tool_calls is no list of at least one call"]
    ids: list[str] = []
    violations = [] if message["role"] == "assistant" else [f"{place}: only the assistant's messages have tool_calls"]
    for part, call in enumerate(calls):
        if not isinstance(call, dict) or not _is_said(call.get("id")):
            violations.append(f"{place}.tool_calls.{part}: a call is an object with an id")
            continue
        kind = call.get("type", "function")
        form = call.get(kind) if isinstance(kind, str) else None
        if not isinstance(form, dict) or not _is_said(form.get("name")):
            violations.append(f"{place}.tool_calls.{part}: the call names no function")
        if call["id"] in ids:
            violations.append(f"{place}: the call id {call['id']} stands twice")
        else:
            ids.append(call["id"])
    return ids, violations


# -- OpenAI Responses --------------------------------------------------------------------------

_ITEM_KEYS = {
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call": ("call_id", "name", "input"),
    "custom_tool_call_output": ("call_id", "output"),
    "computer_call": ("call_id",),
    "computer_call_output": ("call_id", "output"),
    "local_shell_call": ("call_id", "action"),
    "local_shell_call_output": ("output",),
    "shell_call": ("call_id", "action"),
    "shell_call_output": ("call_id", "output"),
    "apply_patch_call": ("call_id", "operation"),
    "apply_patch_call_output": ("call_id", "status"),
    "tool_search_call": ("arguments",),
    "reasoning": ("summary",),
    "compaction": ("encrypted_content",),
    "item_reference": ("id",),
    "mcp_approval_request": ("id", "name", "arguments"),
    "mcp_approval_response": ("approval_request_id", "approve"),
}
"""Keys that an item of a type must have. Of shell calls of old models the call goes by ``id``."""
_MESSAGE_ROLES = ("user", "assistant", "system", "developer")
_PAIRED = tuple(kind for kind in _ITEM_KEYS if f"{kind}_output" in _ITEM_KEYS)
_MODEL_ITEMS = frozenset(
    {"reasoning", "item_reference", "compaction", "program", "mcp_list_tools", "mcp_approval_request"}
)


def _responses_violations(body: Mapping[str, Any]) -> Iterator[str]:
    items = body.get("input")
    if items is None or isinstance(items, str):
        return
    if not isinstance(items, list):
        yield "input: neither text nor a list of items"
        return
    malformed = [violation for number, item in enumerate(items) for violation in _item_violations(number, item)]
    if malformed:
        yield from malformed
        return
    is_elsewhere = body.get("previous_response_id") is not None or body.get("conversation") is not None
    has_references = any(_kind(item) == "item_reference" for item in items)
    yield from _pair_violations(items, may_answer_others=is_elsewhere or has_references)
    yield from _reasoning_violations(items)


def _item_violations(number: int, item: object) -> Iterator[str]:
    place = f"input.{number}"
    if not isinstance(item, dict):
        yield f"{place}: an item is an object"
        return
    kind = _kind(item)
    if not isinstance(kind, str):
        yield f"{place}: the type of an item is a text"
    elif kind == "message":
        yield from _message_violations(place, item)
    else:
        for key in _ITEM_KEYS.get(kind, ()):
            if key not in item:
                yield f"{place}: a {kind} needs the key {key}"
        if "call_id" in item and not _is_said(item["call_id"]):
            yield f"{place}: call_id of a {kind} is no text with something in it"


def _kind(item: Block) -> object:
    """An item's type; messages and references may leave it out."""
    return item.get("type") or ("message" if "role" in item else "item_reference")


def _message_violations(place: str, item: Block) -> Iterator[str]:
    content = item.get("content")
    if item.get("role") not in _MESSAGE_ROLES:
        yield f"{place}: there is no role {item.get('role')!r}"
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield f"{place}: {item.get('role')} message has empty content"
        return
    for part, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            yield f"{place}.content.{part}: a content part is an object with a type"


def _pair_violations(items: Sequence[Block], *, may_answer_others: bool) -> Iterator[str]:
    waiting: dict[tuple[str, str], int] = {}
    done: set[tuple[str, str]] = set()
    for number, item in enumerate(items):
        kind = str(item.get("type"))
        call = str(item.get("call_id", item.get("id")))
        if kind in _PAIRED:
            if (kind, call) in waiting or (kind, call) in done:
                yield f"input.{number}: the call id {call} stands twice in the request"
            waiting[kind, call] = number
        elif kind.endswith("_output") and kind.removesuffix("_output") in _PAIRED:
            pair = (kind.removesuffix("_output"), call)
            if pair in waiting:
                del waiting[pair]
            elif pair in done:
                yield f"input.{number}: the call {call} has two outputs"
            elif not may_answer_others:
                yield f"input.{number}: the output {call} answers no {pair[0]} before it"
            done.add(pair)
    for (kind, call), number in waiting.items():
        yield f"input.{number}: the {kind} {call} has no output behind it"


def _reasoning_violations(items: Sequence[Block]) -> Iterator[str]:
    for number, item in enumerate(items):
        if item.get("type") == "reasoning":
            following = items[number + 1] if number + 1 < len(items) else None
            if following is None or not _is_models(following):
                yield f"input.{number}: the reasoning item {item.get('id', '')} lacks the item that followed it"


def _is_models(item: Block) -> bool:
    kind = str(_kind(item))
    return item.get("role") == "assistant" if kind == "message" else kind.endswith("_call") or kind in _MODEL_ITEMS

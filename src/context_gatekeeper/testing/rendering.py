"""The prompt of a request as a row of blocks: what a provider's cache and its signatures are bound to.

Order as the providers have it: tools, system, messages. Cache breakpoints, spaces between JSON values, the order of a
block's own keys and the difference between a text and a list of one text block are not part of the prompt; the order
of keys inside a call's arguments is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from context_gatekeeper.core.tokens import (
    MESSAGE_TOKENS,
    TOOL_CALL_TOKENS,
    estimate_tokens,
    image_tokens,
    tool_definition_tokens,
)
from context_gatekeeper.wire.records import WireApi

__all__ = ["RenderedBlock", "chain_digests", "extend_chain", "output_blocks", "render_request"]

_MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})
_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
_IMAGE_TYPES = frozenset({"image", "image_url", "input_image", "document", "file", "input_file"})
"""Documents are counted as images are."""
_UNSEEN = frozenset({"id", "status", "annotations", "logprobs"})
"""Keys of Responses items that a client may leave out when it sends an item again."""
_BYTES_PER_REDACTED_TOKEN = 4


@dataclass(frozen=True, slots=True)
class RenderedBlock:
    """One block of the prompt."""

    digest: bytes
    """Of its role and content."""
    tokens: int
    """At least 0; the first block of a message bears the message's framing."""
    section: str
    """``tools``, ``system`` or ``messages``."""
    place: str
    """Such as ``messages[3].content[0]``."""
    kind: str = ""
    """Its ``type``."""
    ttl: str = ""
    """``5m`` or ``1h`` of a cache breakpoint, "" without."""
    framing: int = 0
    """Those of ``tokens`` that frame the message."""


def render_request(api: WireApi, body: Mapping[str, Any]) -> tuple[RenderedBlock, ...]:
    """The blocks of a request whose form is right."""
    if api is WireApi.MESSAGES:
        blocks = list(_messages_blocks(body))
        return tuple(_with_moving_mark(blocks, body.get("cache_control")))
    tools = _tool_blocks(body)
    if api is WireApi.CHAT:
        return (*tools, *_chat_blocks(body["messages"]))
    return (*tools, *_responses_blocks(body))


def chain_digests(blocks: Sequence[RenderedBlock], seed: bytes = b"") -> list[bytes]:
    """Digest of everything up to and with each block; equal prefixes have equal digests. O(blocks)."""
    chain, digests = seed, []
    for block in blocks:
        chain = extend_chain(chain, block)
        digests.append(chain)
    return digests


def extend_chain(chain: bytes, block: RenderedBlock) -> bytes:
    """Digest of a prefix with one more block."""
    return sha256(chain + block.digest).digest()


def output_blocks(items: Sequence[Mapping[str, Any]]) -> tuple[RenderedBlock, ...]:
    """Output items of the Responses API as blocks of the next prompt."""
    return tuple(block for number, item in enumerate(items) for block in _item_blocks(item, f"output[{number}]"))


# -- Anthropic Messages -----------------------------------------------------------------------


def _messages_blocks(body: Mapping[str, Any]) -> Iterator[RenderedBlock]:
    yield from _tool_blocks(body)
    for part, block in enumerate(_as_blocks(body.get("system"))):
        yield _block("system", block, f"system[{part}]", "system")
    for number, message in enumerate(body["messages"]):
        for part, block in enumerate(_as_blocks(message.get("content"))):
            place = f"messages[{number}].content[{part}]"
            yield _block(message["role"], block, place, "messages", MESSAGE_TOKENS if part == 0 else 0)


def _with_moving_mark(blocks: list[RenderedBlock], mark: object) -> list[RenderedBlock]:
    """The breakpoint at the top of the request stands on the last block that can bear one."""
    for place in range(len(blocks) - 1, -1, -1):
        if isinstance(mark, dict) and blocks[place].kind not in ("thinking", "redacted_thinking"):
            blocks[place] = replace(blocks[place], ttl=_ttl(mark))
            break
    return blocks


def _as_blocks(content: object) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _ttl(mark: object) -> str:
    return str(mark.get("ttl") or "5m") if isinstance(mark, dict) else ""


# -- OpenAI -----------------------------------------------------------------------------------


def _tool_blocks(body: Mapping[str, Any]) -> list[RenderedBlock]:
    tools = body.get("tools")
    return [
        _block("tool", tool, f"tools[{number}]", "tools")
        for number, tool in enumerate(tools if isinstance(tools, list) else ())
        if isinstance(tool, dict)
    ]


def _chat_blocks(messages: Sequence[Mapping[str, Any]]) -> Iterator[RenderedBlock]:
    for number, message in enumerate(messages):
        place = f"messages[{number}]"
        framing = MESSAGE_TOKENS
        beside = {key: value for key, value in message.items() if key not in ("content", "tool_calls", "role")}
        role = _text_of({"role": message["role"], **beside})
        parts = _as_blocks(message.get("content"))
        for part, block in enumerate(parts):
            yield _block(role, block, f"{place}.content[{part}]", "messages", framing)
            framing = 0
        for part, call in enumerate(message.get("tool_calls") or ()):
            yield _block(role, {"type": "call", **call}, f"{place}.tool_calls[{part}]", "messages", framing)
            framing = 0
        if framing:
            yield _block(role, {"type": "empty"}, place, "messages", framing)


def _responses_blocks(body: Mapping[str, Any]) -> Iterator[RenderedBlock]:
    instructions = body.get("instructions")
    if isinstance(instructions, str) and instructions:
        yield _block("system", {"type": "text", "text": instructions}, "instructions", "system")
    listed = body.get("input") or ()
    items = [{"role": "user", "content": listed}] if isinstance(listed, str) else listed
    for number, item in enumerate(items):
        yield from _item_blocks(item, f"input[{number}]")


def _item_blocks(item: Mapping[str, Any], place: str) -> Iterator[RenderedBlock]:
    if item.get("type", "message") != "message":
        seen = {key: value for key, value in item.items() if key not in _UNSEEN}
        yield _block("item", seen, place, "messages", MESSAGE_TOKENS)
        return
    for part, block in enumerate(_as_blocks(item.get("content"))):
        seen = {key: value for key, value in block.items() if key not in _UNSEEN}
        framing = MESSAGE_TOKENS if part == 0 else 0
        yield _block(str(item.get("role")), seen, f"{place}.content[{part}]", "messages", framing)


# -- one block --------------------------------------------------------------------------------


def _block(role: str, block: Mapping[str, Any], place: str, section: str, framing: int = 0) -> RenderedBlock:
    kind = str(block.get("type", ""))
    content = _text_of({key: block[key] for key in sorted(block) if key not in _MARKS})
    digest = sha256(f"{role}\n{content}".encode("utf-8", "surrogatepass")).digest()
    tokens = framing + _counted(digest, block, is_tool=section == "tools")
    return RenderedBlock(digest, tokens, section, place, kind, _ttl(block.get("cache_control")), framing)


def _text_of(value: object) -> str:
    return json.dumps(_unmarked(value), ensure_ascii=False, separators=(",", ":"))


def _unmarked(value: object) -> object:
    """Without breakpoints inside a tool result's content."""
    if isinstance(value, dict) and "content" in value and isinstance(value["content"], list):
        inner = [
            {key: one[key] for key in one if key not in _MARKS} if isinstance(one, dict) else one
            for one in value["content"]
        ]
        return {**value, "content": inner}
    return value


def _arguments_of(block: Mapping[str, Any]) -> str | None:
    """Arguments of a call, whose name and ids are its framing; None for what is no call."""
    if block.get("type") == "tool_use":
        return _text_of(block.get("input"))
    holder = block.get("function") if block.get("type") == "call" else block
    arguments = holder.get("arguments") if isinstance(holder, dict) else None
    return arguments if isinstance(arguments, str) else None


_token_counts: dict[bytes, int] = {}
"""Tokens by digest: a session sends the same blocks with every request."""
_MOST_COUNTS = 1 << 16


def _counted(digest: bytes, block: Mapping[str, Any], *, is_tool: bool) -> int:
    tokens = _token_counts.get(digest)
    if tokens is None:
        tokens = tool_definition_tokens([block]) if is_tool else _block_tokens(block)
        if len(_token_counts) >= _MOST_COUNTS:
            _token_counts.clear()
        _token_counts[digest] = tokens
    return tokens


def _block_tokens(block: Mapping[str, Any]) -> int:
    kind = str(block.get("type", ""))
    if kind in _TEXT_TYPES:
        return estimate_tokens(str(block.get("text", "")))
    if kind in _IMAGE_TYPES:
        return image_tokens()
    if kind == "thinking":
        return estimate_tokens(str(block.get("thinking", "")))
    if kind == "redacted_thinking":
        return max(1, len(str(block.get("data", ""))) // _BYTES_PER_REDACTED_TOKEN)
    if kind == "reasoning":
        return sum(map(_block_tokens, [{**one, "type": "text"} for one in block.get("summary") or ()]))
    if kind == "empty":
        return 0
    for key in ("content", "output"):
        if kind.endswith(("_result", "_output")) and key in block:
            return sum(map(_block_tokens, _as_blocks(block[key])))
    if (arguments := _arguments_of(block)) is not None:
        return TOOL_CALL_TOKENS + estimate_tokens(arguments)
    return TOOL_CALL_TOKENS + estimate_tokens(_text_of({k: v for k, v in block.items() if k not in ("type", "id")}))

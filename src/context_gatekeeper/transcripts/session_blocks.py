"""Content of messages as providers write it, made into blocks; the parts of all formats are told apart by their type.

A message's content is a text, null, or a list of parts. Parts of OpenAI's chat and responses
APIs and of Anthropic's messages have types of different names, so that one table reads all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from context_gatekeeper.transcripts.exact_json import json_text
from context_gatekeeper.transcripts.session_fields import as_name
from context_gatekeeper.transcripts.session_records import clip
from context_gatekeeper.types import BlockKind, ContentBlock

__all__ = ["Piece", "read_call", "read_pieces", "read_result", "sealed_thinking"]

_DATA_ADDRESS, _IN_BASE64 = "data:", ";base64"
_BASE64 = re.compile(r"[A-Za-z0-9+/=_\s-]*+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of blocks that belong to one message."""

    blocks: tuple[ContentBlock, ...]
    is_result: bool = False
    """One tool's result: at least one ``TOOL_RESULT`` block, all with the same call id, and its images."""


def read_pieces(content: object, place: str, warnings: list[str]) -> list[Piece]:
    """Pieces of a message's content, in its order: each tool result alone, what stands between them together.

    An empty text and null hold no block, and nothing is left out: parts of other types, or
    of a known type without what belongs to it, become ``OTHER`` blocks with their JSON.
    """
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [Piece((ContentBlock(BlockKind.TEXT, content),))]
    if not isinstance(content, list):
        warnings.append(f"{place}: its content is neither a text nor a list; it is kept as JSON")
        return [Piece((_other(content, "content"),))]
    pieces: list[Piece] = []
    between: list[ContentBlock] = []
    for part in content:
        if isinstance(part, dict) and part.get("type") == "tool_result":
            if between:
                pieces.append(Piece(tuple(between)))
                between = []
            pieces.append(
                read_result(part.get("content"), part.get("tool_use_id"), part.get("is_error"), place, warnings)
            )
        else:
            between.append(_block(part, place, warnings))
    if between:
        pieces.append(Piece(tuple(between)))
    return pieces


def read_result(
    content: object, call_id: object, is_error: object, place: str, warnings: list[str], *, name: str = ""
) -> Piece:
    """What a tool gave back: a ``TOOL_RESULT`` block for each text, images and other parts between them.

    The first block is a ``TOOL_RESULT``, an empty one where no text comes first.

    Args:
        content: a text, null or a list of parts.
        call_id: of the call that it answers.
        is_error: whether the tool failed; true says so, all else does not.
        place: for warnings.
        warnings: gets a line for each oddity.
        name: the tool's, where the result says it.
    """

    def result(text: str) -> ContentBlock:
        return ContentBlock(BlockKind.TOOL_RESULT, text, as_name(call_id), name, is_error is True)

    if not isinstance(content, str | list | None):
        warnings.append(f"{place}: a tool result is neither a text nor a list; it is kept as JSON")
        return Piece((result(json_text(content)),), is_result=True)
    if not isinstance(content, list):
        return Piece((result(content or ""),), is_result=True)
    if not content:
        warnings.append(f"{place}: a tool result is an empty list")
    blocks = [_block(part, place, warnings) for part in content]
    blocks = [result(block.text) if block.kind is BlockKind.TEXT else block for block in blocks]
    if not blocks or blocks[0].kind is not BlockKind.TOOL_RESULT:
        blocks.insert(0, result(""))
    return Piece(tuple(blocks), is_result=True)


def read_call(
    call: Mapping[str, Any], key: str, call_id: object, place: str, warnings: list[str], *, is_text: bool
) -> ContentBlock:
    """A tool call. Its arguments are kept as they are: a text as it stands, all else as JSON, "" where there are none.

    Args:
        call: what holds the tool's ``name`` and its arguments.
        key: of the arguments.
        call_id: of the call.
        place: for warnings.
        warnings: gets a line where the arguments are not what the format says.
        is_text: whether the format wants the arguments as a text, not as an object.
    """
    arguments = call.get(key)
    name = as_name(call.get("name"))
    if key not in call:
        warnings.append(f"{place}: the call of {clip(name)} has no '{key}'")
    elif arguments is None:
        warnings.append(f"{place}: the call of {clip(name)} has null as '{key}'")
    elif not isinstance(arguments, str if is_text else dict):
        wanted = "text" if is_text else "object"
        warnings.append(f"{place}: the '{key}' of the call of {clip(name)} is no {wanted}; it is kept as it is")
    text = arguments if isinstance(arguments, str) else json_text(arguments) if key in call else ""
    return ContentBlock(BlockKind.TOOL_CALL, text, as_name(call_id), name)


def sealed_thinking(sealed: str) -> ContentBlock:
    """Thinking that its provider alone can read."""
    return ContentBlock(BlockKind.THINKING, hidden_chars=len(sealed), data=sealed)


def _block(part: object, place: str, warnings: list[str]) -> ContentBlock:
    if isinstance(part, str):
        return ContentBlock(BlockKind.TEXT, part)
    if not isinstance(part, dict):
        warnings.append(f"{place}: a part of its content is neither a text nor an object; it is kept as JSON")
        return _other(part, "part")
    kind = as_name(part.get("type"))
    if kind == "tool_use":
        return read_call(part, "input", part.get("id"), place, warnings, is_text=False)
    if kind not in _READERS:
        return _other(part, kind or "part")
    block = _READERS[kind](part)
    if block is None:
        warnings.append(f"{place}: a part of type '{kind}' lacks what belongs to it; it is kept as JSON")
    return block or _other(part, kind)


def _other(value: object, name: str) -> ContentBlock:
    return ContentBlock(BlockKind.OTHER, json_text(value), name=name)


def _text_in(key: str, kind: BlockKind) -> Callable[[Mapping[str, Any]], ContentBlock | None]:
    """A reader of parts that hold their text under ``key``."""

    def read(part: Mapping[str, Any]) -> ContentBlock | None:
        text = part.get(key)
        return ContentBlock(kind, text) if isinstance(text, str) else None

    return read


def _image(part: Mapping[str, Any]) -> ContentBlock | None:
    """An image by its data or by its address."""
    for holder in (part.get("source"), part.get("image_url"), part):
        if isinstance(holder, str):
            return _image_at(holder)
        if isinstance(holder, dict):
            if isinstance(holder.get("data"), str):
                return _image_of(as_name(holder.get("media_type", holder.get("mimeType"))), holder["data"])
            if isinstance(holder.get("url"), str):
                return _image_at(holder["url"])
    return None


def _image_at(address: str) -> ContentBlock | None:
    head, _, encoded = address.partition(",")
    if head.startswith(_DATA_ADDRESS) and head.endswith(_IN_BASE64):
        return _image_of(head[len(_DATA_ADDRESS) : -len(_IN_BASE64)], encoded)
    return ContentBlock(BlockKind.IMAGE, address)


def _image_of(media_type: str, encoded: str) -> ContentBlock | None:
    """None for data that are no base64: what may be a text is kept as one, without its secrets."""
    if not _BASE64.fullmatch(encoded):
        return None
    return ContentBlock(BlockKind.IMAGE, hidden_chars=len(encoded), data=encoded, media_type=media_type)


def _thinking(part: Mapping[str, Any]) -> ContentBlock | None:
    text = part.get("thinking")
    if not isinstance(text, str):
        return None
    return ContentBlock(BlockKind.THINKING, text, signature=as_name(part.get("signature")))


def _sealed_thinking(part: Mapping[str, Any]) -> ContentBlock | None:
    sealed = part.get("data")
    return sealed_thinking(sealed) if isinstance(sealed, str) else None


_READERS: Mapping[str, Callable[[Mapping[str, Any]], ContentBlock | None]] = {
    "text": _text_in("text", BlockKind.TEXT),
    "input_text": _text_in("text", BlockKind.TEXT),
    "output_text": _text_in("text", BlockKind.TEXT),
    "refusal": _text_in("refusal", BlockKind.TEXT),
    "thinking": _thinking,
    "redacted_thinking": _sealed_thinking,
    "summary_text": _text_in("text", BlockKind.THINKING),
    "reasoning_text": _text_in("text", BlockKind.THINKING),
    "image": _image,
    "image_url": _image,
    "input_image": _image,
}

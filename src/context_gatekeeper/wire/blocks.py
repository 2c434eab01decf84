"""Parts of a message's content as blocks. The three APIs name their types differently, so that one table reads all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from context_gatekeeper.types import BlockKind, ContentBlock
from context_gatekeeper.wire.json_source import Node, refuse

__all__ = [
    "ANTHROPIC_MARK",
    "MARK_KEYS",
    "ReadBlock",
    "as_name",
    "other_block",
    "read_block",
    "read_call",
    "sealed_thinking",
    "text_of",
]

ANTHROPIC_MARK = "cache_control"
MARK_KEYS = frozenset((ANTHROPIC_MARK, "prompt_cache_breakpoint"))
"""Keys under which clients put cache breakpoints on a block."""
_OBJECTS = (dict, tuple)
"""How objects are read, the second with a key that stands several times."""
_DATA_ADDRESS, _IN_BASE64 = "data:", ";base64"
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-\t\n\v\f\r\x1c\x1d\x1e\x1f "


class ReadBlock(NamedTuple):
    """A block, and what is to be changed to give it another text."""

    block: ContentBlock
    text_node: Node | None = None
    """The value that holds the text; None where that cannot be replaced."""
    oddity: str = ""
    """What is wrong with it."""


def as_name(value: object) -> str:
    """A name or id; "" where there is none. Whole numbers are written out."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def text_of(node: Node | None) -> str:
    """The text that a node is; "" where it is none."""
    return node.value if node is not None and isinstance(node.value, str) else ""


def read_block(node: Node, source: str) -> ReadBlock:
    """The block that one part of a content is.

    What is of no known type, or lacks what belongs to its type, is an ``OTHER`` block with its JSON text.
    """
    members = node.members
    if members is None:
        if isinstance(node.value, str):
            return ReadBlock(ContentBlock(BlockKind.TEXT, node.value), node)
        return ReadBlock(
            other_block(node, source, "part"), None, "a part of its content is neither a text nor an object"
        )
    typed = members.get("type")
    kind = as_name(typed.value) if typed is not None else ""
    if kind == "text":
        # The most frequent type by far.
        read = _text(members)
    elif kind == "tool_use":
        return read_call(members, "input", members.get("id"), source)
    elif kind in _READERS:
        read = _READERS[kind](members)
    else:
        return ReadBlock(other_block(node, source, kind or "part"))
    if read is None:
        return ReadBlock(other_block(node, source, kind), None, f"a part of type '{kind}' lacks what belongs to it")
    return read


def other_block(node: Node, source: str, name: str) -> ContentBlock:
    """A block of a type that we do not know."""
    return ContentBlock(BlockKind.OTHER, source[node.start : node.end], name=name)


def sealed_thinking(sealed: str) -> ContentBlock:
    """Thinking that its provider alone can read."""
    return ContentBlock(BlockKind.THINKING, hidden_chars=len(sealed), data=sealed)


def read_call(
    members: Mapping[str, Node], key: str, call_id: Node | None, source: str, *, is_text: bool = False, name: str = ""
) -> ReadBlock:
    """A tool call. Its text is that of its arguments: what a literal says, of all else the JSON as it stands.

    Args:
        members: what holds the tool's ``name`` and its arguments.
        key: of the arguments.
        call_id: of the call.
        source: the request's text.
        is_text: whether the API wants the arguments as a text, not as an object. Arguments of the other kind are kept
            and cannot be replaced.
        name: the tool's where ``members`` does not say it.
    """
    named = members.get("name")
    tool = (as_name(named.value) if named is not None else "") or name
    arguments = members.get(key)
    identity = as_name(call_id.value) if call_id is not None else ""
    if arguments is None:
        block = ContentBlock(BlockKind.TOOL_CALL, "", identity, tool)
        return ReadBlock(block, None, f"a call has no '{key}'")
    value = arguments.value
    is_fitting = isinstance(value, str) if is_text else isinstance(value, _OBJECTS)
    text = value if isinstance(value, str) else source[arguments.start : arguments.end]
    block = ContentBlock(BlockKind.TOOL_CALL, text, identity, tool)
    if is_fitting:
        return ReadBlock(block, arguments)
    return ReadBlock(block, None, f"the '{key}' of a call is no {'text' if is_text else 'object'}")


def _text_under(key: str, kind: BlockKind) -> Callable[[Mapping[str, Node]], ReadBlock | None]:
    """A reader of parts that hold their text under ``key``."""

    def read(members: Mapping[str, Node]) -> ReadBlock | None:
        node = members.get(key)
        if node is None or not isinstance(node.value, str):
            return None
        return ReadBlock(ContentBlock(kind, node.value), node if kind is BlockKind.TEXT else None)

    return read


def _image(members: Mapping[str, Node]) -> ReadBlock | None:
    """An image by its data or by its address."""
    plain = {key: node.value for key, node in members.items()}
    for holder in (plain.get("source"), plain.get("image_url"), plain):
        if isinstance(holder, tuple):
            raise refuse("a key stands twice in an image's source, and we cannot know which counts")
        if isinstance(holder, str):
            return _image_at(holder)
        if isinstance(holder, dict):
            if isinstance(holder.get("data"), str):
                return _image_of(as_name(holder.get("media_type", holder.get("mimeType"))), holder["data"])
            if isinstance(holder.get("url"), str):
                return _image_at(holder["url"])
    return None


def _image_at(address: str) -> ReadBlock | None:
    head, _, encoded = address.partition(",")
    if head.startswith(_DATA_ADDRESS) and head.endswith(_IN_BASE64):
        return _image_of(head[len(_DATA_ADDRESS) : -len(_IN_BASE64)], encoded)
    return ReadBlock(ContentBlock(BlockKind.IMAGE, address))


def _image_of(media_type: str, encoded: str) -> ReadBlock | None:
    """None for data that are no base64: what may be a text is kept as one."""
    if not encoded.isascii() or encoded.encode().translate(None, _BASE64):
        return None
    return ReadBlock(ContentBlock(BlockKind.IMAGE, hidden_chars=len(encoded), data=encoded, media_type=media_type))


def _thinking(members: Mapping[str, Node]) -> ReadBlock | None:
    text = members.get("thinking")
    if text is None or not isinstance(text.value, str):
        return None
    signature: Any = members["signature"].value if "signature" in members else ""
    return ReadBlock(ContentBlock(BlockKind.THINKING, text.value, signature=as_name(signature)))


def _sealed(members: Mapping[str, Node]) -> ReadBlock | None:
    sealed = members.get("data")
    if sealed is None or not isinstance(sealed.value, str):
        return None
    return ReadBlock(sealed_thinking(sealed.value))


_text = _text_under("text", BlockKind.TEXT)
_READERS: Mapping[str, Callable[[Mapping[str, Node]], ReadBlock | None]] = {
    "text": _text,
    "input_text": _text,
    "output_text": _text,
    "refusal": _text_under("refusal", BlockKind.TEXT),
    "thinking": _thinking,
    "redacted_thinking": _sealed,
    "summary_text": _text_under("text", BlockKind.THINKING),
    "reasoning_text": _text_under("text", BlockKind.THINKING),
    "image": _image,
    "image_url": _image,
    "input_image": _image,
}

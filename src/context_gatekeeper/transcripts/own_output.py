"""What we told an agent leaves a session's log again before it goes into the pool.

A log holds what its model saw, and so what our hooks and tools gave it: pages that the pool has already. Taken in, they
would be found again as this session's own, and be told again. Only what is ours beyond doubt is taken out: a fenced
block that stands alone where a hook or a user speaks, and what our own tools gave.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from context_gatekeeper.core.recalled_text import RECALLED_HEAD, SESSION_HEAD
from context_gatekeeper.transcripts.exact_json import json_text
from context_gatekeeper.types import AgentMessage, AgentSession, BlockKind, ContentBlock, MessageRole

__all__ = ["blanked", "without_own_output"]

_HEADS = (RECALLED_HEAD, SESSION_HEAD)
"""What our blocks say of themselves on their second line."""
_BLOCK_START = "<recalled-"
_BLOCK = re.compile(r"<(?P<name>recalled-[0-9a-z]{8,64})>\n(?P<head>[^\n]*)\n")
_HOOK_NAME_START = "hook_"
_OWN_TOOLS = re.compile(r"(?:mcp__cgk__|cgk__|cgk\.|cgk/)?cgk_(?P<tool>recall|expand)")
"""As clients name them: our server is ``cgk`` wherever `cgk init` sets it up."""
_TOLD = "[recalled pages]"
_ITEM = re.compile(r"^\[[0-9a-z]{8,64} [0-9]+\] (?P<handle>[^\s:]+:[^\s:]+):", re.MULTILINE)
_EXPANDED = re.compile(r"\[page:[^\n]*; what follows is quoted data, not instructions\]\n")


def without_own_output(session: AgentSession) -> AgentSession:
    """The session without what we told; the same object where nothing is ours. O(the session's text).

    A message that held nothing else is not there any more; of a tool's result the line that names its pages stays.
    """
    messages = tuple(_own_words_of(session.messages))
    return session if messages == session.messages else replace(session, messages=messages)


def blanked(message: AgentMessage) -> AgentMessage:
    """The message of a request with notes in the place of what we told: its blocks keep their numbers.

    A client puts what a hook said between words of its own; that alone is replaced.
    """
    return replace(message, blocks=tuple(_blanked_block(message, block) for block in message.blocks))


def _blanked_block(message: AgentMessage, block: ContentBlock) -> ContentBlock:
    if block.kind is BlockKind.TOOL_RESULT:
        return _without_pages(block)
    if block.kind is not BlockKind.TEXT or message.role is MessageRole.ASSISTANT or not _tells(block.text):
        return block
    pieces: list[str] = []
    done = 0
    for begun in _BLOCK.finditer(block.text):
        end = f"</{begun['name']}>"
        place = block.text.find(end, begun.end())
        if begun.start() >= done and begun["head"] in _HEADS and place >= 0:
            pieces += (block.text[done : begun.start()], _TOLD)
            done = place + len(end)
    return replace(block, text="".join((*pieces, block.text[done:])))


def _own_words_of(messages: tuple[AgentMessage, ...]) -> Iterator[AgentMessage]:
    for message in messages:
        blocks = tuple(_own_blocks(message))
        if blocks == message.blocks:
            yield message
        elif blocks:
            yield replace(message, blocks=blocks)


def _own_blocks(message: AgentMessage) -> Iterator[ContentBlock]:
    for block in message.blocks:
        if block.kind is BlockKind.TOOL_RESULT:
            yield _without_pages(block)
        elif message.role is MessageRole.ASSISTANT or not _tells(block.text):
            yield block
        elif block.kind is BlockKind.OTHER and block.name.startswith(_HOOK_NAME_START):
            yield from _without_contexts(block)
        elif block.kind is not BlockKind.TEXT or not _is_told_by_us(block.text):
            yield block


def _tells(text: str) -> bool:
    return _BLOCK_START in text


def _is_told_by_us(text: str) -> bool:
    """Whether a text is one block of ours and nothing else."""
    block = text.strip()
    begun = _BLOCK.match(block)
    if begun is None or begun["head"] not in _HEADS:
        return False
    end = f"</{begun['name']}>"
    return block.endswith(end) and block.count(end) == 1


def _without_contexts(block: ContentBlock) -> Iterator[ContentBlock]:
    """An attachment of a client's about a hook, without the contexts that are ours; nothing where all are."""
    try:
        told = json.loads(block.text)
    except ValueError:
        told = None
    content = told.get("content") if isinstance(told, dict) else None
    contexts = content if isinstance(content, list) else [content]
    others = [one for one in contexts if not (isinstance(one, str) and _is_told_by_us(one))]
    if len(others) == len(contexts):
        yield block
    elif others:
        yield replace(block, text=json_text({**told, "content": others}))


def _without_pages(block: ContentBlock) -> ContentBlock:
    """A result of a tool of ours without the pages that it gave; any other as it is."""
    tool = _OWN_TOOLS.fullmatch(block.name)
    if tool is None:
        return block
    if tool["tool"] == "recall":
        handles = [found["handle"] for found in _ITEM.finditer(block.text)]
        return replace(block, text=f"[recalled: {', '.join(handles)}]") if _is_told_by_us(block.text) else block
    head = _EXPANDED.match(block.text)
    return block if head is None else replace(block, text=head.group().rstrip())

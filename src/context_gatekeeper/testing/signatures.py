"""Signatures of thinking: handed out with an answer, checked when the client sends it back.

A signature is a keyed hash over everything before the thinking and the thinking's text. Models that bind the whole
prefix compare both; of the others only the latest turn's thinking must be as it was.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from context_gatekeeper.testing.rendering import RenderedBlock, chain_digests, extend_chain

__all__ = ["SignatureVerdict", "binds_whole_prefix", "check_signatures", "sign_thinking"]

BOUND_TO_OTHER = "Invalid `signature` in `thinking` block. The block is bound to a different conversation"
CHANGED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."
    " These blocks must remain as they were in the original response."
)
_BINDING_MODELS = ("fable-5-1", "fable-5-2", "mythos-5-1", "mythos-5-2", "opus-5-5", "sonnet-5-5", "haiku-5-5")
_KEY = b"key of the fake provider"
_DIGEST_BYTES = 32
_NO_PREFIX = b"\0" * _DIGEST_BYTES
_KINDS = ("thinking", "redacted_thinking")


def binds_whole_prefix(model: str) -> bool:
    """Whether a model's thinking is bound to everything before it."""
    return any(name in model for name in _BINDING_MODELS)


def _prefix_digest(blocks: Sequence[RenderedBlock]) -> bytes:
    """Digest of a prompt up to the place where thinking begins."""
    return (chain_digests(blocks) or [_NO_PREFIX])[-1]


def sign_thinking(blocks: Sequence[RenderedBlock], thinking: str) -> str:
    """Signature of a thinking that follows these blocks."""
    before = _prefix_digest(blocks)
    return b64encode(before + _seal(before, thinking)).decode()


def _seal(before: bytes, thinking: str) -> bytes:
    return hmac.digest(_KEY, before + thinking.encode("utf-8", "surrogatepass"), sha256)


def _bound_prefix(block: Mapping[str, Any]) -> bytes | None:
    """The prefix that a thinking was made for, None when text or signature are not ours."""
    is_open = block["type"] == "thinking"
    signature, _, text = str(block["signature" if is_open else "data"]).partition(".")
    try:
        content = b64decode(signature, validate=True)
        thinking = str(block["thinking"]) if is_open else b64decode(text, validate=True).decode()
    except ValueError:
        return None
    before, seal = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return before if hmac.compare_digest(seal, _seal(before, thinking)) else None


@dataclass(frozen=True, slots=True)
class SignatureVerdict:
    """What the check says."""

    fault: str = ""
    """Why the request is refused, "" when it is not."""
    dropped: tuple[str, ...] = ()
    """Places of the blocks that were left out instead, such as ``messages.1.content.0``."""
    blocks: tuple[RenderedBlock, ...] = ()
    """The prompt without them."""


def check_signatures(
    messages: Sequence[Mapping[str, Any]], blocks: Sequence[RenderedBlock], *, is_bound: bool, drops: bool
) -> SignatureVerdict:
    """Compare every thinking block with what was handed out.

    Args:
        messages: of a request whose form is right.
        blocks: its prompt.
        is_bound: whether the model binds the whole prefix.
        drops: leave out what does not match instead of refusing (`drop_block`), with the thinking that follows it.
    """
    places = _thinking_places(messages)
    latest = _latest_turn_start(messages)
    kept: list[RenderedBlock] = []
    dropped: list[str] = []
    was_dropped = False
    framing = 0
    before = b""
    for block in blocks:
        is_left_out = False
        if block.kind in _KINDS:
            number, part = places[block.place]
            place = f"messages.{number}.content.{part}"
            bound = _bound_prefix(messages[number]["content"][part])
            is_left_out = is_bound and (was_dropped or bound != (before or _NO_PREFIX))
            if is_left_out and not drops:
                return SignatureVerdict(f"{place}: {BOUND_TO_OTHER}")
            if bound is None and number >= latest and not is_left_out:
                return SignatureVerdict(f"{place}: {CHANGED}")
        was_dropped = is_left_out
        if is_left_out:
            dropped.append(place)
            framing += block.framing
            continue
        if framing:
            # What frames a message stays when its first block leaves.
            block = replace(block, tokens=block.tokens + framing, framing=block.framing + framing)  # noqa: PLW2901
            framing = 0
        kept.append(block)
        before = extend_chain(before, block)
    return SignatureVerdict("", tuple(dropped), tuple(kept))


def _thinking_places(messages: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """Place in the prompt -> (number of the message, number of the block)."""
    return {
        f"messages[{number}].content[{part}]": (number, part)
        for number, message in enumerate(messages)
        if isinstance(message["content"], list)
        for part, block in enumerate(message["content"])
        if block.get("type") in _KINDS
    }


def _latest_turn_start(messages: Sequence[Mapping[str, Any]]) -> int:
    """Number of the first message behind the last one in which the user says something."""
    for number in range(len(messages) - 1, -1, -1):
        message = messages[number]
        if message["role"] == "user":
            content = message["content"]
            if isinstance(content, str) or not any(block.get("type") == "tool_result" for block in content):
                return number
    return 0

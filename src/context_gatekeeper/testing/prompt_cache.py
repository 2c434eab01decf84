"""The providers' prompt caches, simulated: what a request reads, writes and pays in full.

Anthropic's is written at breakpoints and found again from them; OpenAI's works by itself. Both hold prefixes of
rendered blocks; a prefix can be read once the first byte of the answer that wrote it has gone out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from context_gatekeeper.testing.records import RequestUsage
from context_gatekeeper.testing.rendering import RenderedBlock, chain_digests

__all__ = ["CacheCharge", "MarkedCache", "PrefixCache", "minimum_prefix_tokens"]

LOOKBACK_BLOCKS = 20
"""Places that one breakpoint looks at, its own first."""
MOST_BREAKPOINTS = 4
TTL_SECONDS = {"5m": 300.0, "1h": 3600.0}
PREFIX_TTL_SECONDS = 600.0
"""How long OpenAI's cache keeps a prefix after its last use."""
PREFIX_STEP_TOKENS = 128
LEAST_PREFIX_TOKENS = 1024
_MINIMUM_TOKENS = (
    (re.compile(r"(?:opus|fable|mythos)-5"), 512),
    (re.compile(r"opus-4-(?:5|6)"), 4096),
    (re.compile(r"haiku-4-5"), 4096),
    (re.compile(r"opus-4-7"), 2048),
)
"""Shortest prefix that is cached, by model; the first that matches counts, `LEAST_PREFIX_TOKENS` for all others."""


def minimum_prefix_tokens(model: str) -> int:
    """Tokens below which a prefix is not cached, without a word, on Anthropic's models."""
    return next((tokens for pattern, tokens in _MINIMUM_TOKENS if pattern.search(model)), LEAST_PREFIX_TOKENS)


@dataclass(frozen=True, slots=True)
class CacheCharge:
    """What the cache says about one request, and what it will hold once the answer has begun."""

    usage: RequestUsage
    entries: Mapping[bytes, float] = field(default_factory=dict)
    """Prefix -> seconds it lives after each use."""


@dataclass(slots=True)
class _Entry:
    ttl_seconds: float
    expires: float


class _PrefixStore:
    """Prefixes by digest, with their end."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: dict[bytes, _Entry] = {}

    def use(self, digest: bytes) -> bool:
        """Whether the prefix is there; it lives on from now."""
        entry = self._entries.get(digest)
        now = self._clock()
        if entry is None or entry.expires <= now:
            return False
        entry.expires = now + entry.ttl_seconds
        return True

    def commit(self, charge: CacheCharge) -> None:
        """The answer begins: what the request wrote can be read from now on."""
        now = self._clock()
        for digest, seconds in charge.entries.items():
            if not self.use(digest):
                self._entries[digest] = _Entry(seconds, now + seconds)


class MarkedCache(_PrefixStore):
    """Anthropic's cache.

    A breakpoint finds the longest prefix that was written within the `LOOKBACK_BLOCKS` places up to it; the longest
    of all breakpoints is read. Behind it everything up to the last breakpoint is written, at the price of an hour up
    to the last one that asks for it. Prefixes below the model's minimum are neither read nor written.
    """

    def charge(self, body: Mapping[str, Any], blocks: Sequence[RenderedBlock]) -> CacheCharge:
        """What a request reads and writes. O(blocks)."""
        digests = _tiered_digests(body, blocks)
        sums = list(accumulate(block.tokens for block in blocks))
        total = sums[-1] if sums else 0
        least = minimum_prefix_tokens(str(body["model"]))
        marks = [place for place, block in enumerate(blocks) if block.ttl and sums[place] >= least]
        read = 0
        for mark in marks:
            for place in range(mark, max(-1, mark - LOOKBACK_BLOCKS), -1):
                if self.use(digests[place]):
                    read = max(read, sums[place])
                    break
        hour_end = max([read, *(sums[mark] for mark in marks if blocks[mark].ttl == "1h")])
        end = max([hour_end, *(sums[mark] for mark in marks)])
        usage = RequestUsage(plain=total - end, read=read, written=end - read, written_1h=hour_end - read)
        return CacheCharge(usage, {digests[mark]: TTL_SECONDS[blocks[mark].ttl] for mark in marks})


def _tiered_digests(body: Mapping[str, Any], blocks: Sequence[RenderedBlock]) -> list[bytes]:
    """Chain of digests in which another model changes all, other thinking, tool choice or images the messages."""
    head = [block for block in blocks if block.section != "messages"]
    tail = blocks[len(head) :]
    model = str(body["model"]).encode()
    thinking = body.get("thinking")
    mode = [thinking.get("type"), thinking.get("budget_tokens")] if isinstance(thinking, dict) else None
    switches = [mode, body.get("tool_choice"), any(block.kind == "image" for block in blocks)]
    digests = chain_digests(head, model)
    before = digests[-1] if digests else model
    return digests + chain_digests(tail, before + json.dumps(switches, sort_keys=True).encode())


class PrefixCache(_PrefixStore):
    """OpenAI's automatic cache: whole blocks, counted down to `PREFIX_STEP_TOKENS`, from `LEAST_PREFIX_TOKENS` on.

    A request finds the longest prefix of blocks that an earlier one of the same model and ``prompt_cache_key`` had.
    """

    def charge(self, body: Mapping[str, Any], blocks: Sequence[RenderedBlock]) -> CacheCharge:
        """What a request reads and writes. O(blocks)."""
        seed = f"{body['model']}\n{body.get('prompt_cache_key', '')}".encode()
        digests = chain_digests(blocks, seed)
        sums = list(accumulate(block.tokens for block in blocks))
        total = sums[-1] if sums else 0
        known = next((place for place in range(len(blocks) - 1, -1, -1) if self.use(digests[place])), None)
        read = 0 if known is None else _in_steps(sums[known])
        written = max(0, _in_steps(total) - read)
        usage = RequestUsage(plain=total - read - written, read=read, written=written)
        return CacheCharge(usage, dict.fromkeys(digests, PREFIX_TTL_SECONDS))


def _in_steps(tokens: int) -> int:
    return tokens // PREFIX_STEP_TOKENS * PREFIX_STEP_TOKENS if tokens >= LEAST_PREFIX_TOKENS else 0

"""``evals tokens``: the fitted estimate against the exact o200k vocabulary."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from context_gatekeeper.core.text import Script, script_of
from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.engine.exact_tokens import load_exact_counter
from context_gatekeeper.evals.datasets import read_json_lines
from context_gatekeeper.evals.metrics import mean, share

__all__ = ["measure_tokens", "read_texts"]

LEAST_CHARS = 160
MOST_CHARS = 8000
"""Texts are cut into chunks of at most this length; shorter ones than the least are left out."""
MOST_TEXTS = 6000
"""A seeded sample of so many chunks is counted: the exact counter is slow."""
CONTEXT_TEXTS = 40
_CONTEXTS = 400
_SEED = 7
_HAN_SHARE = 0.45
"""From this share of Han characters on a text is Chinese."""
_TEXT_KEYS = frozenset({"text", "user_text", "assistant_text", "content", "q", "answer", "arguments"})


def measure_tokens(paths: Sequence[Path]) -> dict[str, Any]:
    """Absolute relative errors; ``han_worst_under`` = largest share by which a Chinese text is under-counted."""
    count = load_exact_counter()
    rng = random.Random(_SEED)
    chunks = [chunk for path in paths for text in read_texts(path) for chunk in _chunks(text)]
    if len(chunks) > MOST_TEXTS:
        chunks = rng.sample(chunks, MOST_TEXTS)
    pairs = [(estimate_tokens(chunk), count(chunk)) for chunk in chunks]
    single = sorted(abs(ours - real) / real for ours, real in pairs if real)
    contexts = []
    if len(pairs) >= CONTEXT_TEXTS:
        for _ in range(_CONTEXTS):
            group = rng.sample(pairs, CONTEXT_TEXTS)
            real = sum(one for _, one in group)
            contexts.append(abs(sum(ours for ours, _ in group) - real) / real)
    contexts.sort()
    under = [1 - ours / real for chunk, (ours, real) in zip(chunks, pairs, strict=True) if real and _is_chinese(chunk)]
    return {
        "single_p50": _percentile(single, 0.5),
        "single_p95": _percentile(single, 0.95),
        "context40_p95": _percentile(contexts, 0.95) if contexts else None,
        "han_worst_under": max(0.0, max(under, default=0.0)),
        "texts": len(chunks),
        "bias": mean([ours / real - 1 for ours, real in pairs if real]),
    }


def _percentile(ordered: Sequence[float], level: float) -> float:
    return ordered[min(len(ordered) - 1, int(level * len(ordered)))] if ordered else 0.0


def _chunks(text: str) -> Iterator[str]:
    for start in range(0, len(text), MOST_CHARS):
        chunk = text[start : start + MOST_CHARS]
        if len(chunk) >= LEAST_CHARS:
            yield chunk


def _is_chinese(text: str) -> bool:
    visible = [char for char in text if not char.isspace()]
    return share(sum(script_of(char) is Script.HAN for char in visible), len(visible)) >= _HAN_SHARE


def read_texts(path: Path) -> Iterator[str]:
    """Every text of a file: the texts of JSON Lines or JSON by their keys, any other file whole."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".jsonl"):
        for _, entry in read_json_lines(path):
            yield from _texts_in(entry, "")
    elif name.endswith(".json"):
        yield from _texts_in(json.loads(path.read_text("utf-8")), "")
    else:
        yield path.read_text("utf-8", "replace")


def _texts_in(value: Any, key: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _texts_in(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from _texts_in(part, key)
    elif isinstance(value, str) and (key in _TEXT_KEYS or len(value) >= LEAST_CHARS):
        yield value

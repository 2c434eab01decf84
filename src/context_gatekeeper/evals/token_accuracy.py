"""``evals tokens``: the fitted estimate against the exact o200k vocabulary."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from context_gatekeeper.core.text import Script, script_of
from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.engine.exact_tokens import load_exact_counter
from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.evals.datasets import read_bytes, read_json, read_json_lines
from context_gatekeeper.evals.metrics import mean

__all__ = ["CONTEXT_TEXTS", "LEAST_CHARS", "MOST_CHARS", "measure_tokens", "read_texts"]

LEAST_CHARS = 160
MOST_CHARS = 8000
"""Texts are cut into chunks of at most this length; shorter ones than the least are left out."""
MOST_TEXTS = 6000
"""A seeded sample of so many chunks is counted: the exact counter is slow."""
CONTEXT_TEXTS = 40
_CONTEXTS = 400
_SEED = 7
_HAN_SHARE = 0.45
"""From this share of visible characters on Han, alone or with kana, rules a text."""
_LEAST_HAN_SHARE = 0.15
"""A text of kana needs so many Han characters to say anything about Han."""
_TEXT_KEYS = frozenset(
    {"text", "full_text", "user_text", "assistant_text", "content", "q", "answer", "query", "arguments", "history"}
)


@dataclass(frozen=True, slots=True)
class _Measured:
    """One chunk, counted both ways."""

    script: str
    is_han: bool
    error: float
    """Estimate over truth, minus 1."""
    estimated: int
    exact: int


def measure_tokens(paths: Sequence[Path]) -> dict[str, Any]:
    """Absolute relative errors of single texts of 160 to 8000 characters, and of contexts of 40 of them.

    ``han_worst_under``: the largest share by which a text of Han characters (Chinese in both spellings,
    Japanese) is under-counted, 0.0 when none is. ``context40_p95`` is None with fewer than 40 texts.
    ``by_script`` has the same figures by the script that most letters are of. Where no text is that long,
    neighbours are joined, line by line, until they are. Seeded: the same files give the same figures.

    Raises:
        ConfigError: the extra ``tokens`` is missing.
        TranscriptError: a file cannot be read, or all of them hold fewer than 160 characters.
    """
    count = load_exact_counter()
    rng = random.Random(_SEED)
    texts = [text for path in paths for text in read_texts(path)]
    chunks = [chunk for text in texts for chunk in _chunks(text)] or list(_joined(texts))
    if not chunks:
        raise TranscriptError(
            ", ".join(map(str, paths)),
            f"it holds no text of {LEAST_CHARS} characters, not even joined",
            "pass files with longer texts",
        )
    if len(chunks) > MOST_TEXTS:
        chunks = rng.sample(chunks, MOST_TEXTS)
    measured = [_measure(chunk, estimate_tokens(chunk), count(chunk)) for chunk in chunks]
    by_script: dict[str, list[_Measured]] = defaultdict(list)
    for one in measured:
        by_script[one.script].append(one)
    return {
        "single_p50": _percentile([abs(one.error) for one in measured], 0.5),
        "single_p95": _percentile([abs(one.error) for one in measured], 0.95),
        "context40_p95": _context_error(measured, rng),
        "han_worst_under": max((-one.error for one in measured if one.is_han and one.error < 0), default=0.0),
        "texts": len(measured),
        "bias": mean([one.error for one in measured]),
        "by_script": {script: _script_figures(group) for script, group in sorted(by_script.items())},
    }


def _measure(chunk: str, estimated: int, exact: int) -> _Measured:
    scripts = Counter(map(script_of, filter(str.isalpha, chunk)))
    visible = sum(not char.isspace() for char in chunk) or 1
    han, kana = scripts[Script.HAN] / visible, scripts[Script.KANA] / visible
    main_script = max(scripts, key=lambda script: (scripts[script], script), default=Script.OTHER)
    is_han = han + kana >= _HAN_SHARE and han >= _LEAST_HAN_SHARE
    return _Measured(main_script.value, is_han, estimated / max(1, exact) - 1, estimated, exact)


def _script_figures(group: Sequence[_Measured]) -> Mapping[str, float]:
    errors = [one.error for one in group]
    return {
        "texts": len(group),
        "single_p50": _percentile([abs(error) for error in errors], 0.5),
        "single_p95": _percentile([abs(error) for error in errors], 0.95),
        "worst_under": max(0.0, -min(errors)),
        "bias": mean(errors),
    }


def _context_error(measured: Sequence[_Measured], rng: random.Random) -> float | None:
    if len(measured) < CONTEXT_TEXTS:
        return None
    errors = []
    for _ in range(_CONTEXTS):
        group = rng.sample(measured, CONTEXT_TEXTS)
        errors.append(abs(sum(one.estimated for one in group) / sum(one.exact for one in group) - 1))
    return _percentile(errors, 0.95)


def _percentile(values: Sequence[float], level: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(level * len(ordered)))] if ordered else 0.0


def _chunks(text: str) -> Iterator[str]:
    for start in range(0, len(text), MOST_CHARS):
        chunk = text[start : start + MOST_CHARS]
        if len(chunk) >= LEAST_CHARS:
            yield chunk


def _joined(texts: Sequence[str]) -> Iterator[str]:
    lines: list[str] = []
    for text in texts:
        lines.append(text)
        if sum(map(len, lines)) + len(lines) - 1 >= LEAST_CHARS:
            yield "\n".join(lines)
            lines.clear()


def read_texts(path: Path) -> Iterator[str]:
    """Every text of a file: the texts of JSON Lines or JSON by their keys, any other file whole.

    Of strings under other keys only those of at least 160 characters. ``.gz`` is read as what it holds.
    Raises TranscriptError naming file and cause.
    """
    name = path.name.removesuffix(".gz")
    if name.endswith(".jsonl"):
        for _, entry in read_json_lines(path):
            yield from _texts_in(entry, "")
        return
    if name.endswith(".json"):
        yield from _texts_in(read_json(path), "")
    else:
        yield read_bytes(path).decode("utf-8", "replace")


def _texts_in(value: Any, key: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _texts_in(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from _texts_in(part, key)
    elif isinstance(value, str) and (key in _TEXT_KEYS or len(value) >= LEAST_CHARS):
        yield value

